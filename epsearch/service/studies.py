"""What is done with studies, for whoever asks: submitted, listed, cancelled, resumed, extended, deleted.

Everything here stands on the functions that the command line calls. What a client may not choose, the service has
chosen: where the ledger, the reports and the data are, and which code of this machine runs.
"""

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from epsearch.api import grown
from epsearch.control.cancelling import cancel
from epsearch.control.named import known
from epsearch.control.removing import Removal, delete
from epsearch.control.resuming import stored
from epsearch.failures.errors import Unavailable, UsageError, brief, refused, unknown
from epsearch.findings.listing import UNKNOWN, Listed, listed
from epsearch.ledger.damage import Unreadable
from epsearch.plugins.kinds import NAMING
from epsearch.preparation import growth
from epsearch.preparation.build import build
from epsearch.service.settings import Settings
from epsearch.study.description import Study
from epsearch.study.kinds import KINDS, Search
from epsearch.study.options import options
from epsearch.study.parsers import one_of, whole
from results.ledger.errors import StoreError, conflict
from results.ledger.store import Store
from results.ledger.writers.errors import LeaseHeld
from results.ledger.writers.queue import Submission, waits
from results.ledger.writers.states import CANCELLED, CANCELLING, Standing
from search_spaces.published.definition import UnknownDataset, load_definition

OURS = ("out", "storage", "data_dir", "checkpoints", "address")
"""Options that say where things are: a client's would open places of this machine."""
PRIORITIES = (-1000, 1000)
RECENT = 1.0  # seconds: of many who ask for the list, one has it made
DEADLINE = 30.0  # seconds that a cancelled study's process has to stop by itself


class NoStudy(UsageError):
    """There is no study of that name."""


class Busy(UsageError):
    """The study is being trained, or in another state in which it cannot be done."""


class Described(NamedTuple):
    """A study as lists, pages and programs see it, without its results."""

    listed: Listed
    """As `epsearch list` has it."""
    standing: Standing | None
    """None for one that was never trained by a version that keeps it."""
    submission: Submission | None
    """None for one that was not submitted to a service."""
    progress: Mapping[str, Any] | None
    """The last one that was told, as `events.Progress` has it; None where nobody trains it."""


class Stands(NamedTuple):
    """How a study stands, in few words."""

    state: str
    """One word; UNKNOWN where nobody has kept it."""
    reason: str
    """Why it failed."""
    summary: str
    """How far it is, in words."""
    waits: bool
    """Whether the queue is to train it."""
    event: int
    """Number of its newest event; 0 without one."""


