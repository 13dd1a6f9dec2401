"""Trainers that cannot be trusted, each for another reason. Tests copy this file beside own_trainers.py, as mine.py."""

import importlib

import numpy as np


def softmax(values, stream, seed, report):
    """That of mine.py, beside which this file is copied."""
    importlib.import_module("mine").softmax(values, stream, seed, report)


LR = {"lr": 0.1, "memory": 5}


def idle(values, stream, seed, report):
    """Does nothing with `memory`."""
    softmax(values | {"memory": 5}, stream, seed, report)


def seedless(values, stream, seed, report):
    """Does nothing with the seed."""
    softmax(LR | values, stream, 0, report)


def ahead(values, stream, seed, report):
    """Tries to read the second task first, and goes on when that is refused."""
    for _ in range(2):
        try:
            stream.train(1)
        except ValueError:
            continue
        raise AssertionError("it can be read")
    softmax(LR | values, stream, seed, report)


def hungry(values, stream, seed, report):
    """Needs 400 MB for a moment."""
    stream.train(0)
    kept = np.ones(50_000_000)
    for task in stream.tasks:
        report(task, lambda inputs, task: np.full(len(inputs), int(kept[0])))


def frail(values, stream, seed, report):
    """Fails for large learning rates."""
    if values["lr"] > 0.5:
        raise ArithmeticError("too large")
    softmax(LR | values, stream, seed, report)


class Frail:
    """The same, with a default and no bounds."""

    parameters = {"lr": 0.1}  # noqa: RUF012

    def train(self, values, stream, seed, report):
        frail(values, stream, seed, report)
