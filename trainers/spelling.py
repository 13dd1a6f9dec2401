"""Lines about names that nobody knows, with those that may have been meant."""

from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from heapq import nlargest

MOST, NEAREST = 14, 8  # names in a line: all of so many; of more, those nearest to the wrong one
NEAR = 0.6  # likeness of a name that may have been meant; equal ones have 1
ABBREVIATION = 0.9  # likeness of a name that begins with the wrong one
CLOSER_LOOK = 100  # names whose likeness is computed, which takes the square of their length


def unknown(kind: str, value: object, allowed: Iterable[str]) -> str:
    """Returns one line for an unknown name, with the known ones, and the nearest of them.

    >>> unknown("method", "agme", ["agem", "van"])
    "no method 'agme'; known: agem, van; did you mean 'agem'?"
    >>> unknown("value", "eps", ["epsilon", "steps"]), unknown("value", "", ["epsilon"])
    ("no value 'eps'; known: epsilon, steps; did you mean 'epsilon'?", "no value ''; known: epsilon")
    >>> unknown("study", "FIRST", ["first"]), unknown("study", "first", [])
    ("no study 'FIRST'; known: first; did you mean 'first'?", "no study 'first'; there is none")
    >>> unknown("study", "study-7x", [f"study-{number}" for number in range(1, 16)])[:55]
    "no study 'study-7x'; known: study-7, study-1, study-2, "
    """
    names = list(allowed)
    if not names:
        return f"no {kind} {value!r}; there is none"
    near, listed, rest = _nearest(str(value), names), names, ""
    if len(names) > MOST:
        listed, rest = [candidate for _, candidate in near[:NEAREST]], f" and {len(names) - NEAREST} more"
    return f"no {kind} {value!r}; known: {', '.join(listed)}{rest}{_hint(near)}"


def did_you_mean(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """Returns a hint for a line about an unknown name: the nearest known one, whatever its case.

    `otherwise` where none is near.

    >>> did_you_mean("agme", ["agem", "van"]), did_you_mean("x", ["agem"], "it has agem"), did_you_mean("x", ["agem"])
    ("; did you mean 'agem'?", '; it has agem', '')
    """
    return _hint(_nearest(name, names)) or (f"; {otherwise}" if otherwise else "")


def _hint(near: list[tuple[float, str]]) -> str:
    return f"; did you mean {near[0][1]!r}?" if near and near[0][0] >= NEAR else ""


def _nearest(name: str, names: Iterable[str]) -> list[tuple[float, str]]:
    """Returns (likeness, name) of the known names that have the most letters in common, the nearest first."""
    matcher = SequenceMatcher(b=name.casefold())

    def compare(candidate: str, ratio: Callable[[], float]) -> float:
        matcher.set_seq1(candidate.casefold())
        # An abbreviation has few letters in common: eps with epsilon fewer than with steps.
        begins = len(name) > 1 and candidate.casefold().startswith(name.casefold())
        return max(ratio(), ABBREVIATION * begins)

    few = nlargest(CLOSER_LOOK, names, key=lambda candidate: compare(candidate, matcher.quick_ratio))
    likeness = [(compare(candidate, matcher.ratio), candidate) for candidate in few]
    return sorted(likeness, key=lambda pair: pair[0], reverse=True)
