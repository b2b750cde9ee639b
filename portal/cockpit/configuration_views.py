"""Pages of the configuration: in force, edited with its faults, diff and effect, its history, and what was before again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from cluster.access import policy
from cluster.errors import ApiError, Conflict
from cluster.said import said, words
from portal.cockpit import configuration, versions, what_if
from portal.cockpit.configuration import Checked, Standing
from portal.cockpit.draft import Draft
from portal.cockpit.views import may
from portal.cockpit.words import does
from portal.models import ConfigurationVersion, SchedulerConfiguration
from portal.unblock.copy import current
from scheduler import conf
from scheduler.conf import Arguments, Configuration, Fault, PluginOption
from scheduler.framework import registry

SECRET = ("password", "passwd", "token", "secret", "credential")
AROUND = 2
"""Lines shown before and after one that is wrong."""
WIDEST = 300
"""Characters shown of such a line."""


@dataclass(frozen=True, slots=True)
class Part:
    """A plugin or an action: what it does, its switches that are not as usual, its arguments as `(name, value)`."""

    name: str
    does: str
    switches: list[tuple[str, bool]]
    arguments: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Wrong:
    """One fault, with its line and those around it as `(number, text, is it this one)`."""

    line: int
    message: str
    lines: list[tuple[int, str, bool]]


@require_GET
def shown(request: HttpRequest) -> HttpResponse:
    """The configuration in force, and what is wrong with a newer version of its file."""
    may(request, "scheduler.view")
    may_read = policy().may(request.user, "scheduler.source")
    standing = configuration.standing() if may_read else None
    row = standing.told if standing is not None else configuration.told()
    loaded, outdated = _load(row)
    context = {
        "conf": row if settings.BASALT_SCHEDULER else None,
        "is_elsewhere": not settings.BASALT_SCHEDULER,
        "outdated": outdated,
        "actions": [_action(loaded, name) for name in loaded.actions] if loaded else [],
        "tiers": [[_plugin(option) for option in tier] for tier in loaded.tiers] if loaded else [],
        "faults": [wrong(_fault(each), row.broken if may_read else "") for each in row.faults] if row else [],
        "odd": [wrong(each, row.text if may_read else "") for each in configuration.warnings(row.text)] if row else [],
        "text": row.text.splitlines() if row and may_read else [],
        "version": standing.in_force if standing is not None else versions.in_force(),
        "standing": standing,
        "may_change": policy().may(request.user, "scheduler.change"),
        "may_read": may_read,
    }
    return render(request, "portal/cockpit/configuration.html", context)


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest) -> HttpResponse:
    """The editor: a text is checked, compared with what is in force, tried on a copy, and saved."""
    may(request, "scheduler.change")
    standing = configuration.standing(asks=True)
    newest = standing.newest
    if newest is None:
        return render(request, "portal/cockpit/edit.html", {"none": True}, status=409)
    if request.method == "GET":
        given = request.GET.get("version", "")
        begun = (
            ConfigurationVersion.objects.filter(pk=int(given)).first()
            if given.isascii() and given.isdigit() and len(given) < 19
            else newest
        )
        return render(request, "portal/cockpit/edit.html", _editor(standing, newest, (begun or newest).text, newest.pk))
    text = request.POST.get("text", "").replace("\r\n", "\n")
    base, note = request.POST.get("base", ""), request.POST.get("note", "").replace("\0", "").strip()
    based = int(base) if base.isascii() and base.isdigit() and len(base) < 19 else 0
    context = _editor(standing, newest, text, based) | {"note": note, "tried": True}
    if request.POST.get("do") == "save" and not context["faults"]:
        try:
            saved = configuration.save(text, based, request.user.get_username(), note)
        except Conflict as error:
            context = _again(text) | {"note": note, "tried": True, "conflict": words(error.message)}
            return render(request, "portal/cockpit/edit.html", context, status=409)
        except ApiError as error:
            return render(request, "portal/cockpit/edit.html", context | {"error": words(error.message)}, status=error.status)
        messages.success(request, _saved(saved))
        return redirect("cockpit:configuration")
    if context["checked"].loaded is not None:
        context |= _effect(request, context["checked"])
    return render(request, "portal/cockpit/edit.html", context, status=422 if context["faults"] else 200)


@require_GET
def history(request: HttpRequest) -> HttpResponse:
    """Who changed what and when; each version can be begun from again."""
    may(request, "scheduler.source")
    standing = configuration.standing()
    context = {
        "standing": standing,
        "versions": configuration.history(),
        "may_change": policy().may(request.user, "scheduler.change"),
    }
    return render(request, "portal/cockpit/history.html", context)


@require_POST
def roll_back(request: HttpRequest, pk: int) -> HttpResponse:
    """Put an older version in force again, as a version of its own."""
    may(request, "scheduler.change")
    older = get_object_or_404(ConfigurationVersion, pk=pk)
    base = request.POST.get("base", "")
    note = versions.note_of(older.pk)
    try:
        based = int(base) if base.isascii() and base.isdigit() and len(base) < 19 else 0
        saved = configuration.save(older.text, based, request.user.get_username(), note)
    except ApiError as error:
        messages.error(request, words(error.message))
        return redirect("cockpit:history")
    messages.success(request, _saved(saved))
    return redirect("cockpit:configuration")


@require_http_methods(["GET", "POST"])
def download(request: HttpRequest) -> HttpResponse:
    """A configuration as a file: the one in force, or the text that is sent."""
    may(request, "scheduler.source")
    newest = configuration.told()
    text = request.POST.get("text", "").replace("\r\n", "\n") if request.method == "POST" else newest.text if newest else ""
    if len(text) > conf.LONGEST:
        raise PermissionDenied
    answer = HttpResponse(text, content_type="text/yaml; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{configuration.FILE}"'
    return answer


def _saved(version: ConfigurationVersion) -> str:
    return _("Version %(number)s is saved; the next cycle runs by it.") % {"number": version.pk}


def _again(text: str) -> dict[str, Any]:
    """The editor after somebody else was quicker, or what is there is not what it was: from what is there now."""
    standing = configuration.standing(asks=True)
    assert standing.newest is not None
    return _editor(standing, standing.newest, text, standing.newest.pk)


def _editor(standing: Standing, newest: ConfigurationVersion, text: str, base: int) -> dict[str, Any]:
    checked = configuration.check(text)
    return {
        "checked": checked,
        "text": text,
        "base": base,
        "newest": newest,
        "faults": [wrong(fault, text) for fault in checked.faults],
        "diff": configuration.diff(newest.text, text),
        "standing": standing,
        "actions": [(name, does(name)) for name in sorted(registry.actions)],
        "plugins": [(name, does(name)) for name in sorted(registry.plugins)],
    }


def _effect(request: HttpRequest, checked: Checked) -> dict[str, Any]:
    """What would be different at once, by a run on a copy of the cluster."""
    try:
        with current().pinned() as view:
            found = what_if.ask(view, Draft(), checked.loaded)
    except ApiError as error:
        return {"effect_error": words(error.message)}
    return what_if.told(request.user, found) if found is not None else {}


def _load(row: SchedulerConfiguration | None) -> tuple[Configuration | None, str]:
    """The configuration as its parts; and why it cannot be read, when another version of Basalt wrote it."""
    if row is None:
        return None, ""
    try:
        return conf.load(row.text), ""
    except conf.ConfError as error:
        return None, words(said("%(faults)s", faults=error.sentences))


def _action(loaded: Configuration, name: str) -> Part:
    return Part(name, does(name), [], _arguments(loaded.arguments.get(name)))


def _plugin(option: PluginOption) -> Part:
    switches = [(name, on) for name, on in option.switches.items() if on != conf.SWITCHES[name]]
    return Part(option.name, does(option.name), switches, _arguments(option.arguments))


def _arguments(arguments: Arguments | None) -> list[tuple[str, str]]:
    """As they are written; what looks like a secret is not shown to anybody."""
    found = [(key, arguments.value(key, "")) for key in arguments.keys()] if arguments is not None else []  # noqa: SIM118
    return [(key, "•••" if any(word in key.lower() for word in SECRET) else _written(value)) for key, value in found]


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _fault(told: dict[str, Any]) -> Fault:
    return Fault(int(told.get("line") or 0), str(told.get("message") or ""))


def wrong(fault: Fault, text: str) -> Wrong:
    """A fault with its place."""
    lines = text.splitlines()
    first = max(fault.line - 1 - AROUND, 0)
    numbers = range(first + 1, min(fault.line + AROUND, len(lines)) + 1) if fault.line else ()
    shown = [(number, _cut(lines[number - 1]), number == fault.line) for number in numbers]
    return Wrong(fault.line, words(fault.message), shown)


def _cut(line: str) -> str:
    return line if len(line) <= WIDEST else f"{line[:WIDEST]}…"
