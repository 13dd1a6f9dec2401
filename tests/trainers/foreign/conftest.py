"""Trainers written to a folder, and run as epsearch runs them."""

import importlib
from contextlib import nullcontext
from dataclasses import replace
from textwrap import dedent

import pytest

from tests.support.toy_streams import digits
from trainers.foreign.fork_servers import keep_servers
from trainers.foreign.process import Limits, Observations
from trainers.foreign.running import Request, Run, train
from trainers.plugins.source import source_of

SOFTMAX = """
    import numpy as np

    def train(values, stream, seed, report):
        weights = np.zeros((stream.shape[0], stream.outputs))

        def predict(inputs, task):
            return (inputs @ weights).argmax(1)

        report(-1, predict)
        for task in stream.tasks:
            inputs, labels = stream.train(task)
            for batch, at in enumerate(range(0, len(labels), 10)):
                x, y = inputs[at : at + 10], labels[at : at + 10]
                scores = x @ weights
                shares = np.exp(scores - scores.max(1, keepdims=True))
                shares /= shares.sum(1, keepdims=True)
                shares[np.arange(len(y)), y] -= 1
                weights -= values["lr"] * x.T @ shares / len(y)
                report(task - 1, predict, batches=batch + 1)
            report(task, predict)
"""


@pytest.fixture
def write(tmp_path):
    """write(text, name): a module of the folder; its name."""

    def write(text, name="mine"):
        (tmp_path / f"{name}.py").write_text(dedent(text), encoding="utf-8")
        return name

    return write


@pytest.fixture
def copied():
    """True for trainers that are copies of a process that has imported them. Files override it."""
    return False


@pytest.fixture
def trained(tmp_path, write, copied, monkeypatch):
    """trained(text, …): the result of the module's `train`, or of another attribute; digits, three tasks, seed 1."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def trained(text, values=None, attribute="train", progress=None, folder=None, **more):
        name = write(text)
        log = {"log": more.pop("log")} if "log" in more else {}
        limits = Limits(more.pop("seconds", None), more.pop("bytes", None))
        request = Request(f"{name}:{attribute}", tmp_path, limits=limits)
        kept = {one: more.pop(one) for one in ("source", "versions", "device", "threads") if one in more}
        run = {"values": values or {}, "seed": 1, "stream": digits(examples=200)} | more
        if copied and "source" not in kept:
            importlib.invalidate_caches()
            kept["source"] = dict(source_of(name).hashes)
        more = {"watched": Observations(closely=False)} if copied else {}
        with keep_servers() if copied else nullcontext():
            result = train(replace(request, **kept), Run(**run), progress, folder, **log, **more)
        assert not copied or more["watched"].copied
        return result

    return trained
