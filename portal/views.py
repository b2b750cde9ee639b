"""Pages of the frame: sign-in, preferences, errors, and the overview."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe
from django.views.i18n import set_language

from cluster.said import told, words
from portal import overview as overview_page
from portal import preferences

THEMES = ("light", "dark")
YEAR = 365 * 24 * 3600

language = login_not_required(set_language)


class SignIn(LoginView):
    """The sign-in page; somebody who is signed in already goes on to where they wanted."""

    template_name = "registration/login.html"
    redirect_authenticated_user = True

    def form_valid(self, form: Any) -> HttpResponse:
        response = super().form_valid(form)
        preferences.bring(self.request, response)
        return response


@method_decorator(login_not_required, name="dispatch")
class SignOut(LogoutView):
    """Signs out (POST only) and shows the sign-in page."""

    next_page = settings.LOGIN_URL


@login_not_required
@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Keep the theme in a cookie, so that the server can render it, and go back."""
    target = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
        target = "/"
    response = HttpResponseRedirect(target)
    chosen = request.POST.get("theme", "")
    if chosen in THEMES:
        response.set_cookie("theme", chosen, max_age=YEAR, samesite="Lax", secure=request.is_secure())
    return response


def _error(request: HttpRequest, name: str, status: int, **context: Any) -> HttpResponse:
    return render(request, f"errors/{name}.html", context, status=status)


@login_not_required
def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403, with the reason that the policy gave."""
    return _error(request, "403", 403, reason=words(told(exception)) if exception else "")


@login_not_required
def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404."""
    return _error(request, "404", 404)


@login_not_required
def server_error(request: HttpRequest) -> HttpResponse:
    """500: a page that needs neither the database nor the user."""
    return _error(request, "500", 500)


@login_not_required
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The form came without its token: the session is older than the page, or the form is not ours."""
    return _error(request, "csrf", 403)


@login_not_required
def locked_out(request: HttpRequest, credentials: dict[str, Any] | None = None, *args: Any, **kwargs: Any) -> HttpResponse:
    """Too many wrong passwords."""
    return _error(request, "locked", 429)


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """Is the fleet used, who uses it, what needs me?"""
    window = request.GET.get("range", "1h")
    if window not in overview_page.RANGES:
        return redirect("overview")
    if request.GET.get("part") == "side":  # the page asks for it now and then, so that its lists follow its figures
        return render(request, "portal/side.html", overview_page.side(request.user))
    wall = {"wall": request.GET.get("wall") == "1"}
    return render(request, "portal/overview.html", overview_page.context(request.user, window) | wall)
