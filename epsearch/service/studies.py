"""What is done with studies, for whoever asks: submitted, listed, cancelled, resumed, extended, deleted.

Everything here stands on the functions that the command line calls. What a client may not choose, the service has
chosen: where the ledger, the reports and the data are, and which code of this machine runs.
"""

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from epsearch.api import grown
from epsearch.control.cancelling import cancel
from epsearch.control.removing import Removal, delete
from epsearch.control.resuming import stored
from epsearch.failures.errors import NoStudy, Unavailable, UsageError, brief, unknown
from epsearch.findings import listing
from epsearch.findings.listing import known
from epsearch.ledger.damage import Unreadable
from epsearch.preparation import growth
from epsearch.preparation.build import check_name
from epsearch.service.requests import SERVER_SET, check_data, checked, described, is_of, of_submission, places
from epsearch.service.settings import Settings
from epsearch.session.session import stored_loop
from epsearch.status import UNKNOWN, StudyStatus
from epsearch.study.description import Study
from epsearch.study.kinds import REQUESTS, Search
from results.ledger.errors import StoreError, conflict
from results.ledger.store import Store
from results.ledger.writers.errors import LeaseHeld
from results.ledger.writers.states import (
    CANCELLED,
    CANCELLING,
    FAILED,
    FINISHED,
    INTERRUPTED,
    QUEUED,
    RUNNING,
)

STATES = (QUEUED, RUNNING, CANCELLING, CANCELLED, FAILED, FINISHED, INTERRUPTED)
RECENT = 1.0  # seconds: of many who ask for the list, one has it made
DEADLINE = 30.0  # seconds that a cancelled study's process has to stop by itself


class Busy(UsageError):
    """The study is being trained, or in another state in which it cannot be done."""


