"""A_T over ε on Split MNIST, in all three scenarios, and on Rotated MNIST: does the soft constraint help there?

    uv run python benchmarks/scenarios.py --data-dir FOLDER [--workers 2] [--until SECONDS]

As benchmarks/parabola.py: every member is trained as `epsearch run` trains it, what is finished goes to
benchmarks/results/scenarios.json at once, and the same command goes on where it stopped. benchmarks/page.py makes
docs/scenarios.md of it, with what there is.
"""

import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine
from parabola import EPSILONS, go_on, leave_with_parent, members_of, parser_of, write_members

from epsearch.preparation.arithmetic import fastest_here
from epsearch.preparation.build import build
from epsearch.study.kinds import Search
from trainers.population import MLP
from trainers.streams import DataError, open_stream

SEEDS = (0, 1, 2, 3, 4)
STREAMS = (
    ("split_mnist", "task"),
    ("split_mnist", "domain"),
    ("split_mnist", "class"),
    ("rotated_mnist", "domain"),
)
AT_ONCE = {"split_mnist": 11, "rotated_mnist": 2}
"""Values of ε that are trained together: what a kill may lose."""
Found = dict[str, Any]


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


def left(members: Iterable[Found]) -> list[Piece]:
    """Returns the pieces of which no member is stored yet."""
    stored = {(curve_of(one), one["epsilon"]) for one in members}
    pieces: list[Piece] = []
    for curve in curves():
        missing = tuple(epsilon for epsilon in EPSILONS if (curve, epsilon) not in stored)
        most = AT_ONCE[curve.dataset]
        pieces += [(curve, missing[start : start + most]) for start in range(0, len(missing), most)]
    return pieces


def curve_of(member: Found) -> Curve:
    """That to which a stored member belongs."""
    return Curve(*(member[name] for name in Curve._fields))


def study_of(curve: Curve, data_dir: str, path: str, images: int | None = None) -> Search:
    """The search of which such members are a part: on all tasks where a stream has five, else on the evaluation."""
    options = {"dataset": curve.dataset, "scenario": curve.scenario, "data_dir": data_dir, "score_on": "eval"}
    return build(Search, options | {"numeric_path": path} | ({} if images is None else {"examples_per_task": images}))


def trained(piece: Piece, data_dir: str, path: str, images: int | None, at_once: int) -> list[Found]:
    """The members of a piece."""
    curve, epsilons = piece
    members = members_of(study_of(curve, data_dir, path, images), "eval", epsilons, curve.seed, at_once)
    return [curve._asdict() | member for member in members]


def write(file: Path, found: Found) -> None:
    """Writes the members of curves."""
    write_members(file, found, lambda one: (*curve_of(one), one["epsilon"]))


def make(file: Path, data_dir: str, workers: int, until: float, images: int | None = None) -> None:
    """Trains what is missing in the file. Raises ValueError, and DataError where there is no MNIST."""
    found: Found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"members": []}
    # Downloaded once, before there are processes.
    stream = open_stream("split_mnist", Path(data_dir), range(5), None)
    if "numeric_path" not in found:  # paths round differently: all members have the first one's
        found["numeric_path"] = fastest_here(stream.inputs, MLP.hidden, stream.density)
    facts, path = machine.facts(), found["numeric_path"]
    train = partial(trained, data_dir=data_dir, path=path, images=images, at_once=workers)
    wanted = len(list(curves())) * len(EPSILONS)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=leave_with_parent) as pool:
        for (curve, _), members in go_on(left(found["members"]), pool, workers, train, until):
            found["members"] += [one | {"commit": facts["commit"]} for one in members]
            write(file, {"facts": facts, **{name: value for name, value in found.items() if name != "facts"}})
            shown = ", ".join(f"{one['epsilon']:g}: {one['A_T']}" for one in members)
            print(f"{len(found['members'])} of {wanted}: {curve}, A_T at {shown}", flush=True)


def main() -> None:
    parser = parser_of(__doc__)
    options = parser.parse_args()
    file = options.tiny or machine.RESULTS / "scenarios.json"
    try:
        make(file, options.data_dir, options.workers, options.until, 60 if options.tiny else None)
    except (DataError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
