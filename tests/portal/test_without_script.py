"""Whatever can be done in the portal can be done from a page's plain forms: a browser without script reaches every action.

The forms are those that the pages' HTML has. Each is sent as such a browser would send it: its named fields as they stand, and
one button after the other. A route that takes a POST and that no form leads to fails the test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.test import Client
from django.urls import Resolver404, get_resolver, resolve

from cluster import runtime
from tests.portal.site import address, full_pages, make_world, named

pytestmark = pytest.mark.django_db(databases="__all__")

PARTS = {
    "jobs:validate": "what the form says while somebody types, as a part of the page; submitting says the same",
    "jobs:blueprint_preview": "the same of a blueprint's form",
}
"""Routes that answer scripts alone, and where the same is without one."""
NEEDS_MORE = {
    "drains:detail": "portal/maintenance/drain.html",
    "jobs:bulk_detail": "jobs/bulk.html",
    "portal:workload": "portal/overview_body.html",
    "priority": "portal/priority.html",
    "way": "portal/way.html",
}
"""Routes whose form is shown when there is more, or less, than in the world here, with its template."""
TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
LEADS = re.compile(r"""<(?:form|button)[^>]*\s(?:form)?action="{% url ['"]([\w:]+)['"]""")


@dataclass
class Form:
    """A form as a browser without script sees it. Buttons are (action, method, name and value or nothing)."""

    page: str
    action: str
    method: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    buttons: list[tuple[str, str, tuple[str, str] | None]] = field(default_factory=list)


class Forms(HTMLParser):
    """Reads a page's forms; fields may stand elsewhere and name their form."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page = page
        self.forms: list[Form] = []
        self.links: set[str] = set()
        self._by_id: dict[str, Form] = {}
        self._loose: list[tuple[str, str, dict[str, str]]] = []
        self._open: Form | None = None
        self._choice: dict[str, str] | None = None
        self._text: dict[str, str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and given.get("href"):
            self.links.add(urljoin(self.page, given["href"]))
        if tag == "form":
            self._open = Form(self.page, urljoin(self.page, given.get("action") or self.page), given.get("method", "get").lower())
            self.forms.append(self._open)
            if "id" in given:
                self._by_id[given["id"]] = self._open
        if tag == "select":
            self._choice = given
        elif tag == "option" and self._choice is not None and ("selected" in given or "value" not in self._choice):
            self._choice["value"] = given.get("value", "")
        elif tag == "textarea":
            self._text = given | {"value": ""}
        elif tag in ("input", "button") and "disabled" not in given:
            self._field(tag, given)

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text["value"] += data

    def _field(self, tag: str, given: dict[str, str]) -> None:
        if "form" in given:
            self._loose.append((tag, given["form"], given))
        elif self._open is not None:
            self._put(self._open, tag, given)

    def _put(self, form: Form, tag: str, given: dict[str, str]) -> None:
        kind = given.get("type", "submit" if tag == "button" else "text")
        name = given.get("name", "")
        if tag == "button" or kind in ("submit", "image"):
            if kind == "submit":
                target = urljoin(self.page, given["formaction"]) if "formaction" in given else form.action
                method = given.get("formmethod", form.method).lower()
                form.buttons.append((target, method, (name, given.get("value", "")) if name else None))
        elif name and (kind not in ("checkbox", "radio") or "checked" in given) and kind not in ("file", "button", "reset"):
            form.fields.append((name, given.get("value", "on" if kind == "checkbox" else "")))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None
        elif tag == "select" and self._choice is not None:
            self._choice = self._field(tag, self._choice)
        elif tag == "textarea" and self._text is not None:
            self._text = self._field(tag, self._text)

    def close(self) -> None:
        super().close()
        for tag, form, given in self._loose:
            if form in self._by_id:
                self._put(self._by_id[form], tag, given)


def forms_of(client: Client, path: str) -> Forms:
    """The forms and links of a page."""
    found = Forms(path)
    answer = client.get(path)
    if answer.status_code == 200 and answer["Content-Type"].startswith("text/html"):
        found.feed(answer.getvalue().decode())
        found.close()
    return found


@pytest.fixture
def world(make_user: Any) -> Iterator[dict[str, Any]]:
    yield make_world(make_user)
    runtime.use(None)


@pytest.fixture
def pages(world: dict[str, Any], client: Client) -> list[Forms]:
    """Every page as staff see it, and those that its links lead to."""
    client.force_login(world["staff"], "django.contrib.auth.backends.ModelBackend")
    found, seen = [], set()
    todo = [*full_pages(client).values()]
    while todo:
        path = todo.pop(0)
        if path in seen or urlsplit(path).netloc or path.startswith(("/admin/", "/api/")):
            continue
        seen.add(path)
        found.append(forms_of(client, path))
        if len(seen) < 400:
            todo += sorted(link for link in found[-1].links if not urlsplit(link).fragment and _is_new_route(link, seen))
    return found


def _is_new_route(link: str, seen: set[str]) -> bool:
    """Whether a link leads to a route, with such parameters, that was not looked at: one page of a list is as good as another."""
    return _shape(link) not in {_shape(path) for path in seen}


def _shape(link: str) -> tuple[str, str, str]:
    parts = urlsplit(link)
    try:
        match = resolve(parts.path)
    except Resolver404:
        return ("", parts.path, "")
    action = str(match.kwargs.get("action", ""))
    return (
        match.view_name,
        action,
        ",".join(sorted(pair for pair in parts.query.split("&") if pair.startswith(("tab=", "do=")))),
    )


def test_every_action_is_reached_and_answered_without_a_script(pages: list[Forms], world: dict[str, Any], client: Client):
    forms = [form for page in pages for form in page.forms]
    posts = [form for form in forms if form.method == "post"]
    assert {(form.page, form.action) for form in posts if "csrfmiddlewaretoken" not in dict(form.fields)} == set()
    assert missing(forms, client) == []
    assert broken(forms, client) == []


def missing(forms: list[Form], client: Client) -> list[str]:
    """Routes that take a POST and to which no form leads."""
    reached = {name for path in TEMPLATES.rglob("*.html") for name in LEADS.findall(path.read_text())}
    reached |= {name for name, path in NEEDS_MORE.items() if re.search(r"<form[^>]*method=.post", (TEMPLATES / path).read_text())}
    sent = [(target, method) for form in forms for target, method, _ in form.buttons or [(form.action, form.method, None)]]
    reached |= {resolve(urlsplit(target).path).view_name for target, method in sent if method == "post"}
    posts = set()
    for name in dict(named(get_resolver())):
        if name.startswith(("admin:", "api:")) or name in PARTS:
            continue
        allowed = client.options(address(name)).headers.get("Allow", "")
        if "POST" in allowed or client.get(address(name)).status_code == 405:
            posts.add(name)
    return sorted(posts - reached)


def broken(forms: list[Form], client: Client) -> list[Any]:
    """Forms that as they stand are not done, nor refused in words, but are a fault of ours."""
    client.raise_request_exception = False
    wrong = []
    for form in forms:
        for target, method, button in form.buttons or [(form.action, form.method, None)]:
            if resolve(urlsplit(target).path).view_name in ("logout", "set_language"):
                continue
            data: dict[str, list[str]] = {}
            for name, value in [*form.fields, *([button] if button else [])]:
                data.setdefault(name, []).append(value)
            answer = client.post(target, data) if method == "post" else client.get(target, data)
            if answer.status_code >= 500:
                wrong.append((form.page, target, button, answer.status_code))
    return wrong
