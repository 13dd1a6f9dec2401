"""The protocol of a door: every verb that a ledger and a service have in common."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from epsearch.events import Listener
from epsearch.status import StudyStatus
from epsearch.study.description import Study


@dataclass(frozen=True)
class Request:
    """A study by its options, and how to train it."""

    kind: type[Study]
    options: Mapping[str, Any]
    """Options of the command line by name; None for those that are left out."""
    config: Path | None = None
    """YAML file of options."""
    extend: bool = False
    """True to extend the stored search of that name."""
    wait: bool = False
    """True to wait for another run of the study instead of an error."""
    live: Sequence[str] = ()
    """Tools to log to, as TOOL:WHERE."""
    with_printed: bool = False
    """True to set the paper's printed rows beside results of other sizes, too."""
    metrics: Sequence[str] = ()
    """Metrics of the LaTeX table, in its order; empty for all."""
    notify: str | None = None
    """URL that gets a message at the end."""
    verbose: bool = False
    """True for all that a plan says, not its five lines."""


@dataclass(frozen=True)
class View:
    """A result for a terminal and for programs; either is made when it is read."""

    renderable: Callable[[int, bool], Any]
    """(columns of the terminal, whether it has colours) -> a rich renderable, or text that is laid out for it."""
    data: Callable[[], Any]
    """Returns JSON-able values."""
    status: int = 0
    """Exit status of the command."""


class Door(Protocol):
    """Verbs on studies. All raise UsageError for a refusal, Unavailable if ledger or service do not answer."""

    def list(self) -> list[StudyStatus]:
        """Returns the studies, oldest first."""

    def show(self, name: str | None, why: bool = False) -> View:
        """Returns options and results of a study, the newest without a name.

        why: the reasons of its answer instead, in words, with every metric and caution.
        """

    def report(
        self, names: Sequence[str], figures: Sequence[str], with_printed: bool = False, metrics: Sequence[str] = ()
    ) -> View:
        """Writes the report of a study, the newest without a name, or the page of several side by side.

        with_printed, metrics: of one study, see `Request`.
        """

    def plan(self, request: Request, listener: Listener) -> View:
        """Returns the members, memory and time that a run would take; trains nothing."""

    def run(self, request: Request, listener: Listener, resume: bool = False) -> View:
        """Trains a study to its end and writes its report; resume: also one that was cancelled."""

    def resume(
        self, name: str | None, failed: bool, options: Mapping[str, Any], wait: bool, live: Sequence[str]
    ) -> Sequence[Callable[[Listener], View]]:
        """Returns a function for each study to resume: the newest without a name, or all failed ones."""

    def watch(self, name: str, listener: Listener) -> StudyStatus:
        """Calls a listener with the events of a study until its run ends; returns its status."""

    def cancel(self, name: str, deadline: float) -> StudyStatus:
        """Stops a study; its process is killed after the deadline, in seconds. Returns its status."""

    def delete(self, name: str, sure: Callable[[str], bool]) -> View:
        """Deletes a study. sure: answers a question; Interrupted is raised if it is no."""