class Studies:
    """The studies of one service."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self.store = settings, store
        self._listing, self._recent, self._until = threading.Lock(), list[Listed](), 0.0

    def all(self) -> list[Listed]:
        """The studies of the ledger and its queue, oldest first."""
        return listed(self.store, self.settings.storage, self.settings.out)

    def recent(self) -> list[Listed]:
        """The same, at most RECENT seconds old: made once for all who ask at a time. A change of ours is in it."""
        with self._listing:
            if time.monotonic() > self._until:
                self._until = time.monotonic() + RECENT  # first: what is changed meanwhile has it made again
                self._recent = self.all()
            return self._recent

    def _changed(self, who: str, action: str, name: str, detail: Mapping[str, Any]) -> None:
        """Keeps who has changed what; the next list has it."""
        self._until = 0.0
        self.store.audit(who, action, name, detail)

    def described(self, name: str) -> Described:
        """One study. Raises NoStudy."""
        line = next((one for one in self.all() if one.name == name), None)
        if line is None:
            raise NoStudy(unknown("study", brief(name).strip("'"), known(self.store)))
        there = self.store.standing(name)
        told = self.store.newest_event(name, "progress") if there is not None and there.held else None
        progress = None if there is None or told is None or told.token != there.token else told.data
        return Described(line, there, self.store.submissions().get(name), progress)

    def standing(self, name: str) -> Stands:
        """How one stands. Raises NoStudy."""
        there, submission = self.store.standing(name), self.store.submissions().get(name)
        if there is None:
            self.described(name)
        last, summary = self.store.newest_event(name), self.store.summaries().get(name)
        return Stands(
            state=UNKNOWN if there is None else there.now,
            reason="" if there is None else there.reason,
            summary="" if summary is None else summary.status,
            waits=submission is not None and submission.open and there is not None and waits(there.state, there.held),
            event=0 if last is None else last.id,
        )

    def study(self, name: str) -> Study:
        """What was stored of a study, or else submitted. Raises NoStudy, and UsageError where it cannot be read."""
        row = growth.find(self.store, name)
        if row is not None:
            try:
                return growth.read(row, self.settings.storage, self.settings.out).study
            except Unreadable as error:
                raise UsageError(str(error)) from error
        submission = self.store.submissions().get(name)
        if submission is None:
            raise NoStudy(unknown("study", brief(name).strip("'"), known(self.store)))
        return of_submission(submission, self.settings)

    def build(self, given: Mapping[str, Any]) -> Study:
        """The study that a client describes: `kind`, and options by name as a YAML file has them. Raises UsageError."""
        written = {str(name).replace("-", "_"): value for name, value in given.items()}
        kind = KINDS[one_of(written.pop("kind", Search.kind), "kind", KINDS)]
        return build(kind, self._checked(written) | _places(self.settings))

    def submit(self, study: Study, who: str, priority: int = 0, extend: bool = False, action: str = "submit") -> str:
        """Puts a study into the queue; its name. Raises UsageError, Busy while it is being trained."""
        if not extend:
            self._check_name(study)
        shown = {name: value for name, value in study.shown().items() if name not in OURS}
        given = {"kind": study.kind, "options": shown, "extend": extend}
        try:
            self.store.submit(study.name, given, priority, who)
        except LeaseHeld as error:
            there = self.store.submissions().get(study.name)
            if there is not None and there.open and there.given == given:
                return study.name  # the same once more: it is being trained
            raise Busy(f"{error}; cancel it, or wait for its end") from error
        self._changed(who, action, study.name, given | {"priority": priority})
        return study.name

    def extend(self, name: str, given: Mapping[str, Any], who: str, priority: int = 0) -> str:
        """Lets a stored search grow, and trains it on. Raises NoStudy, Busy and UsageError."""
        self.described(name)
        wanted = self._checked({str(key).replace("-", "_"): value for key, value in given.items()})
        for fixed, value in (("name", name), ("kind", Search.kind)):
            if wanted.pop(fixed, value) != value:
                raise UsageError(f"{fixed} cannot be changed by extend")
        study = grown({**self._ways(name), **wanted, **_places(self.settings), "name": name, "data_dir": None})
        return self.submit(study, who, priority, extend=True, action="extend")

    def resume(self, name: str, who: str, priority: int = 0) -> str:
        """Trains a study on that was cancelled, has failed or was left. Raises NoStudy, Busy and UsageError."""
        row, own = growth.find(self.store, name), self.settings
        study = self.study(name) if row is None else stored(name, own.storage, own.out, self._ways(name))
        earlier = self.store.submissions().get(name)
        extend = earlier is not None and bool(earlier.given.get("extend"))
        return self.submit(study, who, priority, extend, action="resume")

    def cancel(self, name: str, who: str, deadline: float = DEADLINE) -> Standing:
        """Cancels a study; one whose process does not stop by itself is killed after the deadline, in seconds.

        Raises NoStudy, and Busy where there is nothing to cancel.
        """
        self.described(name)
        there = self.store.cancel(name)
        if there is None or there.state not in (CANCELLING, CANCELLED):
            raise Busy(f"study {name!r} is {UNKNOWN if there is None else there.now}: there is nothing to cancel")
        self._changed(who, "cancel", name, {})
        if there.state == CANCELLED:
            self.store.close_submission(name)
        else:
            threading.Thread(target=self._enforce, args=(name, deadline), name="cancel", daemon=True).start()
        return there

    def _enforce(self, name: str, deadline: float) -> None:
        # It has ended in another way meanwhile, or is on another machine and stops when it looks into the ledger.
        with suppress(UsageError, Unavailable, StoreError):
            cancel(name, self.settings.storage, deadline)

    def delete(self, name: str, confirm: str, who: str) -> Removal:
        """Deletes a study with the members that no other uses. Raises NoStudy, Busy and UsageError.

        confirm: its name once more.
        """
        self.described(name)
        if confirm != name:
            raise UsageError(f"confirm must be the study's name, {name!r}, got {brief(confirm)}")
        there = self.store.standing(name)
        if there is not None and there.held:
            raise Busy(f"study {name!r} is being trained; cancel it first")
        removal = delete(name, self.settings.storage, self.settings.out, lambda removal: True)
        self._changed(who, "delete", name, {"members": len(removal.runs)})
        return removal

    def _check_name(self, study: Study) -> None:
        """Raises UsageError where the ledger has another study of that name, which only the data could tell else."""
        row = growth.find(self.store, study.name)
        if row is None:
            return
        was = row.config.get("kind", Search.kind)
        if was != study.kind:
            raise UsageError(f"{study.name!r} is a study of `epsearch {was}`; choose another name")
        if (old := row.config["study"]) != (new := study.identity()):
            raise UsageError(str(conflict(study.name, old, new)))

    def _ways(self, name: str) -> dict[str, Any]:
        """How a study was to be run when it was submitted last: by which runner, with how many workers."""
        earlier = self.store.submissions().get(name)
        given = None if earlier is None else earlier.given.get("options")
        known = {one for one, option in options().items() if not option.identifies} - {*OURS, "name"}
        return {one: value for one, value in given.items() if one in known} if isinstance(given, dict) else {}

    def _checked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options of a client, without those that open places of this machine. Raises UsageError."""
        for name in OURS:
            if options.get(name) is not None:
                raise UsageError(f"{name.replace('_', '-')} is the service's to say; leave it out")
        checked = dict(options)
        if (dataset := checked.get("dataset")) is not None:
            checked["dataset"] = self._dataset(str(dataset))
        for option in NAMING:
            value = checked.get(option, "")
            parts = value if isinstance(value, (list, dict)) else [value]  # of settings the keys name methods
            if any(":" in str(part) for part in parts):
                self._allow_modules(option, value)
        if checked.get("pretrained") not in (None, "none", "imagenet"):
            raise UsageError(f"pretrained must be none or imagenet here, got {brief(checked['pretrained'])}")
        return checked

    def _allow_modules(self, option: str, value: Any) -> None:
        """Raises UsageError where this service was not started to allow code that a client names."""
        if not self.settings.modules:
            raise UsageError(
                f"{option.replace('_', '-')} {brief(value)} runs code of this machine, which this service was not "
                "started to allow (--allow-modules)"
            )

    def _dataset(self, dataset: str) -> str:
        """A registered name as it is, folder:NAME below the roots, a module only where that is allowed."""
        kind, colon, rest = dataset.partition(":")
        if not colon:
            with refused(UnknownDataset):  # before it is looked for among the folders of this machine
                return load_definition(dataset).name
        if kind != "folder":
            self._allow_modules("dataset", dataset)
            return dataset
        for root in self.settings.roots:
            with suppress(OSError, ValueError, RuntimeError):  # what cannot be a name, and links in a circle
                place = (root / rest).resolve()
                if place.is_relative_to(root.resolve()) and place.exists():
                    return f"folder:{place}"
        roots = ", ".join(str(root) for root in self.settings.roots) or "none"
        raise UsageError(f"there is no {brief(rest)} below the folders of images of this service ({roots})")


def of_submission(submission: Submission, settings: Settings) -> Study:
    """The study of a submission, with this service's places. Raises UsageError."""
    given = submission.given
    if not isinstance(options := given.get("options"), dict):
        raise UsageError(f"what was submitted as {submission.study!r} cannot be read; submit it again")
    if options.get("search") is not None:  # which goes over the interval; a client could not have given both
        options = {name: value for name, value in options.items() if name != "interval"}
    kind = KINDS[one_of(given.get("kind", Search.kind), "kind", KINDS)]
    placed = {**options, **_places(settings)}
    # A search that grows keeps its folder of datasets.
    return grown(placed | {"data_dir": None}) if given.get("extend") else build(kind, placed)


def _places(settings: Settings) -> dict[str, Any]:
    """Values of OURS."""
    return {name: getattr(settings, name) for name in OURS}


def priority(value: Any) -> int:
    """A priority as it was given. Raises UsageError."""
    low, high = PRIORITIES
    return whole(0 if value is None else value, "priority", low=low, high=high)
