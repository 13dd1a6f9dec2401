"""A plan as people read it."""

from epsearch.loop.ahead import Plan
from results.labels import count_text, duration_text
from results.statistics import power

GIB = 2**30
WORKERS = {"tune": "Ray", "local": "threads"}


def in_words(plan: Plan) -> dict[str, str]:
    """Subject -> text: members, steps, memory, workers, time, what the seeds can tell apart; only what there is to say.

    The same sentence about the seeds of the search and those of the evaluation is said once.
    """
    lines = {
        "members": _members(plan),
        "steps": _steps(plan),
        "memory": _memory(plan),
        "workers": f"up to {plan.usable} at a time, a member each; more would idle" if plan.ahead.largest else "",
        "time": _time(plan),
        "statistics": " ".join(dict.fromkeys(line for one in plan.resolutions for line in power.in_words(one))),
    }
    return {subject: text for subject, text in lines.items() if text}


def _members(plan: Plan) -> str:
    """How many are trained, when, and how many the ledger has."""
    ahead = plan.ahead
    parts = (
        f"{ahead.now} now",
        *([f"{_span(ahead.least, ahead.most)} in later rounds"] if ahead.most else []),
        *([f"{ahead.final} in the evaluation"] if ahead.final else []),
        *([f"{ahead.certified} trained once more, alone"] if ahead.certified else []),
    )
    return f"{_span(ahead.fewest, ahead.largest)} to train ({', '.join(parts)}); {ahead.known} in the ledger"


def _steps(plan: Plan) -> str:
    if plan.study.foreign:
        return "as the trainer takes them"
    return f"{plan.steps:,} SGD steps at most, {_flop(plan.flop)}" if plan.steps else "none"


def _span(least: int, most: int) -> str:
    """Both numbers, or the one that they are."""
    return f"{least}" if least == most else f"{least} to {most}"


def _flop(flop: float) -> str:
    """With a prefix.

    >>> _flop(2.5e13)
    '25 TFLOP'
    """
    size, prefix = next((one for one in ((1e15, "P"), (1e12, "T"), (1e9, "G")) if flop >= one[0]), (1e6, "M"))
    return f"{flop / size:.3g} {prefix}FLOP"


def _memory(plan: Plan) -> str:
    """What the cohorts that are trained at a time take, and what is free; empty where nothing is to be trained."""
    if not plan.bytes_needed:
        return ""
    text = f"{plan.bytes_needed / GIB:.2g} GiB for {count_text(plan.at_once, 'cohort')} at a time"
    return text if plan.bytes_free is None else f"{text}; {plan.bytes_free / GIB:.1f} GiB are free"


def _time(plan: Plan) -> str:
    """The likely time and its interval, or why there is none."""
    if not plan.ahead.largest:
        return "nothing is left to train"
    if plan.unmeasured:
        return plan.unmeasured if plan.study.foreign else f"could not be measured: {plan.unmeasured}"
    eta = plan.eta
    assert eta is not None  # as there is something to train, and its speed is known
    total, low, high, start, training, report = map(
        duration_text, (eta.seconds, eta.low, eta.high, eta.start, eta.training, eta.report)
    )
    workers = WORKERS[plan.study.runner]
    span = f", {low} to {high}" if low != high else ""
    text = (
        f"about {total} from here{span}: {start} to start {workers}, "
        f"{training} of training with {count_text(plan.at_once, 'cohort')} at a time, {report} for the report"
    )
    busy = (
        f"; this machine is busy, the probe had {100 * eta.share:.0f} % of the processor time that it could use, and "
        "the shorter time is that of a machine at rest"
    )
    return text + (busy if eta.share < 1 else "")
