"""The shapes of what a pod spec holds besides containers: affinity, spreading, volumes, where variables come from.

Whatever of it scheduler and kubelet read is held to its type here: no object that was let in may stop them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from cluster.selectors import INTEGER
from cluster.validation import Amount, Meta, Positive, Resources, Shape, Texts

Weight = Annotated[int, Field(ge=1, le=100)]
Mode = Annotated[int, Field(ge=0, le=0o777)]
Id = Annotated[int, Field(ge=0, le=2**31 - 1)]
Word = Annotated[str, Field(min_length=1)]


class LabelExpression(Shape):
    """An entry of a label selector's `matchExpressions`."""

    key: Word
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] = []

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        _check_count(self.operator, self.values)
        return self


class NodeExpression(Shape):
    """An entry of a node selector term's `matchExpressions` or `matchFields`."""

    key: Word
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[str] = []

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        _check_count(self.operator, self.values)
        return self


def _check_count(operator: str, values: list[str]) -> None:
    if operator in ("In", "NotIn") and not values:
        raise PydanticCustomError("values", "must have values beside {operator}", {"operator": operator})
    if operator in ("Exists", "DoesNotExist") and values:
        raise PydanticCustomError("values", "must have no values beside {operator}", {"operator": operator})
    if operator in ("Gt", "Lt") and not (len(values) == 1 and INTEGER.fullmatch(values[0])):
        raise PydanticCustomError(
            "values", "must have one whole number as text in values beside {operator}", {"operator": operator}
        )


class LabelSelector(Shape):
    matchLabels: Texts = {}
    matchExpressions: list[LabelExpression] = []


class NodeTerm(Shape):
    matchExpressions: list[NodeExpression] = []
    matchFields: list[NodeExpression] = []


class NodeSelector(Shape):
    nodeSelectorTerms: Annotated[list[NodeTerm], Field(min_length=1)]


class PreferredNodes(Shape):
    weight: Weight
    preference: NodeTerm


class NodeAffinity(Shape):
    requiredDuringSchedulingIgnoredDuringExecution: NodeSelector | None = None
    preferredDuringSchedulingIgnoredDuringExecution: list[PreferredNodes] = []


class PodTerm(Shape):
    topologyKey: Word
    labelSelector: LabelSelector | None = None
    namespaces: list[str] = []
    namespaceSelector: LabelSelector | None = None
    matchLabelKeys: list[str] = []
    mismatchLabelKeys: list[str] = []


class PreferredPods(Shape):
    weight: Weight
    podAffinityTerm: PodTerm


class PodAffinity(Shape):
    requiredDuringSchedulingIgnoredDuringExecution: list[PodTerm] = []
    preferredDuringSchedulingIgnoredDuringExecution: list[PreferredPods] = []


class Affinity(Shape):
    nodeAffinity: NodeAffinity = NodeAffinity()
    podAffinity: PodAffinity = PodAffinity()
    podAntiAffinity: PodAffinity = PodAffinity()


class SpreadConstraint(Shape):
    maxSkew: Positive
    topologyKey: Word
    whenUnsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    labelSelector: LabelSelector | None = None
    minDomains: Positive = 1
    matchLabelKeys: list[str] = []
    nodeAffinityPolicy: Literal["Honor", "Ignore"] = "Honor"
    nodeTaintsPolicy: Literal["Honor", "Ignore"] = "Ignore"


class FieldRef(Shape):
    fieldPath: Word


class ResourceRef(Shape):
    resource: Word
    containerName: str = ""
    divisor: Amount = "0"


class KeyRef(Shape):
    """A key of a ConfigMap or Secret."""

    name: str = ""
    key: Word
    optional: bool = False


class EnvSource(Shape):
    fieldRef: FieldRef | None = None
    resourceFieldRef: ResourceRef | None = None
    configMapKeyRef: KeyRef | None = None
    secretKeyRef: KeyRef | None = None


class NameRef(Shape):
    name: str = ""
    optional: bool = False


class EnvFrom(Shape):
    prefix: str = ""
    configMapRef: NameRef | None = None
    secretRef: NameRef | None = None


class Exec(Shape):
    command: list[str] = []


class Hook(Shape):
    exec: Exec | None = None
    sleep: dict[str, Any] | None = None


class Lifecycle(Shape):
    preStop: Hook = Hook()
    postStart: Hook = Hook()


class KeyPath(Shape):
    key: Word
    path: Word
    mode: Mode = 0


class FieldPath(Shape):
    path: Word
    fieldRef: FieldRef | None = None
    resourceFieldRef: ResourceRef | None = None
    mode: Mode = 0


class ConfigMapVolume(Shape):
    name: str = ""
    items: list[KeyPath] = []
    defaultMode: Mode = 0o644
    optional: bool = False


class SecretVolume(Shape):
    secretName: str = ""
    items: list[KeyPath] = []
    defaultMode: Mode = 0o644
    optional: bool = False


class ProjectedSecret(Shape):
    name: str = ""
    items: list[KeyPath] = []
    optional: bool = False


class DownwardVolume(Shape):
    items: list[FieldPath] = []
    defaultMode: Mode = 0o644


class Projection(Shape):
    configMap: ProjectedSecret | None = None
    secret: ProjectedSecret | None = None
    downwardAPI: DownwardVolume | None = None
    serviceAccountToken: dict[str, Any] | None = None


class ProjectedVolume(Shape):
    sources: list[Projection] = []
    defaultMode: Mode = 0o644


class EmptyDir(Shape):
    medium: str = ""
    sizeLimit: Amount = "0"


class HostPath(Shape):
    path: Word
    type: str = ""


class ClaimVolume(Shape):
    claimName: Word
    readOnly: bool = False


class ClaimResources(Shape):
    requests: Resources = {}
    limits: Resources = {}


class ClaimSpec(Shape):
    """The spec of a PersistentVolumeClaim, as far as it is read before there is a claim."""

    accessModes: list[str] = []
    storageClassName: str = ""
    volumeName: str = ""
    volumeMode: str = ""
    resources: ClaimResources = ClaimResources()
    selector: LabelSelector | None = None


class ClaimTemplate(Shape):
    metadata: Meta = Meta()
    spec: ClaimSpec


class EphemeralVolume(Shape):
    volumeClaimTemplate: ClaimTemplate


class Volume(Shape):
    name: str
    configMap: ConfigMapVolume | None = None
    secret: SecretVolume | None = None
    projected: ProjectedVolume | None = None
    downwardAPI: DownwardVolume | None = None
    emptyDir: EmptyDir | None = None
    hostPath: HostPath | None = None
    persistentVolumeClaim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None


class Named(Shape):
    """An entry that has a name: a scheduling gate, a container's use of a claim."""

    name: str = ""


class PodClaim(Shape):
    name: Word
    resourceClaimName: str = ""
    resourceClaimTemplateName: str = ""


class HostAlias(Shape):
    ip: str
    hostnames: list[str] = []


class Security(Shape):
    """Of pods and of containers."""

    runAsUser: Id = 0
    runAsGroup: Id = 0
    fsGroup: Id = 0
    supplementalGroups: list[int] = []
