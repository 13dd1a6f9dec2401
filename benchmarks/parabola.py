"""A_T over ε on real MNIST: search and evaluation stream, exact gradient and subtraction, fewer images, more tasks.

    uv run python benchmarks/parabola.py --data-dir FOLDER [--workers 2] [--until SECONDS]

Every member is trained as `epsearch run` trains it. What is finished goes to benchmarks/results/parabola.json at once,
and what is there is not trained again: the same command goes on where it stopped, also in another clone.
benchmarks/page.py makes docs/parabola.md of it, with what there is.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import members
import numpy as np
from machine import Figures

from epsearch.loop.content import measures_transfer
from epsearch.loop.jobs import Job, JobResult, execute
from epsearch.preparation.arithmetic import SUBTRACTED
from epsearch.preparation.build import build
from epsearch.study.kinds import Search
from results import metrics
from trainers import Cohort
from trainers.population import MLP
from trainers.streams import StreamRequest

# Both ends finely: published values lie near 0, where ε = 0 itself is another formula (A-GEM); with few images the best
# value lies near 1. 0.1 and 0.2 are of the paper's first grid, 0.07185 is its answer. The same ones everywhere.
EPSILONS = (0.0, 0.01, 0.03, 0.07185, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
SEEDS = (0, 1, 2)
EXACT, SUBTRACTION = "exact", "subtraction"
MOST_STEPS = 100_000  # of a cohort, some minutes: what a kill may lose


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


def left(sizes: Sizes, members: Iterable[Figures]) -> list[Piece]:
    """What is still to be trained, in pieces of at most MOST_STEPS steps, or of one member."""
    known = {(curve_of(one), one["epsilon"]) for one in members}
    pieces: list[Piece] = []
    for curve in curves(sizes):
        missing = [epsilon for epsilon in sizes.epsilons if (curve, epsilon) not in known]
        most = max(1, MOST_STEPS * 10 // (curve.tasks * curve.images))
        pieces += [(curve, tuple(missing[start : start + most])) for start in range(0, len(missing), most)]
    return pieces


def curve_of(member: Figures) -> Curve:
    """That to which a stored member belongs."""
    return Curve(*(member[name] for name in Curve._fields))


def study_of(curve: Curve, sizes: Sizes, data_dir: str, path: str) -> Search:
    """The search of which such members are a part, as `epsearch run` has it."""
    options = {"dataset": "permuted_mnist", "data_dir": data_dir, "examples_per_task": curve.images}
    options |= {"memory": sizes.memory, "cv_tasks": curve.tasks if curve.phase == "cv" else 3}
    return build(Search, options | {"numeric_path": path + (SUBTRACTED if curve.formula == SUBTRACTION else "")})


def trained(piece: Piece, sizes: Sizes, data_dir: str, path: str, at_once: int = 1) -> list[Figures]:
    """The members of a piece, trained by the job that a search would make of them."""
    curve, epsilons = piece
    members = members_of(study_of(curve, sizes, data_dir, path), curve.phase, epsilons, curve.seed, at_once)
    return [curve._asdict() | member for member in members]


def members_of(study: Search, phase: str, epsilons: tuple[float, ...], seed: int, at_once: int = 1) -> list[Figures]:
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


def summary(a: np.ndarray, violations: np.ndarray) -> Figures:
    """Metrics in the paper's units, of accuracies a[k, j]; None where a member diverged.

    projected: mean over tasks of the share of steps at which the gradient was projected.
    """
    values = {
        "A_T": 100 * metrics.average_accuracy(a),
        "F_T": metrics.forgetting(a),
        "a_1": 100 * metrics.first_task_accuracy(a),
        "a_t": 100 * metrics.last_task_accuracy(a),
        "projected": np.mean(violations[1:]),  # without a memory there is nothing to project on
    }
    return {
        **{name: number(float(value)) for name, value in values.items()},
        "learned": [number(float(one)) for one in np.diagonal(a)],
        "at the end": [number(float(one)) for one in a[-1]],
    }


def number(value: float) -> float | None:
    """Six decimals; None for NaN, which JSON does not have."""
    return None if np.isnan(value) else round(value, 6)


def read(file: Path, sizes: Sizes) -> Figures:
    """What is known so far. Raises ValueError where that is of other sizes."""
    fresh = {"sizes": json.loads(json.dumps(sizes._asdict())), "seeds": list(SEEDS), "members": []}
    figures: Figures = json.loads(file.read_text(encoding="utf-8")) if file.exists() else fresh
    if any(figures[name] != fresh[name] for name in ("sizes", "seeds")):
        raise ValueError(f"{file.name} has members of other sizes or seeds; move it away to begin anew")
    return figures


class Train(NamedTuple):
    """`trained` with all but the piece, for processes."""

    sizes: Sizes
    data_dir: str
    path: str
    workers: int

    def __call__(self, piece: Piece) -> list[Figures]:
        return trained(piece, self.sizes, self.data_dir, self.path, self.workers)


def make(file: Path, sizes: Sizes, data_dir: str, workers: int, until: float) -> None:
    """Trains what is missing in the file. Raises ValueError, and DataError where there is no MNIST."""
    figures = read(file, sizes)
    path = members.first_path(figures, "permuted_mnist", 3, data_dir, MLP.hidden)
    train, wanted = Train(sizes, data_dir, path, workers), len(list(curves(sizes))) * len(sizes.epsilons)
    SCRIPT.train(file, figures, left(sizes, figures["members"]), train, wanted, workers, until)


def line(piece: Piece, trained: list[Figures]) -> str:
    """Returns the curve of members with their accuracies."""
    scores = ", ".join(f"{one['epsilon']:g}: {one['A_T']}" for one in trained)
    return f"{piece[0]}, A_T at {scores}"


SCRIPT = members.Script(lambda one: (*curve_of(one), one["epsilon"]), line)


def main() -> None:
    def sized(file: Path, data_dir: str, workers: int, until: float, tiny: bool) -> None:
        make(file, TINY if tiny else Sizes(), data_dir, workers, until)

    members.run(__doc__, "parabola", sized)


if __name__ == "__main__":
    main()
