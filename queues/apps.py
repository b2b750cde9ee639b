"""Django's entry to this app."""

from django.apps import AppConfig


class QueuesConfig(AppConfig):
    name = "queues"
    verbose_name = "Queues"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register what is asked of a Queue before a cluster keeps it."""
        from cluster.admission import admission
        from cluster.kinds import QUEUE
        from queues.admission import QueueRules

        admission.register(QUEUE, QueueRules())
