"""Queues in the admin. Every write goes to the cluster through the operations; the row is only its projection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.admin import ModelAdmin
from unfold.decorators import action
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from cluster import runtime
from cluster.access import policy
from cluster.errors import ApiError, Conflict, FieldError
from cluster.kinds import QUEUE
from cluster.said import words
from cluster.validation import without_nulls
from queues import operations, writes
from queues.forms import AMOUNTS, flatten
from queues.models import Queue
from queues.tree import BUILT_IN

_HELP = gettext_lazy("One resource a line, for example: nvidia.com/gpu: 8")
SCALARS = ("parent", "weight", "priority", "reclaimable")


class QueueAdminForm(forms.ModelForm):  # type: ignore[type-arg]
    """A queue's spec. Amounts are written one resource a line, as in the manifest."""

    guarantee = forms.CharField(
        label=gettext_lazy("Guarantee"), required=False, help_text=_HELP, widget=UnfoldAdminTextareaWidget({"rows": 3})
    )
    deserved = forms.CharField(
        label=gettext_lazy("Deserved"), required=False, help_text=_HELP, widget=UnfoldAdminTextareaWidget({"rows": 3})
    )
    capability = forms.CharField(
        label=gettext_lazy("Capability"), required=False, help_text=_HELP, widget=UnfoldAdminTextareaWidget({"rows": 3})
    )
    parent = forms.CharField(label=gettext_lazy("Parent"), required=False, widget=UnfoldAdminTextInputWidget())
    version = forms.CharField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = Queue
        fields = ("name", "parent", "weight", "priority", "reclaimable")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["weight"].initial = 1
        self._before: dict[str, list[str]] = {}
        if self.instance.pk:
            obj = runtime.current().get(QUEUE, self.instance.name)
            flat = flatten(obj.get("spec") or {})
            for part in AMOUNTS:
                amounts = {key.partition(".")[2]: value for key, value in flat.items() if key.startswith(f"{part}.")}
                self._before[part] = list(amounts)
                self.initial[part] = "\n".join(f"{resource}: {value}" for resource, value in amounts.items())
            self.initial["version"] = obj["metadata"]["resourceVersion"]

    def clean(self) -> dict[str, Any]:
        """Ask the cluster without writing, so that every fault stands at its field."""
        cleaned = super().clean() or {}
        if not self.errors:
            try:
                self._write(dry_run=True)
            except Conflict as error:
                raise ValidationError(
                    _("Somebody changed this queue since you opened it. Open it again to see their change.")
                ) from error
            except ApiError as error:
                for fault in error.fields or (FieldError("", error.message),):
                    self.add_error(_field(fault.pointer, self.fields), words(fault.message))
        return cleaned

    def _write(self, *, dry_run: bool) -> Any:
        cluster, spec = runtime.current(), self.spec()
        if self.instance.pk:
            return operations.update(
                cluster, self.instance.name, spec, resource_version=self.cleaned_data["version"], dry_run=dry_run
            )
        manifest = {"metadata": {"name": self.cleaned_data["name"]}, "spec": without_nulls(spec)}
        return operations.create(cluster, manifest, dry_run=dry_run)

    def spec(self) -> dict[str, Any]:
        """The spec as a merge patch: what was taken out is null."""
        spec: dict[str, Any] = {name: self.cleaned_data[name] for name in SCALARS if name in self.cleaned_data}
        spec["parent"] = spec.get("parent") or None
        for part in AMOUNTS:
            amounts: dict[str, Any] = dict.fromkeys(self._before.get(part, ())) | self._amounts(part)
            if amounts:
                spec[part] = {"resource": amounts} if part == "guarantee" else amounts
        return spec

    def _amounts(self, part: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in self.cleaned_data.get(part, "").splitlines():
            if line.strip():
                resource, colon, amount = line.partition(":")
                if not colon or not amount.strip():
                    raise ValidationError({part: _("Write each line as resource: amount, not %(line)s") % {"line": line.strip()}})
                found[resource.strip()] = amount.strip()
        return found


def _field(pointer: str, fields: Any) -> str | None:
    steps = pointer.split("/")[1:]
    name = steps[1] if len(steps) > 1 else ""
    return name if name in fields else None


@admin.register(Queue)
class QueueAdmin(ModelAdmin):  # type: ignore[misc]
    """Queues of the cluster."""

    form = QueueAdminForm
    list_display = ("name", "parent", "state", "weight", "priority", "reclaimable", "groups_running", "groups_pending")
    list_filter = ("state", "reclaimable")
    search_fields = ("name",)
    actions = ("open_queues", "close_queues")
    fields = ("name", "parent", "weight", "priority", "reclaimable", "guarantee", "deserved", "capability", "version")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Queue]:
        found: QuerySet[Queue] = super().get_queryset(request).filter(deleted_at=None)
        return policy().visible(request.user, found)

    def get_readonly_fields(self, request: HttpRequest, obj: Queue | None = None) -> tuple[str, ...]:
        return ("name",) if obj else ()

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions: dict[str, Any] = super().get_actions(request)
        actions.pop("delete_selected", None)  # it would delete rows, not queues
        return actions

    def has_add_permission(self, request: HttpRequest) -> bool:
        return policy().may(request.user, "queues.change")

    def has_change_permission(self, request: HttpRequest, obj: Queue | None = None) -> bool:
        return policy().may(request.user, "queues.change", obj)

    def has_delete_permission(self, request: HttpRequest, obj: Queue | None = None) -> bool:
        return policy().may(request.user, "queues.change", obj) and (obj is None or obj.name not in BUILT_IN)

    def has_view_permission(self, request: HttpRequest, obj: Queue | None = None) -> bool:
        return policy().may(request.user, "queues.view", obj)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return policy().may(request.user, "queues.view")

    def save_form(self, request: HttpRequest, form: QueueAdminForm, change: bool) -> Queue:
        """Write to the cluster; the projected row is what Django goes on with."""
        spec = form.spec()
        if change:
            name = form.instance.name
            writes.update(name, spec, form.cleaned_data["version"], request.user.get_username())
        else:
            name = form.cleaned_data["name"]
            writes.create({"metadata": {"name": name}, "spec": without_nulls(spec)}, request.user.get_username())
        return Queue.objects.get(name=name, deleted_at=None)

    def save_model(self, request: HttpRequest, obj: Queue, form: Any, change: bool) -> None:
        """Done in `save_form`: a row is never written by hand."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """A queue has no rows of its own beside it."""

    def changeform_view(self, request: HttpRequest, object_id: str | None = None, *args: Any, **kwargs: Any) -> HttpResponse:
        return self._refusable(request, lambda: super(QueueAdmin, self).changeform_view(request, object_id, *args, **kwargs))

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return self._refusable(request, lambda: super(QueueAdmin, self).delete_view(request, object_id, extra_context))

    def delete_model(self, request: HttpRequest, obj: Queue) -> None:
        writes.delete(obj.name, request.user.get_username())

    def _refusable(self, request: HttpRequest, view: Callable[[], HttpResponse]) -> HttpResponse:
        """What the cluster refuses at the last moment is said, and the page comes again."""
        try:
            return view()
        except ApiError as error:
            messages.error(request, words(error.message))
            return HttpResponseRedirect(reverse("admin:queues_queue_changelist"))

    @action(description=gettext_lazy("Open the selected queues"))
    def open_queues(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        self._act(request, queryset, "open")

    @action(description=gettext_lazy("Close the selected queues"))
    def close_queues(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        self._act(request, queryset, "close")

    def _act(self, request: HttpRequest, queryset: QuerySet[Queue], verb: str) -> None:
        for queue in queryset:
            if not policy().may(request.user, "queues.change", queue):
                messages.error(request, _("You may not change %(name)s.") % {"name": queue.name})
                continue
            try:
                writes.act(queue.name, verb, request.user.get_username())
            except ApiError as error:
                messages.error(request, words(error.message))
