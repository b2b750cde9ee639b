"""The pages of nodes and GPUs."""

from django.urls import path

from cluster import views

app_name = "cluster"
urlpatterns = [
    path("gpus/", views.gpus, name="gpus"),
    path("nodes/", views.node_list, name="nodes"),
    path("nodes/<str:name>/", views.node_page, name="node"),
    path("nodes/<str:name>/actions/<str:action>/", views.node_action, name="node_action"),
    path("nodes/<str:name>/panel/", views.node_panel, name="node_panel"),
]
