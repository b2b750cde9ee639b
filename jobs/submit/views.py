"""The submit page: a form and YAML over one draft, checked as one types, and the way into the cluster.

One posted request carries both sides: `yaml`, the form's inputs, and `shown`, what the form showed when it was drawn. The
draft is the YAML with the form's changes in it, whichever side was edited.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from cluster import documents, runtime
from cluster.access import policy, seen
from cluster.errors import ApiError, Unavailable
from cluster.said import told, words
from jobs import keys, writes
from jobs.blueprints.shown import named
from jobs.models import Job
from jobs.pages.comparing import compare
from jobs.submit import clone, forms, plugins
from jobs.submit.checks import Check, Fault, check, refuse
from jobs.submit.draft import Draft, DraftError
from jobs.submit.examples import EXAMPLES
from jobs.submit.fields import VGPU
from jobs.submit.preview import Preview, fits, models, offered_queues, preview, priorities, tiers
from jobs.submit.shapes import BY_KEY, SHAPES, Shape
from jobs.submit.uploads import LIMIT, text_of
from queues.queries import queues

_ORIGIN = re.compile(rf"{re.escape(keys.CLONED_FROM)}[\"']?:\s*[\"']?([0-9a-zA-Z-]{{1,36}})\b")
"""In any draft, also one that cannot be read as a whole."""


@require_http_methods(["GET", "POST"])
def submit(request: HttpRequest) -> HttpResponse:
    """The page; a POST submits, or (without script) brings both sides together or changes the list of tasks."""
    if not policy().may(request.user, "jobs.submit"):
        raise PermissionDenied
    if request.method == "GET":
        return _fresh(request)
    wish = request.POST.get("do", "submit")
    if wish == "load":
        return _loaded(request)
    if shape := BY_KEY.get(wish.removeprefix("shape-")):
        return _begun_anew(request, shape)
    checked = _edited(request, wish)
    if wish != "submit" or checked.faults or checked.is_bundle:
        return _page(request, checked, status=422 if wish == "submit" and checked.faults else 200)
    return _submit(request, checked)


@require_POST
def validate(request: HttpRequest) -> HttpResponse:
    """The same draft looked at while it is being written; the answer is the parts of the page that change."""
    if not policy().may(request.user, "jobs.submit"):
        raise PermissionDenied
    wish = request.POST.get("do", "")
    context = _context(request, _edited(request, wish))
    context["redraw"] = request.POST.get("side") != "form" or bool(wish)
    if context["redraw"]:
        context["fits"] = fits(request.user)
    return render(request, "jobs/submit_check.html", context)


def address() -> str:
    """Where the page is."""
    return reverse("jobs:submit")


drafts: dict[str, Callable[[HttpRequest], str]] = {}
"""Other pages that carry a draft, by the field that tells them: how its YAML is found."""


def draft_of(request: HttpRequest) -> str:
    """The draft that a posted page carries, as YAML."""
    other = next((draft for field, draft in drafts.items() if field in request.POST), None)
    return other(request) if other else _edited(request, "").text


def begin_with(request: HttpRequest, text: str) -> HttpResponse:
    """The page with a text that another page made."""
    return _page(request, _checked(request, text, None), first=True)


def _fresh(request: HttpRequest) -> HttpResponse:
    text = EXAMPLES.get(request.GET.get("example", ""), "")
    if uid := request.GET.get("from"):
        origin = get_object_or_404(policy().visible(request.user, Job.objects.all()), uid=uid)
        try:
            changed = request.session.get("changed-copy") if request.GET.get("changed") else None
            patch = changed["patch"] if changed and changed.get("job") == origin.uid else None
            text = clone.manifest(origin, patch)
        except ValueError:
            messages.error(request, _("%(job)s was not submitted as a Job, so there is nothing to clone.") % {"job": origin})
    if not text:
        shape = BY_KEY.get(request.GET.get("shape", ""), SHAPES[0])
        offered = offered_queues(request.user)
        wanted = request.GET.get("queue", "")
        queue = wanted if wanted in offered else "default" if "default" in offered or not offered else offered[0]
        if wanted and wanted not in offered:
            messages.warning(request, _not_offered(request.user, wanted) % {"queue": wanted[:253], "instead": queue})
        taken = set(Job.objects.filter(namespace="default", deleted_at=None).values_list("name", flat=True))
        name = f"{shape.key}-1"
        text = shape.manifest(clone.next_name(shape.key, taken) if name in taken else name, queue)
    return _page(request, _checked(request, text, None), first=True)


def _not_offered(user: Any, name: str) -> str:
    row = next((row for row in queues(user) if row.name == name), None)
    if row is None:
        return _("Queue %(queue)s does not exist; the draft names %(instead)s instead.")
    if row.state != "Open":
        return _("Queue %(queue)s takes no new jobs, it is not open; the draft names %(instead)s instead.")
    return _("Queue %(queue)s has queues below it, and jobs go into those; the draft names %(instead)s instead.")


def _begun_anew(request: HttpRequest, shape: Shape) -> HttpResponse:
    """Another shape takes the draft's place: at once where nobody has written in it, else when that is confirmed."""
    checked = _edited(request, "")
    if _digest(checked.text) == request.POST.get("origin"):
        return redirect(f"{request.path}?shape={shape.key}")
    return _page(request, checked, instead=shape)


