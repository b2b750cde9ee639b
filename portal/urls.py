"""Where every page and API view is found. Each app's pages are in its own urls.py, with their full paths."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

from portal import apply_page, find, preferences, probes, samples_page, views
from portal.cockpit import views as cockpit_views
from portal.draining import views as draining_views
from portal.outlook import views as outlook_views
from portal.unblock import views as unblock_views
from queues import names

names.register()

urlpatterns = [
    path("", views.overview, name="overview"),
    path("find/", find.find, name="find"),
    path("sign-in/", views.SignIn.as_view(), name="login"),
    path("sign-out/", views.SignOut.as_view(), name="logout"),
    path("preferences/", preferences.preferences, name="preferences"),
    path("preferences/theme/", views.theme, name="theme"),
    path("i18n/setlang/", views.language, name="set_language"),
    path("workload/", include(([path("", samples_page.start_samples, name="workload")], "portal"))),
    path("favicon.ico", login_not_required(RedirectView.as_view(url=static("img/basalt.svg"))), name="favicon"),
    path("healthz", probes.healthz, name="healthz"),
    path("readyz", probes.readyz, name="readyz"),
    path("scheduler/", cockpit_views.scheduler, name="scheduler"),
    path("scheduler/", include("portal.cockpit.urls")),
    path("simulations/", include("portal.simulations.urls")),
    path("drains/", include("portal.maintenance.urls")),
    path("api/", include("portal.api")),
    path("admin/", admin.site.urls),
    path("jobs/<str:uid>/unblock/", unblock_views.ways, name="unblock"),
    path("jobs/<str:uid>/unblock/<int:place>/", unblock_views.way, name="way"),
    path("jobs/<str:uid>/priority/", unblock_views.job_priority, name="priority"),
    path("starts/", outlook_views.starts, name="outlook"),
    path("submit/dry-run/", unblock_views.dry_run, name="dry_run"),
    path("queues/<queue:name>/impact/", unblock_views.queue_impact, name="queue_impact"),
    path("queues/<queue:name>/close/", draining_views.close, name="queue_close"),
    path("queues/<queue:name>/move/", draining_views.move_jobs, name="queue_move"),
    path("submit/apply/", apply_page.apply_all, name="apply"),
    path("", include("jobs.topology.urls")),
    path("", include("jobs.urls")),
    path("", include("queues.urls")),
    path("", include("cluster.urls")),
]

handler403 = "portal.views.forbidden"
handler404 = "portal.views.not_found"
handler500 = "portal.views.server_error"
