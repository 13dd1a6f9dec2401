"""A_T over ε on real MNIST: search and evaluation stream, exact gradient and subtraction, fewer images, more tasks.

    uv run python benchmarks/parabola.py --data-dir FOLDER [--workers 2] [--until SECONDS]

Every member is trained as `epsearch run` trains it. What is finished goes to benchmarks/results/parabola.json at once,
and what is there is not trained again: the same command goes on where it stopped, also in another clone.
benchmarks/page.py makes docs/parabola.md of it, with what there is.
"""

import argparse
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, ProcessPoolExecutor, wait
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine
import numpy as np

from epsearch.loop.content import measures_transfer
from epsearch.loop.jobs import Job, JobResult, execute
from epsearch.preparation.arithmetic import SUBTRACTED, fastest_here
from epsearch.preparation.build import build
from epsearch.study.kinds import Search
from results import metrics
from results.files import write_atomically
from trainers import Cohort
from trainers.population import MLP
from trainers.streams import DataError, StreamRequest, open_stream

# Both ends finely: published values lie near 0, where ε = 0 itself is another formula (A-GEM); with few images the best
# value lies near 1. 0.1 and 0.2 are of the paper's first grid, 0.07185 is its answer. The same ones everywhere.
EPSILONS = (0.0, 0.01, 0.03, 0.07185, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
SEEDS = (0, 1, 2)
EXACT, SUBTRACTION = "exact", "subtraction"
MOST_STEPS = 100_000  # of a cohort, some minutes: what a kill may lose
Found = dict[str, Any]


class Sizes(NamedTuple):
    """What a whole run takes."""

    full: int = 60_000
    """Images a task."""
    fewer: tuple[int, ...] = (500, 2_000, 8_000, 20_000)
    """The same of shorter tasks, ascending."""
    memory: int = 25
    """Examples per class and task."""
    epsilons: tuple[float, ...] = EPSILONS


TINY = Sizes(60, (20, 30, 40, 50), 3, EPSILONS[::2])


class Curve(NamedTuple):
    """Members of one seed that differ in ε alone."""

    phase: str
    """`cv`, the search stream, or `eval`."""
    tasks: int
    images: int
    formula: str
    """How the cross-entropy's gradient at the label is computed: EXACT or SUBTRACTION."""
    seed: int


def curves(sizes: Sizes) -> Iterator[Curve]:
    """All of them, in the order in which they are trained: minutes first, then what the page is about."""
    *short, longest = sizes.fewer
    full, evaluated = sizes.full, ("eval", 17, sizes.full)
    parts = [
        *(("cv", 3, images, EXACT) for images in short),
        *(("cv", 3, full, formula) for formula in (EXACT, SUBTRACTION)),
    ]
    yield from (Curve(*part, seed) for part in parts for seed in SEEDS)
    yield from (Curve(*evaluated, formula, SEEDS[0]) for formula in (EXACT, SUBTRACTION))
    parts = [("cv", 3, longest, EXACT), ("cv", 5, full, EXACT), ("cv", 10, full, EXACT)]
    yield from (Curve(*part, seed) for part in parts for seed in SEEDS)
    yield from (Curve(*evaluated, formula, seed) for seed in SEEDS[1:] for formula in (EXACT, SUBTRACTION))


Piece = tuple[Curve, tuple[float, ...]]
"""Members that are trained together: a curve at some values of ε."""


def left(sizes: Sizes, members: Iterable[Found]) -> list[Piece]:
    """What is still to be trained, in pieces of at most MOST_STEPS steps, or of one member."""
    known = {(curve_of(one), one["epsilon"]) for one in members}
    pieces: list[Piece] = []
    for curve in curves(sizes):
        missing = [epsilon for epsilon in sizes.epsilons if (curve, epsilon) not in known]
        most = max(1, MOST_STEPS * 10 // (curve.tasks * curve.images))
        pieces += [(curve, tuple(missing[start : start + most])) for start in range(0, len(missing), most)]
    return pieces


def curve_of(member: Found) -> Curve:
    """That to which a stored member belongs."""
    return Curve(*(member[name] for name in Curve._fields))


def study_of(curve: Curve, sizes: Sizes, data_dir: str, path: str) -> Search:
    """The search of which such members are a part, as `epsearch run` has it."""
    given = {"dataset": "permuted_mnist", "data_dir": data_dir, "examples_per_task": curve.images}
    given |= {"memory": sizes.memory, "cv_tasks": curve.tasks if curve.phase == "cv" else 3}
    return build(Search, given | {"numeric_path": path + (SUBTRACTED if curve.formula == SUBTRACTION else "")})


def trained(piece: Piece, sizes: Sizes, data_dir: str, path: str, at_once: int = 1) -> list[Found]:
    """The members of a piece, trained by the job that a search would make of them."""
    curve, epsilons = piece
    members = members_of(study_of(curve, sizes, data_dir, path), curve.phase, epsilons, curve.seed, at_once)
    return [curve._asdict() | member for member in members]


def members_of(study: Search, phase: str, epsilons: tuple[float, ...], seed: int, at_once: int = 1) -> list[Found]:
    """Members of one seed and stream, trained together by the job that the study would make of them."""
    result = executed(study, phase, study.request(phase), epsilons, seed, at_once)
    value = result.value
    assert value is not None
    return [
        {
            "epsilon": epsilon,
            **summary(value.accuracies[row], value.violations[row]),
            "steps": int(value.steps[row]),
            "seconds": round(result.seconds / len(epsilons), 1),
            "numeric_path": str(study.numeric_path),
        }
        for row, epsilon in enumerate(epsilons)
    ]


def executed(
    study: Search, phase: str, stream: StreamRequest, points: Sequence[float], seed: int, at_once: int
) -> JobResult:
    """What the study's job trains: a member for each value of its one searched hyperparameter, on a stream."""
    job = Job(
        number=0,
        stage="",
        phase=phase,
        cohort=Cohort(tuple(study.learner((point,), seed) for point in points)),
        architecture=study.architecture,
        stream=stream,
        path=str(study.numeric_path),
        transfer=measures_transfer(phase),
        weights=(),  # nobody is told how far it is
        at_once=at_once,
    )
    return execute(job)


def summary(a: np.ndarray, violations: np.ndarray) -> Found:
    """Metrics in the paper's units, of accuracies a[k, j]; None where a member diverged.

    projected: mean over tasks of the share of steps at which the gradient was projected.
    """
    found = {
        "A_T": 100 * metrics.average_accuracy(a),
        "F_T": metrics.forgetting(a),
        "a_1": 100 * metrics.first_task_accuracy(a),
        "a_t": 100 * metrics.last_task_accuracy(a),
        "projected": np.mean(violations[1:]),  # without a memory there is nothing to project on
    }
    return {
        **{name: number(float(value)) for name, value in found.items()},
        "learned": [number(float(one)) for one in np.diagonal(a)],
        "at the end": [number(float(one)) for one in a[-1]],
    }


def number(value: float) -> float | None:
    """Six decimals; None for NaN, which JSON does not have."""
    return None if np.isnan(value) else round(value, 6)


def read(file: Path, sizes: Sizes) -> Found:
    """What is known so far. Raises ValueError where that is of other sizes."""
    fresh = {"sizes": json.loads(json.dumps(sizes._asdict())), "seeds": list(SEEDS), "members": []}
    found: Found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else fresh
    if any(found[name] != fresh[name] for name in ("sizes", "seeds")):
        raise ValueError(f"{file.name} has members of other sizes or seeds; move it away to begin anew")
    return found


def write(file: Path, found: Found) -> None:
    """Writes the members of curves."""
    write_members(file, found, lambda one: (*curve_of(one), one["epsilon"]))


def write_members(file: Path, found: Found, order: Callable[[Found], Any]) -> None:
    """Writes one line a member, sorted by `order`: small, and easy to compare."""
    head = json.dumps({name: value for name, value in found.items() if name != "members"}, indent=1)
    lines = ",\n".join(f"  {json.dumps(one, ensure_ascii=False)}" for one in sorted(found["members"], key=order))
    write_atomically(file, f'{head[:-2]},\n "members": [\n{lines}\n ]\n}}\n'.encode())


def go_on(pieces: Iterable[Piece], pool: Executor, workers: int, train: Callable[..., Any], until: float) -> Iterator:
    """(piece, its members) in the order in which they are ready; none is begun after `until` seconds."""
    waiting, running, end = iter(pieces), {}, time.monotonic() + until
    while True:
        while len(running) < workers and time.monotonic() < end and (piece := next(waiting, None)):
            running[pool.submit(train, piece)] = piece
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), future.result()


class Train(NamedTuple):
    """`trained` with all but the piece, for processes."""

    sizes: Sizes
    data_dir: str
    path: str
    workers: int

    def __call__(self, piece: Piece) -> list[Found]:
        return trained(piece, self.sizes, self.data_dir, self.path, self.workers)


def leave_with_parent() -> None:
    """Or processes whose parent is killed would train to no end and then wait for ever."""

    def watch() -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def make(file: Path, sizes: Sizes, data_dir: str, workers: int, until: float) -> None:
    """Trains what is missing in the file. Raises ValueError, and DataError where there is no MNIST."""
    found = read(file, sizes)
    stream = open_stream(
        "permuted_mnist", Path(data_dir), range(3), None
    )  # downloaded once, before there are processes
    if "numeric_path" not in found:  # paths round differently: all members have the first one's
        found["numeric_path"] = fastest_here(stream.inputs, MLP.hidden, stream.density)
    facts, pieces, path = machine.facts(), left(sizes, found["members"]), found["numeric_path"]
    wanted = len(list(curves(sizes))) * len(sizes.epsilons)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=leave_with_parent) as pool:
        for (curve, _), members in go_on(pieces, pool, workers, Train(sizes, data_dir, path, workers), until):
            found["members"] += [{**one, "commit": facts["commit"]} for one in members]
            write(file, {"facts": facts, **{name: value for name, value in found.items() if name != "facts"}})
            shown = ", ".join(f"{one['epsilon']:g}: {one['A_T']}" for one in members)
            print(f"{len(found['members'])} of {wanted}: {curve}, A_T at {shown}", flush=True)


def parser_of(doc: str) -> argparse.ArgumentParser:
    """The arguments of a script on MNIST that goes on where it stopped; doc: its docstring."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--data-dir", required=True, help="the folder that has MNIST, or that it is downloaded to")
    parser.add_argument("--workers", type=int, default=2, help="processes, of one thread each")
    parser.add_argument(
        "--until", type=float, default=float("inf"), metavar="SECONDS", help="after which no cohort is begun"
    )
    parser.add_argument("--tiny", type=Path, metavar="FILE", help="tries all of it with 60 images a task, into FILE")
    return parser


def main() -> None:
    parser = parser_of(__doc__)
    given = parser.parse_args()
    file, sizes = (given.tiny, TINY) if given.tiny else (machine.RESULTS / "parabola.json", Sizes())
    try:
        make(file, sizes, given.data_dir, given.workers, given.until)
    except (DataError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
