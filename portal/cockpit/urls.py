"""Where the cockpit's pages are."""

from django.urls import path

from portal.cockpit import configuration_views, try_views, views

app_name = "cockpit"
urlpatterns = [
    path("cycles/<int:number>/", views.cycle, name="cycle"),
    path("evictions.csv", views.evictions_csv, name="evictions"),
    path("configuration/", configuration_views.shown, name="configuration"),
    path("configuration/edit/", configuration_views.edit, name="edit"),
    path("configuration/history/", configuration_views.history, name="history"),
    path("configuration/history/<int:pk>/again/", configuration_views.roll_back, name="roll_back"),
    path("configuration/volcano-scheduler.conf", configuration_views.download, name="download"),
    path("what-if/", try_views.what_if_page, name="what_if"),
    path("snapshot/", try_views.snapshot, name="snapshot"),
    path("snapshot/snapshot.json.gz", try_views.snapshot_file, name="snapshot_file"),
]
