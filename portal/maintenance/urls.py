"""The pages of drains."""

from django.urls import path

from portal.maintenance import views

app_name = "drains"
urlpatterns = [
    path("", views.drain_list, name="list"),
    path("new/", views.new, name="new"),
    path("<uuid:pk>/", views.detail, name="detail"),
]
