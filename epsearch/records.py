"""What identifies a member's result, and how a trained cohort becomes records of the ledger."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from epsearch.jobs import Job, JobResult
from epsearch.study import Study
from results.record import RunRecord
from trainers.cohort import Member

PROTOCOL_VERSION = 2  # goes up whenever a change of the trainers changes any figure
AGEM = "agem"


def content(study: Study, images: Mapping[str, Any], phase: str, member: Member) -> dict[str, Any]:
    """Everything that determines the member's result, JSON-able; `images` is the stream's own description.

    ε = 0 is A-GEM and is known as that: neither ε nor the readings of ε-SOFT-GEM's algorithm play a part in it.
    """
    config = asdict(study.train_config())
    method = AGEM if member.epsilon == 0 else study.method
    if method == AGEM:
        config |= {"trigger": None, "scale": None, "satisfied": None}
    tasks = study.stream_tasks(phase)
    return {
        "protocol": PROTOCOL_VERSION,
        "stream": {**images, "tasks": [tasks.start, tasks.stop]},
        "method": method,
        "epsilon": None if method == AGEM else member.epsilon,
        "seed": member.seed,
        "config": config,
        "numeric_path": study.numeric_path,
        "transfer": measures_transfer(phase),
    }


def measures_transfer(phase: str) -> bool:
    """Whether FWT and LCA are measured, with many tests between a task's first steps; ε is chosen without them."""
    return phase == "eval"


def content_key(described: Mapping[str, Any]) -> str:
    """The hash under which the ledger knows a member."""
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def records(job: Job, result: JobResult, described: Sequence[Mapping[str, Any]]) -> list[RunRecord]:
    """One record a member of a trained job; `described` holds each member's content."""
    value = result.value
    if value is None:
        raise ValueError(f"job {job.number} has no result: {result.error}")
    made, cohort = [], uuid4().hex[:12]
    for row, (member, known) in enumerate(zip(job.cohort.members, described, strict=True)):
        diverged = int(value.diverged_task[row]) >= 0
        made.append(
            RunRecord(
                key=content_key(known),
                phase=job.phase,
                method=str(known["method"]),
                epsilon=member.epsilon,
                seed=member.seed,
                accuracies=value.accuracies[row],
                initial=value.initial[row],
                within=value.within[row],
                violations=value.violations[row],
                status="diverged" if diverged else "ok",
                diverged_task=int(value.diverged_task[row]) if diverged else None,
                diverged_step=int(value.diverged_step[row]) if diverged else None,
                steps=value.steps,
                seconds=result.seconds / len(job.cohort.members),
                content=known,
                fingerprint=str(value.fingerprints[row]),
                cohort=cohort,
                created=datetime.now(UTC).isoformat(timespec="seconds"),
            )
        )
    return made
