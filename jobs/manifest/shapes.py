"""The shapes of a Job and of a pod: which type each known field has. Fields that are not named here are kept as they are."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from cluster.durations import parse_duration
from cluster.quantities import parse_quantity


def _quantity(value: Any) -> Any:
    try:
        number = parse_quantity(value)
    except ValueError as error:
        raise PydanticCustomError("quantity", "{why}", {"why": str(error)}) from None
    if number < 0:
        raise PydanticCustomError("quantity", "must be 0 or more, not {value}", {"value": str(value)})
    return value


def _duration(value: Any) -> Any:
    try:
        parse_duration(value if isinstance(value, str) else repr(value))
    except ValueError as error:
        raise PydanticCustomError("duration", "{why}", {"why": str(error)}) from None
    return value


Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Positive = Annotated[int, Field(ge=1, le=2**31 - 1)]
Port = Annotated[int, Field(ge=1, le=65535)]
Quantity = Annotated[Any, BeforeValidator(_quantity)]
Duration = Annotated[Any, BeforeValidator(_duration)]
Texts = dict[str, str]
Resources = dict[str, Quantity]


class Shape(BaseModel):
    """Types as they stand in JSON, nothing converted; unknown fields are allowed."""

    model_config = ConfigDict(extra="allow", strict=True)


class Meta(Shape):
    name: str = ""
    generateName: str = ""
    namespace: str = ""
    labels: Texts = {}
    annotations: Texts = {}


class TemplateMeta(Shape):
    name: str = ""
    labels: Texts = {}
    annotations: Texts = {}


class ContainerResources(Shape):
    limits: Resources = {}
    requests: Resources = {}


class ContainerPort(Shape):
    containerPort: Port
    hostPort: Annotated[int, Field(ge=0, le=65535)] = 0
    name: str = ""
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"


class EnvVar(Shape):
    name: str
    value: str = ""
    valueFrom: dict[str, Any] | None = None


class VolumeMount(Shape):
    name: str
    mountPath: str
    subPath: str = ""
    readOnly: bool = False


class Container(Shape):
    name: str
    image: str
    command: list[str] = []
    args: list[str] = []
    workingDir: str = ""
    imagePullPolicy: Literal["Always", "IfNotPresent", "Never", ""] = ""
    env: list[EnvVar] = []
    envFrom: list[dict[str, Any]] = []
    ports: list[ContainerPort] = []
    resources: ContainerResources = ContainerResources()
    volumeMounts: list[VolumeMount] = []
    securityContext: dict[str, Any] = {}
    livenessProbe: dict[str, Any] = {}
    readinessProbe: dict[str, Any] = {}
    startupProbe: dict[str, Any] = {}
    lifecycle: dict[str, Any] = {}
    tty: bool = False
    stdin: bool = False


class InitContainer(Container):
    restartPolicy: Literal["Always"] | None = None


class Volume(Shape):
    name: str


class Toleration(Shape):
    key: str = ""
    operator: Literal["Exists", "Equal", ""] = ""
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] = ""
    tolerationSeconds: int = 0


class PodSpec(Shape):
    containers: list[Container]
    initContainers: list[InitContainer] = []
    volumes: list[Volume] = []
    restartPolicy: Literal["Always", "OnFailure", "Never", ""] = ""
    schedulerName: str = ""
    priorityClassName: str = ""
    nodeName: str = ""
    nodeSelector: Texts = {}
    tolerations: list[Toleration] = []
    affinity: dict[str, Any] = {}
    hostNetwork: bool = False
    hostPID: bool = False
    hostIPC: bool = False
    hostname: str = ""
    subdomain: str = ""
    dnsPolicy: Literal["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None", ""] = ""
    serviceAccountName: str = ""
    imagePullSecrets: list[dict[str, Any]] = []
    securityContext: dict[str, Any] = {}
    terminationGracePeriodSeconds: Annotated[int, Field(ge=0)] = 30
    activeDeadlineSeconds: Annotated[int, Field(ge=1)] = 1
    overhead: Resources = {}
    topologySpreadConstraints: list[dict[str, Any]] = []


class PodTemplate(Shape):
    metadata: TemplateMeta = TemplateMeta()
    spec: PodSpec


class Policy(Shape):
    """An entry of `policies`. Which words are events and actions is a rule, not a shape."""

    event: str = ""
    events: list[str] = []
    exitCode: int = 1
    action: str = ""
    timeout: Duration = "0s"


class NetworkTopology(Shape):
    mode: Literal["hard", "soft"] = "hard"
    highestTierAllowed: Count = 0
    highestTierName: Annotated[str, Field(max_length=253)] = ""


class PartitionPolicy(Shape):
    totalPartitions: Positive
    partitionSize: Positive
    minPartitions: Count = 0
    networkTopology: NetworkTopology = NetworkTopology()


class DependsOn(Shape):
    name: list[str] = []
    iteration: Literal["any", "all", ""] = ""


class Task(Shape):
    name: str = ""
    replicas: Count = 0
    minAvailable: Count = 0
    maxRetry: Count = 3
    template: PodTemplate
    policies: list[Policy] = []
    topologyPolicy: Literal["none", "best-effort", "restricted", "single-numa-node", ""] = ""
    dependsOn: DependsOn = DependsOn()
    partitionPolicy: PartitionPolicy | None = None


class JobVolume(Shape):
    mountPath: str = ""
    volumeClaimName: str = ""
    volumeClaim: dict[str, Any] = {}


class JobSpec(Shape):
    schedulerName: Annotated[str, Field(max_length=63)] = ""
    minAvailable: Count = 0
    volumes: list[JobVolume] = []
    tasks: list[Task] = []
    policies: list[Policy] = []
    plugins: dict[str, list[str]] = {}
    runningEstimate: Duration = "0s"
    queue: str = ""
    maxRetry: Count = 3
    ttlSecondsAfterFinished: Count = 0
    priorityClassName: str = ""
    minSuccess: Positive = 1
    networkTopology: NetworkTopology = NetworkTopology()


class JobShape(Shape):
    metadata: Meta = Meta()
    spec: JobSpec


class PodShape(Shape):
    metadata: Meta = Meta()
    spec: PodSpec
