"""REST: what fits in which network domain, free GPUs of no use, and where the pods of a job are."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.capacity import Fits
from cluster.kinds import HYPER_NODE, JOB
from cluster.models import HyperNode
from cluster.rest.views import QuestionViewSet, route
from cluster.said import said
from jobs.models import Job
from jobs.topology import domains, tab
from jobs.topology.facts import facts
from jobs.topology.shown import fragments_json


class Topology(serializers.Serializer[Any]):
    """The network of the fleet."""

    source = serializers.ChoiceField(
        ["hypernodes", "labels"], help_text="labels: there are no HyperNodes, the scheduler knows no tiers"
    )
    tiers = serializers.ListField(
        child=serializers.DictField(),
        help_text="largest gangs, from the single node (tier -1) up to the whole fleet; by model too",
    )
    domains = serializers.ListField(
        child=serializers.DictField(), help_text="each before those below it; `name` is empty for the fleet"
    )
    aside = serializers.DictField(help_text="HyperNodes that take no part, and why")


class Fragments(serializers.Serializer[Any]):
    """Free GPUs that no pod of the asked shapes could hold."""

    free = serializers.IntegerField()
    unusable = serializers.IntegerField()
    causes = serializers.DictField(help_text="cordoned, leftover, a resource that is used up, or several of these together")
    judged_by = serializers.ChoiceField(["waiting", "usual"], help_text="shapes of the jobs that wait, else of those that run")
    unknown = serializers.IntegerField(help_text="GPUs of nodes that are not ready")
    nodes = serializers.ListField(child=serializers.DictField())


class JobPlacement(serializers.Serializer[Any]):
    """Where a job is, was or (`kind` would) would go; else which domains come nearest."""

    waits = serializers.BooleanField()
    placement = serializers.DictField(
        allow_null=True,
        help_text="`spread_score` from 0 to 1: the mean over pairs of pods of how near they are; null without domains",
    )
    topology = serializers.DictField(allow_null=True, help_text="what the job asks: mode and highest tier")
    nearest = serializers.ListField(child=serializers.DictField())


class TopologyViewSet(QuestionViewSet):
    """Questions about the network."""

    kind = HYPER_NODE
    queryset = HyperNode.objects.all()
    serializer_class = Topology
    rights: ClassVar = {"whole": "nodes.view", "one": "nodes.view", "unusable": "nodes.view"}

    @extend_schema(responses=Topology, filters=False)
    def whole(self, request: Request) -> Response:
        """Every domain with what is free, and the largest gang that fits now in each tier."""
        known = facts(request.user)
        models = known.stock.models
        of_models = {model: known.tiers(model) for model in models}
        tiers = [
            _fits(fits) | {"models": {model: _fits(of_models[model][place]) for model in models}}
            for place, fits in enumerate(known.tiers())
        ]
        return Response({
            "source": "labels" if known.network.by_labels else "hypernodes",
            "tiers": tiers,
            "domains": [row.as_json() for row in domains.walk(domains.tree(known))],
            "aside": dict(known.network.aside),
        })  # fmt: skip

    @extend_schema(responses=serializers.DictField(), filters=False)
    def one(self, request: Request, name: str) -> Response:
        """One domain with the names of its nodes and of the domains below it."""
        name = name.strip("/")
        row = domains.of_name(domains.tree(facts(request.user)), name) if name else None
        if row is None:
            raise Http404(said("There is no network domain %(name)s.", name=name))
        below = [child.name for child in row.children]
        return Response(row.as_json() | {"node_names": [machine.name for machine in row.machines], "domains": below})

    @extend_schema(responses=Fragments, filters=False)
    def unusable(self, request: Request) -> Response:
        """Free GPUs of no use: how many, why, and on which nodes."""
        return Response(fragments_json(facts(request.user)))


class PlacementViewSet(QuestionViewSet):
    """Questions about one job."""

    kind = JOB
    queryset = Job.objects.all()
    serializer_class = JobPlacement
    rights: ClassVar = {"placement": "jobs.view"}

    @extend_schema(responses=JobPlacement, filters=False)
    def placement(self, request: Request, **where: str) -> Response:
        """Where its pods are, were, or would go, with their spread; of one that would wait, the nearest domains."""
        job: Job = self.find(**where)
        return Response({"uid": job.uid} | tab.as_json(tab.context(request.user, job, list(job.tasks.all()))))


def _fits(fits: Fits) -> dict[str, Any]:
    return {
        "tier": fits.tier, "name": fits.label, "gpus": fits.gpus, "domain": fits.domain, "nodes": fits.nodes,
        "nodes_domain": fits.nodes_domain,
    }  # fmt: skip


urlpatterns = [
    *route("topology", TopologyViewSet, "topology", get="whole"),
    *route("topology/fragments", TopologyViewSet, "topology-fragments", get="unusable"),
    *route("topology/domains/<path:name>", TopologyViewSet, "topology-domain", get="one"),
    *route("jobs/<str:uid>/placement", PlacementViewSet, "job-placement-by-uid", get="placement"),
    *route("jobs/<str:namespace>/<str:name>/placement", PlacementViewSet, "job-placement", get="placement"),
]
