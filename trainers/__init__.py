"""Trains cohorts of continual learners. Needs torch and NumPy only, so that it runs alone on a bare GPU machine.

`trainers.population.train_cohort` is the door; the plain values it takes and returns are here, without torch.
"""

from trainers.cohort import Cohort, CohortResult, Member, TrainConfig

__all__ = ["Cohort", "CohortResult", "Member", "TrainConfig"]
