"""A plan as people read it."""

from epsearch.loop.ahead import Plan
from results.labels import count_text, duration_text
from results.statistics import power

GIB = 2**30


def in_words(plan: Plan) -> dict[str, str]:
    """Subject -> text."""
    found = {
        "members": _members(plan),
        "steps": f"{plan.steps:,} SGD steps at most, {_flop(plan.flop)}" if plan.steps else "none",
        "memory": _memory(plan),
        "time": _time(plan),
        "statistics": " ".join(dict.fromkeys(line for one in plan.resolutions for line in power.in_words(one))),
    }
    return {subject: text for subject, text in found.items() if text}


def _members(plan: Plan) -> str:
    ahead = plan.ahead
    parts = [
        f"{ahead.now} now",
        f"{_span(ahead.least, ahead.most)} in later rounds",
        f"{ahead.final} in the evaluation",
    ]
    parts += [f"{ahead.certified} trained once more, alone"] * bool(ahead.certified)
    return f"{_span(ahead.fewest, ahead.largest)} to train ({', '.join(parts)}); {ahead.known} in the ledger"


def _span(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least} to {most}"


def _flop(flop: float) -> str:
    """With a prefix.

    >>> _flop(2.5e13)
    '25 TFLOP'
    """
    for prefix, size in (("P", 1e15), ("T", 1e12), ("G", 1e9)):
        if flop >= size:
            return f"{flop / size:.3g} {prefix}FLOP"
    return f"{flop / 1e6:.3g} MFLOP"


def _memory(plan: Plan) -> str:
    if not plan.bytes_needed:
        return ""
    text = f"{plan.bytes_needed / GIB:.2g} GiB for {count_text(plan.at_once, 'cohort')} at a time"
    return text if plan.bytes_free is None else f"{text}; {plan.bytes_free / GIB:.1f} GiB are free"


def _time(plan: Plan) -> str:
    if not plan.ahead.largest:
        return "nothing is left to train"
    if plan.unmeasured:
        return f"could not be measured: {plan.unmeasured}"
    if plan.eta is None:
        return "less than a probe would take to measure"
    eta = plan.eta
    return (
        f"about {duration_text(eta.seconds)} of training, {duration_text(eta.low)} to {duration_text(eta.high)}, with "
        f"{count_text(plan.at_once, 'cohort')} at a time here (measured speed; the fewest and the most members)"
    )
