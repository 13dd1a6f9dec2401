"""Findings of a check, in words, from results and observations of a trainer."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from epsearch.checking.check_cache import Finding
from results.labels import count_text, duration_text, number_text, points_text
from results.points import value_text
from results.statistics.paired import largest_difference
from trainers.cohort import CohortResult
from trainers.foreign.measuring import SELF_REPORTED
from trainers.foreign.process import Observations

MIB = 2**20


class Repeatability:
    """Compares results with the noise between two equal trainings of a trainer."""

    def __init__(self, first: CohortResult, again: CohortResult | None, declared: bool) -> None:
        self._declared, self._again = declared, again
        self.exactly = again is not None and same(first, again)
        self.noise = 0.0 if again is None else largest(first, again)
        """The largest difference of an accuracy between two trainings that should be the same."""

    def finding(self, seed: int, error: str) -> Finding:
        """Returns the finding on two equal trainings; error: of the second one, else ""."""
        if self._again is None:
            return Finding("repeats", False, "fails when it is repeated", f"trained once more, it fails: {error}")
        twice = f"trained twice with seed {seed} and the same values"
        if self.exactly:
            more = "" if self._declared else "; it declares that it does not"
            return Finding("repeats", True, "repeats exactly", f"exactly: {twice}, every prediction was the same{more}")
        by = "predictions differ, accuracies do not" if not self.noise else f"accuracies differ by {_up_to(self.noise)}"
        if self._declared:
            return Finding("repeats", False, f"does not repeat: {by}", f"not exactly: {twice}, {by}")
        return Finding("repeats", True, f"repeats as declared: {by}", f"not exactly, as it declares: {twice}, {by}")

    def all_the_same(self, results: Iterable[CohortResult]) -> bool:
        """Returns whether results are equal bit for bit."""
        first, *others = results
        return all(same(first, other) for other in others)

    def beyond(self, by: float) -> bool:
        """Returns whether a difference of accuracies exceeds the noise between equal trainings."""
        return self.exactly or by > self.noise

    def seed(self, first: CohortResult, other: CohortResult | None, seeds: tuple[int, int], error: str) -> Finding:
        """Returns the finding on another seed; error: of that training, else ""."""
        how = f"with seed {seeds[1]} in place of {seeds[0]} on the same data"
        if other is None:
            return Finding("seed", False, f"fails with seed {seeds[1]}", f"{how}, it fails: {error}")
        if same(first, other):
            more = f"{how}, every prediction was the same: seeds differ in their data alone"
            return Finding("seed", False, "seed does nothing", f"does nothing: {more}")
        by = largest(first, other)
        if self.beyond(by):
            change = f"accuracies differ by {_up_to(by)}" if by else "predictions differ, accuracies do not"
            return Finding("seed", True, "seed matters", f"matters: {how}, {change}")
        return Finding("seed", None, "seed cannot be told from noise", f"{how}, {self._no_more(by)}")

    def setting(self, name: str, results: Mapping[Any, CohortResult]) -> Finding:
        """Returns the finding on a setting, from values, the usual one first, with their results."""
        values = ", ".join(map(value_text, results))
        if len(results) == 1:
            return Finding(name, None, f"{name} not varied", f"has one value, {values}: nothing to compare")
        if self.all_the_same(results.values()):
            text = f"inert: {values} gave the same results bit for bit"
            return Finding(name, False, f"{name} inert ({values})", text)
        first, *others = results.values()
        by = max(largest(first, other) for other in others)
        scores = ", ".join(f"{_score(result)} at {value_text(value)}" for value, result in results.items())
        if self.beyond(by):
            return Finding(name, True, f"{name} acts", f"acts: A_T {scores}")
        text = f"cannot be told: {self._no_more(by)}; A_T {scores}"
        return Finding(name, None, f"{name} cannot be told from noise", text)

    def _no_more(self, by: float) -> str:
        return f"accuracies differ by {_up_to(by)}, no more than in a rerun ({points_text(self.noise)})"


def same(first: CohortResult, second: CohortResult) -> bool:
    """Returns whether all predictions are the same bit for bit."""
    return bool(first.fingerprints[0] == second.fingerprints[0])


def largest(first: CohortResult, second: CohortResult) -> float:
    """Returns the largest difference of an accuracy, a fraction; infinite where only one result diverged."""
    return largest_difference(first.accuracies[0], second.accuracies[0])


def fails(error: str) -> Finding:
    """Returns the finding on a trainer whose first training fails."""
    return Finding("trains", False, "does not come through", f"does not come through: {error}")


def setting_fails(name: str, value: Any, error: str, named: bool) -> Finding:
    """Returns the finding on a value that fails; named: by `--search`, not taken from the trainer's bounds."""
    at = value_text(value)
    more = "" if named else "; nobody has named that value: the trainer can declare bounds, or --search name others"
    return Finding(name, False if named else None, f"fails at {name} {at}", f"fails at {at}: {error}{more}")


