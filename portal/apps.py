"""Django's entry to this app."""

from typing import Any

from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "portal"
    verbose_name = "Portal"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from cluster import rejections
        from cluster.projection import projected
        from jobs import starts
        from jobs.bulk import impact
        from jobs.pages import facts
        from jobs.submit.checks import try_bundles_with
        from jobs.topology import foretold
        from portal import evictions, production  # noqa: F401 - registers its check
        from portal.admin_words import name_everything
        from portal.apply_page import trial
        from portal.live.publisher import publisher

        projected.connect(publisher.offer, dispatch_uid="live")
        try_bundles_with(trial)
        facts.sources[:] = [evictions.moments]
        rejections.use(_refusing)
        foretold.use(_foretold)
        impact.use(_priority_impact)
        starts.use(_likely_starts)
        name_everything()


def _refusing(user: Any, job: str, cause: str) -> Any:
    """Which nodes refuse a job; who never asks loads nothing for it."""
    from portal.unblock.nodes import refusing

    return refusing(user, job, cause)


def _priority_impact(user: Any, jobs: Any, name: str) -> Any:
    """Whom another priority of many jobs would cost; who never sets one loads nothing for it."""
    from portal.unblock.priority import impact

    return impact(user, jobs, name)


def _likely_starts(uids: Any) -> Any:
    """When waiting jobs are likely to start; who shows none loads no simulation for it."""
    from portal.simulations.estimates import starts

    return starts(uids)


def _foretold(user: Any, job: Any) -> Any:
    """Where a waiting job would go; who never asks loads nothing for it."""
    from portal.unblock.placement import foretold

    return foretold(user, job)
