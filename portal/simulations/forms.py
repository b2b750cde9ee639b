"""The form that starts a simulation."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from cluster.said import words
from portal.models import SimulationKind
from portal.simulations import work
from scheduler import conf as configuration
from scheduler.conf import ConfError

LARGEST = 2 * 2**20 - 64 * 1024
"""Bytes of an upload; what is larger belongs into the folder of traces."""


class SimulationForm(forms.Form):
    """What to simulate, and by which configurations."""

    kind = forms.ChoiceField(choices=SimulationKind.choices, initial=SimulationKind.REPLAY)
    title = forms.CharField(max_length=200, required=False, label=_("Title"))
    source = forms.ChoiceField(
        required=False,
        initial="now",
        label=_("What to play"),
        choices=[("now", _("The cluster as it is now")), ("upload", _("A file")), ("trace", _("A trace that is here"))],
    )
    upload = forms.FileField(required=False, label=_("File"))
    trace = forms.ChoiceField(required=False, label=_("Trace"))
    nodes = forms.RegexField(r"^[0-9]{1,5}x[0-9]{1,2}(:\S{1,60})?$", required=False, label=_("Nodes"))
    part = forms.CharField(max_length=80, required=False, label=pgettext_lazy("of a trace", "Part"))
    limit = forms.IntegerField(min_value=1, max_value=1_000_000, required=False, label=_("First jobs only"))
    load = forms.FloatField(min_value=0.01, max_value=10, required=False, label=_("Load"))
    in_force = forms.BooleanField(required=False, initial=True, label=_("The configuration in force"))
    default = forms.BooleanField(required=False, label=_("Volcano's default"))
    other = forms.CharField(required=False, max_length=100_000, label=_("Another configuration"), widget=forms.Textarea)
    jobs = forms.CharField(required=False, initial="1, 2, 5", label=_("Jobs at once"))
    repetitions = forms.IntegerField(min_value=1, max_value=50, required=False, initial=5, label=_("Repetitions"))
    patience = forms.IntegerField(min_value=0, max_value=100_000, required=False, initial=600, label=_("Patience of a pod, s"))
    seed = forms.IntegerField(min_value=0, max_value=10**9, required=False, initial=0, label=_("Seed"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            if not isinstance(field.widget, forms.CheckboxInput):
                field.widget.attrs["class"] = "ba-in"
        names = work.traces()
        self.fields["trace"].choices = [(name, name) for name in names]
        if not names:
            self.fields["source"].choices = self.fields["source"].choices[:2]

    def clean_upload(self) -> Any:
        """A file of a size that a request may have."""
        found = self.cleaned_data["upload"]
        if found is not None and found.size > LARGEST:
            raise forms.ValidationError(_("A file has at most 2 MiB; pack it with gzip, or ask for it in the folder of traces."))
        return found

    def clean_other(self) -> str:
        """A configuration that the scheduler would take."""
        text = str(self.cleaned_data["other"])
        if text.strip():
            try:
                configuration.load(text)
            except ConfError as error:
                raise forms.ValidationError(list(map(words, error.sentences))) from None
        return text

    def clean_jobs(self) -> list[int]:
        """Up to five numbers of jobs."""
        parts = [part.strip() for part in str(self.cleaned_data["jobs"] or "1, 2, 5").split(",")]
        if len(parts) > 5 or not all(part.isascii() and part.isdigit() and 1 <= int(part[:4]) <= 20 for part in parts):
            raise forms.ValidationError(_("Up to five numbers from 1 to 20, such as 1, 2, 5"))
        return [int(part) for part in parts]

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        if found.get("kind") != SimulationKind.REPLAY:
            return found
        if found.get("source") == "upload" and not found.get("upload") and "upload" not in self.errors:
            self.add_error("upload", _("Choose a file."))
        if found.get("source") == "trace" and not found.get("trace") and "trace" not in self.errors:
            self.add_error("trace", _("Choose a trace."))
        if "other" not in self.errors and not (found.get("in_force") or found.get("default") or found.get("other", "").strip()):
            self.add_error("in_force", _("Choose at least one configuration."))
        return found
