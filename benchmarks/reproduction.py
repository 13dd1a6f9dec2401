"""A_T of published rows, trained here with the settings of their authors' code: can the numbers be had?

    uv run python benchmarks/reproduction.py --data-dir FOLDER [--workers 2] [--until SECONDS]

Permuted and Rotated MNIST of Buzzega et al. 2020 (arXiv 2004.07211, table 2; settings of the authors' code, Mammoth),
and Split MNIST of van de Ven & Tolias 2019 (arXiv 1904.07734; settings of the authors' code): the rows of packs, and
others beside them. Every row is trained with the authors' initial weights and with ours. A member goes to
benchmarks/results/reproduction.json as it comes, and the same command goes on where it stopped. benchmarks/page.py
makes docs/reproduction.md of it, with what there is.
"""

import json
import math
import os
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

os.environ.setdefault("OMP_NUM_THREADS", "1")

import members
import numpy as np
import yaml
from machine import Figures

from results import metrics
from search_spaces.published.pack import Pack, load_pack
from trainers import Architecture, Cohort, Learner, pool
from trainers.methods import hyperparameters
from trainers.numeric_path import NumericPath
from trainers.population import Training, train_cohort
from trainers.schedule import Indices, generator, memory_choice
from trainers.streams import StreamRequest

ROWS = Path(__file__).parent / "reproduction.yaml"
SEEDS = (0, 1, 2)
KNOWN = hyperparameters()


class Row(NamedTuple):
    """A printed row, and how it is trained."""

    table: str
    """Name of the table in the YAML."""
    dataset: str
    scenario: str
    method: str
    setting: str
    """Difference from other rows of its method, as "buffer 200"; "" without one."""
    values: tuple[tuple[str, Any], ...]
    """Hyperparameters, sorted by name."""
    pack: Pack | None
    """The printed number with its settings; None where the source has no such row."""
    start: str = ""
    """How the initial weights are drawn; "" as in A-GEM's code, which is our way."""

    of_any_class: bool = False
    """Whether the memory takes examples whatever their class, and not as many of each."""

    drawn_classes: bool = False
    """True for a random order of classes, by seed; else it is 0, 1, 2, …"""

    @property
    def identity(self) -> list[Any]:
        """All that says how it is trained, JSON-able."""
        own: Figures = {"start": self.start} if self.start else {}
        own |= {"of_any_class": True} if self.of_any_class else {}
        own |= {"drawn_classes": True} if self.drawn_classes else {}
        return [self.table, self.dataset, self.scenario, self.method, dict(self.values) | own]


Piece = tuple[Row, int]
"""A row and a seed: what a kill may lose."""


def rows() -> Iterator[Row]:
    """Yields all rows of the YAML, in its order: with the authors' initial weights, then all again with ours."""
    tables = yaml.safe_load(ROWS.read_text(encoding="utf-8"))["tables"]
    for ours in (False, True):
        for name, table in tables.items():
            for row in table["rows"]:
                pack = load_pack(row["pack"]) if "pack" in row else None
                own = row if pack is None else pack.settings | {"method": pack.method}
                more = row.get("values", {}) if pack is None else {each: own[each] for each in own if each in KNOWN}
                values = tuple(sorted((table["values"] | more).items()))
                place = table["dataset"], own.get("scenario", table["scenario"]), own["method"], row.get("setting", "")
                start, any_class = "" if ours else table["start"], row.get("of_any_class", False)
                one = Row(name, *place, values, pack, start, any_class)
                yield one
                if table.get("drawn_classes") and not ours:
                    yield one._replace(setting="classes in a drawn order", drawn_classes=True)


def left(stored_members: Iterable[Figures]) -> list[Piece]:
    """Returns the pieces that are not stored yet: with the authors' weights first, and of these the first seeds."""
    stored = {json.dumps([one["row"], one["seed"]], sort_keys=True) for one in stored_members}
    pieces = ((row, seed) for ours in (False, True) for seed in SEEDS for row in rows() if ours is not bool(row.start))
    return [(row, seed) for row, seed in pieces if json.dumps([row.identity, seed], sort_keys=True) not in stored]


def uniform_choice(seed: int, task: int, labels: Indices, per_class: int) -> Indices:
    """Returns positions of as many examples as `memory_choice` has, drawn whatever their class."""
    count = min(per_class * len(np.unique(labels)), len(labels))
    return np.sort(generator(seed, "memory", task).permutation(len(labels))[:count])


def trained(piece: Piece, data_dir: str, path: str, images: int | None) -> list[Figures]:
    """Trains a row with a seed; returns its one member, accuracies in percent."""
    row, seed = piece
    table = yaml.safe_load(ROWS.read_text(encoding="utf-8"))["tables"][row.table]
    order = seed + 1 if row.drawn_classes else 0
    tasks = range(table["tasks"])
    request = StreamRequest(row.dataset, Path(data_dir), tasks, images, scenario=row.scenario, order=order)
    architecture = Architecture(hidden=tuple(table["hidden"]), start=row.start or Architecture.start)
    training = Training(request.open(), architecture, NumericPath.parse(path), transfer=False)
    started, learner = time.perf_counter(), Learner.of(row.method, seed, **dict(row.values))
    with patch.object(pool, "memory_choice", uniform_choice if row.of_any_class else memory_choice):
        accuracies = train_cohort(Cohort((learner,)), training).accuracies[0]
    measured = {name: 100 * float(of(accuracies)) for name, of in MEASURES.items()}
    percent = {name: None if math.isnan(value) else round(value, 4) for name, value in measured.items()}
    return [{"row": row.identity, "seed": seed, **percent, "seconds": round(time.perf_counter() - started, 1)}]


MEASURES = {"A_T": metrics.average_accuracy, "F_T": metrics.forgetting}


def make(file: Path, data_dir: str, workers: int, until: float, tiny: bool = False) -> None:
    """Trains what is missing in the file. Raises ValueError, and DataError where there is no MNIST."""
    figures: Figures = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"members": []}
    path, images = members.first_path(figures, "split_mnist", 5, data_dir, (100, 100)), 60 if tiny else None
    train = partial(trained, data_dir=data_dir, path=path, images=images)
    SCRIPT.train(file, figures, left(figures["members"]), train, len(list(rows())) * len(SEEDS), workers, until)


def line(piece: Piece, own: list[Figures]) -> str:
    """Returns a row and a seed with the accuracy, and the printed one."""
    (row, seed), (member,) = piece, own
    printed = "" if row.pack is None else f", printed {row.pack.mean:g}"
    setting = f"{row.table}, {row.method} {row.setting} {row.scenario}, {row.start or 'our'} weights"
    return f"{setting}, seed {seed}: A_T {member['A_T']}{printed}, {member['seconds']} s"


SCRIPT = members.Script(lambda one: json.dumps([one["row"], one["seed"]], sort_keys=True), line)


def main() -> None:
    members.run(__doc__, "reproduction", make)


if __name__ == "__main__":
    main()
