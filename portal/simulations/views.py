"""The pages of simulations: a list, a form, and one simulation as it runs and when it has ended."""

from __future__ import annotations

import threading
import time
from typing import Any

import orjson
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from cluster.access import policy
from cluster.errors import ApiError
from cluster.said import said, words
from portal.models import Simulation, SimulationKind, State
from portal.simulations import efficiency, outputs, picture, present, work
from portal.simulations.forms import SimulationForm
from portal.simulations.names import ANOTHER, DEFAULT, IN_FORCE, NOW, WORTH, named
from portal.simulations.words import comparison, experiment_rows, length, notes, titles
from portal.unblock import copy
from scheduler import conf as configuration
from scheduler.simulation.workload import WorkloadError

SHOWN = 100
ACTIVE = 3
"""Simulations that one person may have under way."""
_making = threading.Lock()
"""Forms are read one at a time: an upload unpacks to much, and who sends many at once has no more of them under way."""


def _may(request: HttpRequest, action: str, obj: Any = None) -> None:
    if not policy().may(request.user, action, obj):
        raise PermissionDenied


@require_GET
def simulations(request: HttpRequest) -> HttpResponse:
    """The newest simulations."""
    _may(request, "simulations.view")
    work.take_up_lost()
    rows = policy().visible(request.user, Simulation.objects.defer("params", "result"))[:SHOWN]
    return render(
        request, "portal/simulations/list.html", {"rows": rows, "may_run": policy().may(request.user, "simulations.run")}
    )


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """The form; what is sent is read whole before anything is started, so that faults are told here."""
    _may(request, "simulations.run")
    kind = request.GET.get("kind", "")
    form = SimulationForm(request.POST or None, request.FILES or None, initial={"kind": kind} if kind in SimulationKind else None)
    if request.method == "POST" and form.is_valid():
        with _making:
            made = _made(request, form)
        if made is not None:
            work.start(made)
            return redirect("simulations:detail", made.pk)
    status = 422 if form.is_bound and not form.is_valid() else 200
    context = {"form": form, "kind": form["kind"].value() or SimulationKind.REPLAY, "traces": work.traces()}
    return render(request, "portal/simulations/new.html", context, status=status)


def _made(request: HttpRequest, form: SimulationForm) -> Simulation | None:
    """What a form asks for, kept; None when the form has been told why not."""
    under_way = Simulation.objects.filter(owner=request.user.get_username(), state__in=(State.WAITING, State.RUNNING)).count()
    if under_way >= ACTIVE:
        form.add_error(None, _("You have %(count)s simulations under way; wait for one, or cancel it.") % {"count": under_way})
        return None
    try:
        return _make(request, form)
    except WorkloadError as error:
        form.add_error(None, list(map(words, error.faults)))
    except ApiError as error:
        form.add_error(None, words(error.message))
    return None


def _make(request: HttpRequest, form: SimulationForm) -> Simulation:
    given, owner = form.cleaned_data, request.user.get_username()
    if given["kind"] == SimulationKind.EFFICIENCY:
        params: dict[str, Any] = {
            "jobs": given["jobs"], "repetitions": given["repetitions"] or 5, "nodes": 2, "gpus": 4, "work": 600.0,
            "patience": float(600 if given["patience"] is None else given["patience"]), "seed": given["seed"] or 0,
        }  # fmt: skip
        title = given["title"] or WORTH
        return Simulation.objects.create(kind=given["kind"], title=title, owner=owner, params=params)
    params = {name: given[name] for name in ("source", "nodes", "part", "limit", "load", "seed") if given[name]}
    params["confs"] = _confs(given)
    if given["source"] == "upload":
        params |= {"file": given["upload"].name[:200], "content": work.packed(given["upload"].read())}
    elif given["source"] == "trace":
        params["file"] = given["trace"]
    else:
        params = {**params, "source": "now", "content": _now()}
    title = given["title"] or str(params.get("file") or NOW)
    made = Simulation(kind=given["kind"], title=title[:200], owner=owner, params=params)
    made.pk = None
    _check(made)
    made.save()
    return made


def _check(made: Simulation) -> None:
    """Read the input once, before anything is kept. Raises WorkloadError."""
    here = work.folder(Simulation(pk=f"check-{time.monotonic_ns()}"))
    try:
        work.read(made.params, here)
    finally:
        work.clear(here)


def _confs(given: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    if given["in_force"]:
        found.append((IN_FORCE, work.conf_in_force()))
    if given["default"]:
        found.append((DEFAULT, configuration.DEFAULT))
    if given["other"].strip():
        found.append((ANOTHER, given["other"]))
    return found


def _now() -> str:
    """The cluster as it is, packed."""
    with copy.current().pinned() as view:
        return work.packed(orjson.dumps({"objects": present.objects_now(view), "now": view.at}))


def _one(request: HttpRequest, pk: int) -> Simulation:
    _may(request, "simulations.view")
    return get_object_or_404(policy().visible(request.user, Simulation.objects.all()), pk=pk)


@require_GET
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One simulation: how far it is, or what came of it."""
    found = _one(request, pk)
    work.take_up_lost()
    context: dict[str, Any] = {"it": found, "may_act": policy().may(request.user, "simulations.act", found)}
    context["length"] = length(found.progress.get("simulated", 0))
    if found.result and found.kind == SimulationKind.EFFICIENCY:
        context |= {"rows": experiment_rows(found.result), "chart": found.result}
    elif found.result:
        context |= {"table": comparison(found.result["results"]), "notes": notes(found.result), "chart": titles(found.result)}
        context["names"] = [named(result["name"]) for result in found.result["results"]]
    return render(request, "portal/simulations/detail.html", context)


@require_GET
def file(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """The result as JSON or CSV, and its picture."""
    found = _one(request, pk)
    if not found.result:
        raise Http404(said("It has no result yet."))
    is_replay = found.kind == SimulationKind.REPLAY
    if name == "picture.svg":
        drawn = picture.comparison(found.title, found.result["results"]) if is_replay else efficiency.drawing(found.result)
        return _sent(drawn.encode(), "image/svg+xml", name, inline=True)
    if name == "jobs.csv" and is_replay:
        return _sent(work.unpacked(found.result["csv"]), "text/csv; charset=utf-8", name)
    if name == "result.json":
        shown = {key: value for key, value in found.result.items() if key != "csv"}
        content = outputs.as_json(found.title, shown["results"], shown["notes"]) if is_replay else orjson.dumps(shown)
        return _sent(content, "application/json", name)
    raise Http404(name)


def _sent(content: bytes, kind: str, name: str, *, inline: bool = False) -> HttpResponse:
    answer = HttpResponse(content, content_type=kind)
    answer["Content-Disposition"] = f'{"inline" if inline else "attachment"}; filename="{name}"'
    return answer


@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Stop a simulation; whoever works on it hears of it within seconds."""
    found = _one(request, pk)
    _may(request, "simulations.act", found)
    Simulation.objects.filter(pk=pk).update(cancel=True)
    work.cancelled(pk)
    return HttpResponseRedirect(reverse("simulations:detail", args=[pk]))


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Forget a simulation that has ended."""
    found = _one(request, pk)
    _may(request, "simulations.act", found)
    if found.standing.is_final:
        work.forget(found)
        return HttpResponseRedirect(reverse("simulations:list"))
    return HttpResponseRedirect(reverse("simulations:detail", args=[pk]))
