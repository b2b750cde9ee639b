"""The pages of queues."""

from django.urls import path

from queues import views

app_name = "queues"
urlpatterns = [
    path("queues/", views.queue_list, name="list"),
    path("queues/new/", views.create, name="create"),
    path("queues/<str:name>/", views.detail, name="detail"),
    path("queues/<str:name>/edit/", views.edit, name="edit"),
    path("queues/<str:name>/delete/", views.delete, name="delete"),
    path("queues/<str:name>/actions/<str:action>/", views.action, name="action"),
]
