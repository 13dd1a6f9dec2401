"""Events of a training, and the functions that listen to them.

A listener is a function of one event. What a training stores and returns depends on none; what a listener raises ends
the training, as Ctrl-C does, with everything stored that was trained. `Progress`, `Decoded` and `Tick` come from any
thread, the others from the one that trains.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:  # a list of studies has their progress, and needs no arrays
    from epsearch.loop.estimates import Plan
    from epsearch.study.description import Study
    from results.ledger.record import RunRecord


class Event:
    """Something that happened; `str` says it in words."""

    kind: ClassVar[str] = ""
    """Name in the ledger's table of events and in the service's API; empty if it is not stored."""
    logged: ClassVar[bool] = True
    """Terminals and logs print it as a line; others have a view of their own, or none."""

    def as_json(self) -> dict[str, Any]:
        """Returns the data of a stored event."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @classmethod
    def from_json(cls, study: str, data: Mapping[str, Any]) -> "Event":
        """Returns a stored event. Raises LookupError, TypeError or AttributeError for the data of another version."""
        return cls(**data)


@dataclass(frozen=True)
class Note(Event):
    """A message: resources, choices made, messages of workers."""

    kind = "note"
    line: str

    def __str__(self) -> str:
        return self.line


@dataclass(frozen=True)
class Warned(Event):
    """A message that must be seen: repaired damage, a database that is away."""

    kind = "warning"
    line: str

    def __str__(self) -> str:
        return f"warning: {self.line}"


@dataclass(frozen=True)
class Decoded(Event):
    """Images decoded so far."""

    logged = False
    done: int
    total: int

    def __str__(self) -> str:
        return f"decoding {self.done:,}/{self.total:,} images"


@dataclass(frozen=True)
class Planned(Event):
    """The plan of a study. Making it takes seconds, and happens only if a listener reads `plan`."""

    kind = "plan"
    make: "Callable[[], Plan]"

    @cached_property
    def plan(self) -> "Plan":
        """The plan, made once."""
        return self.make()

    @property
    def made(self) -> bool:
        """True once a listener has read `plan`."""
        return "plan" in vars(self)

    @classmethod
    def from_json(cls, study: str, data: Mapping[str, Any]) -> Event:
        """Returns a note: plans are stored in words."""
        return Note("; ".join(f"{subject}: {text}" for subject, text in data["lines"].items()))


@dataclass(frozen=True)
class Began(Event):
    """The start of a training."""

    kind = "begin"
    name: str
    """Of the study."""
    heading: str
    """Kind, dataset, method, in words."""
    device: str
    runner: str
    study: "Study | None" = None
    """Its description; None if the event was read from a ledger."""

    def as_json(self) -> dict[str, Any]:
        """Returns the data of a stored event."""
        return {"heading": self.heading, "device": self.device, "runner": self.runner}

    @classmethod
    def from_json(cls, study: str, data: Mapping[str, Any]) -> Event:
        """As `Event.from_json`."""
        return cls(study, data["heading"], data["device"], data["runner"])

    def __str__(self) -> str:
        return f"{self.name} · {self.heading}; {self.device}, {self.runner} runner"


