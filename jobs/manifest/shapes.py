"""The shapes of a Job and of a pod: which type each known field has. Fields that are not named here are kept as they are."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from cluster.validation import Count, Duration, Meta, Positive, Resources, Shape, Texts
from jobs.manifest.pod_shapes import (
    Affinity,
    ClaimSpec,
    EnvFrom,
    EnvSource,
    HostAlias,
    Lifecycle,
    Named,
    PodClaim,
    Security,
    SpreadConstraint,
    Volume,
)

Port = Annotated[int, Field(ge=1, le=65535)]


class TemplateMeta(Shape):
    name: str = ""
    labels: Texts = {}
    annotations: Texts = {}


class PodResources(Shape):
    limits: Resources = {}
    requests: Resources = {}


class ContainerResources(PodResources):
    claims: list[Named] = []


class ContainerPort(Shape):
    containerPort: Port
    hostPort: Annotated[int, Field(ge=0, le=65535)] = 0
    name: str = ""
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"


class EnvVar(Shape):
    name: str
    value: str = ""
    valueFrom: EnvSource | None = None


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
    envFrom: list[EnvFrom] = []
    ports: list[ContainerPort] = []
    resources: ContainerResources = ContainerResources()
    volumeMounts: list[VolumeMount] = []
    securityContext: Security = Security()
    livenessProbe: dict[str, Any] = {}
    readinessProbe: dict[str, Any] = {}
    startupProbe: dict[str, Any] = {}
    lifecycle: Lifecycle = Lifecycle()
    tty: bool = False
    stdin: bool = False


class InitContainer(Container):
    restartPolicy: Literal["Always"] | None = None


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
    affinity: Affinity = Affinity()
    hostNetwork: bool = False
    hostPID: bool = False
    hostIPC: bool = False
    hostname: str = ""
    subdomain: str = ""
    dnsPolicy: Literal["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None", ""] = ""
    serviceAccountName: str = ""
    imagePullSecrets: list[Named] = []
    hostAliases: list[HostAlias] = []
    runtimeClassName: str = ""
    preemptionPolicy: Literal["PreemptLowerPriority", "Never", ""] = ""
    priority: int = 0
    enableServiceLinks: bool = True
    shareProcessNamespace: bool = False
    setHostnameAsFQDN: bool = False
    schedulingGates: list[Named] = []
    resourceClaims: list[PodClaim] = []
    resources: PodResources = PodResources()
    securityContext: Security = Security()
    terminationGracePeriodSeconds: Annotated[int, Field(ge=0)] = 30
    activeDeadlineSeconds: Annotated[int, Field(ge=1)] = 1
    overhead: Resources = {}
    topologySpreadConstraints: list[SpreadConstraint] = []


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
    volumeClaim: ClaimSpec = ClaimSpec()


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


class MetaShape(Shape):
    metadata: Meta = Meta()


class PodShape(Shape):
    metadata: Meta = Meta()
    spec: PodSpec
