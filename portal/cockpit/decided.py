"""What a cycle decided about jobs, as it is kept with the cycle: plain data, bounded."""

from __future__ import annotations

from typing import Any

from scheduler.framework.record import CycleRecord

MOST = 300
"""Jobs that a cycle keeps of each sort; how many there were is kept as well."""


def decided(record: CycleRecord) -> dict[str, Any]:
    """Jobs are PodGroups by `namespace/name`.

    `bound` has [job, queue, pods, when it was created], the most pods first; `verdicts` has [job, verdict or null where it waits
    no longer]; `bound_jobs`, `verdict_jobs` and `kept` (pods for which room is kept) count all.
    """
    bound = sorted(record.served.items(), key=lambda each: (-each[1].pods, each[0]))
    verdicts = sorted(record.verdicts.items(), key=lambda each: (each[1] is None, each[0]))
    return {
        "bound": [[uid, served.queue, served.pods, served.created] for uid, served in bound[:MOST]],
        "bound_jobs": len(bound),
        "verdicts": [[uid, verdict.as_dict() if verdict else None] for uid, verdict in verdicts[:MOST]],
        "verdict_jobs": len(verdicts),
        "kept": len(record.pipelined),
    }
