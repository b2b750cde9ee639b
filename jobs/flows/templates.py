"""The JobTemplate controller: keeps in a template's status which jobs were made from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cluster import objects
from cluster.informer import Change, IndexFunction
from cluster.kinds import JOB, JOB_TEMPLATE, Kind
from cluster.port import Obj
from jobs import keys
from jobs.controller.base import Context
from jobs.flows.parts import owning_flow


def _template_of(job: Obj) -> Iterator[str]:
    """`namespace/name` of the template that a flow made a job from."""
    namespace, _, name = objects.annotations(job).get(keys.CREATED_BY_TEMPLATE, "").partition(".")
    if name and namespace == objects.namespace(job) and owning_flow(job):
        yield f"{namespace}/{name}"


class TemplateController:
    """Reconciles JobTemplates; keys are `namespace/name`."""

    name = "template"
    kinds: tuple[Kind, ...] = (JOB_TEMPLATE, JOB)
    indexes: dict[tuple[Kind, str], IndexFunction] = {(JOB, "template"): _template_of}  # noqa: RUF012

    def __init__(self, context: Context) -> None:
        self._context = context

    def start(self) -> None:
        """Nothing is needed beforehand."""

    def keys(self, change: Change) -> Iterable[str]:
        """The template itself, or the one of a job that came or went."""
        if change.kind == JOB_TEMPLATE:
            return [objects.key(change.object)]
        if change.kind == JOB and (change.old is None or change.new is None):
            return _template_of(change.object)
        return ()

    def reconcile(self, key: str) -> float | None:
        """Write the list of jobs when it changed."""
        template = self._context.informer.get(JOB_TEMPLATE, key)
        if template is None or objects.is_deleting(template):
            return None
        names = sorted(objects.name(job) for job in self._context.informer.by(JOB, "template", key))
        if ((template.get("status") or {}).get("jobDependsOnList") or []) != names:
            meta = template["metadata"]
            status = {"jobDependsOnList": names}
            written = self._context.cluster.patch_status(JOB_TEMPLATE, meta["name"], meta["namespace"], status, uid=meta["uid"])
            self._context.informer.observe(JOB_TEMPLATE, written)
        return None

    def failed(self, key: str, error: Exception, failures: int) -> None:
        """Nothing to tell: the list is written again when it is tried again."""
