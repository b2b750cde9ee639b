"""The portal of a case that looks at pages: a mirror of the case's cluster, and a signed-in member of the staff."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from cluster.errors import Invalid
from jobs.choices import JobPhase
from jobs.models import Job
from jobs.pages import queries
from portal.decisions import Sink
from portal.mirror import Mirror
from portal.scenario.errors import Failed, NotSupported
from portal.scenario.expect import check
from portal.scenario.html import Page
from portal.scenario.objects import NAMESPACE, queue_spec
from portal.scenario.world import World
from queues.forms import flatten

_LISTS = {"jobs": "jobs:list", "queues": "queues:list"}
_FIELDS = {"phase": "state", "state": "state", "queue": "queue", "owner": "owner", "namespace": "namespace", "name": "q"}
"""Fields of a filter by the names that pages give them."""


class Portal:
    """Pages of one case. `sink` takes the scheduler's records. It uses the database that is there."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self.sink = Sink()
        self.pages: dict[str, Page] = {}
        self.open = ""
        self._page_size, queries.PAGE_SIZE = queries.PAGE_SIZE, setup.get("page_size", queries.PAGE_SIZE)
        host = next((host for host in settings.ALLOWED_HOSTS if host not in ("*",)), "localhost")
        self._client = Client(headers={"accept-language": "en"}, SERVER_NAME=host.lstrip("."))
        self._client.force_login(get_user_model().objects.get_or_create(username="scenario", is_staff=True)[0])

    def connect(self, world: World) -> None:
        """Show this world."""
        self._world, self._mirror = world, Mirror(world.cluster)
        world.portal = self

    def close(self) -> None:
        """End the watch, and give pages their size back."""
        self._mirror.close()
        queries.PAGE_SIZE = self._page_size

    def do(self, word: str, value: Any) -> None:
        """One step about pages."""
        if word == "open_page":
            for page in [value] if isinstance(value, str) else value:
                self.visit(page)
        elif word == "filter":
            self._filter(value)
        else:
            self._edit_queue(value)

    def visit(self, name: str, query: str = "") -> Page:
        """Open a page, as it is now."""
        self._mirror.settle()
        self.sink.write()
        found = self.pages[name] = self._get(self._address(name) + query)
        self.open = name
        return found

    def _get(self, address: str) -> Page:
        response = self._client.get(address, follow=True, secure=settings.HTTPS)
        if response.status_code != 200:
            raise Failed(f"the page {address} answers {response.status_code}")
        return Page(response.content.decode())

    def _address(self, page: str) -> str:
        kind, _, name = page.partition("/")
        if page in _LISTS:
            return reverse(_LISTS[page])
        if kind == "job" and name:
            jobs = Job.objects.filter(name=name, namespace=NAMESPACE).order_by("deleted_at", "-created_at")
            if not jobs:
                raise Failed(f"no page of job {name}: the portal does not know it")
            return reverse("jobs:detail", args=[jobs[0].uid])
        if kind == "queue" and name:
            return reverse("queues:detail", args=[name])
        raise NotSupported(f"page {page}")

    def _filter(self, wanted: dict[str, str]) -> None:
        if self.open != "jobs":
            raise NotSupported(f"filter on {self.open or 'no page'}")
        asked = {_field(field): _value(value) for field, value in wanted.items()}
        self.visit("jobs", f"?{urlencode(asked)}")

    def _edit_queue(self, words: dict[str, Any]) -> None:
        """Fill the queue's form in as it was opened, and save what it says would change."""
        name = words["queue"]
        self._mirror.settle()
        address = reverse("queues:edit", args=[name])
        given = {key: value for key, value in flatten(queue_spec(words)).items() if value}
        values = self._get(address).form() | given | {"step": "save"}
        response = self._client.post(address, values, secure=settings.HTTPS)
        said = Page(response.content.decode())

        def answer() -> None:
            if response.status_code != 302:
                raise Invalid(said.text)

        self._world.ask(name, answer)


def _field(field: str) -> str:
    if field not in _FIELDS:
        raise NotSupported(f"filter by {field}")
    return _FIELDS[field]


def _value(value: str) -> str:
    """Phases are filtered by the states that pages group them into."""
    return JobPhase(value).mark if value in JobPhase.values else value


def _portal(world: World) -> Portal:
    assert isinstance(world.portal, Portal)
    return world.portal


def _list(world: World) -> Page:
    portal = _portal(world)
    return portal.pages.get(portal.open) or portal.visit("jobs")


@check
def page_shows(world: World, value: dict[str, list[str]]) -> list[str]:
    """Texts that are visible on pages; a page that no step opened is opened now."""
    portal, found = _portal(world), []
    for name, texts in value.items():
        page = portal.pages.get(name) or portal.visit(name)
        found += [f"page {name} does not show {text}" for text in texts if text not in page.text]
    return found


@check
def filter_choices_include(world: World, value: dict[str, list[str]]) -> list[str]:
    """Choices that the filter of the open list offers."""
    page, found = _list(world), []
    for field, wanted in value.items():
        offered = page.values(_field(field))
        missing = [choice for choice in wanted if _value(choice) not in offered]
        if missing:
            found.append(f"the filter by {field} offers {', '.join(sorted(offered)) or 'nothing'}, not {', '.join(missing)}")
    return found


@check
def rows_after_filter(world: World, value: int) -> list[str]:
    """Rows on the page."""
    rows = _list(world).rows
    return [] if rows == value else [f"{rows} rows on the page, not {value}"]


@check
def total_shown(world: World, value: int) -> list[str]:
    """The total that the list states."""
    stated = _numbers(_list(world).text_of("tally"))
    return [] if stated[:1] == [value] else [f"the list states {stated[0] if stated else 'no total'}, not {value}"]


@check
def page_is(world: World, value: int) -> list[str]:
    """The number of the page, by the rows that it says it shows."""
    rows = _numbers(_list(world).text_of("place") or _list(world).text_of("pages"))
    number = (rows[0] - 1) // queries.PAGE_SIZE + 1 if rows else 1
    return [] if number == value else [f"page {number}, not {value}"]


def _numbers(text: str) -> list[int]:
    return [int(re.sub(r"[,\s\u202f]", "", each)) for each in re.findall(r"\d+(?:[,\u202f]\d{3})*", text)]
