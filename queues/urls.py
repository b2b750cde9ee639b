"""The pages of queues."""

from django.urls import path

from queues import change_views, fairness_views, names, views

names.register()

app_name = "queues"
urlpatterns = [
    path("queues/", views.queue_list, name="list"),
    path("queues/new/", change_views.create, name="create"),
    path("queues/fairness/", fairness_views.fairness, name="fairness"),
    path("queues/<queue:name>/", views.detail, name="detail"),
    path("queues/<queue:name>/edit/", change_views.edit, name="edit"),
    path("queues/<queue:name>/delete/", change_views.delete, name="delete"),
    path("queues/<queue:name>/actions/<str:action>/", change_views.action, name="action"),
]
