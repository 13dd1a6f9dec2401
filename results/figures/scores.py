"""Scores of tried points, as several figures show them."""

from typing import NamedTuple

import pandas as pd


class Scores(NamedTuple):
    """Scores of the points of one or several searches."""

    stream: str
    """The stream of the scores: "cv" or "eval"."""
    objective: str
    """The maximised metric."""
    points: pd.DataFrame
    """One row a point; the columns are those of the figure."""
    parameters: tuple[str, ...] = ()
    """Names of the searched parameters, one panel each; () where the figure has a single one."""
    log: tuple[str, ...] = ()
    """Names of those whose axis is logarithmic."""
