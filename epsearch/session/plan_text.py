"""A plan in words."""

from epsearch.loop.estimates import Plan
from epsearch.machine import visible_gpus
from epsearch.protocols.registry import protocol, sentence
from epsearch.runners.registry import runner_of
from results.labels import count_text, duration_text, flop_text
from results.statistics import power
from results.verdict.summary import command_in

GIB = 2**30
ALONE, WITH = "without further tasks", "with all of them"
"""Ends of what a search along tasks may train."""


def in_words(plan: Plan) -> dict[str, str]:
    """Returns subject -> text: members, steps, protocol, measuring, memory, workers, time, statistics, advice.

    A sentence that holds for the seeds of search and evaluation is not repeated.
    """
    statistics = (
        line
        for resolution in plan.resolutions
        for line in power.in_words(resolution, plan.study.maximised, plan.study.compared_unit)
    )
    lines = {
        "members": _members(plan),
        "steps": _steps(plan),
        "protocol": _protocol(plan),
        "measuring": _measuring(plan),
        "memory": _memory(plan),
        "workers": f"up to {plan.usable} at a time, a member each; more would idle" if plan.counts.largest else "",
        "time": _time(plan),
        "statistics": " ".join(dict.fromkeys(statistics)),
        "print": _against_print(plan),
        "suggestion": plan.suggestion,
        "caution": " ".join(plan.cautions),
    }
    return {subject: text for subject, text in lines.items() if text}


def in_brief(plan: Plan) -> dict[str, str]:
    """Returns subject -> text on one line each: members, time, memory, power of the test, advice."""
    caution = next(filter(None, map(command_in, plan.cautions)), "")
    lines = {
        "members": f"{_number(plan, 'to train')}, {plan.counts.known} in the ledger",
        "time": _short_time(plan),
        "memory": _short_memory(plan),
        "power": power.in_brief(plan.resolutions[0], plan.study.compared_unit) if plan.resolutions else "",
        "print": _against_print(plan),
        # A bias of the search matters more than its cost.
        "advice": f"{caution} (--verbose says why)" if caution else plan.suggestion,
    }
    return {subject: text for subject, text in lines.items() if text}


def in_a_line(plan: Plan) -> str:
    """Returns members and time, for the start of a run."""
    time = "" if plan.eta is None else f", {_short_time(plan)}"
    members = "no member to train" if not plan.counts.largest else _number(plan, "members")
    return f"{members}{time}; epsearch plan with these options says more"


def _number(plan: Plan, noun: str) -> str:
    """Returns how many members are to train; noun: what they are.

    How far a search along tasks goes on is not known before: it says what it trains if nothing does, and if all do.
    """
    counts = plan.counts
    if _may_grow(plan):
        about = "about " if counts.fewest < counts.expected else ""
        return f"{about}{counts.expected} {noun} {ALONE}, at most {counts.largest} {WITH}"
    if counts.fewest < counts.expected < counts.largest:
        return f"about {counts.expected}, at most {counts.largest} {noun}"
    return f"{'at most ' if counts.fewest < counts.largest else ''}{counts.largest} {noun}"


def _may_grow(plan: Plan) -> bool:
    """Returns whether members may still go on to further tasks."""
    return plan.study.further_tasks > 0 and plan.counts.fewest < plan.counts.largest


def _short_time(plan: Plan) -> str:
    """Returns the likely time, or why it is unknown."""
    if plan.eta is None:
        return plan.unmeasured or "nothing is left to train"
    total, low, high = map(duration_text, (plan.eta.seconds, plan.eta.low, plan.eta.high))
    if _may_grow(plan):
        return f"about {total}, with all further tasks at most {high}"
    return f"about {total}{f' ({low} to {high})' if low != high else ''}"


def _short_memory(plan: Plan) -> str:
    free = "" if plan.bytes_free is None else f" of {_gib(plan.bytes_free)} free"
    return f"{_gib(plan.bytes_needed)}{free}" if plan.bytes_needed else ""


