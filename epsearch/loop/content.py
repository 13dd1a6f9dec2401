"""The content and key of a member's result, and the records of a trained cohort."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from uuid import uuid4

from epsearch.failures.errors import UsageError
from epsearch.loop.jobs import Job, JobResult, Run
from epsearch.plugins.loading import PLUGINS, WAYS
from epsearch.study.description import MEMORY_PHASE, Study
from epsearch.study.parsers import AUTO
from results.ledger.record import BEYOND, ORDER, RunRecord, content_key
from trainers import methods
from trainers.cohort import PROTOCOL_VERSION, STARTS, Learner
from trainers.forks import Fork, learner_of, line_of, normal_form, schedule_of
from trainers.hyperparameters import OF_EVERY_METHOD, Hyperparameters
from trainers.methods import RESERVOIR, Columns
from trainers.plugins.source import SOURCE, digest
from trainers.spelling import unknown

PARTS = "method_parts"  # of a plug-in method: a hash of its parts
DISTANCES = "distances"
"""Part of a stream's description: method -> steps between tests inside tasks, where they are computed."""
MEMORIES, CANDIDATES = "memories", "candidates"
"""Parts of a stream's description: method -> examples per class and task, or candidates of its tuning, as computed."""
PREFIX = "prefix"
"""Part of a stream's description: number of the tasks that are trained, and steps of the last one, null for all."""
SCHEDULE = "schedule"
"""Part of a content: pairs of the position of a task and of what changes there, by names of stored records."""
EPSILON, STRENGTH = "epsilon", "strength"  # beside the configuration, not in it
# As in the first ledgers: named in every configuration, as null where the method has none.
ALWAYS_NAMED = ("memory", "memory_batch", "trigger", "scale", "satisfied")


