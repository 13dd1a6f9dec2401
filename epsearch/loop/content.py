"""What identifies a member's result, and how a trained cohort becomes records of the ledger."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import uuid4

from epsearch.loop.jobs import Job, JobResult, Trainee
from epsearch.study.kinds import Study
from results.ledger.record import RunRecord, content_key
from results.points import SOFT_AGEM
from trainers.cohort import PROTOCOL_VERSION
from trainers.plugins.source import digest
from trainers.streams.plugin import SOURCE

AGEM = "agem"
OF_EVERY_RESULT = ("learning_rate", "batch_size", "hidden")
# Named in every content, as null where the method does not use them; other settings only where it does.
ALWAYS_NAMED = ("memory", "memory_batch", "trigger", "scale", "satisfied")


def content(study: Study, images: Mapping[str, Any], trainee: Trainee) -> dict[str, Any]:
    """Everything that determines the member's result, JSON-able; `images` is the stream's own description.

    What its method does not use plays no part in it. ε = 0 of ε-SOFT-GEM is A-GEM and is known as that.
    """
    member = trainee.member
    method = AGEM if trainee.method == SOFT_AGEM and member.epsilon == 0 else trainee.method
    used = method_settings(method)
    config = dict(vars(trainee.config))
    config["learning_rate"] = member.learning_rate or trainee.config.learning_rate
    kept = {name: value if name in used else None for name, value in config.items() if name in ALWAYS_NAMED}
    kept |= {name: config[name] for name in config if name in OF_EVERY_RESULT or name in used}
    if config["network"] != "mlp":  # which the stream's description names, with a hash of pretrained weights
        del kept["hidden"]
    tasks = study.stream_tasks(trainee.phase)
    described = {
        "protocol": PROTOCOL_VERSION,
        "stream": {**_determining(images), "tasks": [tasks.start, tasks.stop]},
        "method": method,
        "epsilon": member.epsilon if "epsilon" in used else None,
        "seed": member.seed,
        "config": kept,
        "numeric_path": study.numeric_path,
        "transfer": measures_transfer(trainee.phase),
    }
    return described | ({"strength": member.strength} if "strength" in used else {})


def _determining(images: Mapping[str, Any]) -> dict[str, Any]:
    """Without what serves estimates only: where tasks differ in size, what was asked for stands under `at_most`.

    The files of a user's own stream are one hash.
    """
    estimate = {"examples_per_task"} if "at_most" in images else set()
    found = {name: value for name, value in images.items() if name not in estimate}
    return found | ({SOURCE: digest(found[SOURCE])} if SOURCE in found else {})


@cache
def method_settings(method: str) -> frozenset[str]:
    """Names of what the method's result depends on, besides what every result depends on."""
    from trainers.methods import METHODS  # brings torch along

    return frozenset(METHODS[method].settings)


def measures_transfer(phase: str) -> bool:
    """Whether FWT and LCA are measured, with many tests between a task's first steps; ε is chosen without them."""
    return phase == "eval"


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
                steps=int(value.steps[row]),
                seconds=result.seconds / len(job.cohort.members),
                content=known,
                fingerprint=str(value.fingerprints[row]),
                cohort=cohort,
                created=datetime.now(UTC).isoformat(timespec="seconds"),
            )
        )
    return made
