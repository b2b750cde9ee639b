"""What the fields of our kinds mean, for `kubectl explain`: a sentence each, by the end of the field's path.

The longest end that is listed counts: `Job.spec.queue` before `spec.queue` before `queue`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

KINDS = {
    "Job": "A batch job: tasks of pods that start together, in a queue.",
    "CronJob": "Makes a Job by the clock.",
    "Command": "Asks the controllers to act on a Job or a Queue, once; it is deleted when it was heard.",
    "Queue": "A share of the cluster, which jobs wait in and count against.",
    "PodGroup": "A gang: pods of which at least minMember start together, or none does.",
    "HyperNode": "A network domain: nodes, or smaller domains, between which the network is equally near.",
    "Numatopology": "How the CPUs of a node lie on its sockets, and which are given away; written by an agent on the node.",
    "JobFlow": "Jobs that are made from templates one after the other, each once those that it depends on are as far as it asks.",
    "JobTemplate": "What a Job of a flow is made from; it makes none by itself.",
}

FIELDS = {
    "spec": "What is wanted.",
    "status": "What is; written by the scheduler and the controllers.",
    "JobTemplate.spec": "The spec of the Jobs that are made from it.",
    # jobs
    "schedulerName": "Which scheduler places the pods.",
    "Job.spec.minAvailable": "How many pods must be able to start for any to start: the gang minimum. All of them, if not given.",
    "tasks": "Groups of equal pods.",
    "tasks.name": "Its name, part of the pods' names; unique within the job.",
    "tasks.replicas": "How many pods.",
    "tasks.minAvailable": "How many pods of this task must be able to start for the job to start.",
    "maxRetry": "How often the job may be restarted before it counts as failed.",
    "tasks.maxRetry": "How often a pod of this task may fail before the task has failed.",
    "tasks.template": "The pod, as in a PodTemplateSpec of Kubernetes.",
    "tasks.topologyPolicy": "Which NUMA placement the pods need: none, best-effort, restricted or single-numa-node.",
    "tasks.dependsOn": "Tasks that must be ready, or done, before this one's pods are made.",
    "tasks.dependsOn.name": "The tasks' names.",
    "dependsOn.iteration": "Whether all of them must be (all, the default) or any.",
    "partitionPolicy": "Parts of the task's pods that are each placed within one network domain.",
    "totalPartitions": "How many parts there are.",
    "partitionSize": "How many pods a part has.",
    "minPartitions": "How many parts must be able to start for the job to start.",
    "policies": "What is done when something happens to a pod, the first that fits.",
    "policies.event": "What happens, such as PodFailed, PodEvicted or TaskCompleted; * is anything.",
    "policies.events": "Several such events.",
    "policies.exitCode": "The exit code of a container, instead of an event; not 0.",
    "policies.action": "What is done then, such as RestartJob, RestartTask, AbortJob, TerminateJob or CompleteJob.",
    "policies.timeout": "How long after the event, unless it is over by then; such as 10m.",
    "plugins": "Job plugins by name, each with its arguments: env, svc, ssh, mpi, tensorflow, pytorch, ray, hcclrank.",
    "runningEstimate": "How long the job is likely to run; such as 2h.",
    "Job.spec.queue": "The queue that it waits in and counts against; default, if not given.",
    "PodGroup.spec.queue": "The queue that the gang waits in and counts against; default, if not given.",
    "ttlSecondsAfterFinished": "How many seconds after its end the job is deleted; never, if not given.",
    "priorityClassName": "The priority class that it is ordered by and may preempt with.",
    "minSuccess": "How many pods must succeed for the job to be completed, whatever becomes of the others.",
    "volumes": "Claims that are mounted into every pod.",
    "volumes.mountPath": "Where in the containers.",
    "volumeClaimName": "The name of a claim that is there, or is made from volumeClaim.",
    "volumeClaim": "A PersistentVolumeClaim's spec, made for the job.",
    "networkTopology": "How near to each other in the network the pods must be.",
    "networkTopology.mode": "hard: only within the tier that is allowed; soft: as near as possible.",
    "highestTierAllowed": "The widest tier of domains that the pods may be spread over, as a number.",
    "highestTierName": "The same, by the tier's name.",
    # cron jobs
    "schedule": "When, as the five fields of cron; such as 0 3 * * *.",
    "timeZone": "The time zone that the schedule is meant in, such as Europe/Berlin; the controllers' own, if not given.",
    "startingDeadlineSeconds": "How many seconds late a job may still be made.",
    "concurrencyPolicy": "What is done while an earlier job runs: Allow another, Forbid it, or Replace the earlier one.",
    "suspend": "Whether no more jobs are made.",
    "jobTemplate": "The job that is made.",
    "successfulJobsHistoryLimit": "How many completed jobs are kept.",
    "failedJobsHistoryLimit": "How many failed jobs are kept.",
    # commands
    "Command.action": "What is to be done, such as AbortJob, ResumeJob, OpenQueue or CloseQueue.",
    "target": "The Job or Queue, as an owner reference.",
    "reason": "Why, in a word.",
    "message": "Why, in a sentence.",
    # queues
    "weight": "Its part of the cluster beside its siblings', where shares go by weight.",
    "capability": "The most that its jobs may hold, by resource; without limit where a resource is not named.",
    "deserved": "What it is due, by resource; what it holds beyond may be reclaimed by others.",
    "guarantee": "What is kept for it, whether it uses it or not.",
    "guarantee.resource": "The amounts, by resource.",
    "reclaimable": "Whether others may take back what it holds beyond its share.",
    "parent": "The queue that it is part of; root, if not given.",
    "Queue.spec.priority": "Which of several queues is served first: the higher.",
    "Queue.spec.affinity": "Which groups of nodes its pods go to, or keep away from.",
    "Queue.spec.type": "Of no effect; kept for Volcano.",
    "extendClusters": "Other clusters that its jobs may run in; of no effect beyond a note on them.",
    "dequeueStrategy": "traverse: jobs that do not fit are passed over; fifo: they hold up those behind them.",
    # gangs
    "minMember": "How many pods must be able to start for any to start.",
    "minTaskMember": "The same for each task, by name.",
    "minResources": "What the smallest gang asks for; it is admitted once its queue has room for that.",
    "subGroupPolicy": "Parts of the gang that are each placed within one network domain.",
    "subGroupPolicy.name": "Its name.",
    "subGroupSize": "How many pods a part has.",
    "minSubGroups": "How many parts must be able to start.",
    "labelSelector": "Which pods of the gang it is about.",
    "matchLabelKeys": "Labels of pods by whose values they are parted.",
    # network domains
    "tier": "How wide the domain is: members of a lower tier are nearer to each other.",
    "tierName": "A name for that tier.",
    "members": "Nodes or smaller domains.",
    "members.type": "Node or HyperNode.",
    "members.selector": "Which: by name, by a pattern of names, or by labels.",
    "exactMatch": "One by name.",
    "exactMatch.name": "The name.",
    "regexMatch": "All whose names fit a pattern.",
    "regexMatch.pattern": "A regular expression.",
    "labelMatch": "All that a label selector chooses.",
    # flows
    "flows": "The jobs, each from a template.",
    "flows.name": "The template's name.",
    "flows.dependsOn": "What must be before this job is made.",
    "targets": "Other jobs of the flow, by their templates' names.",
    "probe": "How far they must be; completed, if not given.",
    "httpGetList": "Addresses of pods that must answer.",
    "tcpSocketList": "Ports of pods that must take connections.",
    "taskStatusList": "Phases that the pods of a task must have.",
    "patch": "What this job has different from its template.",
    "jobRetainPolicy": "Whether the jobs are kept (retain) or deleted (delete) once the flow is over.",
}


def explain(schema: Schema, kind: str) -> Schema:
    """The schema of a whole object with its descriptions, of as much as is listed."""
    schema["description"] = KINDS[kind]
    _explain(schema, (kind,))
    return schema


def _explain(schema: Schema, path: tuple[str, ...]) -> None:
    for name, field in (schema.get("properties") or {}).items():
        where = (*path, name)
        if said := next((FIELDS[end] for end in _ends(where) if end in FIELDS), ""):
            field["description"] = said
        if name not in ("template", "jobTemplate", "metadata", "patch"):  # those are others' words
            _explain(field.get("items") or field, where)


def _ends(path: tuple[str, ...]) -> Iterator[str]:
    for start in range(len(path)):
        yield ".".join(path[start:])