def _digest(text: str) -> str:
    """What tells an untouched draft from one that was written in; a browser drops a text area's last line ends."""
    return hashlib.sha256(text.replace("\r\n", "\n").strip().encode()).hexdigest()


def _loaded(request: HttpRequest) -> HttpResponse:
    """A file took the draft's place."""
    try:
        text = text_of(request.FILES.get("file"))
    except ApiError as error:
        checked = _checked(request, request.POST.get("yaml", ""), None)
        checked.faults.insert(0, Fault(words(error.message)))
        return _page(request, checked, status=error.status if error.status == 413 else 422)
    return _page(request, _checked(request, text, None), first=True)


def _edited(request: HttpRequest, wish: str) -> Check:
    """The posted YAML with the posted form's changes, checked."""
    text = request.POST.get("yaml", "").replace("\r\n", "\n")
    shown = _texts(request.POST.get("shown", ""))
    start = _texts(request.POST.get("start", "")) or None
    try:
        found = documents.load(text)
        draft = Draft(text) if len(found) == 1 and found[0].obj.get("kind") == "Job" else None
    except (ApiError, DraftError):
        draft = None
    if draft is not None:
        try:
            forms.merge(draft, shown, request.POST.dict())
            _change_tasks(draft, wish)
        except DraftError as error:
            checked = _checked(request, text, start)
            checked.faults.append(Fault(words(told(error)), line=error.line))
            return checked
        text = draft.text
    return _checked(request, text, start, draft)


def _change_tasks(draft: Draft, wish: str) -> None:
    found = re.fullmatch(r"remove-task-(\d{1,3})", wish)
    if wish == "add-task":
        forms.add_task(draft)
    elif found and forms.task_count(draft) > 1:
        forms.remove_task(draft, int(found[1]))


def _checked(request: HttpRequest, text: str, start: dict[str, str] | None, draft: Draft | None = None) -> Check:
    try:
        return check(runtime.current(), text, user=request.user, start=start, draft=draft)
    except Unavailable as error:
        checked = Check(text)
        checked.faults = [Fault(words(error.message))]
        return checked


def _submit(request: HttpRequest, checked: Check) -> HttpResponse:
    try:
        manifest = documents.load(checked.text)[0].obj
        job = writes.submit(manifest, request.user.get_username())
    except ApiError as error:
        refuse(checked, error)
        return _page(request, checked, status=error.status)
    messages.success(request, _("Job %(name)s was submitted.") % {"name": job["metadata"]["name"]})
    return redirect("jobs:detail", job["metadata"]["uid"])


def _page(
    request: HttpRequest,
    checked: Check,
    *,
    first: bool = False,
    instead: Shape | None = None,
    status: int = 200,
) -> HttpResponse:
    context = _context(request, checked)
    context["digest"] = request.POST.get("origin", "")
    if first:
        context |= {"start": context["shown"], "digest": _digest(checked.text)}
    context |= {"shapes": SHAPES, "shape": request.GET.get("shape", ""), "limit": LIMIT, "instead": instead}
    context["fits"] = fits(request.user)
    return render(request, "jobs/submit.html", context, status=status)


