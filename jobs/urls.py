"""Where the pages of jobs are found."""

from __future__ import annotations

from django.urls import path

from jobs.blueprints import filling_views
from jobs.blueprints import views as blueprint_views
from jobs.bulk import views as bulk_views
from jobs.cron import views as cron_views
from jobs.flows import views as flow_views
from jobs.pages import listing, views
from jobs.saved import views as saved_views
from jobs.submit import views as submit_views

app_name = "jobs"
urlpatterns = [
    path("submit/", submit_views.submit, name="submit"),
    path("submit/validate/", submit_views.validate, name="validate"),
    path("jobs/", listing.job_list, name="list"),
    path("jobs/export.csv", listing.job_export, {"form": "csv"}, name="export"),
    path("jobs/export.json", listing.job_export, {"form": "json"}, name="export_json"),
    path("jobs/columns/", listing.choose_columns, name="columns"),
    path("jobs/views/", saved_views.view_list, name="views"),
    path("jobs/views/<int:pk>/", saved_views.view_detail, name="view"),
    path("jobs/bulk/", bulk_views.bulk, name="bulk"),
    path("jobs/bulk/<uuid:pk>/", bulk_views.bulk_detail, name="bulk_detail"),
    path("jobs/<str:uid>/", views.job_detail, name="detail"),
    path("jobs/<str:namespace>/<str:name>/", views.job_by_name, name="by_name"),
    path("jobs/<str:uid>/compare/<str:other>/", views.job_compare, name="compare"),
    path("jobs/<str:uid>/actions/<str:action>/", views.job_action, name="action"),
    path("flows/", flow_views.flow_list, name="flows"),
    path("flows/<str:uid>/", flow_views.flow_detail, name="flow"),
    path("flows/<str:uid>/actions/<str:action>/", flow_views.flow_action, name="flow_action"),
    path("templates/", flow_views.template_list, name="templates"),
    path("templates/<str:uid>/", flow_views.template_detail, name="template"),
    path("templates/<str:uid>/actions/<str:action>/", flow_views.template_action, name="template_action"),
    path("blueprints/", blueprint_views.blueprint_list, name="blueprints"),
    path("blueprints/new/", blueprint_views.blueprint_new, name="blueprint_new"),
    path("blueprints/<str:name>/", filling_views.blueprint, name="blueprint"),
    path("blueprints/<str:name>/preview/", filling_views.blueprint_preview, name="blueprint_preview"),
    path("blueprints/<str:name>/edit/", blueprint_views.blueprint_edit, name="blueprint_edit"),
    path("blueprints/<str:name>/versions/", blueprint_views.blueprint_versions, name="blueprint_versions"),
    path("blueprints/<str:name>/export/", blueprint_views.blueprint_export, name="blueprint_export"),
    path("blueprints/<str:name>/actions/<str:action>/", blueprint_views.blueprint_action, name="blueprint_action"),
    path("crons/", cron_views.cron_list, name="crons"),
    path("crons/<str:uid>/", cron_views.cron_detail, name="cron"),
    path("crons/<str:uid>/actions/<str:action>/", cron_views.cron_action, name="cron_action"),
]
