"""How many cohorts one machine trains at a time."""

import os

from epsearch.study import Study


def local_slots(study: Study) -> int:
    """One a core that this process may use, or the study's own number; one GPU takes one cohort at a time."""
    if study.workers is not None:
        return study.workers
    return 1 if study.device == "cuda" else len(os.sched_getaffinity(0))
