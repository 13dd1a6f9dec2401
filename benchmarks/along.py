"""Accuracy matrices of whole searches and evaluations: what do few tasks say about many?

    uv run python benchmarks/along.py --data-dir FOLDER [--workers 2] [--until SECONDS]

Trains the streams of benchmarks/along.yaml as `epsearch run` trains them: every value on tasks of the search and on
those of the evaluation. The matrix of a member goes to benchmarks/results/along.json as soon as it is there, and the
same command goes on where it stopped. benchmarks/forecasts.py judges forecasts by what there is.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import members
import numpy as np
import yaml
from machine import Figures
from parabola import executed

from epsearch.preparation.build import build
from epsearch.study.kinds import Search
from trainers.population import MLP

ROWS = Path(__file__).parent / "along.yaml"
SEARCHED = {"soft_agem": "epsilon", "ewc": "strength"}
STAGES = ("search", "evaluation")
UNIT = 10_000
"""Accuracies are stored as whole numbers of this part: tests of pixels have at most so many images."""


class Row(NamedTuple):
    """A stream and a method, of which all values are trained."""

    dataset: str
    method: str
    seeds: int
    search: tuple[int, int]
    """First task and number of tasks."""
    evaluation: tuple[int, int]
    images: int | None = None
    """A task; None for all."""
    first_seed: int = 0
    truth: str | None = None
    """Name of the results that have the evaluation already; None where it is trained here."""
    judge: bool = False
    """True for a stream that judges alone: no form or constant of the model is chosen by it."""
    together: int | None = None
    """Values that are trained together; None for all."""
    path: str | None = None
    """Numeric path; None for the fastest of the machine that began."""
    tried: tuple[float, ...] | None = None
    """Values of this row; None for all of its hyperparameter."""
    options: tuple[tuple[str, Any], ...] = ()
    """Options of the search that are not those of the definition."""

    @property
    def name(self) -> str:
        """Tells it from other rows."""
        return f"{self.dataset}, {self.images or 'all'} images, {self.method}"

    @property
    def values(self) -> tuple[float, ...]:
        """The searched values, ascending."""
        return tuple(map(float, self.tried or content()["values"][SEARCHED[self.method]]))

    @property
    def tasks(self) -> dict[str, range]:
        """The numbers of the tasks of each stage that is trained here."""
        spans = dict(zip(STAGES, (self.search, self.evaluation), strict=True))
        return {
            stage: range(first, first + count)
            for stage, (first, count) in spans.items()
            if stage == "search" or self.truth is None
        }


class Piece(NamedTuple):
    """Members that are trained together."""

    row: Row
    stage: str
    seed: int
    values: tuple[float, ...]


@cache
def content() -> Figures:
    """The YAML."""
    return dict(yaml.safe_load(ROWS.read_text(encoding="utf-8")))


def rows() -> list[Row]:
    """All rows, in the order in which they are trained."""
    made = []
    for one in content()["streams"]:
        spans = {stage: tuple(one[stage]) for stage in STAGES}
        options = tuple(sorted(one.get("options", {}).items()))
        made.append(Row(**{**one, **spans, "options": options}))
    return made


def pieces(tiny: bool = False) -> Iterator[Piece]:
    """All of them; of a try-out two values of one seed."""
    for row in rows():
        values = row.values[:: len(row.values) - 1] if tiny else row.values
        most = row.together or len(values)
        for seed in range(row.first_seed, row.first_seed + (1 if tiny else row.seeds)):
            for stage in row.tasks:
                for start in range(0, len(values), most):
                    yield Piece(row, stage, seed, values[start : start + most])


def left(stored_members: Iterable[Figures], tiny: bool = False) -> list[Piece]:
    """Returns what is still to be trained."""
    stored = {identity(one) for one in stored_members}
    open_pieces = []
    for piece in pieces(tiny):
        missing = tuple(one for one in piece.values if (piece.row.name, piece.stage, piece.seed, one) not in stored)
        open_pieces += [piece._replace(values=missing)] if missing else []
    return open_pieces


def identity(member: Figures) -> tuple[str, str, int, float]:
    """Returns the identity of a stored member: stream, stage, seed, value."""
    return member["stream"], member["stage"], member["seed"], member["value"]


def study_of(row: Row, data_dir: str, path: str, images: int | None) -> Search:
    """The search of which such members are a part."""
    options = {"dataset": row.dataset, "method": row.method, "data_dir": data_dir, "numeric_path": row.path or path}
    options |= {"examples_per_task": images or row.images or "all"} | dict(row.options)
    name = SEARCHED[row.method]
    if name != "epsilon":
        options["search"] = f"{name}=log:{row.values[0]:g}..{row.values[-1]:g}"
    return build(Search, options)


def trained(piece: Piece, data_dir: str, path: str, images: int | None, at_once: int) -> list[Figures]:
    """The members of a piece."""
    row, stage, seed, values = piece
    study = study_of(row, data_dir, path, images)
    # Of an evaluation, too, only tasks seen so far are tested: of later ones nothing is asked here.
    result = executed(study, "cv", replace(study.request("cv"), tasks=row.tasks[stage]), values, seed, at_once)
    assert result.value is not None
    seconds = round(result.seconds / len(values), 1)
    shared = {"stream": row.name, "stage": stage, "seed": seed}
    return [
        {**shared, "value": value, "seconds": seconds, "accuracies": packed(accuracies)}
        for value, accuracies in zip(values, result.value.accuracies, strict=True)
    ]


def packed(accuracies: np.ndarray) -> list[list[int | None]]:
    """The lower triangle of a[k, j] in parts of `UNIT`, None where a member had diverged.

    >>> packed(np.array([[0.9, np.nan], [np.nan, 0.8]]))
    [[9000], [None, 8000]]
    """
    lower = (row[: number + 1] for number, row in enumerate(accuracies))
    return [[None if np.isnan(one) else round(UNIT * float(one)) for one in row] for row in lower]


def unpacked(rows: list[list[int | None]]) -> np.ndarray:
    """The accuracies [k, j] of a stored member, NaN above the diagonal and where it had diverged.

    >>> unpacked([[9000], [None, 8000]]).tolist()
    [[0.9, nan], [nan, 0.8]]
    """
    a = np.full((len(rows), len(rows)), np.nan)
    for number, row in enumerate(rows):
        a[number, : number + 1] = [np.nan if one is None else one / UNIT for one in row]
    return a


def described() -> dict[str, Any]:
    """Returns the settings of each row, JSON-able: members of other settings are not its members."""
    apart = {"seeds", "first_seed", "truth", "judge", "together", "tried"}
    return {
        row.name: {name: value for name, value in json.loads(json.dumps(row._asdict())).items() if name not in apart}
        for row in rows()
    }


def read(file: Path) -> Figures:
    """Returns the content of the file. Raises ValueError where a row has other settings than its stored members."""
    figures: Figures = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"members": []}
    stored = figures.get("streams", {})
    for name, settings in described().items():
        if stored.get(name, settings) != settings and any(one["stream"] == name for one in figures["members"]):
            raise ValueError(f"{file.name} has members of other settings of {name}; move it away to begin anew")
    return figures | {"streams": stored | described()}


def make(file: Path, data_dir: str, workers: int, until: float, tiny: bool = False) -> None:
    """Trains what is missing in the file. Raises ValueError, and DataError where there are no images."""
    figures = read(file)
    path, images = members.first_path(figures, "permuted_mnist", 3, data_dir, MLP.hidden), 60 if tiny else None
    train = partial(trained, data_dir=data_dir, path=path, images=images, at_once=workers)
    wanted = sum(len(piece.values) for piece in pieces(tiny))
    SCRIPT.train(file, figures, left(figures["members"], tiny), train, wanted, workers, until)


def place(member: Figures) -> tuple[Any, ...]:
    """Returns the place of a member in the file: by rows of the YAML."""
    names = [row.name for row in rows()]
    return names.index(member["stream"]) if member["stream"] in names else len(names), *identity(member)


def line(piece: Piece, own: list[Figures]) -> str:
    """Returns a piece with its number of members and their time."""
    size = f"{len(own)} values in {own[0]['seconds'] * len(own):.0f} s"
    return f"{piece.row.name}, {piece.stage}, seed {piece.seed}: {size}"


SCRIPT = members.Script(place, line)


def main() -> None:
    members.run(__doc__, "along", make)


if __name__ == "__main__":
    main()
