"""Django's entry to this app."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = "Jobs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register what is asked of jobs and what belongs to them before a cluster keeps it."""
        from cluster import capacity, gpusets, workloads
        from cluster.admission import admission
        from cluster.disclosure import register
        from cluster.kinds import CRON_JOB, JOB, JOB_FLOW, JOB_TEMPLATE
        from jobs.admission import rules
        from jobs.disclosure import without_keys
        from jobs.pages.workloads import PodRows
        from jobs.schedulers import scheduler_names
        from jobs.topology.facts import summary
        from scheduler.topology.sets import of_node

        for kind, rule in rules(scheduler_names()).items():
            admission.register(kind, rule)
        for kind in (JOB, JOB_TEMPLATE, JOB_FLOW, CRON_JOB):
            register(kind, without_keys)
        workloads.use(PodRows())
        capacity.use(summary)
        gpusets.use(of_node)
