"""Django's admin as Basalt serves it: Unfold's look, our sign-in page, and a content policy wide enough for Unfold's scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from csp.constants import SELF, UNSAFE_EVAL, UNSAFE_INLINE
from csp.decorators import csp_replace
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from unfold.sites import UnfoldAdminSite

from cluster import runtime
from portal.templatetags.basalt import theme

# Unfold renders Alpine directives and small inline scripts, which evaluate text; nobody but staff reaches these pages.
_POLICY = {"script-src": [SELF, UNSAFE_INLINE, UNSAFE_EVAL], "style-src": [SELF, UNSAFE_INLINE]}


class BasaltAdminSite(UnfoldAdminSite):
    """The one admin site."""

    site_title = _("Basalt administration")
    site_header = _("Basalt")
    index_title = _("Administration")

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Callable[..., Any]:
        return csp_replace(_POLICY)(super().admin_view(view, cacheable))

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """In the theme that the reader chose; without a choice Unfold asks the system."""
        return super().each_context(request) | {"theme": theme(request.COOKIES.get("theme")) or None}

    @login_not_required
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """There is one sign-in page, with one throttle; it would not help who is signed in and no staff."""
        if request.user.is_authenticated and not self.has_permission(request):
            raise PermissionDenied
        return redirect_to_login(request.GET.get("next") or reverse("admin:index"))


def environment(request: HttpRequest) -> list[str] | None:
    """What Unfold shows beside the title: a warning where jobs run their commands on this machine."""
    return [str(_("Jobs run their commands on this machine, as its user.")), "warning"] if runtime.runs_commands() else None


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The admin's side bar."""
    groups = [
        (_("Cluster"), [
            (_("Queues"), "account_tree", "queues_queue"),
            (_("Jobs"), "list", "jobs_job"),
            (_("Gangs"), "hub", "jobs_podgroup"),
            (_("Pods"), "deployed_code", "jobs_pod"),
            (_("Nodes"), "dns", "cluster_node"),
            (_("Network domains"), "lan", "cluster_hypernode"),
        ]),
        (_("People"), [
            (_("Users"), "person", "auth_user"),
            (_("Groups"), "group", "auth_group"),
            (_("API tokens"), "key", "knox_authtoken"),
            (_("Login attempts"), "shield", "axes_accessattempt"),
        ]),
    ]  # fmt: skip
    return [
        {
            "title": title,
            "items": [{"title": word, "icon": icon, "link": reverse(f"admin:{model}_changelist")} for word, icon, model in items],
        }
        for title, items in groups
    ]
