"""What a person set for themselves: theme, language, time zone, and how close the rows of lists stand.

Kept by person; a session carries it from sign-in on, and cookies carry what the server needs before it knows who asks.
"""

from __future__ import annotations

import zoneinfo
from datetime import datetime
from functools import cache
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from cluster import runtime
from portal.models import Preferences
from portal.timezones import offset_of

KEY = "preferences"
YEAR = 365 * 24 * 3600
THEMES = (("", gettext_lazy("As the system")), ("light", gettext_lazy("Light")), ("dark", gettext_lazy("Dark")))
DENSITIES = (("", gettext_lazy("Normal")), ("roomy", gettext_lazy("Roomy")))


@cache
def zones() -> tuple[str, ...]:
    """Names of places and UTC, without the database's old aliases."""
    areas = ("Africa", "America", "Antarctica", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
    return ("UTC", *sorted(name for name in zoneinfo.available_timezones() if name.partition("/")[0] in areas))


def _zone_choices() -> list[tuple[str, str]]:
    now = datetime.now(tz=zoneinfo.ZoneInfo("UTC"))
    named = [(name, f"{name} ({offset_of(now.astimezone(zoneinfo.ZoneInfo(name)))})") for name in zones()]
    return [("", _("As the browser")), *named]


class PreferencesForm(forms.ModelForm):  # type: ignore[type-arg]
    """All of it on one page."""

    theme = forms.ChoiceField(choices=THEMES, required=False, label=gettext_lazy("Theme"))
    language = forms.ChoiceField(choices=settings.LANGUAGES, label=gettext_lazy("Language"))
    time_zone = forms.ChoiceField(choices=_zone_choices, required=False, label=gettext_lazy("Time zone"))
    density = forms.ChoiceField(choices=DENSITIES, required=False, label=gettext_lazy("Rows of lists"))

    class Meta:
        model = Preferences
        fields = ("theme", "language", "time_zone", "density")


def of(request: HttpRequest) -> dict[str, Any]:
    """What the session carries; nothing for who is not signed in."""
    session = getattr(request, "session", None)
    return session.get(KEY, {}) if session is not None else {}


def carry(request: HttpRequest, response: HttpResponse, kept: Preferences) -> None:
    """Put a person's preferences into their session and this browser."""
    request.session[KEY] = {"time_zone": kept.time_zone, "density": kept.density}
    options: dict[str, Any] = {"samesite": "Lax", "secure": request.is_secure()}
    if kept.theme:
        response.set_cookie("theme", kept.theme, max_age=YEAR, **options)
    else:
        response.delete_cookie("theme", samesite="Lax")
    response.set_cookie(settings.LANGUAGE_COOKIE_NAME, kept.language, max_age=YEAR, **options)


def bring(request: HttpRequest, response: HttpResponse) -> None:
    """At sign-in: what the person set earlier, on whatever machine."""
    if kept := Preferences.objects.filter(user_id=request.user.pk).first():
        carry(request, response, kept)


@require_http_methods(["GET", "HEAD", "POST"])
def preferences(request: HttpRequest) -> HttpResponse:
    """Show and keep them."""
    kept = Preferences.objects.filter(user_id=request.user.pk).first() or Preferences(
        user_id=request.user.pk, theme=request.COOKIES.get("theme", ""), language=request.LANGUAGE_CODE
    )
    form = PreferencesForm(request.POST or None, instance=kept)
    if request.method == "POST" and form.is_valid():
        response = redirect("preferences")
        carry(request, response, form.save())
        messages.success(request, _("Kept."))
        return response
    now, zone = timezone.localtime(runtime.now()), timezone.get_current_timezone_name()
    context = {"form": form, "now": now, "offset": offset_of(now), "zone": zone if zone != offset_of(now) else ""}
    return render(request, "portal/preferences.html", context, status=422 if form.errors else 200)
