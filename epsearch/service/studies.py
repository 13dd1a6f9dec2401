"""Submits, lists, cancels, resumes, extends and deletes studies, for the API and the pages.

All of it calls the functions of the command line. The service sets what a client may not choose: the paths of the
ledger, the reports and the data, and the code of this machine that runs.
"""

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from epsearch import notice
from epsearch.api import build_extension
from epsearch.control.cancelling import cancel
from epsearch.control.removing import Removal, delete
from epsearch.control.resuming import stored_study
from epsearch.failures.errors import NoStudy, Unavailable, UsageError, brief
from epsearch.findings import listing
from epsearch.findings.listing import Filters, study_names
from epsearch.findings.order import behind, place, sort_studies
from epsearch.ledger.damage import Unreadable
from epsearch.preparation import history
from epsearch.preparation.build import check_name
from epsearch.service import answers
from epsearch.service.access.limits import TooMany
from epsearch.service.access.permissions import NotOwner, check_change, check_priority
from epsearch.service.access.tokens import Token
from epsearch.service.logs import log
from epsearch.service.requests import (
    SERVER_SET,
    build_study,
    check_data,
    check_options,
    is_same,
    server_options,
    submitted_study,
)
from epsearch.service.settings import Settings
from epsearch.session.session import stored_loop
from epsearch.status import CANCEL_SECONDS, UNKNOWN, StudyStatus
from epsearch.study.description import Study
from epsearch.study.kinds import REQUESTS, Search
from results.ledger.errors import StoreError, conflict
from results.ledger.store import Store
from results.ledger.writers.errors import LeaseHeld, QueueFull
from results.ledger.writers.queue import Labels, Submission
from results.ledger.writers.states import (
    CANCELLED,
    CANCELLING,
    FAILED,
    FINISHED,
    INTERRUPTED,
    QUEUED,
    RUNNING,
)
from trainers.spelling import unknown

STATES = (QUEUED, RUNNING, CANCELLING, CANCELLED, FAILED, FINISHED, INTERRUPTED)
LIST_SECONDS = 1.0  # for which a list is answered again, however many clients poll it
MOST_PAGES = 100  # encoded pages of a list
LOGGED = {
    "submit": "study_submitted",
    "cancel": "study_cancelled",
    "resume": "study_resumed",
    "extend": "study_extended",
    "delete": "study_deleted",
    "label": "study_labelled",
}
"""Change -> its event in the log."""
FULL_SECONDS = 60.0  # after which a client may try again if the queue is full


class Busy(UsageError):
    """The state of the study does not allow the change: most often, it is being trained."""


