"""The shape of a CronJob: which type each known field has."""

from __future__ import annotations

from typing import Any, Literal

from cluster.validation import Count, Meta, Shape, Texts


class TemplateMeta(Shape):
    labels: Texts = {}
    annotations: Texts = {}


class JobTemplate(Shape):
    metadata: TemplateMeta = TemplateMeta()
    spec: dict[str, Any]


class CronSpec(Shape):
    schedule: str
    timeZone: str | None = None
    startingDeadlineSeconds: Count | None = None
    concurrencyPolicy: Literal["Allow", "Forbid", "Replace"] = "Allow"
    suspend: bool = False
    jobTemplate: JobTemplate
    successfulJobsHistoryLimit: Count = 3
    failedJobsHistoryLimit: Count = 1


class CronShape(Shape):
    metadata: Meta = Meta()
    spec: CronSpec
