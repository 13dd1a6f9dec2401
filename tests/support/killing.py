"""Runs that are killed once a checkpoint is written."""

import pytest

import trainers.checkpoints
from tests.support.learners import train


class Killed(Exception):
    pass


def train_until_kept(monkeypatch, after, *run, **options):
    """Trains until the checkpoint of a seed's task `after` is written, and no further; the rest as `train`."""
    original = trainers.checkpoints.Checkpoints.save

    def save(self, trained, task, learners, result):
        original(self, trained, task, learners, result)
        if task == after:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(trainers.checkpoints.Checkpoints, "save", save)
        with pytest.raises(Killed):
            train(*run, **options)
