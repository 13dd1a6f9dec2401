"""The answer to a claim, by the paired differences of the evaluation."""

import math
from typing import Any

from results.claims import StoredClaim
from results.labels import count_text, number_text, signed_text
from results.metrics import METRICS
from results.statistics.paired import ALPHA, Paired, paired, sign_flip_p, smallest_sign_flip_p
from results.statistics.power import LEAST_FOR_A_TEST
from results.statistics.regret import POWER, smallest_visible

SUPPORTED, REFUTED, CANNOT_TELL, OPEN = "supported", "refuted", "cannot tell", "not evaluated yet"
TOO_LATE = "stored too late"
"""The answers to a claim."""
DIGITS = METRICS["A_T"].digits


def excess(stored: StoredClaim) -> Paired:
    """Returns the paired differences beyond the margin, in percentage points: those that support the claim are > 0."""
    sign, claim = 1.0 if stored.claim.above else -1.0, stored.claim
    beyond = {unit: sign * (value - claim.margin) for unit, value in stored.first.items()}
    return paired(beyond, {unit: sign * value for unit, value in stored.second.items()})


def p_value(differences: Paired) -> float:
    """Returns p of the two-sided sign-flip test of "no excess"; NaN without a pair."""
    return sign_flip_p(differences.differences) if differences.n else math.nan


def visible(differences: Paired) -> float:
    """Returns the smallest excess that such a study finds with a power of 80 %; NaN where none can be found.

    The power is that of the t test (`smallest_visible`), to whose p that of the sign-flip test is close from six pairs
    on.
    """
    if not differences.n or smallest_sign_flip_p(differences.n) >= ALPHA:
        return math.nan
    return smallest_visible(differences.error * math.sqrt(differences.n), differences.n)


def answer(stored: StoredClaim) -> str:
    """Returns SUPPORTED, REFUTED, CANNOT_TELL, OPEN or TOO_LATE.

    Where a member diverged nothing can be told: the others alone would favour the method that loses its bad seeds.
    """
    if stored.earlier:
        return TOO_LATE
    if stored.missing:
        return OPEN
    beyond = excess(stored)
    if stored.diverged or not p_value(beyond) < ALPHA:
        return CANNOT_TELL
    return SUPPORTED if beyond.mean > 0 else REFUTED


def in_brief(stored: StoredClaim) -> str:
    """Returns claim and answer with its reason, in a line."""
    if (word := answer(stored)) in (OPEN, TOO_LATE):
        return f"{stored.claim}: {word}"
    if stored.diverged:
        return f"{stored.claim}: {word} ({count_text(stored.diverged, 'member')} diverged)"
    pair, beyond = paired(stored.first, stored.second), excess(stored)
    error = f" ± {number_text(pair.error, DIGITS)}" if math.isfinite(pair.error) else ""
    measured = f"difference {signed_text(pair.mean, DIGITS)}{error}, p = {p_value(beyond):.2g}" if pair.n else "no pair"
    return f"{stored.claim}: {word} ({measured})"


def sentences(stored: StoredClaim) -> tuple[str, ...]:
    """Returns the answer, how it was tested, and what weakens it."""
    if stored.earlier:
        earlier = f"The evaluation has {count_text(stored.earlier, 'member')} older than the claim: it is not tested."
        return f"Claim {in_brief(stored)}.", earlier
    power = f"; {_power(stored, excess(stored))}" if answer(stored) != OPEN else ""
    tested = f"Stored before the evaluation, with the hash {stored.digest}. Two-sided sign-flip test at 5 %{power}."
    later = "The study was extended after the claim: the test's error rate may exceed 5 %." if stored.extended else ""
    return tuple(filter(None, (f"Claim {in_brief(stored)}.", tested, later)))


def as_json(stored: StoredClaim) -> dict[str, Any]:
    """Returns the answer as every `--json` has it; unknown numbers are null."""
    beyond = excess(stored)
    numbers = {"p": p_value(beyond), "excess": beyond.mean, "error": beyond.error, "visible": visible(beyond)}
    finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    counts = {"pairs": beyond.n, "diverged": stored.diverged, "earlier": stored.earlier}
    return {"claim": str(stored.claim), "hash": stored.digest, "answer": answer(stored), **counts, **finite}


def _power(stored: StoredClaim, beyond: Paired) -> str:
    """Returns what the test could have seen, in words."""
    if beyond.n < LEAST_FOR_A_TEST:
        return f"{count_text(beyond.n, 'pair')} cannot reach p < {ALPHA:g}, {LEAST_FOR_A_TEST} can"
    if math.isnan(smallest := visible(beyond)):
        return f"{count_text(beyond.n, 'pair')} without any spread"
    margin = " beyond the margin" if stored.claim.margin else ""
    return f"{100 * POWER:.0f} % power for {number_text(smallest, DIGITS)} points{margin}"
