"""What a trainer of one's own promises, as `epsearch check` finds it: `trainer_checks`."""

from functools import cache
from typing import Any

from epsearch.checking.check import check
from epsearch.checking.check_cache import CheckReport
from epsearch.testing.promises import Check, checks_of, sure

SUBJECTS = ("trains", "repeats", "seed", "later tasks", "matrix")
SMALL = {"dataset": "permuted_digits", "tasks": 4, "cv_tasks": 2, "examples_per_task": 100, "device": "cpu"}


def trainer_checks(trainer: str, **options: Any) -> list[Check]:
    """Checks of a trainer, module:attribute, which is trained a few times, once for all checks together.

    options: of `epsearch check`, such as search="lr=log:0.01..1" or set="memory=5"; by default on two small tasks of
    permuted digits.
    """

    @cache
    def found() -> CheckReport:
        return check(SMALL | options | {"trainer": trainer})

    def of(subject: str) -> Check:
        def promise() -> None:
            known = {one.subject: one for one in found().findings}
            why = known.get("trains") or known.get(subject)
            sure(why is None or why.trusted is not False, f"{subject}: {why.text if why else ''}")

        promise.__name__ = subject.replace(" ", "_")
        promise.__doc__ = f"As the line `{subject}` of `epsearch check` says."
        return checks_of([promise])[0]

    def settings_act() -> None:
        """All that are varied."""
        reserved = {*SUBJECTS, "accuracies", "time", "peak memory"}
        wrong = [one for one in found().findings if one.subject not in reserved and one.trusted is False]
        sure(not wrong, "; ".join(f"{one.subject} {one.text}" for one in wrong))

    return [*map(of, SUBJECTS), *checks_of([settings_act])]
