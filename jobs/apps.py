"""Django's entry to this app."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = "Jobs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register what is asked of jobs and what belongs to them before a cluster keeps it."""
        from cluster import workloads
        from cluster.admission import admission
        from jobs.admission import rules
        from jobs.pages.workloads import PodRows
        from jobs.schedulers import scheduler_names

        for kind, rule in rules(scheduler_names()).items():
            admission.register(kind, rule)
        workloads.use(PodRows())