def content(study: Study, images: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """Returns all that determines a run's result, JSON-able; images: the stream's description.

    Its hash is the key of the result in the ledger, for all studies. So it contains nothing that cannot change the
    result, such as the study's name, the runner, the cohort, or hyperparameters that the method does not declare. Names
    must not change, or stored results would lose their keys.
    """
    learner = known_as(run.learner)
    identity = _begun_as(learner).identity
    declared = learner.declared.declarations(identity)
    values = {
        hyperparameter.key: identity[hyperparameter.name]
        for hyperparameter in declared
        if hyperparameter.name in identity
    }
    config = dict.fromkeys(ALWAYS_NAMED) | {
        name: value for name, value in values.items() if name not in (EPSILON, STRENGTH)
    }
    if learner.declared.foreign:
        config, values = values, {}
    elif study.network == "mlp":  # the stream's description has other networks, with a hash of pretrained weights
        config["hidden"] = study.hidden
        config |= {} if study.start == STARTS[0] else {"start": study.start}
    # Parts of the method, and of networks among a trainer's values, but not of strategies, which train nothing.
    plugged = images.get(PLUGINS, {})
    source = dict(plugged.get(learner.method, {}))
    for network in config.values() if learner.declared.foreign else ():
        source |= {f"{network} {name}": part for name, part in plugged.get(network, {}).items()}
    tasks = study.stream_tasks(run.phase)
    inside = measure_of(study, images, run)
    order = study.order_of(run.phase, run.order)
    facts: dict[str, Any] = {"tests": "validation"} if study.holds_tests(run.phase) else {}
    if run.phase == MEMORY_PHASE:
        facts = {"tests": "memory", "tests_of_class": study.hyperparameters.memory}
    if run.prefix:
        facts[PREFIX] = list(run.prefix)
    if run.more:
        facts[BEYOND] = [study.tasks, study.tasks + run.more]
    if (further := further_tasks(study, run)) and _depends_on_length(study, learner):
        facts["length"] = len(tasks) + further
    if isinstance(order, tuple) and order != tuple(tasks):
        facts[ORDER] = order
    return {
        "protocol": PROTOCOL_VERSION,
        "stream": {**determining_part(images), "tasks": [tasks.start, tasks.stop], **facts},
        "method": learner.method,
        EPSILON: values.get(EPSILON),
        "seed": learner.seed,
        **({ORDER: run.order} if run.order else {}),
        "config": config,
        "numeric_path": study.numeric_path,
        "transfer": measures_transfer(run.phase),
        **({"measure": dict(zip(("every", "images"), inside, strict=True))} if inside else {}),
        **({STRENGTH: values[STRENGTH]} if STRENGTH in values else {}),
        **({PARTS: digest(source)} if source else {}),
        **({SCHEDULE: changes} if (changes := _changes(learner)) else {}),
    }


def run_of(record: RunRecord) -> Run:
    """Returns the run of a record: the inverse of `content`. Raises ValueError and LookupError for unknown names."""
    config = record.content["config"]
    tasks, steps = record.content["stream"].get(PREFIX, (0, None))
    unit = record.unit.order, record.further, (tasks, steps) if tasks else None
    beside = {name: record.content.get(name) for name in (EPSILON, STRENGTH)}
    method = methods.method(record.method)
    if method.foreign:
        return Run(record.phase, Learner.of(record.method, record.seed, **config), *unit)
    declared = method.hyperparameters
    usual = {hyperparameter.key: hyperparameter.default for hyperparameter in declared if hyperparameter.later}
    stored = usual | config | beside
    values = {hyperparameter.name: stored[hyperparameter.key] for hyperparameter in declared}
    schedule = [(0, Hyperparameters.of(declared, values))]
    names = {hyperparameter.key: hyperparameter.name for hyperparameter in declared}
    for task, changes in record.content.get(SCHEDULE, ()):
        schedule.append((task, schedule[-1][1].but(**{names[key]: value for key, value in changes.items()})))
    return Run(record.phase, learner_of(record.method, record.seed, tuple(schedule)), *unit)


def further_tasks(study: Study, run: Run) -> int:
    """Returns the most further tasks that a search may go on to with a run; 0 for tasks that are shown together."""
    return study.further_tasks if run.phase == "cv" and run.learner.declared.union is None else 0


def _depends_on_length(study: Study, learner: Learner) -> bool:
    """Returns whether a run's first tasks depend on how many follow: by the size of a reservoir, or a new column.

    Of code from outside nobody knows.
    """
    declared = learner.declared
    foreign = learner.method not in methods.METHODS or study.architecture.own
    return foreign or declared.memory == RESERVOIR or isinstance(declared.rule, Columns)


def run_key(study: Study, images: Mapping[str, Any], run: Run) -> str:
    """Returns the key of a run's result in the ledger; for the arguments see `content`."""
    return content_key(content(study, images, run))


def known_as(learner: Learner) -> Learner:
    """Returns the learner under whose method a result is stored: ε = 0 of ε-SOFT-GEM is A-GEM.

    So the baseline of a search and a row of A-GEM in a comparison are trained once.
    """
    other, learner = learner.declared.at_zero, normal_form(learner)
    if not other or isinstance(learner, Fork) or learner.hyperparameters.epsilon != 0:
        return learner
    # Only declared hyperparameters, or the key would depend on values that cannot change the result.
    left = learner.hyperparameters.only(hyperparameter.name for hyperparameter in methods.method(other).hyperparameters)
    return Learner(other, left, learner.seed)


def _begun_as(learner: Learner) -> Learner:
    """Returns the learner that trained the first task."""
    return line_of(learner)[-1]


def _changes(learner: Learner) -> list[list[Any]]:
    """Returns the tasks at which values change, with the changed ones by names of stored records."""
    schedule = schedule_of(learner)
    keys = {hyperparameter.name: hyperparameter.key for hyperparameter in learner.declared.hyperparameters}
    return [
        [task, {keys[name]: value for name, value in vars(now).items() if before.get(name) != value}]
        for (_, before), (task, now) in pairwise(schedule)
    ]


def determining_part(images: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the part of a stream's description that determines results.

    Where tasks differ in size, `at_most` replaces `examples_per_task`. The files of a plug-in stream are one hash.
    """
    left_out = {PLUGINS, WAYS, DISTANCES, MEMORIES, CANDIDATES} | (
        {"examples_per_task"} if "at_most" in images else set()
    )
    part = {name: value for name, value in images.items() if name not in left_out}
    return part | ({SOURCE: digest(part[SOURCE])} if SOURCE in part else {})


def measures_transfer(phase: str) -> bool:
    """Returns whether FWT and LCA are measured, by tests between a task's first steps."""
    return phase == "eval"


def measure_of(study: Study, images: Mapping[str, Any], run: Run) -> tuple[int, int] | None:
    """Returns (every so many steps, images of each task) of tests inside tasks, as for `Training`; None without them.

    images: the stream's description, which has the distances that are computed. Tasks shown together have no inside.
    """
    if study.measure is None or run.learner.declared.union is not None:
        return None
    every, count = study.measure
    return (images[DISTANCES][stored_method(run.learner)] if every == AUTO else int(every)), count


def stored_method(learner: Learner) -> str:
    """Returns the method that has a learner's distance: ε = 0 of ε-SOFT-GEM is A-GEM, and has the same."""
    return learner.declared.at_zero or learner.method


def records(job: Job, result: JobResult, described: Sequence[Mapping[str, Any]]) -> list[RunRecord]:
    """Returns a record per member of a trained job; described: each member's content, in the job's order.

    Wall time is shared evenly, as that of a single member of a cohort is unknown.
    """
    value = result.value
    assert value is not None
    # A rerun must have the same bits only on a machine that rounds alike.
    cohort = ".".join(part for part in (uuid4().hex[:12], result.machine, result.self_check) if part)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    diverged = value.diverged_task >= 0
    return [
        RunRecord(
            key=content_key(facts),
            phase=job.phase,
            method=str(facts["method"]),
            epsilon=learner.hyperparameters.get(EPSILON, 0.0),
            seed=learner.seed,
            accuracies=value.accuracies[row],
            initial=value.initial[row],
            within=value.within[row],
            inside=value.inside[row],
            violations=value.violations[row],
            status="diverged" if diverged[row] else "ok",
            diverged_task=int(value.diverged_task[row]) if diverged[row] else None,
            diverged_step=int(value.diverged_step[row]) if diverged[row] else None,
            steps=int(value.steps[row]),
            seconds=result.seconds / len(job.cohort.learners),
            content=facts,
            fingerprint=str(value.fingerprints[row]),
            cohort=cohort,
            created=created,
        )
        for row, (learner, facts) in enumerate(zip(job.cohort.learners, described, strict=True))
    ]


def searchable(method: str) -> tuple[str, ...]:
    """Returns the hyperparameters of a method, which a search may name."""
    declared = methods.method(method)
    return (*declared.names, *(hyperparameter.name for hyperparameter in (() if declared.foreign else OF_EVERY_METHOD)))


def check_searchable(method: str, names: Iterable[str]) -> None:
    """Raises UsageError where a name is not a hyperparameter of the method."""
    allowed = searchable(method)
    for name in () if methods.method(method).takes_any else names:
        if name == EPSILON and name not in allowed:
            raise UsageError(f"method {method!r} has no ε; name what --search is to try: {', '.join(allowed)}")
        if name not in allowed:
            raise UsageError(f"method {method!r}: {unknown('hyperparameter', name, allowed)}")
