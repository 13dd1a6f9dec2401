"""The table of reproduced rows: method, stream and source, with the answer of each."""

from collections.abc import Sequence

from results.labels import count_text, dataset_label, duration_text, method_label
from results.pages.sheet import Line, Sheet
from results.statistics.equivalence import OPEN
from results.verdict.reproduction import Found, cells

HEADER = (
    *(("method", ""), ("stream", ""), ("source", ""), ("pack", ""), ("printed", ""), ("ours", ""), ("seeds", "")),
    *(("difference", ""), ("90 % interval", ""), ("margin", ""), ("answer", ""), ("training", "")),
)


def reproductions_sheet(rows: Sequence[Found]) -> Sheet:
    """Returns the table of answers, as `judged` has them."""
    return Sheet(
        "Printed numbers, reproduced",
        HEADER,
        tuple(tuple((Line(text),) for text in _texts(one)) for one in rows),
        remarks=("± is the standard deviation over seeds; training time is that of all seeds together.",),
    )


def answer_text(found: Found) -> str:
    """Returns the answer, with the seeds that another one needs, and the settings that are not the pack's."""
    needed = found.get("seeds_needed")
    more = f"; {needed} seeds would" if found["answer"] == OPEN and needed else ""
    gone = f"; {count_text(found['diverged'], 'seed')} diverged" if found["diverged"] else ""
    others = f" (other {', '.join(found['changed'])})" if found["changed"] else ""
    return f"{found['answer']}{more}{gone}{others}"


def _texts(found: Found) -> tuple[str, ...]:
    ours, printed, apart, span = cells(found)
    names = method_label(found["method"]), dataset_label(found["dataset"]), found["source"], found["name"]
    numbers = printed, ours, str(found["n"]), apart, span, f"±{found['margin']:g}"
    return *names, *numbers, answer_text(found), duration_text(found["seconds"])
