"""The pages of the network."""

from django.urls import path

from jobs.topology import views

app_name = "topology"
urlpatterns = [
    path("topology/", views.network, name="domains"),
    path("topology/fragments/", views.fragments, name="fragments"),
    path("topology/domains/<path:name>/", views.domain, name="domain"),
]
