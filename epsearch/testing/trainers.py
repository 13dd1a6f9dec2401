"""Promises of plug-in trainers, by `epsearch check`: `trainer_checks`."""

from functools import cache
from typing import Any

from epsearch.checking.check import check
from epsearch.checking.check_cache import CheckReport
from epsearch.testing.promises import Check, checks_of, sure

SUBJECTS = ("trains", "repeats", "seed", "later tasks", "matrix")
SMALL = {"dataset": "permuted_digits", "tasks": 4, "cv_tasks": 2, "examples_per_task": 100, "device": "cpu"}


def trainer_checks(trainer: str, **options: Any) -> list[Check]:
    """Returns checks of a trainer, module:attribute, which share a few trainings.

    options: of `epsearch check`, such as search="lr=log:0.01..1" or set="memory=5"; by default on two small tasks of
    permuted digits.
    """

    @cache
    def report() -> CheckReport:
        return check(SMALL | options | {"trainer": trainer})

    def of(subject: str) -> Check:
        def promise() -> None:
            findings = {finding.subject: finding for finding in report().findings}
            why = findings.get("trains") or findings.get(subject)
            sure(why is None or why.trusted is not False, f"{subject}: {why.text if why else ''}")

        promise.__name__ = subject.replace(" ", "_")
        promise.__doc__ = f"As the line `{subject}` of `epsearch check` says."
        return checks_of([promise])[0]

    def settings_act() -> None:
        """All varied settings have an effect."""
        reserved = {*SUBJECTS, "accuracies", "time", "peak memory"}
        wrong = [
            finding for finding in report().findings if finding.subject not in reserved and finding.trusted is False
        ]
        sure(not wrong, "; ".join(f"{finding.subject} {finding.text}" for finding in wrong))

    return [*map(of, SUBJECTS), *checks_of([settings_act])]
