"""Trainers of somebody else's. Tests copy this file; it needs NumPy alone, not epsearch."""

import os
import time

import numpy as np


def softmax(values, stream, seed, report):
    """Logistic regression on the mini-batches of a task and the first examples of each earlier one."""
    rng = np.random.default_rng(seed)
    weights = np.zeros((stream.shape[0] + 1, stream.outputs))

    def predict(inputs, task):
        return (np.c_[inputs, np.ones(len(inputs))] @ weights).argmax(1)

    report(-1, predict)
    kept = []
    for task in range(len(stream)):
        inputs, labels = stream.train(task)
        x, y = np.c_[inputs, np.ones(len(inputs))], np.eye(stream.outputs)[labels]
        kept.append((x[: values["memory"]], y[: values["memory"]]))
        for start in range(0, len(x), 10):
            old_x, old_y = kept[rng.integers(len(kept))]
            xs, ys = np.r_[x[start : start + 10], old_x], np.r_[y[start : start + 10], old_y]
            scores = xs @ weights
            shares = np.exp(scores - scores.max(1, keepdims=True))
            shares /= shares.sum(1, keepdims=True)
            weights -= values["lr"] * xs.T @ (shares - ys) / len(xs)
        report(task, predict)


class Declared:
    """Gives numbers of its own, which no two runs have in common."""

    parameters = {  # noqa: RUF012  as a user would write it
        "pull": 0.5,
        "kind": {"default": "a", "choices": ["a", "b"]},
        "count": {"default": 3, "low": 1, "high": 9, "whole": True},
    }
    baseline = {"pull": 0.25}  # noqa: RUF012
    version = "1.2"
    deterministic = False
    requires = ["numpy"]  # noqa: RUF012

    def train(self, values, stream, seed, report):
        for task in range(len(stream)):
            stream.train(task)
            noise = int.from_bytes(os.urandom(2), "big") / 2**16 / 20
            report(task, accuracies=[0.5 + values["pull"] / 4 - 0.01 * (task - j) + noise for j in range(task + 1)])


class Liar:
    """Says that it repeats itself, and does not."""

    def train(self, values, stream, seed, report):
        Declared().train({"pull": values["lr"]}, stream, seed, report)


def killed(values, stream, seed, report):
    """Ends its process for one value of many."""
    if values["lr"] > 0.5:
        os._exit(3)
    softmax(values | {"memory": 5}, stream, seed, report)


def slow(values, stream, seed, report):
    """As long as it may."""
    time.sleep(3600)


def short(values, stream, seed, report):
    """Leaves the last task out."""
    for task in range(len(stream) - 1):
        report(task, accuracies=[0.5] * (task + 1))


def diverging(values, stream, seed, report):
    """Diverges for large values."""
    for task in range(len(stream)):
        report(task, accuracies=[float("nan") if values["lr"] > 0.5 else 0.5 + values["lr"] / 10] * (task + 1))
