"""Remaining work of a study: members, time, and the plan."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

from epsearch.study.description import Study
from results.statistics.power import Resolution


class MemberCounts(NamedTuple):
    """Numbers of stored and remaining members.

    Later rounds of a search have a smallest and a largest number.
    """

    known: int
    """Stored in the ledger."""
    now: int
    """Missing in the present stage."""
    least: int
    """Smallest number in later rounds of the search."""
    usual: int
    """Usual number in later rounds of the search, by searches of known curves; without further tasks."""
    most: int
    """Largest number in later rounds of the search."""
    final: int
    """In the evaluation, unless it is the present stage."""
    certified: int
    """Certificates: members to train once more, alone."""

    @property
    def fewest(self) -> int:
        """Members to train if the search ends as early as possible."""
        return self.now + self.least + self.final + self.certified

    @property
    def expected(self) -> int:
        """Members that are usually to train."""
        return self.now + self.usual + self.final + self.certified

    @property
    def largest(self) -> int:
        """Members to train with all rounds and no repeated point."""
        return self.now + self.most + self.final + self.certified


@dataclass(frozen=True)
class Eta:
    """Wall time of a whole run on this machine, with an interval.

    The interval joins that of the measured speed (95 %, Student's t over the probe's windows) with the fewest and the
    most members; its lower end is that of an idle machine.
    """

    seconds: float
    """Likely time: start, training and report."""
    low: float
    """Lower end, in seconds."""
    high: float
    """Upper end, in seconds."""
    start: float
    """Part in which workers start and end."""
    report: float
    """Part for the report."""
    share: float
    """Share of the processor time that the probe got."""

    @property
    def training(self) -> float:
        """Part in which members are trained and tested, in seconds."""
        return self.seconds - self.start - self.report


@dataclass(frozen=True)
class Plan:
    """Plan of a study: its largest remaining work."""

    study: Study
    counts: MemberCounts
    steps: int
    """SGD steps of all members."""
    flop: float
    """Floating point operations of all members."""
    at_once: int
    """Cohorts trained at a time."""
    usable: int
    """Workers that a stage can use: the number of its members."""
    bytes_needed: int
    """Memory of these cohorts, and on a CPU of the processes."""
    bytes_processes: int
    """Memory of the processes alone."""
    bytes_free: int | None
    """Free memory; None if unknown."""
    eta: Eta | None
    """None if nothing is left to train, or for the reason `unmeasured`."""
    unmeasured: str
    """Why the speed was not measured; else empty."""
    ray: bool
    """Whether a Ray is expected to be started or joined, besides threads."""
    resolutions: tuple[Resolution, ...]
    """For the seeds of the search, and of the evaluation if their numbers differ; empty where no rows are compared."""
    suggestion: str = ""
    """Options with as good an answer from fewer members; "" without any."""
    measuring: tuple[tuple[str, int, float], ...] = ()
    """Tests inside tasks of each method: its title, steps between them, their share of a run's FLOP."""
    cautions: tuple[str, ...] = ()
    """Known biases of such a search."""

    def as_json(self) -> dict[str, Any]:
        """Returns the plan as JSON."""
        return {
            "study": self.study.name,
            "config": self.study.to_dict(),
            "ahead": {
                **self.counts._asdict(),
                **{name: getattr(self.counts, name) for name in ("fewest", "expected", "largest")},
            },
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
            "measuring": [dict(zip(("method", "every", "share"), row, strict=True)) for row in self.measuring],
            "cautions": list(self.cautions),
            "resolution": [
                # JSON knows no NaN and no infinity.
                {name: value if math.isfinite(value) else None for name, value in resolution._asdict().items()}
                | {"points": resolution.points if math.isfinite(resolution.points) else None}
                for resolution in self.resolutions
            ],
        }

    @classmethod
    def from_json(cls, study: Study, data: Mapping[str, Any]) -> Self:
        """Returns a plan from `as_json`; study: its description."""
        missing: dict[str, float] = {"noise": math.nan, "half_width": math.inf}
        resolutions: list[dict[str, Any]] = [
            {name: missing.get(name) if row[name] is None else row[name] for name in Resolution._fields}
            for row in data["resolution"]
        ]
        return cls(
            study=study,
            counts=MemberCounts(*(data["ahead"][name] for name in MemberCounts._fields)),
            eta=None if data["eta_seconds"] is None else Eta(**data["eta_seconds"]),
            usable=data["usable_workers"],
            resolutions=tuple(Resolution(**row) for row in resolutions),
            measuring=tuple((row["method"], row["every"], row["share"]) for row in data["measuring"]),
            cautions=tuple(data["cautions"]),
            **{name: data[name] for name in ("steps", "flop", "at_once", "unmeasured", "ray", "suggestion")},
            **{name: data[name] for name in ("bytes_needed", "bytes_processes", "bytes_free")},
        )
