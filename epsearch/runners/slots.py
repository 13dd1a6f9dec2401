"""How many cohorts one machine trains at a time."""

from epsearch.machine import usable_cores
from epsearch.study.description import Study


def local_slots(study: Study) -> int:
    """One a core that this process may use, or the study's own number; one GPU takes one cohort at a time."""
    if study.workers is not None:
        return study.workers
    return 1 if study.device == "cuda" else usable_cores()
