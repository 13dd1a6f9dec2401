"""Evidence of what chose and what judges: hashes of the tests of both."""

from collections.abc import Iterable

import numpy as np

from epsearch.loop.base import Loop
from epsearch.loop.jobs import Run
from results.protocols import Evidence
from trainers.streams.hashes import Hashes

HashesOfTasks = dict[tuple[str, int, int, int], Hashes]
"""Maps phase, number of the order, seed and position of a task to the hashes of its tests."""


def evidence(
    loop: Loop, pairs: Iterable[tuple[Iterable[Run], Iterable[Run]]], hashes_of_tasks: HashesOfTasks | None = None
) -> Evidence:
    """Compares by hashes the tests that chose with those that judge.

    pairs: (runs whose accuracies chose, runs that judge), as one for each order of tasks; hashes_of_tasks: of earlier
    calls with the same loop, to which those of this one are added.
    """
    hashes_of_tasks = {} if hashes_of_tasks is None else hashes_of_tasks
    selected, judged, shared = 0, 0, 0
    for choosing, judging in pairs:
        chosen, judges = (_distinct(loop, runs, hashes_of_tasks) for runs in (choosing, judging))
        selected, judged = selected + len(chosen), judged + len(judges)
        shared += len(np.intersect1d(chosen, judges, assume_unique=True))
    return Evidence(selected, judged, shared)


def _distinct(loop: Loop, runs: Iterable[Run], hashes_of_tasks: HashesOfTasks) -> Hashes:
    """Returns the hashes of all tests that runs measure, each once."""
    parts = {
        (run.phase, run.order, run.learner.seed, position)
        for run in runs
        for position in range(run.prefix[0] if run.prefix else len(loop.study.stream_tasks(run.phase)))
    }
    hashes = [_of_task(loop, part, hashes_of_tasks) for part in sorted(parts)]
    return np.unique(np.concatenate([np.zeros(0, np.uint64), *hashes]))


def _of_task(loop: Loop, part: tuple[str, int, int, int], hashes_of_tasks: HashesOfTasks) -> Hashes:
    """Returns the hashes of a task's tests, as the network sees them."""
    from trainers.streams.example_hashes import test_hashes  # brings the streams along

    if part not in hashes_of_tasks:
        phase, order, seed, position = part
        stream = loop.stream(phase, order)
        hashes_of_tasks[part] = test_hashes(stream, seed, stream.tasks[position])
    return hashes_of_tasks[part]
