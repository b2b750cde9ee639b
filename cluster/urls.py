"""The pages of nodes and GPUs."""

from django.urls import path

from cluster import gpu_views, views

app_name = "cluster"
urlpatterns = [
    path("gpus/", gpu_views.gpus, name="gpus"),
    path("gpus/export.csv", gpu_views.gpu_file, {"form": "csv"}, name="gpus_export"),
    path("gpus/export.json", gpu_views.gpu_file, {"form": "json"}, name="gpus_export_json"),
    path("nodes/", views.node_list, name="nodes"),
    path("nodes/export.csv", views.node_file, {"form": "csv"}, name="nodes_export"),
    path("nodes/export.json", views.node_file, {"form": "json"}, name="nodes_export_json"),
    path("nodes/<str:name>/", views.node_page, name="node"),
    path("nodes/<str:name>/actions/<str:action>/", views.node_action, name="node_action"),
    path("nodes/<str:name>/panel/", views.node_panel, name="node_panel"),
]