def _members(plan: Plan) -> str:
    """Returns the numbers of members to train, by stage, and of stored ones."""
    counts = plan.counts
    along = " and on further tasks" if plan.study.further_tasks else ""
    parts = (
        f"{counts.now} now",
        *([f"{_span(counts.least, counts.most)} in later rounds{along}"] if counts.most else []),
        *([f"{counts.final} in the evaluation"] if counts.final else []),
        *([f"{counts.certified} trained once more, alone"] if counts.certified else []),
    )
    number = _number(plan, "to train")
    usually = "usually " if number.startswith("about ") else ""
    return f"{usually}{number} ({', '.join(parts)}); {counts.known} in the ledger"


def _protocol(plan: Plan) -> str:
    """Returns what the choice of a search may see, and how far one along tasks may go on; "" for other studies."""
    study = plan.study
    if "protocol" not in study.options():
        return ""
    if not study.extrapolates:
        name = study.value("protocol")
        chooses = sentence(protocol(name)).rstrip(".")
        return f"{name} {chooses[0].lower()}{chooses[1:]}{study.held_out}"
    predicted = f"the choice is predicted for {study.tasks - study.cv_tasks} tasks from {study.cv_tasks}"
    if not study.further_tasks:
        return f"{predicted}; the stream has no tasks of its own to go on to"
    most = study.cv_tasks + study.further_tasks
    return f"{predicted}, or from up to {most} while others may be better by more than a point"


def _steps(plan: Plan) -> str:
    if plan.study.foreign:
        return "as the trainer takes them"
    return f"{plan.steps:,} SGD steps at most, {flop_text(plan.flop)}" if plan.steps else "none"


def _measuring(plan: Plan) -> str:
    """Returns how often each method is tested inside tasks, and what share of a run that takes."""
    texts = (
        f"{method} every {count_text(every, 'step')}, {100 * share:.3g} % of a run"
        for method, every, share in plan.measuring
    )
    return f"inside tasks {'; '.join(texts)}" if plan.measuring else ""


def _against_print(plan: Plan) -> str:
    """Returns what a row will be held against, and by which margin; "" for a study without the row of a pack."""
    pack = plan.study.from_pack
    return "" if pack is None or plan.resolutions else f"{pack.metric} {pack.mean:g}, margin ±{pack.margin:g}"


def _span(least: int, most: int) -> str:
    """Returns both numbers, or one if they are equal."""
    return f"{least}" if least == most else f"{least} to {most}"


def _memory(plan: Plan) -> str:
    """Returns the memory of processes and cohorts, and the free memory; empty if nothing is trained."""
    if not plan.bytes_needed:
        return ""
    ray = f"Ray, its {count_text(plan.at_once, 'worker')} and this process"
    # Whether Ray takes over depends on the speed; until then it is counted.
    ray += ", should Ray take over" if plan.eta is None and runner_of(plan.study).ray_may_join else ""
    processes = f"{_gib(plan.bytes_processes)} for {ray if plan.ray else 'the process'}"
    free = "" if plan.bytes_free is None else f"; {plan.bytes_free / GIB:.1f} GiB are free"
    at_once = f"{count_text(plan.at_once, 'cohort')} at a time"
    if plan.study.device != "cpu":
        of = "each GPU" if min(plan.at_once, len(visible_gpus())) > 1 else "the GPU"
        return f"{_gib(plan.bytes_needed)} of {of} for {at_once}{free}; of the machine {processes}"
    cohorts = plan.bytes_needed - plan.bytes_processes
    more = f", {_gib(cohorts)} for {at_once}" if cohorts else ""  # those of a trainer without a limit are unknown
    return f"{_gib(plan.bytes_needed)}: {processes}{more}{free}"


def _gib(count: int) -> str:
    return f"{count / GIB:.2g} GiB"


def _time(plan: Plan) -> str:
    """Returns the likely time and its interval, or why it is unknown."""
    if not plan.counts.largest:
        return "nothing is left to train"
    if plan.unmeasured:
        return plan.unmeasured
    eta = plan.eta
    assert eta is not None  # as the speed is known
    total, low, high, start, training, report = map(
        duration_text, (eta.seconds, eta.low, eta.high, eta.start, eta.training, eta.report)
    )
    runner = runner_of(plan.study)
    span = f", {low} to {high}" if low != high else ""
    if _may_grow(plan):
        span = f" {ALONE}, at most {high} {WITH}"
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
