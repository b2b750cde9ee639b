"""Django's entry to this app."""

from django.apps import AppConfig


class ClusterConfig(AppConfig):
    name = "cluster"
    verbose_name = "Cluster"
    default_auto_field = "django.db.models.BigAutoField"
