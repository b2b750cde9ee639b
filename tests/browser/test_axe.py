"""No page has a serious fault of access, in either theme, wide or on a phone. The pages are those of the URL conf."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Page

from tests.browser.conftest import NODE_MODULES, Server, at_work
from tests.portal.site import full_pages

AXE = NODE_MODULES / "axe-core" / "axe.min.js"
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
TABS = ("pods", "logs", "events", "yaml")
MORE = ("/nowhere/", "/gpus/?view=table", "/jobs/?group=queue", "/jobs/?q=nothing-like-this", "/find/?q=train")
CONTRAST = {"runOnly": ["color-contrast"]}
LOOKS = ((WIDE, None, "light"), (WIDE, CONTRAST, "dark"), (PHONE, CONTRAST, "dark"), (PHONE, None, "light"))


def faults(page: Page, options: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Serious and critical findings of axe; what Swagger UI draws, once it has, is not ours."""
    run = "options => axe.run({ exclude: [['.swagger-ui']] }, options)"
    result = page.evaluate(run, {"resultTypes": ["violations"], **(options or {})})
    serious = [fault for fault in result["violations"] if fault["impact"] in ("serious", "critical")]
    return [{"rule": f["id"], "at": [(n["html"][:160], n["failureSummary"][:240]) for n in f["nodes"][:4]]} for f in serious]


@pytest.mark.browser_context_args(bypass_csp=True)  # axe puts styles of its own into the page
def test_no_page_has_a_serious_fault_of_access(page: Page, server: Server, sign_in: Callable, world: dict[str, Any]):
    if not AXE.is_file():
        pytest.skip("axe-core is not installed")
    user = sign_in()
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    paths = list(full_pages(client).values())  # of the small world: each page with one of what it is about
    job = at_work()
    own = f"/jobs/{job.uid}/"
    paths += ["/", own, *(f"{own}?tab={tab}" for tab in TABS), *MORE]
    page.emulate_media(reduced_motion="reduce")  # else colours are seen on their way from one theme to the other
    axe = Path(AXE).read_text() + ";null"
    found: dict[str, Any] = {}
    for path in dict.fromkeys(paths):
        page.set_viewport_size(WIDE)
        page.goto(server.url + path)
        page.evaluate(axe)
        for view, options, theme in LOOKS:
            page.set_viewport_size(view)
            page.evaluate("theme => { document.documentElement.dataset.bsTheme = theme; }", theme)
            for fault in faults(page, options):
                found[f"{path} {view['width']} {theme} {fault['rule']}"] = fault["at"]
    assert not found, json.dumps(found, indent=1, ensure_ascii=False)


@pytest.mark.browser_context_args(bypass_csp=True)
def test_the_sign_in_page_has_none_either(page: Page, server: Server):
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{server.url}/sign-in/")
    page.evaluate(Path(AXE).read_text() + ";null")
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.bsTheme = theme; }", theme)
        assert faults(page) == []