def _context(request: HttpRequest, checked: Check) -> dict[str, Any]:
    tasks: list[dict[str, Any]] = []
    if checked.draft is not None and checked.inputs is not None:
        for index in range(forms.task_count(checked.draft)):
            prefix = f"tasks.{index}."
            task: dict[str, Any] = {
                key.removeprefix(prefix): each for key, each in checked.inputs.items() if key.startswith(prefix)
            }
            tasks.append(task | {"said": forms.said(task), "opened": forms.needs_attention(task)})
    known, classes = models(), [("", _("none")), *priorities()]
    origin = _origin(request, checked)
    looked = preview(request.user, checked.job) if checked.job else None
    warnings = _hint(checked, looked)
    return {
        "tiers": (network := tiers()),
        "tier_values": [value for value, _name in network],
        "origin": origin,
        "blueprint": _blueprint(request, checked),
        "pairs": compare(clone.written(origin), checked.text) if origin else [],
        "check": checked,
        "fields": checked.inputs,
        "tasks": tasks,
        "state": _state(checked, warnings),
        "priorities": classes,
        "priority_values": [value for value, _name in classes],
        "gpu_kinds": forms.GPU_KINDS,
        "gpu_kind_values": [value for value, _name in forms.GPU_KINDS],
        "sharing": forms.SHARING,
        "sharing_values": [value for value, _name in forms.SHARING],
        "vgpu": VGPU,
        "shown": json.dumps({key: each.value for key, each in (checked.inputs or {}).items()}, ensure_ascii=False),
        "start": request.POST.get("start", ""),
        "plugins": plugins.rows(checked.inputs),
        "plugins_taken": [row.name for row in plugins.rows(checked.inputs) if row.taken.value],
        "queues": offered_queues(request.user),
        "models": known,
        "model_values": [value for value, _name in known],
        "modes": forms.MODES,
        "actions": forms.ACTIONS,
        "action_values": [value for value, _name in forms.ACTIONS],
        "preview": looked,
    }


def _origin(request: HttpRequest, checked: Check) -> Job | None:
    """The job that the draft says it is a copy of, where it is known and may be seen."""
    named = _ORIGIN.search(checked.text)
    return seen(request.user, Job.objects.filter(uid=named[1]), "jobs.view") if named else None


def _blueprint(request: HttpRequest, checked: Check) -> dict[str, Any] | None:
    """The blueprint that the draft says it comes from, where the user may see it."""
    said = checked.draft.get(("metadata", "annotations", keys.BLUEPRINT)) if checked.draft is not None else None
    return named(request.user, said) if isinstance(said, str) else None


def _hint(checked: Check, looked: Preview | None) -> list[Fault]:
    """Put what the preview found at its input, and say at which line it stands."""
    found = []
    document = documents.load(checked.text)[0] if looked is not None else None
    for note in looked.notes if looked is not None and document is not None and checked.inputs else ():
        if note.pointer:
            forms.hint(checked.inputs or {}, note.pointer, note.text, note.kind)
            found.append(Fault(note.text, note.pointer, document.line_of(note.pointer)))
    return found


def _state(checked: Check, warnings: list[Fault]) -> dict[str, Any]:
    """What the page's script needs: the text, each fault with its line, and what each input shows beside its value."""
    told = [(fault, "error") for fault in checked.faults] + [(fault, "warning") for fault in warnings]
    faults = [{"line": fault.line, "message": fault.message, "severity": severity} for fault, severity in told if fault.line]
    marks = {
        each.id: {"errors": each.errors, "hints": each.hints, "changed": each.changed} for each in (checked.inputs or {}).values()
    }
    return {"yaml": checked.text, "faults": faults, "inputs": marks}


def _texts(raw: str) -> dict[str, str]:
    """A JSON object of texts that the page carried; anything else counts as nothing."""
    try:
        value = json.loads(raw) if raw else {}
    except ValueError:
        return {}
    return {key: text for key, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}