def ahead(count: int, refusals: Sequence[str]) -> Finding:
    """Returns the finding on requests for later tasks, in all trainings."""
    if not count:
        return Finding("later tasks", True, "reads no later task", "not read: each was asked for in its turn")
    times = "once" if count == 1 else f"{count} times"
    text = f"asked for {times}, and refused: {refusals[0]}"
    return Finding("later tasks", False, "tries to read later tasks, which are refused", text)


def matrix(result: CohortResult, tasks: int) -> Finding:
    """Returns the finding on the accuracy matrix of one training."""
    if (at := int(result.diverged_task[0])) >= 0:
        return Finding("matrix", False, f"diverges in task {at}", f"not complete: it diverges in task {at}")
    lacking = int(np.isnan(result.accuracies[0][np.tri(tasks, dtype=bool)]).sum())
    if lacking:  # which the protocol refuses before
        return Finding("matrix", False, "matrix not complete", f"not complete: {lacking} accuracies lack")
    text = f"complete: {count_text(tasks, 'task')}, each tested after itself and every later one"
    return Finding("matrix", True, "matrix complete", text)


def accuracy_source(result: CohortResult) -> Finding:
    """Returns the finding on who measured the accuracies."""
    if SELF_REPORTED in result.note:
        text = "self-reported: the trainer tests itself, and epsearch cannot check that"
        return Finding("accuracies", None, "accuracies self-reported", text)
    return Finding("accuracies", True, "", "tested by epsearch, from the trainer's predictions")


def time(seconds: float, begun: float, limit: float | None) -> Finding:
    """Returns the finding on seconds per task and before the first task."""
    most = "" if limit is None else f"; all of it may take {duration_text(limit)}"
    text = f"{seconds:.2g} s a task with its tests, {begun:.2g} s before the first{most}"
    return Finding("time", True, f"{seconds:.2g} s a task", text)


def start(trainings: Sequence[Observations]) -> list[Finding]:
    """Returns the finding on how a member starts, from all trainings in their order; none where nothing was copied."""
    first, *others = trainings
    if first.anew and first.begun is not None:
        text = f"each member imports it anew, in {first.begun:.2g} s: {first.anew}"
        return [Finding("start", None, "each member imports it anew", text)]
    copies = [training.begun for training in others if training.begun is not None and training.copied]
    if not first.imported or not copies:
        return []
    text = (
        f"imported once, in {first.import_seconds:.2g} s; a member is a copy of that process, after {min(copies):.2g} s"
    )
    return [Finding("start", True, "", text)]


def memory(most: int, limit: int | None) -> Finding:
    """Returns the finding on resident memory, in bytes."""
    allowed = "" if limit is None else f"; it may take {_mib(limit)}"
    text = f"at most {_mib(most)} resident, with all that it starts{allowed}"
    return Finding("peak memory", True, f"{_mib(most)} of memory", text)


def _score(result: CohortResult) -> str:
    last = result.accuracies[0][-1]
    return "diverged" if np.isnan(last).any() else f"{number_text(100 * float(last.mean()), 2)} %"


def _up_to(by: float) -> str:
    """Returns a difference in words; infinite means that one result diverged."""
    return f"up to {points_text(by)}" if np.isfinite(by) else "all, as one of them diverges"


def _mib(size: int) -> str:
    """Returns a size in MiB.

    >>> _mib(2**31)
    '2,048 MiB'
    """
    return f"{size / MIB:,.0f} MiB"
