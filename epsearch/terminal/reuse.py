"""Results of commands on stored studies, as rich renderables or JSON-able values."""

import math
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from epsearch.ledger.damage import describe_unused
from epsearch.terminal.consoles import FittingTable, facts
from results.labels import count_text, points_text

if TYPE_CHECKING:
    from epsearch.reuse.network import SavedNetwork
    from epsearch.reuse.paper import PaperFile
    from epsearch.reuse.transfer import Transfer
    from epsearch.reuse.verification import Rerun, Verification

STREAMS = {"cv": "search", "eval": "evaluation", "validation": "validation", "memory": "memory"}
MACHINES = {True: "this kind", False: "another kind", None: "not known"}  # by Rerun.same_machine


def verification_text(verification: "Verification") -> RenderableType:
    """Returns a line per run, and a summary below."""
    titles = ("run", "stream", "seed", "verdict", "accuracies", "machine", "key")
    rows = [[*map(Text, _line(rerun))] for rerun in verification.reruns]
    for row, rerun in zip(rows, verification.reruns, strict=True):
        row[3].stylize("green" if rerun.agrees else "red")
    return Group(FittingTable(titles, rows, "--json has them"), Text(""), *map(Text, _summary(verification)))


def _line(rerun: "Rerun") -> tuple[str, ...]:
    record, difference = rerun.record, rerun.certificate.accuracy_difference
    by = "no difference" if difference == 0 else f"differ by {points_text(difference)}"
    machine = MACHINES[rerun.same_machine]
    return rerun.label, STREAMS[record.phase], str(record.unit), _verdict(rerun), by, machine, record.key[:12]


def _verdict(rerun: "Rerun") -> str:
    if rerun.certificate.within(0.0):
        return "the same"
    if rerun.agrees:
        return "noise" if math.isinf(rerun.tolerance) else "rounded differently"
    return "differs"


def _summary(verification: "Verification") -> list[str]:
    reruns = verification.reruns
    same = sum(rerun.certificate.within(0.0) for rerun in reruns)
    wrong = [rerun for rerun in reruns if not rerun.agrees]
    lines = [
        f"{same} of {count_text(len(reruns), 'run')} of {verification.study.name} the same bit for bit, "
        f"of {verification.stored} that are stored (--seed {verification.seed} draws them again)"
    ]
    if others := [rerun for rerun in reruns if rerun.agrees and not rerun.certificate.within(0.0)]:
        largest = points_text(max(rerun.certificate.accuracy_difference for rerun in others))
        lines.append(f"{len(others)} differ within the tolerance, accuracies by at most {largest}: {_why(others)}")
    if wrong:
        largest = points_text(max(rerun.certificate.accuracy_difference for rerun in wrong))
        allowed = max(rerun.tolerance for rerun in wrong)
        may = f"up to {points_text(allowed)} may come from rounding" if allowed else "none may differ on this machine"
        lines.append(f"{len(wrong)} differ from what is stored, accuracies by up to {largest}; {may}")
    if verification.damaged:
        lines.append(describe_unused(verification.damaged))
    return lines


def _why(others: "list[Rerun]") -> str:
    """Returns why runs within the tolerance may round differently."""
    if any(math.isinf(rerun.tolerance) for rerun in others):
        return "the trainer is declared not to repeat itself"
    if all(rerun.same_machine for rerun in others):
        return "alone, a GPU or a network of images may add in another order than in a cohort"
    if any(rerun.same_machine is False for rerun in others):
        return "they were trained on another kind of machine (processor, GPU or version of torch)"
    return "the ledger does not say on which kind of machine they were trained"


def verification_json(verification: "Verification") -> dict[str, Any]:
    """Returns the same as JSON; differences of accuracies are fractions in [0, 1].

    Infinite or unknown differences and tolerances are null: of parameters a ledger has only a hash.
    """
    return {
        "name": verification.study.name,
        "agrees": verification.agrees,
        "sample": len(verification.reruns),
        "stored": verification.stored,
        "seed": verification.seed,
        "seconds": verification.seconds,
        "damaged": dict(verification.damaged),
        "runs": [
            {
                "key": rerun.record.key,
                "run": rerun.label,
                "stream": rerun.record.phase,
                "seed": rerun.record.seed,
                "order": rerun.record.unit.order,
                "same": rerun.certificate.within(0.0),
                "agrees": rerun.agrees,
                "accuracy_difference": _finite(rerun.certificate.accuracy_difference),
                "same_parameters": rerun.certificate.parameter_difference == 0,
                "tolerance": _finite(rerun.tolerance),
                "same_kind_of_machine": rerun.same_machine,
            }
            for rerun in verification.reruns
        ],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def export_text(transfer: "Transfer") -> RenderableType:
    """Returns the contents of an exported file."""
    damaged = f"; {count_text(transfer.damaged, 'damaged row')} left out" if transfer.damaged else ""
    return Text(f"{transfer.file}: {_contents(transfer, transfer.studies)}{damaged}")


def paper_text(paper: "PaperFile") -> RenderableType:
    """Returns the contents of a study to cite, and what is missing."""
    text = f"{paper.file}: {count_text(len(paper.parts), 'file')}"
    return Text(f"{text}; images of figures left out: {paper.left_out}" if paper.left_out else text)


def import_text(transfer: "Transfer") -> RenderableType:
    """Returns the new rows of a ledger after an import."""
    earlier = [name for name in transfer.studies if name not in transfer.new]
    already = f"; there already: {', '.join(earlier)}" if earlier else ""
    return Text(f"new in the ledger: {_contents(transfer, transfer.new)}{already}")


def _contents(transfer: "Transfer", studies: tuple[str, ...]) -> str:
    named = f" ({', '.join(studies)})" if studies else ""
    number = "1 study" if len(studies) == 1 else f"{len(studies)} studies"
    runs, certificates = count_text(transfer.runs, "run"), count_text(transfer.certificates, "certificate")
    return f"{number}{named}, {runs}, {certificates}"


def network_text(network: "SavedNetwork") -> RenderableType:
    """Returns the run of a saved network, its scores, the comparison with the ledger, and its files."""
    record, certificate = network.record, network.certificate
    compared = "the ledger has no such run to compare with"
    if certificate is not None:
        by = f"differs from the stored run, accuracies by up to {points_text(certificate.accuracy_difference)}"
        compared = "the same bit for bit as the stored run" if certificate.within(0.0) else by
    last = ", ".join(f"{100 * accuracy:.2f}" for accuracy in record.accuracies[-1])
    return facts(
        {
            "run": f"{network.label}, seed {record.unit}, {STREAMS[record.phase]} stream",
            "A_T %": f"{100 * record.accuracies[-1].mean():.2f}",
            "on each task %": last,
            "compared": compared,
            "network": str(network.file),
            "described in": str(network.described),
        }
    )


def network_json(network: "SavedNetwork") -> dict[str, Any]:
    """Returns the same as JSON; accuracies after the last task, fractions in [0, 1]."""
    certificate = network.certificate
    return {
        "run": network.label,
        "key": network.record.key,
        "stream": network.record.phase,
        "seed": network.record.seed,
        "accuracies": network.record.accuracies[-1].tolist(),
        "same_as_stored": None if certificate is None else certificate.within(0.0),
        "accuracy_difference": None if certificate is None else _finite(certificate.accuracy_difference),
        "network": str(network.file),
        "described": str(network.described),
    }
