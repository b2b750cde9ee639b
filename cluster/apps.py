"""Django's entry to this app."""

from django.apps import AppConfig


class ClusterConfig(AppConfig):
    name = "cluster"
    verbose_name = "Cluster"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register what is asked of the cluster's own kinds before a cluster keeps them."""
        from cluster import claim_rules
        from cluster.admission import admission
        from cluster.discovery import DiscoveryRules
        from cluster.kinds import CONFIG_MAP
        from cluster.rules import RULES

        for kind, rules in (*RULES.items(), *claim_rules.RULES.items()):
            admission.register(kind, rules)
        admission.register(CONFIG_MAP, DiscoveryRules())