class Studies:
    """The studies of one service."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self.store = settings, store
        self._listing, self._recent, self._until = threading.Lock(), list[StudyStatus](), 0.0

    def all(self) -> list[StudyStatus]:
        """The studies of the ledger and its queue, oldest first."""
        return listing.statuses(self.store, self.settings.storage, self.settings.out)

    def recent(self) -> list[StudyStatus]:
        """The same, at most RECENT seconds old: made once for all who ask at a time. A change of ours is in it."""
        with self._listing:
            if time.monotonic() > self._until:
                self._until = time.monotonic() + RECENT  # first: what is changed meanwhile has it made again
                self._recent = self.all()
            return self._recent

    def _changed(self, who: str, action: str, name: str, detail: Mapping[str, Any]) -> None:
        """Keeps who has changed what; the next list has it."""
        self._until = 0.0
        self.store.queue.audit(who, action, name, detail)

    def status(self, name: str) -> StudyStatus:
        """Returns how a study stands. Raises NoStudy."""
        return listing.status(self.store, name, self.settings.storage, self.settings.out)

    def study(self, name: str) -> Study:
        """What was stored of a study, or else submitted. Raises NoStudy, and UsageError where it cannot be read."""
        row = growth.find(self.store, name)
        if row is not None:
            try:
                return growth.read(row, self.settings.storage, self.settings.out).study
            except Unreadable as error:
                raise UsageError(str(error)) from error
        submission = self.store.queue.submissions().get(name)
        if submission is None:
            raise NoStudy(unknown("study", brief(name).strip("'"), known(self.store)))
        return of_submission(submission, self.settings)

    def build(self, given: Mapping[str, Any]) -> Study:
        """The study that a client describes. Raises UsageError."""
        return described(given, self.settings)

    def submit(
        self, study: Study, who: str, priority: int = 0, extend: bool = False, action: str = "submit"
    ) -> StudyStatus:
        """Puts a study into the queue, unless nothing is to be trained, or it is there. Raises UsageError, Busy."""
        name = study.name
        check_name(name, self.settings.out, self.settings.storage)
        if not extend:
            self._check_new(study)
        if action == "submit" and self._is_finished(study):
            return replace(self.status(name), note=f"study {name!r} is finished already; nothing to train")
        check_data(study)
        shown = {name: value for name, value in study.shown().items() if name not in SERVER_SET}
        given = {"kind": study.kind, "options": shown, "extend": extend}
        try:
            before = self.store.queue.submit(name, given, priority, who)
        except LeaseHeld as error:
            raise Busy(f"{error}; cancel it, or wait for its end") from error
        if before is None:
            self._changed(who, action, name, given | {"priority": priority})
            return self.status(name)
        there = self.store.leases.standing(name)
        stands = "is being trained" if there is not None and there.held else "waits"
        if action == "resume" or is_of(before, study, extend, self.settings):
            return replace(self.status(name), note=f"study {name!r} {stands} already; nothing was changed")
        by = f" by {before.submitter!r}" if before.submitter else ""
        raise Busy(
            f"study {name!r} was submitted{by} with other options, and {stands}; cancel it, or choose another name"
        )

    def _is_finished(self, study: Study) -> bool:
        """Whether a study that is there has all that it asks for."""
        there, row = self.store.leases.standing(study.name), growth.find(self.store, study.name)
        if row is None or there is None or there.state != FINISHED or there.held:
            return False
        asked = {name: one.show(study.value(name)) for name, one in study.options().items() if name in REQUESTS}
        if any(row.config.get(name, value if not value else None) != value for name, value in asked.items()):
            return False
        with suppress(Unreadable):
            return stored_loop(row, self.store, self.settings.storage, self.settings.out).done
        return False

    def extend(self, name: str, given: Mapping[str, Any], who: str, priority: int = 0) -> StudyStatus:
        """Lets a stored search grow, and trains it on. Raises NoStudy, Busy and UsageError."""
        self.status(name)
        wanted = checked({str(key).replace("-", "_"): value for key, value in given.items()}, self.settings)
        for fixed, value in (("name", name), ("kind", Search.kind)):
            if wanted.pop(fixed, value) != value:
                raise UsageError(f"{fixed} cannot be changed by extend")
        study = grown({**self._ways(name), **wanted, **places(self.settings), "name": name, "data_dir": None})
        return self.submit(study, who, priority, extend=True, action="extend")

    def resume(self, name: str, who: str, priority: int = 0) -> StudyStatus:
        """Trains a study on that was cancelled, has failed or was left. Raises NoStudy, Busy and UsageError."""
        row, own = growth.find(self.store, name), self.settings
        study = self.study(name) if row is None else stored(name, own.storage, own.out, self._ways(name))
        earlier = self.store.queue.submissions().get(name)
        extend = earlier is not None and bool(earlier.given.get("extend"))
        return self.submit(study, who, priority, extend, action="resume")

    def cancel(self, name: str, who: str, deadline: float = DEADLINE) -> StudyStatus:
        """Cancels a study; one whose process does not stop by itself is killed after the deadline, in seconds.

        Raises NoStudy, and Busy where there is nothing to cancel.
        """
        self.status(name)
        before = self.store.leases.standing(name)
        if before is not None and before.state == CANCELLED and not before.held:
            return replace(self.status(name), note=f"study {name!r} was cancelled already")
        there = self.store.leases.cancel(name)
        if there is None or there.state not in (CANCELLING, CANCELLED):
            raise Busy(f"study {name!r} is {UNKNOWN if there is None else there.now}: there is nothing to cancel")
        self._changed(who, "cancel", name, {})
        if there.state == CANCELLED:
            self.store.queue.close(name)
        else:
            threading.Thread(target=self._enforce, args=(name, deadline), name="cancel", daemon=True).start()
        return self.status(name)

    def _enforce(self, name: str, deadline: float) -> None:
        # It has ended in another way meanwhile, or is on another machine and stops when it looks into the ledger.
        with suppress(UsageError, Unavailable, StoreError):
            cancel(name, self.settings.storage, self.settings.out, deadline)

    def delete(self, name: str, confirm: str, who: str) -> Removal:
        """Deletes a study with the members that no other uses. Raises NoStudy, Busy and UsageError.

        confirm: its name once more.
        """
        self.status(name)
        if confirm != name:
            raise UsageError(f"confirm must be the study's name, {name!r}, got {brief(confirm)}")
        there = self.store.leases.standing(name)
        if there is not None and there.held:
            raise Busy(f"study {name!r} is being trained; cancel it first")
        removal = delete(name, self.settings.storage, self.settings.out, lambda removal: True)
        self._changed(who, "delete", name, {"members": len(removal.runs)})
        return removal

    def _check_new(self, study: Study) -> None:
        """Raises UsageError where the ledger has another study of that name, which only the data could tell else."""
        row = growth.find(self.store, study.name)
        if row is None:
            return
        was = row.config.get("kind", Search.kind)
        if was != study.kind:
            raise UsageError(f"{study.name!r} is a study of `epsearch {was}`; choose another name")
        old, new = growth.read(row, study.storage, study.out).study.identity(), study.identity()
        if old != new:
            raise UsageError(str(conflict(study.name, old, new)))

    def _ways(self, name: str) -> dict[str, Any]:
        """How a study was to be run when it was submitted last: by which runner, with how many workers."""
        earlier = self.store.queue.submissions().get(name)
        given = None if earlier is None else earlier.given.get("options")
        known = {one for one, option in Search.options().items() if not option.identifies} - {*SERVER_SET, "name"}
        return {one: value for one, value in given.items() if one in known} if isinstance(given, dict) else {}
