"""Where the pages of simulations are."""

from django.urls import path

from portal.simulations import views

app_name = "simulations"
urlpatterns = [
    path("", views.simulations, name="list"),
    path("new/", views.new, name="new"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/files/<str:name>", views.file, name="file"),
    path("<int:pk>/cancel/", views.cancel, name="cancel"),
    path("<int:pk>/delete/", views.delete, name="delete"),
]
