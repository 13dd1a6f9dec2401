"""What identifies a member's result, and how a trained cohort becomes records of the ledger."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from epsearch.loop.jobs import Job, JobResult, Run
from epsearch.study.description import Study
from results.ledger.record import RunRecord, content_key
from trainers import methods
from trainers.cohort import PROTOCOL_VERSION, Learner
from trainers.plugins.source import digest
from trainers.streams.plugin import SOURCE

EPSILON, STRENGTH = "epsilon", "strength"  # stand beside the configuration, not in it
# As in the first ledgers: named in every configuration, as null where the method has none.
ALWAYS_NAMED = ("memory", "memory_batch", "trigger", "scale", "satisfied")


def content(study: Study, images: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """Everything that determines a run's result, JSON-able; `images` is the stream's own description.

    What a method does not declare plays no part in it.
    """
    learner = known_as(run.learner)
    values = {one.key: vars(learner.hyperparameters)[one.name] for one in learner.declared.hyperparameters}
    config = dict.fromkeys(ALWAYS_NAMED) | {
        name: value for name, value in values.items() if name not in (EPSILON, STRENGTH)
    }
    if study.network == "mlp":  # others the stream's description names, with a hash of pretrained weights
        config["hidden"] = study.architecture.hidden
    tasks = study.stream_tasks(run.phase)
    described = {
        "protocol": PROTOCOL_VERSION,
        "stream": {**_determining(images), "tasks": [tasks.start, tasks.stop]},
        "method": learner.method,
        EPSILON: values.get(EPSILON),
        "seed": learner.seed,
        "config": config,
        "numeric_path": study.numeric_path,
        "transfer": measures_transfer(run.phase),
    }
    return described | ({STRENGTH: values[STRENGTH]} if STRENGTH in values else {})


def known_as(learner: Learner) -> Learner:
    """The learner under whose method the ledger knows a result: ε = 0 of ε-SOFT-GEM is A-GEM."""
    other = learner.declared.at_zero
    if not other or learner.hyperparameters.epsilon != 0:
        return learner
    names = [one.name for one in methods.method(other).hyperparameters]
    return Learner(other, learner.hyperparameters.only(names), learner.seed)


def _determining(images: Mapping[str, Any]) -> dict[str, Any]:
    """Without what serves estimates only: where tasks differ in size, what was asked for stands under `at_most`.

    The files of a user's own stream are one hash.
    """
    estimate = {"examples_per_task"} if "at_most" in images else set()
    found = {name: value for name, value in images.items() if name not in estimate}
    return found | ({SOURCE: digest(found[SOURCE])} if SOURCE in found else {})


def measures_transfer(phase: str) -> bool:
    """Whether FWT and LCA are measured, with many tests between a task's first steps; ε is chosen without them."""
    return phase == "eval"


def records(job: Job, result: JobResult, described: Sequence[Mapping[str, Any]]) -> list[RunRecord]:
    """One record a member of a trained job; `described` holds each member's content."""
    value = result.value
    if value is None:
        raise ValueError(f"job {job.number} has no result: {result.error}")
    made, cohort = [], uuid4().hex[:12]
    for row, (learner, known) in enumerate(zip(job.cohort.learners, described, strict=True)):
        diverged = int(value.diverged_task[row]) >= 0
        made.append(
            RunRecord(
                key=content_key(known),
                phase=job.phase,
                method=str(known["method"]),
                epsilon=learner.hyperparameters.get(EPSILON, 0.0),
                seed=learner.seed,
                accuracies=value.accuracies[row],
                initial=value.initial[row],
                within=value.within[row],
                violations=value.violations[row],
                status="diverged" if diverged else "ok",
                diverged_task=int(value.diverged_task[row]) if diverged else None,
                diverged_step=int(value.diverged_step[row]) if diverged else None,
                steps=int(value.steps[row]),
                seconds=result.seconds / len(job.cohort.learners),
                content=known,
                fingerprint=str(value.fingerprints[row]),
                cohort=cohort,
                created=datetime.now(UTC).isoformat(timespec="seconds"),
            )
        )
    return made
