"""Nothing is cut, overlapped or out of line on any page of the URL conf; paper gets the page without its frame."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from tests import factories as make
from tests.browser.conftest import Server, at_work
from tests.portal.site import full_pages

FITS = (Path(__file__).parent / "fits.js").read_text()
DRAWN = "() => document.fonts.ready.then(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))"
TABS = ("pods", "placement", "events", "decisions", "usage", "lineage", "yaml")
MORE = ("/nowhere/", "/?wall=1", "/gpus/?view=table", "/jobs/?view=all", "/jobs/?group=queue", "/find/?q=train")
PAPER = ("/", "/jobs/?view=all", "/queues/", "/queues/fairness/", "/nodes/")
SHEET = {"width": 718, "height": 1000}  # A4 between Chromium's margins


@pytest.mark.parametrize(("width", "language"), [(390, "en"), (1280, "zh-hans"), (1280, "en")])
def test_nothing_is_cut_on_any_page(
    page: Page, server: Server, sign_in: Callable, world: dict[str, Any], width: int, language: str
):
    user = sign_in()
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    paths = list(full_pages(client).values())
    own = f"/jobs/{at_work().uid}/"
    paths += ["/", own, *(f"{own}?tab={tab}" for tab in TABS), *MORE]
    page.context.add_cookies([{"name": "django_language", "value": language, "url": server.url}])
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(reduced_motion="reduce")
    found: dict[str, list[str]] = {}
    for path in dict.fromkeys(paths):
        page.goto(server.url + path)
        page.evaluate(DRAWN)
        if faults := page.evaluate(FITS):
            found[path] = faults
    assert not found, json.dumps(found, indent=1, ensure_ascii=False)


def test_paper_gets_all_columns_and_no_controls(page: Page, server: Server, sign_in: Callable, world: dict[str, Any]):
    sign_in()
    own = f"/jobs/{at_work().uid}/"
    page.set_viewport_size(SHEET)
    found: dict[str, Any] = {}
    for path in (*PAPER, own):
        page.emulate_media(media="screen")
        page.goto(server.url + path)
        page.evaluate(DRAWN)
        page.emulate_media(media="print")
        page.evaluate(DRAWN)
        for control in (".ba-rail", ".ba-top", ".ba-head .acts", ".pages", "dialog"):
            for each in page.locator(control).all():
                expect(each).to_be_hidden()
        if faults := page.evaluate(FITS):
            found[path] = faults
    assert not found, json.dumps(found, indent=1, ensure_ascii=False)


WATCH = """() => {
  const number = (el) => Number(el.textContent.replaceAll(",", ""));
  const sum = (selector) => [...document.querySelectorAll(selector)].reduce((all, el) => all + number(el), 0);
  window.apart = [];
  const look = () => {
    const [told, listed] = [number(document.querySelector('[data-field="jobs_waiting"]')), sum("[data-waiting]")];
    if (told !== listed) window.apart.push([told, listed]);
  };
  new MutationObserver(look).observe(document.querySelector("main"), { childList: true, characterData: true, subtree: true });
  look();
}"""


def test_the_overviews_figures_and_queues_agree_at_any_moment(page: Page, server: Server, sign_in: Callable):
    from tests.browser.test_pages import change, wait_until_live

    sign_in()
    make.fleet()
    jobs = [make.job(f"job-{i}", queue=("prod", "teaching")[i % 2]) for i in range(6)]
    make.save(jobs)
    page.goto(server.url)
    wait_until_live(page)
    page.evaluate(WATCH)
    figure = page.locator('[data-field="jobs_waiting"]')
    for at, job in enumerate(jobs):
        change(job, phase="Running", running=2)
        expect(figure).to_have_text(str(len(jobs) - 1 - at))
    assert page.evaluate("window.apart") == []
    expect(page.locator('[data-share="prod"] [data-waiting]')).to_have_text("0")
