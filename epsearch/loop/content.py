"""What determines and identifies a member's result, and how a trained cohort becomes records of the ledger."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from epsearch.failures.errors import UsageError, unknown
from epsearch.loop.jobs import Job, JobResult, Run
from epsearch.plugins.loading import PLUGINS, WAYS
from epsearch.study.description import Study
from results.ledger.record import RunRecord, content_key
from trainers import methods
from trainers.cohort import PROTOCOL_VERSION, Learner
from trainers.hyperparameters import OF_EVERY_METHOD, Hyperparameters
from trainers.plugins.source import SOURCE, digest

PARTS = "method_parts"  # of a method of others: a hash of what it is made of
EPSILON, STRENGTH = "epsilon", "strength"  # stand beside the configuration, not in it
# As in the first ledgers: named in every configuration, as null where the method has none.
ALWAYS_NAMED = ("memory", "memory_batch", "trigger", "scale", "satisfied")


@dataclass(frozen=True)
class Known:
    """What is known of a study's members before any is looked up, by key."""

    records: Mapping[str, RunRecord] = field(default_factory=dict)
    """What they scored."""
    damaged: Mapping[str, str] = field(default_factory=dict)
    """Why a record of the ledger cannot be used."""


NOTHING = Known()


def content(study: Study, images: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """Everything that determines a run's result, JSON-able; `images` is the stream's own description.

    Its hash is the key under which the ledger has the result, for every study that ever wants it. So nothing may stand
    here that cannot change the result, such as the study's name, the runner or the cohort; and what a method does not
    declare plays no part in it. No name in it may change, or no stored result would have its key.
    """
    learner = known_as(run.learner)
    all_values = vars(learner.hyperparameters)
    values = {one.key: all_values[one.name] for one in learner.declared.declarations(all_values)}
    config = dict.fromkeys(ALWAYS_NAMED) | {
        name: value for name, value in values.items() if name not in (EPSILON, STRENGTH)
    }
    if learner.declared.foreign:
        config, values = values, {}
    elif study.network == "mlp":  # others the stream's description names, with a hash of pretrained weights
        config["hidden"] = study.architecture.hidden
    # What the method is made of, and networks among a trainer's values, alone: a strategy trains nothing.
    plugged = images.get(PLUGINS, {})
    source = dict(plugged.get(learner.method, {}))
    for network in config.values() if learner.declared.foreign else ():
        source |= {f"{network} {name}": part for name, part in plugged.get(network, {}).items()}
    tasks = study.stream_tasks(run.phase)
    return {
        "protocol": PROTOCOL_VERSION,
        "stream": {**determining(images), "tasks": [tasks.start, tasks.stop]},
        "method": learner.method,
        EPSILON: values.get(EPSILON),
        "seed": learner.seed,
        "config": config,
        "numeric_path": study.numeric_path,
        "transfer": measures_transfer(run.phase),
        **({STRENGTH: values[STRENGTH]} if STRENGTH in values else {}),
        **({PARTS: digest(source)} if source else {}),
    }


def run_of(record: RunRecord) -> Run:
    """The run that a record is of: the inverse of `content`. Raises ValueError and LookupError where it names none."""
    known = record.content
    beside = {name: known.get(name) for name in (EPSILON, STRENGTH)}
    method = methods.method(record.method)
    if method.foreign:
        return Run(record.phase, Learner.of(record.method, record.seed, **known["config"]))
    declared = method.hyperparameters
    values = {one.name: beside[one.key] if one.key in beside else known["config"][one.key] for one in declared}
    return Run(record.phase, Learner(record.method, Hyperparameters.of(declared, values), record.seed))


def run_key(study: Study, images: Mapping[str, Any], run: Run) -> str:
    """The key under which the ledger has a run's result; arguments as of `content`."""
    return content_key(content(study, images, run))


def known_as(learner: Learner) -> Learner:
    """The learner under whose method the ledger knows a result: ε = 0 of ε-SOFT-GEM is A-GEM.

    So the baseline of a search, the row of a comparison and A-GEM on its own are trained once for all.
    """
    other = learner.declared.at_zero
    if not other or learner.hyperparameters.epsilon != 0:
        return learner
    # Only what that method declares, or the key would depend on what cannot change the result.
    left = learner.hyperparameters.only(one.name for one in methods.method(other).hyperparameters)
    return Learner(other, left, learner.seed)


def determining(images: Mapping[str, Any]) -> dict[str, Any]:
    """Without what serves estimates only: where tasks differ in size, what was asked for stands under `at_most`.

    The files of a user's own stream are one hash.
    """
    left_out = {PLUGINS, WAYS} | ({"examples_per_task"} if "at_most" in images else set())
    part = {name: value for name, value in images.items() if name not in left_out}
    return part | ({SOURCE: digest(part[SOURCE])} if SOURCE in part else {})


def measures_transfer(phase: str) -> bool:
    """Whether FWT and LCA are measured, with many tests between a task's first steps; ε is chosen without them."""
    return phase == "eval"


def records(job: Job, result: JobResult, described: Sequence[Mapping[str, Any]]) -> list[RunRecord]:
    """One record a member of a job that was trained; `described` holds each member's content, in the job's order.

    Wall time is shared evenly: what a single member of a cohort takes cannot be told.
    """
    value = result.value
    assert value is not None
    # Only machines that round alike can be held to the same bits.
    cohort = ".".join(part for part in (uuid4().hex[:12], result.machine, result.self_check) if part)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    diverged = value.diverged_task >= 0
    return [
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
            status="diverged" if diverged[row] else "ok",
            diverged_task=int(value.diverged_task[row]) if diverged[row] else None,
            diverged_step=int(value.diverged_step[row]) if diverged[row] else None,
            steps=int(value.steps[row]),
            seconds=result.seconds / len(job.cohort.learners),
            content=known,
            fingerprint=str(value.fingerprints[row]),
            cohort=cohort,
            created=created,
        )
        for row, (learner, known) in enumerate(zip(job.cohort.learners, described, strict=True))
    ]


def searchable(method: str) -> tuple[str, ...]:
    """Names of the hyperparameters on which a method's result depends, which are those that a search may name."""
    declared = methods.method(method)
    return (*declared.names, *(one.name for one in (() if declared.foreign else OF_EVERY_METHOD)))


def check_searchable(method: str, names: Iterable[str]) -> None:
    """Raises UsageError where a name is not a hyperparameter of the method."""
    allowed = searchable(method)
    for name in () if methods.method(method).takes_any else names:
        if name == EPSILON and name not in allowed:
            raise UsageError(f"method {method!r} has no ε; name what --search is to try: {', '.join(allowed)}")
        if name not in allowed:
            raise UsageError(f"method {method!r}: {unknown('hyperparameter', name, allowed)}")
