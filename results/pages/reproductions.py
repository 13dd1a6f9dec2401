"""The table of reproduced rows: method, stream and source, with the answer of each."""

from collections.abc import Sequence

from results.labels import MISSING, count_text, dataset_label, duration_text, method_label
from results.pages.sheet import Line, Sheet
from results.statistics.equivalence import OPEN
from results.verdict.reproduction import Answer, cells

HEADER = (
    *(("method", ""), ("stream", ""), ("source", ""), ("pack", ""), ("printed", ""), ("ours", ""), ("seeds", "")),
    *(("difference", ""), ("90 % interval", ""), ("margin", ""), ("answer", ""), ("training", "")),
)


def reproductions_sheet(rows: Sequence[Answer]) -> Sheet:
    """Returns the table of answers, as `answer_of` has them."""
    return Sheet(
        "Printed numbers, reproduced",
        HEADER,
        tuple(tuple((Line(text),) for text in _texts(row)) for row in rows),
        remarks=("± is the standard deviation over seeds; training time is that of all seeds together.",),
    )


def answer_text(answer: Answer) -> str:
    """Returns the answer, with the seeds that another one needs, and the settings that are not the pack's."""
    needed = answer.get("seeds_needed")
    more = f"; {needed} seeds would" if answer["answer"] == OPEN and needed else ""
    gone = f"; {count_text(answer['diverged'], 'seed')} diverged" if answer["diverged"] else ""
    others = f" (other {', '.join(answer['changed'])})" if answer["changed"] else ""
    return f"{answer['answer']}{more}{gone}{others}"


def _texts(answer: Answer) -> tuple[str, ...]:
    ours, printed, apart, span = cells(answer)
    names = method_label(answer["method"]), dataset_label(answer["dataset"]), answer["source"], answer["name"]
    numbers = printed, ours, str(answer["n"]), apart, span, f"±{answer['margin']:g}"
    seconds = answer.get("seconds")  # of trained members alone
    return *names, *numbers, answer_text(answer), MISSING if seconds is None else duration_text(seconds)
