"""A_T over ε on Split MNIST, in all three scenarios, and on Rotated MNIST: does the soft constraint help there?

    uv run python benchmarks/scenarios.py --data-dir FOLDER [--workers 2] [--until SECONDS]

As benchmarks/parabola.py: every member is trained as `epsearch run` trains it, what is finished goes to
benchmarks/results/scenarios.json at once, and the same command goes on where it stopped. benchmarks/page.py makes
docs/scenarios.md of it, with what there is.
"""

import json
import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import members
from machine import Figures
from parabola import EPSILONS, line, members_of

from epsearch.preparation.build import build
from epsearch.study.kinds import Search
from trainers.population import MLP

SEEDS = (0, 1, 2, 3, 4)
STREAMS = (
    ("split_mnist", "task"),
    ("split_mnist", "domain"),
    ("split_mnist", "class"),
    ("rotated_mnist", "domain"),
)
AT_ONCE = {"split_mnist": 11, "rotated_mnist": 2}
"""Values of ε that are trained together: what a kill may lose."""


class Curve(NamedTuple):
    """Members of one seed that differ in ε alone."""

    dataset: str
    scenario: str
    seed: int


Piece = tuple[Curve, tuple[float, ...]]
"""Members that are trained together: a curve at some values of ε."""


def curves() -> Iterator[Curve]:
    """All of them, the short streams first."""
    return (Curve(*stream, seed) for stream in STREAMS for seed in SEEDS)


def left(members: Iterable[Figures]) -> list[Piece]:
    """Returns the pieces of which no member is stored yet."""
    stored = {(curve_of(one), one["epsilon"]) for one in members}
    pieces: list[Piece] = []
    for curve in curves():
        missing = tuple(epsilon for epsilon in EPSILONS if (curve, epsilon) not in stored)
        most = AT_ONCE[curve.dataset]
        pieces += [(curve, missing[start : start + most]) for start in range(0, len(missing), most)]
    return pieces


def curve_of(member: Figures) -> Curve:
    """That to which a stored member belongs."""
    return Curve(*(member[name] for name in Curve._fields))


def study_of(curve: Curve, data_dir: str, path: str, images: int | None = None) -> Search:
    """The search of which such members are a part: on all tasks where a stream has five, else on the evaluation."""
    options = {"dataset": curve.dataset, "scenario": curve.scenario, "data_dir": data_dir, "score_on": "eval"}
    return build(Search, options | {"numeric_path": path} | ({} if images is None else {"examples_per_task": images}))


def trained(piece: Piece, data_dir: str, path: str, images: int | None, at_once: int) -> list[Figures]:
    """The members of a piece."""
    curve, epsilons = piece
    members = members_of(study_of(curve, data_dir, path, images), "eval", epsilons, curve.seed, at_once)
    return [curve._asdict() | member for member in members]


def make(file: Path, data_dir: str, workers: int, until: float, tiny: bool = False) -> None:
    """Trains what is missing in the file. Raises ValueError, and DataError where there is no MNIST."""
    figures: Figures = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"members": []}
    path, images = members.first_path(figures, "split_mnist", 5, data_dir, MLP.hidden), 60 if tiny else None
    train = partial(trained, data_dir=data_dir, path=path, images=images, at_once=workers)
    wanted = len(list(curves())) * len(EPSILONS)
    SCRIPT.train(file, figures, left(figures["members"]), train, wanted, workers, until)


SCRIPT = members.Script(lambda one: (*curve_of(one), one["epsilon"]), line)


def main() -> None:
    members.run(__doc__, "scenarios", make)


if __name__ == "__main__":
    main()
