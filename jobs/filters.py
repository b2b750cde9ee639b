"""What job, pod and PodGroup lists can be narrowed by; the pages' lists and the API's are the same."""

from __future__ import annotations

import django_filters as filters

from cluster.rest.labels import LabelSelectorFilter
from jobs.choices import GroupPhase, JobPhase, PodPhase
from jobs.models import Job, Pod, PodGroup


class JobFilter(filters.FilterSet):
    """`phase` may be given several times; `name` is any part of it."""

    namespace = filters.CharFilter()
    queue = filters.CharFilter()
    owner = filters.CharFilter()
    phase = filters.MultipleChoiceFilter(choices=JobPhase.choices)
    name = filters.CharFilter(lookup_expr="icontains")
    stage = filters.CharFilter(field_name="verdict_stage")
    scheduler = filters.CharFilter(field_name="manifest__spec__schedulerName")
    labelSelector = LabelSelectorFilter()

    class Meta:
        model = Job
        fields = ("namespace", "queue", "owner", "phase", "name", "stage")


class PodFilter(filters.FilterSet):
    """`job` is a job's uid."""

    namespace = filters.CharFilter()
    job = filters.CharFilter(field_name="job_uid")
    node = filters.CharFilter()
    queue = filters.CharFilter()
    phase = filters.MultipleChoiceFilter(choices=PodPhase.choices)
    name = filters.CharFilter(lookup_expr="icontains")

    class Meta:
        model = Pod
        fields = ("namespace", "job", "node", "queue", "phase", "name")


class PodGroupFilter(filters.FilterSet):
    """`job` is a job's uid; empty for gangs of bare pods."""

    namespace = filters.CharFilter()
    job = filters.CharFilter(field_name="job_uid")
    queue = filters.CharFilter()
    phase = filters.MultipleChoiceFilter(choices=GroupPhase.choices)
    name = filters.CharFilter(lookup_expr="icontains")

    class Meta:
        model = PodGroup
        fields = ("namespace", "job", "queue", "phase", "name")
