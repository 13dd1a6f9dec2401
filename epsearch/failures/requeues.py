"""Ends a job of Slurm that would be requeued for ever, as its time is too short to keep anything."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from epsearch.failures import stopping
from epsearch.failures.errors import Interrupted, Unavailable


def vain_run() -> str:
    """Returns in words that a run of a requeued job was in vain; empty outside of such a job, and in its first run."""
    restarts = os.environ.get("SLURM_RESTART_COUNT", "")
    if not restarts.isdecimal() or int(restarts) == 0:
        return ""
    return f"run {int(restarts) + 1} of this job kept nothing new for want of time; submit it with a longer --time"


@contextmanager
def limit_requeues(kept: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Within the context, the end of the time of a requeued job is an error if nothing new was kept.

    kept: returns what is kept, to be compared before and after. Raises Unavailable in place of Interrupted; the first
    run of a job may be in vain, as it fills caches.
    """
    vain = vain_run()
    before = kept() if vain else None
    try:
        yield
    except (Interrupted, KeyboardInterrupt) as error:
        if vain and stopping.AGAIN.is_set() and kept() == before:
            raise Unavailable(vain) from error
        raise
