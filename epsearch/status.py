"""Status of a study: one value for lists, pages, the API and remote commands."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from epsearch.events import Progress
from results.ledger.writers.states import CANCELLING, FINISHED, QUEUED, RUNNING

UNKNOWN = "–"
CANCEL_SECONDS = 30.0  # that a cancelled study has to end by itself before its process is killed, by default
FINISHED_BEFORE = "it was finished before"
FINISHED_NOW = {RUNNING: "all members are there"}


@dataclass(frozen=True, kw_only=True)
class StudyStatus:
    """Status of a study."""

    __pydantic_config__: ClassVar = {"use_attribute_docstrings": True}  # the descriptions of the API are those below

    name: str
    """Of the study."""
    kind: str = UNKNOWN
    """run, compare, memory or protocols; – where it cannot be read."""
    dataset: str = UNKNOWN
    """– where it cannot be read."""
    state: str = UNKNOWN
    """queued, running, cancelling, cancelled, failed, finished or interrupted; – if unknown."""
    reason: str = ""
    """Why it failed."""
    unreadable: str = ""
    """Why its description cannot be read; empty where it can."""
    summary: str = ""
    """Progress or result in words; empty if it is not known."""
    chosen: Mapping[str, bool | float | int | str] | None = None
    """The best point so far of a search."""
    score: float | None = None
    """Mean over seeds of the objective at that point; of A_T in [0, 1]."""
    objective: str = "A_T"
    """Name of the metric that the score is a mean of."""
    inert: bool = False
    """True if all values score the same bit for bit, so that none is the best."""
    created: str = ""
    """ISO-8601, UTC."""
    submitter: str | None = None
    """Name of the token that submitted it; null where it was not submitted to a service."""
    priority: int | None = None
    """In the queue; null where it was not submitted."""
    tags: tuple[str, ...] = ()
    """Words that people gave it in a service, by which lists are filtered."""
    notes: str = ""
    """Text that people gave it in a service."""
    waits: bool = False
    """True while it waits in the queue."""
    place: int | None = None
    """In the queue, from 1; null where it does not wait."""
    ahead: tuple[str, ...] = ()
    """Studies that are trained now, then those that are begun before it; empty in lists."""
    progress: Progress | None = None
    """Of the training; null where none is running."""
    progress_time: float | None = None
    """When the progress was reported: seconds since 1970."""
    event: int = 0
    """Number of its newest event; 0 without one, and in lists."""
    note: str = ""
    """Why nothing had to be done of a request; empty where it was done."""
    status: str = field(init=False, default="")
    """State and detail in one, as `epsearch list` has it."""
    detail: str = field(init=False, default="")
    """Progress, or reason of a failure, in words; empty if the state says it all."""

    def __post_init__(self) -> None:
        status = self._in_words()
        object.__setattr__(self, "status", status)
        object.__setattr__(self, "detail", "" if status == self.state else status.removeprefix(f"{self.state}: "))

    def _in_words(self) -> str:
        """State and detail; a study that ended while it wrote its report is finished and has lost nothing."""
        if self.unreadable:
            return self.unreadable
        finished = self.summary.startswith(FINISHED)
        if self.state in (UNKNOWN, FINISHED):
            return self.summary or UNKNOWN
        detail = self.reason or (FINISHED_NOW.get(self.state, FINISHED_BEFORE) if finished else self.summary)
        return f"{self.state}: {detail}" if detail else self.state

    @property
    def active(self) -> bool:
        """True while it is trained, or waits in the queue."""
        return self.waits or self.state in (QUEUED, RUNNING, CANCELLING)

    def as_json(self) -> dict[str, Any]:
        """Returns the status as the API, `--json` and remote commands have it."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        chosen, progress = values["chosen"], values["progress"]
        return values | {
            "chosen": None if chosen is None else dict(chosen),
            "progress": None if progress is None else progress.as_json(),
            "ahead": list(self.ahead),
            "tags": list(self.tags),
        }


def read_status(values: Mapping[str, Any]) -> StudyStatus:
    """Returns the status that `as_json` wrote; fields of other versions are left out."""
    facts = {each.name: values[each.name] for each in fields(StudyStatus) if each.init and each.name in values}
    progress = facts.get("progress")
    facts["progress"] = None if progress is None else Progress(**progress)
    return StudyStatus(**facts | {name: tuple(facts.get(name, ())) for name in ("ahead", "tags")})
