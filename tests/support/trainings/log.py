"""The log of trainings: what a program under test needs to write it, and what it says; see `sitecustomize.py`."""

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from epsearch.loop.content import known_as
from epsearch.loop.jobs import Run
from tests.support.trainings.sitecustomize import LIFE, LOG
from trainers.cohort import Learner

ROOT = Path(__file__).parents[3]


class Training(NamedTuple):
    """One member, as it began or ended."""

    event: str
    """`begin` or `end`."""
    run: Run
    """The member, by the method under which the ledger knows it."""
    pid: int
    """Of the process that trained it."""
    life: str
    """Of the driver, as `environment` was told."""


def environment(log: Path, life: object = "") -> dict[str, str]:
    """Variables with which a program, and all that it starts, writes the log."""
    path = os.pathsep.join([str(Path(__file__).parent), str(ROOT)])
    return {"PYTHONPATH": path, LOG: str(log), LIFE: str(life)}


def read(log: Path) -> list[Training]:
    """What has been trained so far, but for what is trained once more, alone."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [
        Training(line["event"], Run(line["phase"], known_as(_learner(one))), line["pid"], line["life"])
        for line in map(json.loads, lines)
        if not line["alone"]
        for one in line["learners"]
    ]


def begun(trainings: Iterable[Training]) -> Counter[Run]:
    """How often each member began."""
    return Counter(one.run for one in trainings if one.event == "begin")


def _learner(told: dict) -> Learner:
    return Learner.of(told["method"], told["seed"], **told["values"])
