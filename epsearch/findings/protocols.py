"""The results of a study of protocols: choices, evidence by hashes, costs."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np

from epsearch.findings.facts import unfinished_notes, unit_notes
from epsearch.loop.jobs import Run
from epsearch.loop.protocols import ProtocolLoop
from epsearch.loop.walks import Walk
from epsearch.preparation.protocol_checks import remark
from epsearch.protocols.protocol import EVALUATION
from epsearch.protocols.registry import sentence
from results.ledger.retry import RetryPolicy
from results.protocols import Cost, Evidence, ProtocolResults, ProtocolRow
from trainers.streams.base import TaskStream
from trainers.streams.hashes import Hashes

Tested: TypeAlias = tuple[str, int, int]
"""Phase, number of the order, seed."""


def protocol_results(
    loop: ProtocolLoop, facts: Mapping[str, str], waiting: RetryPolicy | None = None
) -> ProtocolResults:
    """Returns the results so far; for the arguments see `Report.results`; it never waits for the ledger."""
    study = loop.study
    evidence = _Evidence(loop)
    return ProtocolResults(
        name=study.name,
        dataset=study.dataset,
        method=study.method,
        parameter=study.space.names[0],
        log=study.space.parameters[0].log,
        candidates=tuple(map(float, study.candidates)),
        constants={float(value): loop.records_of(loop.constants(value)) for value in study.candidates},
        rows=tuple(_row(loop, name, evidence) for name in study.protocols),
        config=study.shown(),
        facts=facts,
        notes=(*unit_notes(study), *unfinished_notes(loop)),
    )


def _row(loop: ProtocolLoop, name: str, evidence: "_Evidence") -> ProtocolRow:
    walks = [loop.walks[name, order] for order in range(loop.study.orders)]
    one = walks[0].protocol
    failures = dict.fromkeys(f"{walk.failure}." for walk in walks if walk.failure)
    return ProtocolRow(
        name=name,
        title=one.title,
        sees=sentence(one),
        source=one.source,
        per_task=one.per_task,
        bound=one.bound,
        evidence=evidence.of(walks),
        choices={walk.order: walk.schedule for walk in walks if walk.done and walk.choices},
        records=loop.records_of(loop.finals(name)),
        cost={walk.order: _cost(loop, walk) for walk in walks if walk.done and walk.choices},
        remark=" ".join([remark(loop.study, one), *failures]).strip(),
    )


class _Evidence:
    """Compares by hashes the tests that chose with those that judge."""

    def __init__(self, loop: ProtocolLoop) -> None:
        self._loop, self._hashes = loop, dict[tuple[str, int, int, int], Hashes]()

    def of(self, walks: Iterable[Walk]) -> Evidence:
        """Returns the evidence of one protocol in all orders."""
        selected, judged, shared = 0, 0, 0
        for walk in walks:
            chosen = self._distinct(part for run in _runs(walk) for part in self._tests(run))
            finals = self._loop.constants(self._loop.study.candidates[0])
            judges = self._distinct(part for run in finals if run.order == walk.order for part in self._tests(run))
            selected, judged = selected + len(chosen), judged + len(judges)
            shared += len(np.intersect1d(chosen, judges, assume_unique=True))
        return Evidence(selected, judged, shared)

    def _tests(self, run: Run) -> list[Hashes]:
        """Returns the hashes of the tests of each task that a run measures."""
        tasks = len(self._loop.study.stream_tasks(run.phase)) if run.prefix is None else run.prefix[0]
        return [self._of_task(run.phase, run.order, run.learner.seed, position) for position in range(tasks)]

    def _of_task(self, phase: str, order: int, seed: int, position: int) -> Hashes:
        """Returns the hashes of a task's tests, as the network sees them."""
        from trainers.streams.example_hashes import test_hashes  # brings the streams along

        key = phase, order, seed, position
        if key not in self._hashes:
            stream = self._loop.stream(phase, order)
            self._hashes[key] = test_hashes(stream, seed, stream.tasks[position])
        return self._hashes[key]

    @staticmethod
    def _distinct(parts: Iterable[Hashes]) -> Hashes:
        return np.unique(np.concatenate([np.zeros(0, np.uint64), *{id(part): part for part in parts}.values()]))


def _runs(walk: Walk) -> list[Run]:
    """Returns the runs whose accuracies chose, of each seed the one with the most tasks alone."""
    longest: dict[int, Run] = {}
    for choice in walk.choices:
        for run in choice.tried:
            longest[run.learner.seed] = run  # of later choices, which see more tasks
    return list(longest.values())


def _cost(loop: ProtocolLoop, walk: Walk) -> Cost:
    """Returns what the choices of a protocol took in one order, as if it were alone."""
    steps, flop = 0.0, 0.0
    for choice in walk.choices:
        for run in choice.tried:
            of_run = loop.cost_of(run, choice.since)
            steps, flop = steps + of_run[1], flop + of_run[0]
    return Cost(steps, flop, _kept(loop, walk))


def _kept(loop: ProtocolLoop, walk: Walk) -> int:
    """Returns the bytes of examples of the evaluation that are kept beyond their task, in order to choose.

    A choice that is made once needs all tasks in view again; one that is made at every task needs earlier ones' tests.
    """
    view, one = walk.protocol.view, walk.protocol
    if view is None or view.stream != EVALUATION or not walk.choices or (one.per_task and one.newest):
        return 0
    stream, seed = loop.stream(walk.phase, walk.order), loop.study.seeds[0]
    last = max(run.prefix[0] if run.prefix else len(stream.tasks) for run in walk.choices[-1].tried)
    earlier = stream.tasks[: last - 1] if one.per_task else stream.tasks[:last]
    tests = sum(_bytes(stream, len(stream.test(seed, task).labels)) for task in earlier)
    return tests + (0 if one.per_task else sum(_bytes(stream, stream.size(seed, task)) for task in earlier))


def _bytes(stream: TaskStream, examples: int) -> int:
    """Returns the bytes of examples as they are stored, with a byte for each label."""
    pixels = getattr(stream, "pixels", None)
    one = stream.room(1).nbytes if pixels is None else pixels[0].nbytes
    return examples * (int(one) + 1)
