"""What the admin calls models and fields, in the reader's language; the models themselves carry no words."""

from __future__ import annotations

from django.apps import apps
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

APPS: dict[str, str | Promise] = {
    "auth": _("Users and groups"),
    "axes": _("Sign-in"),
    "cluster": _("Cluster"),
    "jobs": _("Jobs"),
    "knox": _("API tokens"),
    "queues": _("Queues"),
}
MODELS: dict[str, tuple[str | Promise, str | Promise]] = {
    "axes.accessattempt": (_("login attempt"), _("Login attempts")),
    "axes.accessfailurelog": (_("failed login"), _("Failed logins")),
    "axes.accesslog": (_("login"), _("Logins")),
    "cluster.hypernode": (_("network domain"), _("Network domains")),
    "cluster.node": (_("node"), _("Nodes")),
    "jobs.blueprint": (_("blueprint"), _("Blueprints")),
    "jobs.job": (_("job"), _("Jobs")),
    "jobs.pod": (_("pod"), _("Pods")),
    "jobs.podgroup": (_("gang"), _("Gangs")),
    "knox.authtoken": (_("API token"), _("API tokens")),
    "queues.queue": (_("queue"), _("Queues")),
}
OURS = ("cluster", "jobs", "queues")
FIELDS: dict[str, str | Promise] = {
    "cordoned": _("Cordoned"),
    "created_at": _("Created"),
    "finished_at": _("Finished"),
    "gpu_count": _("GPUs"),
    "gpu_model": _("GPU model"),
    "gpus": _("GPUs"),
    "groups_pending": _("Gangs waiting"),
    "groups_running": _("Gangs running"),
    "index": _("Index"),
    "min_member": _("Minimum of pods"),
    "name": _("Name"),
    "namespace": _("Namespace"),
    "node": _("Node"),
    "owner": _("Owner"),
    "parent": _("Parent"),
    "phase": _("Phase"),
    "priority": _("Priority"),
    "queue": _("Queue"),
    "rack": _("Rack"),
    "ready": _("Ready"),
    "reclaimable": _("Reclaimable"),
    "seen_at": _("Last heartbeat"),
    "spine": _("Spine"),
    "state": _("State"),
    "task": _("Task"),
    "tier": _("Tier"),
    "tier_name": _("Name of the tier"),
    "weight": _("Weight"),
}


def name_everything() -> None:
    """Give the words to what Django has loaded; they change what is shown, and no migration."""
    for label, words in APPS.items():
        apps.get_app_config(label).verbose_name = words  # type: ignore[assignment]
    for label, (one, many) in MODELS.items():
        options = apps.get_model(label)._meta
        options.verbose_name, options.verbose_name_plural = one, many
    for model in (model for label in OURS for model in apps.get_app_config(label).get_models()):
        for field in model._meta.local_concrete_fields:
            if field.name in FIELDS:
                field.verbose_name = FIELDS[field.name]


FRAME = (
    _("Add row"),
    _("All applications"),
    _("Apply Filters"),
    _("Choose file to upload"),
    _("Expand row"),
    _("Go back"),
    _("Loading more results..."),
    _("More actions"),
    _("No recent searches"),
    _("No results found"),
    _("No results matching your query"),
    _("Recent searches"),
    _("Reset filters"),
    _("Return to site"),
    _("Run"),
    _("Search apps and models..."),
    _("Select all rows"),
    _("This item will be deleted."),
    _("This page yielded into no results. Create a new item or reset your filters."),
    _("Toggle password visibility"),
    _("Type to search"),
)
"""What the admin's own templates say in words that neither they nor Django translate."""
