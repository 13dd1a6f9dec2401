"""What a report says besides results: the work, machine and versions; how far a study is that is not finished."""

from collections import Counter
from importlib.metadata import version

from epsearch.checking import check_cache
from epsearch.findings.listing import opened
from epsearch.gpu_check import in_words
from epsearch.ledger.damage import unused_in_words
from epsearch.loop.base import Loop
from epsearch.machine import describe_machine
from epsearch.plugins.loading import WAYS, all_parts
from epsearch.session.session import Effort
from results.labels import count_text, duration_text, points_text
from results.ledger.record import RERUN
from results.ledger.retry import Patience
from trainers.numeric_path import NumericPath


def facts(loop: Loop, effort: Effort | None) -> dict[str, str]:
    """What a report says about the work: members, steps, times, machine, versions.

    effort: of the session that ends with the report; None where a report is written again.
    """
    records = loop.records.values()
    told = {
        "members": f"{len(records)} in the ledger for this study",
        **({} if loop.study.foreign else {"SGD steps of all members": f"{sum(one.steps for one in records):,}"}),
        "training time of all members": duration_text(sum(record.seconds for record in records)),
    }
    if effort is not None and effort.trained:  # not of a session that only wrote the report again
        told |= {
            "last run": (
                f"{count_text(effort.trained, 'member')} trained, {effort.reused} taken from the ledger, "
                f"in {duration_text(effort.seconds)}"
            ),
        }
        if not loop.study.foreign:
            told["SGD steps of the last run"] = (
                f"{effort.member_steps:,} taken, {effort.saved:,} saved: members of a seed share the first task"
            )
    if ways := loop.images.get(WAYS):
        told["network"] = ways[str(NumericPath.parse(str(loop.study.numeric_path)).one_by_one)]
    for name, parts in all_parts(loop.study.dataset, loop.images).items():
        told[f"code of {name}"] = ", ".join(f"{part} {which}" for part, which in parts.items())
    return told | checked(loop) | on_gpus(loop) | describe_machine() | {"epsearch": version("epsearch")}


def checked(loop: Loop) -> dict[str, str]:
    """What the last `epsearch check` of its trainer on these tasks has found, on this computer."""
    found = check_cache.read(loop.study, loop.images) if loop.study.foreign else None
    return {} if found is None else {f"trust in {found.trainer}": found.sentence()}


def on_gpus(loop: Loop) -> dict[str, str]:
    """What the self-checks of the GPUs say that have trained its runs, and whether these or their torch differed."""
    runs = [one for one in loop.records.values() if one.on_gpu]
    said = sorted(Counter((one.method, one.self_check) for one in runs).items())
    outcomes = (f"{name}, {count_text(count, 'run')}: {in_words(found)}" for (name, found), count in said)
    told = {"self-check of the GPU": "; ".join(outcomes)}
    kinds = {one.machine for one in runs} - {""}
    if len(kinds) > 1:
        more = "which may round differently: their runs differ by more than those of one"
        told["GPUs, with versions of torch"] = f"{len(kinds)}, {more}"
    return told if runs else {}


def verified(loop: Loop, waiting: Patience | None = None) -> dict[str, str]:
    """What the last `epsearch verify` of each run has found, where there was one.

    waiting: how long to wait for the ledger.
    """
    with opened(loop.study.storage, waiting) as store:
        known = store.certificates(loop.records, RERUN).values()
    if not known:
        return {}
    same, last = sum(one.within(0.0) for one in known), max(one.created for one in known)[:10]
    largest = points_text(max(one.accuracy_difference for one in known))
    differ = "" if same == len(known) else f", accuracies differ by up to {largest}"
    again = f"{count_text(len(known), 'run')} trained again, alone, by `epsearch verify`, the last on {last}"
    return {"verified": f"{again}: {same} the same bit for bit{differ}"}


def unfinished(loop: Loop) -> list[str]:
    """Notes where the study is not finished: how far it is, and what of the ledger cannot be used; else none."""
    if loop.done:
        return []
    unused, again = loop.unused(), f"`epsearch {loop.study.kind}` trains again."
    damage = [f"{unused_in_words(unused)}; {again}"] if unused else []
    return [f"The study is not finished; {loop.state()}.", *damage]
