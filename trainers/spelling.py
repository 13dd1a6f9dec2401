"""Lines about names that nobody knows, with those that may have been meant."""

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches

MOST, NEAREST = 14, 8  # names in a line: all of so many; of more, those nearest to the wrong one


def unknown(kind: str, value: object, allowed: Iterable[str]) -> str:
    """Returns one line for an unknown name, with the known ones, and the nearest of them.

    >>> unknown("method", "agme", ["agem", "van"])
    "no method 'agme'; known: agem, van; did you mean 'agem'?"
    >>> unknown("study", "FIRST", ["first"]), unknown("study", "first", [])
    ("no study 'FIRST'; known: first; did you mean 'first'?", "no study 'first'; there is none")
    >>> unknown("study", "study-7x", [f"study-{number}" for number in range(1, 16)])[:55]
    "no study 'study-7x'; known: study-7, study-1, study-2, "
    """
    names = list(allowed)
    if not names:
        return f"no {kind} {value!r}; there is none"
    listed = names if len(names) <= MOST else _nearest_first(str(value), names)[:NEAREST]
    rest = f" and {len(names) - NEAREST} more" if len(names) > MOST else ""
    return f"no {kind} {value!r}; known: {', '.join(listed)}{rest}{did_you_mean(str(value), names)}"


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Returns what ends a line about a name: the nearest known one, whatever its case; `otherwise` where none is near.

    >>> did_you_mean("agme", ["agem", "van"]), did_you_mean("x", ["agem"], "it has agem"), did_you_mean("x", ["agem"])
    ("; did you mean 'agem'?", '; it has agem', '')
    """
    folded = {one.casefold(): one for one in reversed(list(known))}
    near = get_close_matches(name.casefold(), folded, n=1)
    if near:
        return f"; did you mean {folded[near[0]]!r}?"
    return f"; {otherwise}" if otherwise else ""


def _nearest_first(name: str, known: list[str]) -> list[str]:
    wanted = SequenceMatcher(b=name.casefold())

    def likeness(one: str) -> float:
        wanted.set_seq1(one.casefold())
        return wanted.ratio()

    return sorted(known, key=likeness, reverse=True)
