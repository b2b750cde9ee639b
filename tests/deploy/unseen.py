"""Rights that the manifests grant and that a run of everything need not use, or that are tried in vain, each with the reason."""

from tests.deploy.strict import Asked

OWNERS = (
    ("batch.volcano.sh", "jobs"), ("batch.volcano.sh", "cronjobs"), ("flow.volcano.sh", "jobflows"), ("", "pods"),
    ("apps", "replicasets"), ("apps", "statefulsets"), ("apps", "daemonsets"), ("batch", "jobs"),
)  # fmt: skip
DEVICES = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
SCHEDULER, WORKER, WEB, HOOK = "basalt-scheduler", "basalt-worker", "basalt-web", "basalt-webhook"

NOT_HERE = {
    # Dynamic resources: Kubernetes 1.34 has the API, this server has not.
    *(Asked(who, "watch", "resource.k8s.io", kind) for kind in DEVICES for who in (SCHEDULER, WEB)),
    *(Asked(SCHEDULER, verb, "resource.k8s.io", "resourceclaims") for verb in ("get", "patch")),
    Asked(SCHEDULER, "patch", "resource.k8s.io", "resourceclaims/status"),
    # Gates of queues (Kubernetes 1.27); locks on nodes while cards are handed out (deviceshare.NodeLockEnable).
    Asked(SCHEDULER, "patch", "", "pods"),
    *(Asked(SCHEDULER, verb, "", "nodes") for verb in ("get", "patch")),
    # Jobs of a queue that reaches into other clusters are marked; of flows that let their jobs go.
    Asked(WORKER, "patch", "batch.volcano.sh", "jobs"),
    # Asked of the authorizer by the server itself, which does not write it down: for owners that what they own holds back.
    *(Asked(WORKER, "update", group, f"{kind}/finalizers") for group, kind in OWNERS),
    Asked(WEB, "update", "batch.volcano.sh", "cronjobs/finalizers"),
    Asked(WEB, "update", "batch.volcano.sh", "jobs/finalizers"),
    Asked(WEB, "update", "scheduling.volcano.sh", "queues/finalizers"),
}
"""Granted, and not seen in the flow below: each with why it is needed."""

SOMETIMES = {
    # When a write was not answered, or collides with another's; when an event is told again.
    Asked(SCHEDULER, "get", "", "pods"),
    Asked(SCHEDULER, "patch", "", "events"),
    *(Asked(WORKER, verb, "", "events") for verb in ("get", "patch")),
    Asked(WORKER, "get", "", "pods"),
    Asked(WORKER, "get", "batch.volcano.sh", "jobs"),
    Asked(WORKER, "get", "scheduling.volcano.sh", "podgroups"),
    # When somebody changed what a job's plugin had made.
    *(Asked(WORKER, "update", "", kind) for kind in ("configmaps", "secrets", "services")),
    Asked(WORKER, "update", "networking.k8s.io", "networkpolicies"),
    # What the local copy of a webhook has not seen yet.
    *(Asked(HOOK, "get", group, kind) for group, kind in (("", "namespaces"), ("scheduling.k8s.io", "priorityclasses"))),
}
"""Granted, and seen now and then: it depends on who was quicker."""

NOT_READ = {Asked(WEB, "get", "", "secrets")}
"""Tried and refused on purpose: a page asks whether the Secret of the ssh plugin is there, and says that it does not know."""