@dataclass(frozen=True)
class Progress(Event):
    """Progress of a training, whenever a cohort reports steps or results come in."""

    kind = "progress"
    logged = False
    stage: str
    """Part of the study that is being trained, in words."""
    known: int
    """Members of the stage that have been trained."""
    wanted: int
    """Members of the stage."""
    headline: str
    """The best so far, in words."""
    member_steps: int
    """SGD steps of all members in this run."""
    speed: float | None
    """Member-steps per second over the last minute; None during the first seconds."""
    eta: float | None
    """Seconds to go at the present speed; None before there is one."""
    seconds: float
    """Since the training began."""
    eta_low: float | None = None
    """Seconds to go if the study ends as early as it can."""
    eta_high: float | None = None
    """Seconds to go if it takes all that it may."""
    tasks: int | None = None
    """Tasks of the stage that plug-in trainers have reported, also of members under way; None for other methods."""
    tasks_wanted: int | None = None
    """Tasks of all members of the stage; None for other methods. The speed is in tasks per second then."""

    @classmethod
    def from_json(cls, study: str, data: Mapping[str, Any]) -> Event:
        """As `Event.from_json`; checks the types of all values, as events have no checksum."""
        progress = cls(**data)
        numbers = {name: value for name, value in vars(progress).items() if name not in ("stage", "headline")}
        missing = [name for name, value in numbers.items() if value is None]
        if not (
            isinstance(progress.stage, str)
            and isinstance(progress.headline, str)
            and all(type(value) in (int, float) for value in numbers.values() if value is not None)
            and {*missing} <= {"speed", "eta", "eta_low", "eta_high", "tasks", "tasks_wanted"}
        ):
            raise TypeError("progress of another version")
        return progress

    def __str__(self) -> str:
        return f"{self.stage}: {self.known}/{self.wanted} members{self.tasks_text(', ')}, {self.headline}"

    def tasks_text(self, before: str) -> str:
        """Returns the tasks in words, behind `before`; "" where tasks are not counted."""
        return "" if self.tasks is None else f"{before}{self.tasks}/{self.tasks_wanted} tasks"

    @property
    def speed_text(self) -> str:
        """The speed with its unit: tasks per minute of plug-in trainers, else member-steps per second."""
        if self.tasks is None:
            return "– steps/s" if self.speed is None else f"{self.speed:,.0f} steps/s"
        return "– tasks/min" if self.speed is None else f"{60 * self.speed:,.1f} tasks/min"


@dataclass(frozen=True)
class Stored(Event):
    """Members that were trained and stored since the last such event."""

    kind = "records"
    logged = False
    records: "Sequence[RunRecord]"

    def as_json(self) -> dict[str, Any]:
        """Returns the data of a stored event: the number of members."""
        return {"stored": len(self.records)}

    def __str__(self) -> str:
        return f"{len(self.records)} members stored"


@dataclass(frozen=True)
class Entered(Event):
    """A new state of a study."""

    kind = "state"
    name: str
    """Of the study."""
    state: str
    reason: str = ""
    """Why it failed."""

    @classmethod
    def from_json(cls, study: str, data: Mapping[str, Any]) -> Event:
        """As `Event.from_json`."""
        return cls(study, data["state"], data.get("reason") or "")

    def __str__(self) -> str:
        return f"{self.name} is {self.state}{f': {self.reason}' if self.reason else ''}"


@dataclass(frozen=True)
class Tick(Event):
    """Nothing new; comes often. A listener that answers True ends the training at its next report."""

    logged = False


Listener = Callable[[Event], object]
"""Called with every event; its answer matters for `Tick` alone."""


def ignore(event: Event) -> None:
    """A listener that ignores every event."""


def together(*listeners: Listener) -> Listener:
    """Returns one listener that calls all of these; each of them may end the training."""

    def listen(event: Event) -> bool:
        return any([listener(event) for listener in listeners])

    return listen


def stops(listener: Listener) -> bool:
    """Returns whether the listener wants the training to end."""
    return bool(listener(Tick()))


def warner(listener: Listener) -> Callable[[str], None]:
    """Returns a function of a line that warns the listener."""

    def warn(line: str) -> None:
        listener(Warned(line))

    return warn


def kinds() -> dict[str, type[Event]]:
    """Returns the classes of stored events by their kinds."""
    return {event.kind: event for event in Event.__subclasses__() if event.kind}


def read(kind: str, study: str, data: Mapping[str, Any]) -> Event | None:
    """Returns a stored event; None for the kinds and data of another version, and for members, which are not in it."""
    try:
        return None if kind == Stored.kind else kinds()[kind].from_json(study, data)
    except (LookupError, TypeError, AttributeError):
        return None
