"""Where the pages of jobs are found."""

from __future__ import annotations

from django.urls import path

from jobs.pages import views
from jobs.submit import views as submit_views

app_name = "jobs"
urlpatterns = [
    path("submit/", submit_views.submit, name="submit"),
    path("submit/validate/", submit_views.validate, name="validate"),
    path("jobs/", views.job_list, name="list"),
    path("jobs/export.csv", views.job_export, name="export"),
    path("jobs/<str:uid>/", views.job_detail, name="detail"),
    path("jobs/<str:namespace>/<str:name>/", views.job_by_name, name="by_name"),
    path("jobs/<str:uid>/actions/<str:action>/", views.job_action, name="action"),
]
