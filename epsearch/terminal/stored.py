"""What came of studies that are stored, as commands print it: values in, rich renderables or JSON-able values out."""

import math
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from epsearch.ledger.damage import unused_in_words
from epsearch.terminal.consoles import Fitting, facts
from results.labels import count_text, points_text

if TYPE_CHECKING:
    from epsearch.stored.moving import Moved
    from epsearch.stored.network import Saved
    from epsearch.stored.verification import Rerun, Verified

STREAMS = {"cv": "search", "eval": "evaluation"}
MACHINES = {True: "this kind", False: "another kind", None: "not known"}


def verified(found: "Verified") -> RenderableType:
    """One line a run, and below in words whether all agree, and what that means on this machine."""
    titles = ("run", "stream", "seed", "verdict", "accuracies", "machine", "key")
    rows = [[*map(Text, _line(one))] for one in found.reruns]
    for row, one in zip(rows, found.reruns, strict=True):
        row[3].stylize("green" if one.agrees else "red")
    return Group(Fitting(titles, rows, "--json has them"), Text(""), *map(Text, _explained(found)))


def _line(one: "Rerun") -> tuple[str, ...]:
    record, difference = one.record, one.certificate.accuracy_difference
    by = "no difference" if difference == 0 else f"differ by {points_text(difference)}"
    return one.label, STREAMS[record.phase], str(record.seed), _verdict(one), by, MACHINES[one.alike], record.key[:12]


def _verdict(one: "Rerun") -> str:
    if one.certificate.within(0.0):
        return "the same"
    if one.agrees:
        return "noise" if math.isinf(one.tolerance) else "rounded differently"
    return "differs"


def _explained(found: "Verified") -> list[str]:
    reruns = found.reruns
    same, wrong = sum(one.certificate.within(0.0) for one in reruns), [one for one in reruns if not one.agrees]
    lines = [
        f"{same} of {count_text(len(reruns), 'run')} of {found.study.name} the same bit for bit, "
        f"of {found.stored} that are stored (--seed {found.seed} draws them again)"
    ]
    if others := [one for one in reruns if one.agrees and not one.certificate.within(0.0)]:
        largest = points_text(max(one.certificate.accuracy_difference for one in others))
        lines.append(f"{len(others)} differ as they may, accuracies by at most {largest}: {_why(others)}")
    if wrong:
        largest = points_text(max(one.certificate.accuracy_difference for one in wrong))
        allowed = max(one.tolerance for one in wrong)
        may = f"up to {points_text(allowed)} may come from rounding" if allowed else "none may differ on this machine"
        lines.append(f"{len(wrong)} differ from what is stored, accuracies by up to {largest}; {may}")
    if found.damaged:
        lines.append(unused_in_words(found.damaged))
    return lines


def _why(others: "list[Rerun]") -> str:
    """Why runs that are no fault may round differently."""
    if any(math.isinf(one.tolerance) for one in others):
        return "the trainer is declared not to repeat itself"
    if all(one.alike for one in others):
        return "alone, a GPU or a network of images may add in another order than in a cohort"
    if any(one.alike is False for one in others):
        return "they were trained on another kind of machine (processor, GPU or version of torch)"
    return "the ledger does not say on which kind of machine they were trained"


def verified_as_json(found: "Verified") -> dict[str, Any]:
    """The same as one JSON object; differences of accuracies are fractions in [0, 1].

    A difference, or a tolerance, that is infinite, or not known, is null: of parameters a ledger keeps a hash alone.
    """
    return {
        "name": found.study.name,
        "agrees": found.agrees,
        "sample": len(found.reruns),
        "stored": found.stored,
        "seed": found.seed,
        "seconds": found.seconds,
        "damaged": dict(found.damaged),
        "runs": [
            {
                "key": one.record.key,
                "run": one.label,
                "stream": one.record.phase,
                "seed": one.record.seed,
                "same": one.certificate.within(0.0),
                "agrees": one.agrees,
                "accuracy_difference": _finite(one.certificate.accuracy_difference),
                "same_parameters": one.certificate.parameter_difference == 0,
                "tolerance": _finite(one.tolerance),
                "same_kind_of_machine": one.alike,
            }
            for one in found.reruns
        ],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def exported(moved: "Moved") -> RenderableType:
    """What is in the file."""
    lost = f"; {count_text(moved.damaged, 'damaged row')} left out" if moved.damaged else ""
    return Text(f"{moved.file}: {_contents(moved, moved.studies)}{lost}")


def imported(moved: "Moved") -> RenderableType:
    """What the ledger did not have before."""
    known = [name for name in moved.studies if name not in moved.new]
    there = f"; there already: {', '.join(known)}" if known else ""
    return Text(f"new in the ledger: {_contents(moved, moved.new)}{there}")


def _contents(moved: "Moved", studies: tuple[str, ...]) -> str:
    named = f" ({', '.join(studies)})" if studies else ""
    number = "1 study" if len(studies) == 1 else f"{len(studies)} studies"
    runs, certificates = count_text(moved.runs, "run"), count_text(moved.certificates, "certificate")
    return f"{number}{named}, {runs}, {certificates}"


def saved(found: "Saved") -> RenderableType:
    """What was trained, what it scores, whether the ledger has the same, and where the files lie."""
    record, known = found.record, found.certificate
    stored = "the ledger has no such run to compare with"
    if known is not None:
        by = f"differs from the stored run, accuracies by up to {points_text(known.accuracy_difference)}"
        stored = "the same bit for bit as the stored run" if known.within(0.0) else by
    last = ", ".join(f"{100 * one:.2f}" for one in record.accuracies[-1])
    return facts(
        {
            "run": f"{found.label}, seed {record.seed}, {STREAMS[record.phase]} stream",
            "A_T %": f"{100 * record.accuracies[-1].mean():.2f}",
            "on each task %": last,
            "compared": stored,
            "network": str(found.file),
            "described in": str(found.described),
        }
    )


def saved_as_json(found: "Saved") -> dict[str, Any]:
    """The same as one JSON object; accuracies after the last task, fractions in [0, 1]."""
    known = found.certificate
    return {
        "run": found.label,
        "key": found.record.key,
        "stream": found.record.phase,
        "seed": found.record.seed,
        "accuracies": found.record.accuracies[-1].tolist(),
        "same_as_stored": None if known is None else known.within(0.0),
        "accuracy_difference": None if known is None else _finite(known.accuracy_difference),
        "network": str(found.file),
        "described": str(found.described),
    }
