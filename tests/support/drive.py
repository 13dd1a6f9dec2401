"""Ways to drive a loop in tests: really, or with accuracies that are made up."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from epsearch.loop.jobs import JobResult, execute
from epsearch.preparation.budgets import budgets
from epsearch.preparation.data import open_evaluation
from epsearch.preparation.distances import distances
from epsearch.session.session import make_loop
from trainers.cohort import CohortResult


def make(study, store, workers=2, earlier=()):
    stream, _ = open_evaluation(study)
    loop = make_loop(study, stream.describe() | distances(study) | budgets(study, stream), store, earlier)
    loop.workers = workers
    return loop


def finish(loop, train=execute):
    """Trains whatever the loop asks for; returns the jobs."""
    jobs = []
    while not loop.done:
        asked = loop.ask()
        jobs += asked
        loop.tell([train(job) for job in asked])
    return jobs


def fake(score):
    """A trainer that makes up accuracies: score(one), the same on every task; NaN diverges.

    one: a learner's seed and hyperparameters, as attributes.
    """
    return fake_matrices(lambda one, tasks: np.full((tasks, tasks), score(one)))


def fake_matrices(matrix):
    """A trainer that makes up accuracies: matrix(one, tasks) [tasks, tasks]; NaN diverges."""

    def train(job):
        tasks, learners = job.until or len(job.stream.tasks), job.cohort.learners
        known = [SimpleNamespace(seed=one.seed, **vars(one.hyperparameters)) for one in learners]
        values = np.array([matrix(one, tasks) for one in known])
        lost = np.isnan(values).any(axis=(1, 2))
        accuracies = np.where(np.tri(tasks, dtype=bool), values, np.nan)
        where = np.where(lost, 0, -1)
        result = replace(
            CohortResult.empty(len(learners), tasks), accuracies=accuracies, diverged_task=where, diverged_step=where
        )
        return JobResult(job.number, result, seconds=1.0)

    return train
