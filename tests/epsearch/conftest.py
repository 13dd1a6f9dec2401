"""Small studies on the digits, and a way to run the command line in this process."""

import json
import math
import os

import pytest

from epsearch import cli
from epsearch.commands import printing
from epsearch.preparation.build import build
from epsearch.runners.on_ray.ray_start import SETTINGS
from epsearch.study.kinds import Search
from epsearch.terminal import listener
from epsearch.terminal.consoles import PlainConsole

os.environ |= SETTINGS  # Ray reads them when it is imported, and another test's module may be the first to do so

SMALL = {
    "repeats": 2,
    "points": 4,
    "seeds": 2,
    "cv_tasks": 2,
    "tasks": 4,
    "examples_per_task": 60,
    "memory": 3,
    "memory_batch": 8,
    "runner": "local",
    "device": "cpu",
    "numeric_path": "cpu-float32-mkl",
}

# What comparisons and memory studies take of it.
TINY = {name: value for name, value in SMALL.items() if name not in ("repeats", "points")}


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """The cache folder of this test and of the processes it starts."""
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def small_study(tmp_path):
    """A function that builds a study which takes a second; its options can be overridden."""

    def make(**options):
        return build(Search, SMALL | {"out": tmp_path / "runs"} | options)

    return make


class Answer:
    """What a command printed and its exit status."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def epsearch(monkeypatch, capsys, tmp_path):
    """Runs `epsearch ARGUMENTS…` in tmp_path; returns an Answer. What is said now and then is left out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(listener, "PLAIN_SECONDS", math.inf)
    out, err = PlainConsole(width=200), PlainConsole(stderr=True, width=200)
    for module in (cli, printing):
        monkeypatch.setattr(module, "out", out)
        monkeypatch.setattr(module, "err", err)

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["epsearch", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return Answer(stop.value.code, captured.out, captured.err)

    return call


@pytest.fixture
def small_options():
    """SMALL as command-line arguments."""
    return [part for name, value in SMALL.items() for part in ("--" + name.replace("_", "-"), str(value))]
