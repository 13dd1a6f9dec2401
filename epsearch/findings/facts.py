"""Facts of a report besides results: work, machine, versions; notes on an unfinished study."""

from collections import Counter
from importlib.metadata import version

from epsearch.checking import check_cache
from epsearch.findings.listing import open_ledger
from epsearch.gpu_check import in_words
from epsearch.ledger.damage import describe_unused
from epsearch.loop.base import Loop
from epsearch.machine import describe_machine
from epsearch.plugins.loading import WAYS, all_parts
from epsearch.session.session import Effort
from epsearch.study.description import Study
from results.labels import count_text, duration_text, points_text
from results.ledger.record import RERUN, steps_taken
from results.ledger.retry import RetryPolicy
from search_spaces.published.definition import load_definition
from trainers.cohort import Architecture
from trainers.hyperparameters import OF_EVERY_METHOD
from trainers.numeric_path import NumericPath


def facts(loop: Loop, effort: Effort | None) -> dict[str, str]:
    """Returns facts about the work of a study: members, steps, times, machine, versions.

    effort: work of the session that writes this report; None if a stored study's report is rewritten.
    """
    records = loop.records.values()
    facts = {
        "members": f"{len(records)} in the ledger for this study",
        **({} if loop.study.foreign else {"SGD steps of all members": f"{steps_taken(records):,}"}),
        "training time of all members": duration_text(sum(record.seconds for record in records)),
    }
    if effort is not None and effort.trained:  # not of a session that only wrote the report again
        facts |= {
            "last run": (
                f"{count_text(effort.trained, 'member')} trained, {effort.reused} taken from the ledger, "
                f"in {duration_text(effort.seconds)}"
            ),
        }
        if not loop.study.foreign:
            facts["SGD steps of the last run"] = (
                f"{effort.member_steps:,} taken, {effort.saved:,} saved: members of a seed share the first task"
            )
    if ways := loop.images.get(WAYS):
        facts["network"] = ways[str(NumericPath.parse(str(loop.study.numeric_path)).one_by_one)]
    for name, parts in all_parts(loop.study.dataset, loop.images).items():
        facts[f"code of {name}"] = ", ".join(f"{part} {digest}" for part, digest in parts.items())
    return facts | trainer_check(loop) | gpu_checks(loop) | describe_machine() | {"epsearch": version("epsearch")}


def trainer_check(loop: Loop) -> dict[str, str]:
    """Returns the result of the last `epsearch check` of a plug-in trainer on these tasks, on this machine."""
    result = check_cache.read(loop.study, loop.images) if loop.study.foreign else None
    return {} if result is None else {f"trust in {result.trainer}": result.sentence()}


def gpu_checks(loop: Loop) -> dict[str, str]:
    """Returns the results of the self-checks of GPUs, with a remark if GPUs or versions of torch differ."""
    runs = [record for record in loop.records.values() if record.on_gpu]
    counts = sorted(Counter((record.method, record.self_check) for record in runs).items())
    outcomes = (f"{name}, {count_text(count, 'run')}: {in_words(check)}" for (name, check), count in counts)
    facts = {"self-check of the GPU": "; ".join(outcomes)}
    machines = {record.machine for record in runs} - {""}
    if len(machines) > 1:
        more = "which may round differently: their runs differ by more than those of one"
        facts["GPUs, with versions of torch"] = f"{len(machines)}, {more}"
    return facts if runs else {}


def verification(loop: Loop, waiting: RetryPolicy | None = None) -> dict[str, str]:
    """Returns the results of the last `epsearch verify` of the runs; empty if there is none.

    waiting: how long to wait for the ledger.
    """
    with open_ledger(loop.study.storage, waiting) as store:
        stored = store.certificates(loop.records, RERUN).values()
    if not stored:
        return {}
    same, last = sum(rerun.within(0.0) for rerun in stored), max(rerun.created for rerun in stored)[:10]
    largest = points_text(max(rerun.accuracy_difference for rerun in stored))
    differ = "" if same == len(stored) else f", accuracies differ by up to {largest}"
    again = f"{count_text(len(stored), 'run')} trained again, alone, by `epsearch verify`, the last on {last}"
    return {"verified": f"{again}: {same} the same bit for bit{differ}"}


def full_size(study: Study, memory: int | None = None) -> bool:
    """Returns whether tasks, examples, batches, passes and optimizer are the paper's, and its printed rows comparable.

    memory: examples per class and task, which then must be those of the main tables, too. Hyperparameters may differ:
    comparing them with the printed rows shows which ones the paper used.
    """
    definition = load_definition(study.dataset)
    return study.examples_per_task is None and (
        (study.tasks, study.cv_tasks, study.hyperparameters.batch_size, study.hyperparameters.memory_batch)
        == (definition.tasks, definition.cv_tasks or 0, definition.batch_size, definition.memory_batch)
        and (study.classes_per_task or definition.classes, study.image_size)
        == (definition.classes, definition.image_size)
        and all(
            study.value(hyperparameter.name) == hyperparameter.default
            for hyperparameter in OF_EVERY_METHOD
            if hyperparameter.later
        )
        and study.scenario == next(iter(definition.scenarios), None)
        and study.architecture == Architecture(definition.network, pretrained=definition.pretrained)
        and memory in (None, definition.memory)
        and getattr(study, "memory_bytes", None) is None
    )


def unit_notes(study: Study) -> list[str]:
    """Returns the note that every seed counts once for each order of tasks; none with one order, or one for each."""
    if study.orders == 1:
        return []
    counted = f"{study.units_text(len(study.seeds))} make {len(study.units)} units"
    return [
        f"{counted}: where the text counts seeds, it means these pairs of an order of the tasks and a seed. Tests take "
        "them as independent, which units that share a seed or an order are not quite."
    ]


def unfinished_notes(loop: Loop) -> list[str]:
    """Returns notes on an unfinished study: its progress, and damaged rows; none for a finished one."""
    if loop.done:
        return []
    unused, again = loop.unused_records(), f"`epsearch {loop.study.kind}` trains again."
    damage = [f"{describe_unused(unused)}; {again}"] if unused else []
    if loop.was_finished and not damage:
        return [f"An earlier version finished this study; today's rules for its values need more: {loop.state()}."]
    return [f"The study is not finished; {loop.state()}.", *damage]
