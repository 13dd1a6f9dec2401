"""Checks the options that change when a stored search is extended."""

from collections.abc import Mapping, Sequence
from typing import Any

from epsearch.failures.errors import UsageError
from epsearch.study.kinds import Search

SIZES = ("repeats", "points")


def check_extension(old: Search, new: Search) -> None:
    """Raises UsageError where options would make a study another one, instead of extending it.

    Seeds may only be added at the end: a race gives its first seeds to all points.
    """
    before, after, may = old.identity(), new.identity(), old.extendable_options
    if fixed := fixed_options(before, after, may):
        name = fixed[0]
        was, now = (identity.get(name, study.value(name)) for identity, study in ((before, old), (after, new)))
        raise UsageError(f"extend can change {', '.join(may)}; {name} is {was} there, {now} here")
    if old.space.names != new.space.names:
        raise UsageError(
            f"extend goes on searching {', '.join(old.space.names)}, got {', '.join(new.space.names)}; "
            "choose another --name"
        )
    for name, first, now in (("seeds", old.seeds, new.seeds), ("eval-seeds", old.final_seeds, new.final_seeds)):
        if now[: len(first)] != first:  # a race begins with the first ones
            raise UsageError(f"{name} can only be added at the end; got {list(now)}, which were {list(first)}")
    for name, least, now in (
        ("orders", old.orders, new.orders),
        ("most-cv-tasks", old.most_cv_tasks, new.most_cv_tasks),
    ):
        if now < least:
            raise UsageError(f"{name} can only increase; got {now}, which were {least}")
    if old.most_cv_tasks < new.most_cv_tasks > new.task_limit:
        raise UsageError(f"most-cv-tasks must be <= {new.task_limit} on this stream, got {new.most_cv_tasks}")
    # Another strategy or interval is a second search of any size. The same search with fewer rounds or points would
    # leave unused runs, and a report that its options do not describe.
    for name in SIZES if _same_search(before, after) else ():
        if after[name] < before[name]:
            raise UsageError(f"{name} can only increase; got {after[name]}, which were {before[name]}")


def _same_search(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Returns whether two identities have the same strategy and space."""
    return all(old.get(name) == new.get(name) for name in ("strategy", "strategy_seed", "search", "interval"))


def fixed_options(old: Mapping[str, Any], new: Mapping[str, Any], may: Sequence[str]) -> list[str]:
    """Returns options that differ between two identities and are none of those that may."""
    may = (*may, "race_rule")  # which comes and goes with the race
    return [name for name in dict.fromkeys((*old, *new)) if name not in may and old.get(name) != new.get(name)]
