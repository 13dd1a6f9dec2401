"""A study in a database, in a process that kills itself in the middle of a trial; run as a program with its folder."""

import os
import sys
from pathlib import Path

import optuna

from search_spaces.adapters.optuna_narrowing import IntervalNarrowingSampler

POINTS, REPEATS, KILLED = 4, 2, 5


def objective(trial):
    return (trial.suggest_float("x", 0, 1) - 0.3) ** 2


def study_in(folder):
    sampler = IntervalNarrowingSampler(POINTS, REPEATS)
    storage = f"sqlite:///{folder / 'study.db'}"
    return optuna.create_study(study_name="search", storage=storage, sampler=sampler, load_if_exists=True)


def killed(trial):
    value = objective(trial)
    if trial.number == KILLED:
        os._exit(9)
    return value


if __name__ == "__main__":
    study_in(Path(sys.argv[1])).optimize(killed)
