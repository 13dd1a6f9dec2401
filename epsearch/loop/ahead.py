"""What is ahead of a search: members that it may yet want, and what they take."""

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from epsearch.study.kinds import Search
from results.statistics.power import Resolution


class Outlook(NamedTuple):
    """Members. known: in the ledger. now: missing in the present stage. least, most: of later rounds of the search.

    final: of the evaluation, as far as it is not the present stage. certified: to be trained once more, alone.
    """

    known: int
    now: int
    least: int
    most: int
    final: int
    certified: int

    @property
    def fewest(self) -> int:
        """To be trained, if the search ends as early as it can."""
        return self.now + self.least + self.final + self.certified

    @property
    def largest(self) -> int:
        """To be trained, if every round comes and no point is met twice."""
        return self.now + self.most + self.final + self.certified


@dataclass(frozen=True)
class Eta:
    """Wall seconds on this machine: likely, and the ends of an interval.

    The interval joins that of the measured speed (95 %, Student's t over the probe's windows) with the fewest and the
    most members that the search may want.
    """

    seconds: float
    low: float
    high: float


@dataclass(frozen=True)
class Plan:
    """What is ahead of a study, at most. steps: SGD steps of all members. flop: floating point operations of them.

    at_once: cohorts that are trained at a time here, which take bytes_needed. bytes_free: None where the system does
    not tell. eta: None where so little is left that measuring would take longer, or for the reason `unmeasured`.
    resolutions: for the seeds of the search, and those of the evaluation where they are more or fewer.
    """

    study: Search
    ahead: Outlook
    steps: int
    flop: float
    at_once: int
    bytes_needed: int
    bytes_free: int | None
    eta: Eta | None
    unmeasured: str
    resolutions: tuple[Resolution, ...]

    def as_json(self) -> dict[str, Any]:
        """One JSON object."""
        return {
            "study": self.study.name,
            "config": self.study.shown(),
            "ahead": {**self.ahead._asdict(), "fewest": self.ahead.fewest, "largest": self.ahead.largest},
            "steps": self.steps,
            "flop": self.flop,
            "at_once": self.at_once,
            "bytes_needed": self.bytes_needed,
            "bytes_free": self.bytes_free,
            "eta_seconds": None if self.eta is None else asdict(self.eta),
            "unmeasured": self.unmeasured,
            "resolution": [
                {name: _or_none(value) for name, value in (*one._asdict().items(), ("points", one.points))}
                for one in self.resolutions
            ],
        }


def _or_none(value: float) -> float | None:
    """JSON knows no NaN and no infinity."""
    return value if math.isfinite(value) else None
