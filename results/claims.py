"""Claims about an evaluation that are stored before it, and the members that decide them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

FORM = re.compile(
    r"(?P<first>\S+?)\s*(?P<sign>[<>])\s*(?P<second>[^\s<>+]+?)(?:\s*(?P<margin>[+-]\s*\d{1,2}(?:\.\d{1,6})?))?"
)


class Claim(NamedTuple):
    """The claim "first > second + margin", or with "<", about mean A_T on the evaluation."""

    first: str
    """Name of a method."""
    above: bool
    """True for ">": the first method is above."""
    second: str
    """Name of another method."""
    margin: float
    """Percentage points that are added to the second: below 100, with at most six decimals."""

    @classmethod
    def of(cls, text: str) -> "Claim":
        """Returns the claim of a text. Raises ValueError, in one line, where it has another form.

        >>> str(Claim.of("soft_agem>agem+1")), str(Claim.of("ewc < my-methods.best:ER - 0.50"))
        ('soft_agem > agem + 1', 'ewc < my-methods.best:ER - 0.5')
        """
        match = FORM.fullmatch(text.strip())
        if not match:
            raise ValueError(f"claim must compare two methods, like 'soft_agem > agem + 1'; got {text!r:.60}")
        if match["first"] == match["second"]:
            raise ValueError(f"claim must compare two different methods, got {match['first']} twice")
        margin = float("".join((match["margin"] or "0").split()))
        return cls(match["first"], match["sign"] == ">", match["second"], margin)

    def __str__(self) -> str:
        # Without an exponent, and with all of its digits, so that it reads as it was written.
        size = f"{abs(self.margin):.6f}".rstrip("0").rstrip(".")
        margin = f" {'+' if self.margin > 0 else '-'} {size}" if self.margin else ""
        return f"{self.first} {'>' if self.above else '<'} {self.second}{margin}"


@dataclass(frozen=True, eq=False)
class StoredClaim:
    """A claim with the members that decide it."""

    claim: Claim
    """The claim."""
    digest: str
    """Hash, in hexadecimal digits, of the claim with all that determines the study's results."""
    first: Mapping[int, float]
    """Unit -> A_T of the first method, in percent; without units that diverged."""
    second: Mapping[int, float]
    """The same of the second."""
    missing: int
    """Members of both that are not trained yet."""
    diverged: int
    """Members of both that diverged."""
    earlier: int
    """Members of both that are older than the study, so that the claim was not stored before them."""
    extended: bool
    """True for a study that was extended after the claim: the test's error rate may exceed its level."""
