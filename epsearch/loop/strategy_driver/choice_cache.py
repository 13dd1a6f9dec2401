"""Cache of choices by curves through many points, which take seconds.

Each opening of a study computes its choice, also for lists and deletions.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from epsearch.cache import cache_folder
from epsearch.loop.strategy_driver.choice import choose
from results.search import Choice
from search_spaces.space import Point, Space
from trainers.persistence import checked_files

MANY = 100  # points from which on a choice is cached; for fewer the fit is faster
VERSION = 4  # of what `choose` computes: another one where it names another point for the same scores


def choose_once(space: Space, points: Sequence[Point], scores: NDArray[np.float64]) -> Choice:
    """Returns the result of `choose`, from the cache of this machine if possible."""
    if len(points) < MANY:
        return choose(space, points, scores)
    of = repr((VERSION, np.__version__, space, list(points), scores.shape)).encode() + scores.tobytes()
    mark = hashlib.sha256(of).hexdigest()
    path = cache_folder() / "choices" / mark
    if (content := checked_files.read(path, mark, "the curve is fitted again")) is not None:
        return _read(content)
    choice = choose(space, points, scores)
    with suppress(OSError):  # nothing is lost but time
        path.parent.mkdir(parents=True, exist_ok=True)
        checked_files.write(path, mark, json.dumps(choice._asdict()).encode())
    return choice


def _read(content: bytes) -> Choice:
    """Returns the cached choice: JSON has lists for tuples."""
    values = json.loads(content)
    point, tried, summit = (
        None if values[name] is None else tuple(values[name]) for name in ("point", "tried", "summit")
    )
    return Choice(point, tried, values["why"], summit)