class Studies:
    """The studies of one service."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self.store = settings, store
        self._listing, self._list, self._until = threading.Lock(), list[StudyStatus](), 0.0
        self._pages: dict[object, bytes] = {}

    def all(self) -> list[StudyStatus]:
        """Returns the studies of the ledger and its queue, oldest first."""
        return listing.statuses(self.store, self.settings.storage, self.settings.out)

    def page(self, filters: Filters, page: int, per_page: int, sort: str, after: str | None) -> bytes:
        """Returns a page of the list as JSON. Raises UsageError for an unknown order or place.

        It is at most LIST_SECONDS old; a change made through this service shows at once.

        after: the place where the page begins, in place of its number.
        """
        with self._listing:
            if time.monotonic() > self._until:
                self._until = time.monotonic() + LIST_SECONDS  # set first: a change meanwhile resets it
                self._list, self._pages = self.all(), {}
            every, pages = self._list, self._pages
        key = filters, page, per_page, sort, after
        if (encoded := pages.get(key)) is None:  # read once: another thread may clear them
            rows = filters.matching(every)
            left = sort_studies(rows, sort)[(page - 1) * per_page :] if after is None else behind(rows, after, sort)
            part = left[:per_page]
            more = place(part[-1], sort) if len(left) > per_page else None
            if len(pages) >= MOST_PAGES:
                pages.clear()
            encoded = pages[key] = answers.LIST.dump_json(answers.Studies(part, len(rows), page, more))
        return encoded

    def _audit(self, who: Token, action: str, name: str, detail: Mapping[str, Any]) -> None:
        """Logs a change, and discards the cached list."""
        self._until = 0.0
        self.store.queue.audit(who.name, action, name, detail)
        event = LOGGED.get(action, f"study_{action}")
        by = f" by {who.name}" if who.name else ""
        log(event, f"study {name!r} was {event.removeprefix('study_')}{by}", study=name, token=who.name)

    def owner(self, name: str) -> str:
        """Returns the owner of a study; empty for one that was not submitted with a token."""
        submission = self.store.queue.submission(name)
        return "" if submission is None else submission.submitter

    def status(self, name: str) -> StudyStatus:
        """Returns the status of a study. Raises NoStudy."""
        return listing.status(self.store, name, self.settings.storage, self.settings.out)

    def study(self, name: str) -> Study:
        """Returns a stored study, or else a submitted one. Raises NoStudy, and UsageError if it cannot be read."""
        row = history.find(self.store, name)
        if row is not None:
            try:
                return history.read(row, self.settings.storage, self.settings.out).study
            except Unreadable as error:
                raise UsageError(str(error)) from error
        submission = self.store.queue.submission(name)
        if submission is None:
            raise NoStudy(unknown("study", brief(name).strip("'"), study_names(self.store)))
        return submitted_study(submission, self.settings)

    def build(self, request: Mapping[str, Any]) -> Study:
        """Builds the study of a request. Raises UsageError."""
        return build_study(request, self.settings)

    def submit(
        self,
        study: Study,
        who: Token,
        priority: int = 0,
        extend: bool = False,
        action: str = "submit",
        notify: str | None = None,
    ) -> StudyStatus:
        """Queues a study, unless it is finished or queued already.

        notify: URL that gets a message at its end, see `check_notify`. A new study belongs to the owner of the token.
        Raises UsageError, Busy, NotOwner, and TooMany for a full queue.
        """
        name = study.name
        check_priority(priority, who)
        check_name(name, self.settings.out, self.settings.storage)
        if not extend:
            self._check_new(study)
        if action == "submit" and self._is_finished(study):
            return replace(self.status(name), note=f"study {name!r} is finished already; nothing to train")
        check_data(study)
        options = {option: value for option, value in study.to_dict().items() if option not in SERVER_SET}
        request = {"kind": study.kind, "options": options, "extend": extend}
        earlier = self.store.queue.submission(name)
        # One that was trained from a command line has no submission: whoever made one would own its results.
        if earlier is not None or history.find(self.store, name) is not None:
            try:
                check_change(name, self.owner(name), who)
            except NotOwner:
                if earlier is not None and earlier.open and is_same(earlier, study, extend, self.settings):
                    return self._unchanged_status(name)
                raise
        # The URL, which may be a secret, is in no log.
        submitted = request if notify is None else request | {"notify": notify}
        try:
            before = self.store.queue.submit(name, submitted, priority, who.owner, self.settings.limits)
        except LeaseHeld as error:
            raise Busy(f"{error}; cancel it, or wait for its end") from error
        except QueueFull as error:
            raise TooMany(str(error), FULL_SECONDS) from error
        if before is None:
            self._audit(who, action, name, request | {"priority": priority} | _changes(earlier, options))
            return self.status(name)
        if action == "resume" or is_same(before, study, extend, self.settings):
            return self._unchanged_status(name)
        by = f" by {before.submitter!r}" if before.submitter else ""
        raise Busy(
            f"study {name!r} was submitted{by} with other options, and {self._in_queue(name)}; cancel it, or choose "
            "another name"
        )

    def check_notify(self, url: str | None) -> str | None:
        """Returns the URL for a message at the end of a study. Raises UsageError for a host that is not allowed."""
        return None if url is None else notice.check_url(url, self.settings.notify_hosts)

    def _in_queue(self, name: str) -> str:
        """Returns what a study of the queue does, in words."""
        current = self.store.leases.state_of(name)
        return "is being trained" if current is not None and current.held else "waits"

    def _unchanged_status(self, name: str) -> StudyStatus:
        """Returns the status of a study of the queue that was requested once more, with a note."""
        return replace(self.status(name), note=f"study {name!r} {self._in_queue(name)} already; nothing was changed")

    def _is_finished(self, study: Study) -> bool:
        """Returns whether the stored study is finished and has all REQUESTS of `study`, such as `certify`."""
        current, row = self.store.leases.state_of(study.name), history.find(self.store, study.name)
        if row is None or current is None or current.state != FINISHED or current.held:
            return False
        requests = {
            name: option.show(study.value(name)) for name, option in study.options().items() if name in REQUESTS
        }
        if any(row.config.get(name, value if not value else None) != value for name, value in requests.items()):
            return False
        with suppress(Unreadable):
            return stored_loop(row, self.store, self.settings.storage, self.settings.out).done
        return False

    def extend(
        self, name: str, request: Mapping[str, Any], who: Token, priority: int = 0, notify: str | None = None
    ) -> StudyStatus:
        """Extends a stored search, and queues it. Raises as `submit`, and NoStudy."""
        self.status(name)
        check_change(name, self.owner(name), who)
        options = check_options({str(key).replace("-", "_"): value for key, value in request.items()}, self.settings)
        for fixed, value in (("name", name), ("kind", Search.kind)):
            if options.pop(fixed, value) != value:
                raise UsageError(f"{fixed} cannot be changed by extend")
        options = {**self._run_options(name), **options, **server_options(self.settings)}
        study = build_extension(options | {"name": name, "data_dir": None})
        if study.identity() == self.study(name).identity() and self._is_finished(study):
            note = f"study {name!r} is finished already, and no option differs from its own; nothing to train"
            return replace(self.status(name), note=note)
        return self.submit(study, who, priority, extend=True, action="extend", notify=notify)

    def resume(self, name: str, who: Token, priority: int = 0) -> StudyStatus:
        """Queues a cancelled, failed or interrupted study again. Raises as `submit`, and NoStudy."""
        self.status(name)
        check_change(name, self.owner(name), who)
        row, settings = history.find(self.store, name), self.settings
        study = (
            self.study(name)
            if row is None
            else stored_study(name, settings.storage, settings.out, self._run_options(name))
        )
        earlier = self.store.queue.submission(name)
        before = {} if earlier is None else earlier.given
        return self.submit(study, who, priority, bool(before.get("extend")), "resume", before.get("notify"))

    def cancel(self, name: str, who: Token, deadline: float = CANCEL_SECONDS) -> StudyStatus:
        """Cancels a study; kills its process after the deadline, in seconds, if it has not stopped.

        Raises NoStudy, NotOwner, and Busy if there is nothing to cancel.
        """
        self.status(name)
        check_change(name, self.owner(name), who)
        before = self.store.leases.state_of(name)
        if before is not None and before.state == CANCELLED and not before.held:
            return replace(self.status(name), note=f"study {name!r} was cancelled already")
        current = self.store.leases.cancel(name)
        if current is None or current.state not in (CANCELLING, CANCELLED):
            raise Busy(f"study {name!r} is {UNKNOWN if current is None else current.now}: there is nothing to cancel")
        self._audit(who, "cancel", name, {})
        if current.state == CANCELLED:
            self.store.queue.close(name)
        else:
            threading.Thread(target=self._kill, args=(name, deadline), name="cancel", daemon=True).start()
        return self.status(name)

    def _kill(self, name: str, deadline: float) -> None:
        # The process may have ended meanwhile. On another machine it stops by itself when it next reads the ledger.
        with suppress(UsageError, Unavailable, StoreError):
            cancel(name, self.settings.storage, self.settings.out, deadline)

    def label(self, name: str, labels: Labels, who: Token) -> StudyStatus:
        """Gives a study its tags and notes, in place of earlier ones. Raises NoStudy and NotOwner."""
        self.status(name)
        check_change(name, self.owner(name), who)
        self._audit(who, "label", name, {"tags": list(labels.tags), "notes": labels.notes})
        return self.status(name)

    def delete(self, name: str, confirm: str, who: Token) -> Removal:
        """Deletes a study with the members that no other uses. Raises NoStudy, NotOwner, Busy and UsageError.

        confirm: the study's name, typed again.
        """
        self.status(name)
        check_change(name, self.owner(name), who)
        if confirm != name:
            raise UsageError(f"confirm must be the study's name, {name!r}, got {brief(confirm)}")
        current = self.store.leases.state_of(name)
        if current is not None and current.held:
            raise Busy(f"study {name!r} is being trained; cancel it first")
        removal = delete(name, self.settings.storage, self.settings.out, lambda removal: True)
        self._audit(who, "delete", name, {"members": len(removal.runs)})
        return removal

    def _check_new(self, study: Study) -> None:
        """Raises UsageError if the ledger has another study of that name."""
        row = history.find(self.store, study.name)
        if row is None:
            return
        kind = row.config.get("kind", Search.kind)
        if kind != study.kind:
            raise UsageError(f"{study.name!r} is a study of `epsearch {kind}`; choose another name")
        old, new = history.read(row, study.storage, study.out).study.identity(), study.identity()
        if old != new:
            raise UsageError(str(conflict(study.name, old, new)))

    def _run_options(self, name: str) -> dict[str, Any]:
        """Returns options of the last submission that change no result, such as runner and workers."""
        earlier = self.store.queue.submission(name)
        options = None if earlier is None else earlier.given.get("options")
        names = {name for name, option in Search.options().items() if not option.identifies} - {*SERVER_SET, "name"}
        return {key: value for key, value in options.items() if key in names} if isinstance(options, dict) else {}


def _changes(earlier: Submission | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `changed`: option -> its values before and now, where a study was submitted before."""
    before = {} if earlier is None else earlier.given.get("options")
    if earlier is None or not isinstance(before, dict):
        return {}
    names = [name for name in {**before, **options} if before.get(name) != options.get(name)]
    return {"changed": {name: [before.get(name), options.get(name)] for name in names}}
