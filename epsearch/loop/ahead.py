"""What is ahead of a study: members that it may yet want, and what they take."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

from epsearch.study.description import Study
from results.statistics.power import Resolution

ROUNDS_OF_KG = 2  # after which `kg` stops on most curves (docs/strategies.md)


class Outlook(NamedTuple):
    """Numbers of members: those that are known, and those that are still to be trained.

    What cannot be known before it is there, the points of later rounds of a search, has a least and a most.
    """

    known: int
    """In the ledger."""
    now: int
    """Missing in the present stage."""
    least: int
    """Of later rounds of the search, at least."""
    most: int
    """Of later rounds of the search, at most."""
    final: int
    """Of the evaluation, as far as it is not the present stage."""
    certified: int
    """To be trained once more, alone."""

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
    """Wall time of a whole run on this machine: likely, and the ends of an interval.

    The interval joins that of the measured speed (95 %, Student's t over the probe's windows) with the fewest and the
    most members that the study may want; its lower end is that of a machine with nothing else to do.
    """

    seconds: float
    """The likely one: start, training and report."""
    low: float
    """Seconds, the lower end."""
    high: float
    """Seconds, the upper end."""
    start: float
    """Seconds of the likely one in which workers start and end."""
    report: float
    """Seconds of it for the report."""
    share: float
    """Of the processor time that the probe wanted, what it had."""

    @property
    def training(self) -> float:
        """Seconds of the likely one in which members are trained and tested."""
        return self.seconds - self.start - self.report


@dataclass(frozen=True)
class Plan:
    """What is ahead of a study, at most."""

    study: Study
    ahead: Outlook
    steps: int
    """SGD steps of all members."""
    flop: float
    """Floating point operations of all members."""
    at_once: int
    """Cohorts that are trained at a time here."""
    usable: int
    """Workers that a stage can use: its members, as none is trained by two."""
    bytes_needed: int
    """Memory that these take, and on a CPU the processes with them."""
    bytes_processes: int
    """Memory of the machine that processes take, whatever they train."""
    bytes_free: int | None
    """Memory that is free; None where the system does not tell."""
    eta: Eta | None
    """None where nothing is left to train, or for the reason `unmeasured`."""
    unmeasured: str
    """Why the speed could not be measured, or was not; else empty."""
    ray: bool
    """Whether a Ray is started or joined, as far as that is known; threads alone train otherwise."""
    resolutions: tuple[Resolution, ...]
    """For the seeds of the search, and those of the evaluation where they are more or fewer."""
    suggestion: str = ""
    """What comes to as good an answer with fewer members; "" where nothing is known that does."""
    cautions: tuple[str, ...] = ()
    """What is known to mislead such a search."""

    def as_json(self) -> dict[str, Any]:
        """One JSON object."""
        return {
            "study": self.study.name,
            "config": self.study.shown(),
            "ahead": {**self.ahead._asdict(), "fewest": self.ahead.fewest, "largest": self.ahead.largest},
            "steps": self.steps,
            "flop": self.flop,
            "at_once": self.at_once,
            "usable_workers": self.usable,
            "bytes_needed": self.bytes_needed,
            "bytes_processes": self.bytes_processes,
            "bytes_free": self.bytes_free,
            "eta_seconds": None if self.eta is None else asdict(self.eta),
            "unmeasured": self.unmeasured,
            "ray": self.ray,
            "suggestion": self.suggestion,
            "cautions": list(self.cautions),
            "resolution": [
                # JSON knows no NaN and no infinity.
                {name: value if math.isfinite(value) else None for name, value in one._asdict().items()}
                | {"points": one.points if math.isfinite(one.points) else None}
                for one in self.resolutions
            ],
        }

    @classmethod
    def from_json(cls, study: Study, data: Mapping[str, Any]) -> Self:
        """The inverse of `as_json`, which says less of the study."""
        missing: dict[str, float] = {"noise": math.nan, "half_width": math.inf}
        resolutions: list[dict[str, Any]] = [
            {name: missing.get(name) if one[name] is None else one[name] for name in Resolution._fields}
            for one in data["resolution"]
        ]
        return cls(
            study=study,
            ahead=Outlook(*(data["ahead"][name] for name in Outlook._fields)),
            eta=None if data["eta_seconds"] is None else Eta(**data["eta_seconds"]),
            usable=data["usable_workers"],
            resolutions=tuple(Resolution(**one) for one in resolutions),
            cautions=tuple(data["cautions"]),
            **{name: data[name] for name in ("steps", "flop", "at_once", "unmeasured", "ray", "suggestion")},
            **{name: data[name] for name in ("bytes_needed", "bytes_processes", "bytes_free")},
        )


def suggestion(study: Study) -> str:
    """What would come to as good an answer with fewer members; "" where nothing is known that would."""
    if "strategy" not in study.options():
        return ""
    repeats, seeds, strategy, space = map(study.value, ("repeats", "seeds", "strategy", "search"))
    choices = space is not None and any(one.choices for one in space.parameters)
    if repeats <= ROUNDS_OF_KG or len(seeds) < 2 or strategy == "kg" or choices:
        return ""
    return "--strategy kg names as good a value with about half of the members (docs/strategies.md)"
