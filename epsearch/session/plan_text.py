"""A plan as people read it."""

from epsearch.loop.ahead import Plan
from epsearch.runners.registry import runner_of
from results.labels import count_text, duration_text
from results.statistics import power

GIB = 2**30


def in_words(plan: Plan) -> dict[str, str]:
    """Subject -> text: members, steps, memory, workers, time, what the seeds can tell, what takes less, what misleads.

    The same sentence about the seeds of the search and those of the evaluation is said once.
    """
    told = (line for one in plan.resolutions for line in power.in_words(one, plan.study.maximised))
    lines = {
        "members": _members(plan),
        "steps": _steps(plan),
        "memory": _memory(plan),
        "workers": f"up to {plan.usable} at a time, a member each; more would idle" if plan.ahead.largest else "",
        "time": _time(plan),
        "statistics": " ".join(dict.fromkeys(told)),
        "suggestion": plan.suggestion,
        "caution": " ".join(plan.cautions),
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
    """What processes and cohorts take that are trained at a time, and what is free; empty where nothing is trained."""
    if not plan.bytes_needed:
        return ""
    ray = f"Ray, its {count_text(plan.at_once, 'worker')} and this process"
    # Whether Ray takes over, the speed will say; until then it is counted.
    ray += ", should Ray take over" if plan.eta is None and runner_of(plan.study).ray_may_join else ""
    processes = f"{_gib(plan.bytes_processes)} for {ray if plan.ray else 'the process'}"
    free = "" if plan.bytes_free is None else f"; {plan.bytes_free / GIB:.1f} GiB are free"
    at_once = f"{count_text(plan.at_once, 'cohort')} at a time"
    if plan.study.device == "cuda":
        return f"{_gib(plan.bytes_needed)} of the GPU for {at_once}{free}; of the machine {processes}"
    cohorts = plan.bytes_needed - plan.bytes_processes
    more = f", {_gib(cohorts)} for {at_once}" if cohorts else ""  # a trainer's without a limit are not known
    return f"{_gib(plan.bytes_needed)}: {processes}{more}{free}"


def _gib(count: int) -> str:
    return f"{count / GIB:.2g} GiB"


def _time(plan: Plan) -> str:
    """The likely time and its interval, or why there is none."""
    if not plan.ahead.largest:
        return "nothing is left to train"
    if plan.unmeasured:
        return plan.unmeasured
    eta = plan.eta
    assert eta is not None  # as there is something to train, and its speed is known
    total, low, high, start, training, report = map(
        duration_text, (eta.seconds, eta.low, eta.high, eta.start, eta.training, eta.report)
    )
    runner = runner_of(plan.study)
    span = f", {low} to {high}" if low != high else ""
    text = (
        f"about {total} from here{span}: {start} to start {runner.workers}, "
        f"{training} of training with {count_text(plan.at_once, 'cohort')} at a time, {report} for the report"
    )
    busy = (
        f"; this machine is busy, the probe had {100 * eta.share:.0f} % of the processor time that it could use, and "
        "the shorter time is that of a machine at rest"
    )
    joined = "; Ray takes over once it has started" if runner.starts_at_once and plan.ray else ""
    return text + joined + (busy if eta.share < 1 else "")
