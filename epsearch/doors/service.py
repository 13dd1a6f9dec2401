"""The door to a service: trains, reads and changes studies over HTTP; downloads their reports."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from epsearch.control.watching import follow
from epsearch.doors.client import Client, quote_name
from epsearch.doors.door import Request, View
from epsearch.events import Listener, Note, Warned
from epsearch.failures.errors import Cancelled, Interrupted, Unavailable, UsageError
from epsearch.status import StudyStatus, read_status
from epsearch.study import file
from results.labels import count_text
from results.ledger.writers.errors import StudyCancelled
from results.ledger.writers.events import Event
from results.ledger.writers.states import CANCELLED, CANCELLING, FAILED, FINISHED

Answer = TypeVar("Answer")
SERVER_SET = ("storage", "data_dir", "checkpoints", "address")
"""Options that a service chooses; --out says where a report is downloaded to."""
POLL_SECONDS = 0.5
AFTER_A_KILL = 15.0  # seconds beyond the deadline until a cancelled study is cancelled
WAIT_SECONDS = 300.0  # seconds to wait for a service that has answered before
PAUSE = 2.0  # seconds between two tries
OUT = Path("runs")


class ServiceDoor:
    """A service; out: folder of downloaded reports."""

    def __init__(self, client: Client, out: Path) -> None:
        self._client, self._out = client, out

    def list(self) -> list[StudyStatus]:
        """Returns the studies, oldest first."""
        return [read_status(row) for row in self._client.rows()]

    def show(self, name: str | None, why: bool = False) -> View:
        """Returns options and results of a study, or the reasons of its answer."""
        return self._view(f"/studies/{quote_name(name or self._newest())}/shown", why=why)

    def report(
        self, names: Sequence[str], figures: Sequence[str], with_printed: bool = False, metrics: Sequence[str] = ()
    ) -> View:
        """Downloads the page of a study, or of several side by side."""
        _refuse({"with_printed": with_printed, "metrics": metrics}, ("with_printed", "metrics"))
        several = list(names) or [self._newest()]
        page = self._download(several)
        if len(several) == 1:
            return self._view(f"/studies/{quote_name(several[0])}/outcome", path=str(page))
        return View(lambda width, colours: f"report  {page}\n", lambda: {"studies": several, "report": str(page)})

    def plan(self, request: Request, listener: Listener) -> View:
        """Plans a study on the machine of the service."""
        from epsearch.terminal.consoles import facts

        _refuse_local(request)
        if request.extend:
            raise UsageError("a service plans new studies alone; leave out --extend")
        plan = self._client.post("/plan", {"kind": request.kind.kind, **_options(request)})
        # A service of an older version has no brief plan.
        rows = plan["words"] if request.verbose else plan.get("brief", plan["words"])
        return View(lambda width, colours: facts(rows), lambda: plan)

    def run(self, request: Request, listener: Listener, resume: bool = False) -> View:
        """Submits a study, follows it, downloads its report. Ctrl-C ends the following, not the study."""
        _refuse_local(request)
        options = _options(request)
        name = str(options.get("name") or "")
        before = self._known_status(name) if name else None
        if before is not None and before.state == CANCELLED and not (resume or request.extend):
            raise Cancelled(str(StudyCancelled(name)), name)
        last = 0 if before is None else before.event
        if not request.extend:
            answer = self._client.post("/studies", {"kind": request.kind.kind, **options}, notify=request.notify)
        elif not name:
            raise UsageError("--extend needs --name, the study to extend")
        else:
            del options["name"]
            answer = self._client.post(f"/studies/{quote_name(name)}/extend", options, notify=request.notify)
        return self._follow(read_status(answer), last, listener)

    def resume(
        self, name: str | None, failed: bool, options: Mapping[str, Any], wait: bool, live: Sequence[str]
    ) -> Sequence[Callable[[Listener], View]]:
        """Submits stored studies again; the functions follow them."""
        _refuse({**options, "wait": wait, "live": live}, (*options, "wait", "live"))
        names = [row["name"] for row in self._client.rows(state=FAILED)] if failed else [name or self._newest()]
        if not names:
            raise UsageError(f"no study of {self._client.url} has failed")
        last = [self._last_event(name) for name in names]
        answers = [read_status(self._client.post(f"/studies/{quote_name(name)}/resume")) for name in names]
        return [partial(self._follow, *pair) for pair in zip(answers, last, strict=True)]

    def watch(self, name: str, listener: Listener, last: int = 0) -> StudyStatus:
        """Follows a study by its events; waits for a service that stops answering."""
        call = make_patient_caller(self._client.url, listener)

        def status() -> StudyStatus:
            return call(partial(self._status, name))

        def events(after: int) -> Sequence[Event]:
            return call(partial(self._events, name, after))

        return follow(status, events, listener, last)

    def cancel(self, name: str, deadline: float) -> StudyStatus:
        """Stops a study, and waits until it has ended."""
        answer = read_status(self._client.post(f"/studies/{quote_name(name)}/cancel", deadline=deadline))
        status, end = answer, time.monotonic() + deadline + AFTER_A_KILL
        while status.state == CANCELLING and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
            status = self._status(name)
        return answer if answer.note else status

    def delete(self, name: str, sure: Callable[[str], bool]) -> View:
        """Deletes a study of the service, with the members that no other study uses."""
        if self._out != OUT:
            raise UsageError("--out cannot be combined with --server: the service chooses it")
        state = self._status(name).state  # raises for an unknown study, before the question
        if not sure(f"delete study {name}, which is {state} at {self._client.url}, with its members?"):
            raise Interrupted
        answer = self._client.delete(f"/studies/{quote_name(name)}", confirm=name)
        stay = f" ({answer['shared']} that other studies use stay)" if answer["shared"] else ""
        text = f"deleted study {name} with {count_text(answer['members'], 'member')}{stay}\n"
        return View(lambda width, colours: text, lambda: answer)

    def _follow(self, answer: StudyStatus, last: int, listener: Listener) -> View:
        """Follows a submitted study from an event on, to its report."""
        from epsearch.terminal import lists

        listener(Note(answer.note or f"submitted {answer.name}; Ctrl-C ends the watching, not the study"))
        status = self.watch(answer.name, listener, last)
        if status.state == CANCELLED:
            raise Interrupted
        if status.state != FINISHED:
            return View(
                lambda width, colours: lists.final_state(status), lambda: lists.final_state_as_json(status), status=1
            )
        page = self._download([answer.name])
        return self._view(f"/studies/{quote_name(answer.name)}/outcome", path=str(page), run=answer.state != FINISHED)

    def _status(self, name: str) -> StudyStatus:
        return read_status(self._client.get(f"/studies/{quote_name(name)}/standing"))

    def _events(self, name: str, after: int) -> Sequence[Event]:
        return [Event(**row, token=0) for row in self._client.get(f"/studies/{quote_name(name)}/log", after=after)]

    def _newest(self) -> str:
        if not (rows := self._client.get("/studies", per_page=1)["studies"]):
            url = self._client.url
            raise UsageError(f"no study at {url} yet; `epsearch run --server {url}` makes one")
        return str(rows[0]["name"])

    def _known_status(self, name: str) -> StudyStatus | None:
        """Returns the status of a study, None for a new one."""
        try:
            return self._status(name)
        except UsageError:  # any other error is raised by the next call
            return None

    def _last_event(self, name: str) -> int:
        """Returns the last event of a study, 0 for a new one."""
        status = self._known_status(name)
        return 0 if status is None else status.event

    def _download(self, names: Sequence[str]) -> Path:
        """Writes the page of a study, or of several side by side, into the folder. Raises UsageError."""
        from epsearch.api import SIDE_BY_SIDE
        from epsearch.session.session import make_folder
        from results.files import write_atomically

        if len(names) == 1:
            page, folder = self._client.content(f"/studies/{quote_name(names[0])}/report"), self._out / names[0]
        else:
            page, folder = self._client.content("/compare", study=[*names]), self._out / SIDE_BY_SIDE
        make_folder(folder)
        return write_atomically(folder / "report.html", page)

    def _view(self, route: str, **query: Any) -> View:
        """Returns the view of a route: text for a terminal, or JSON."""
        return View(
            lambda width, colours: self._client.text(route, width=width, colours=colours, **query),
            lambda: self._client.get(route, format="json", **query),
        )


def make_patient_caller(url: str, listener: Listener, pause: float = PAUSE) -> Callable[[Callable[[], Answer]], Answer]:
    """Returns a function that calls others, and retries if a service that has answered before does not answer."""
    answered = False

    def call(request: Callable[[], Answer]) -> Answer:
        nonlocal answered
        deadline, failed = time.monotonic() + WAIT_SECONDS, False
        while True:
            try:
                answer = request()
            except Unavailable as error:
                if not answered or time.monotonic() > deadline:  # before the first answer, the URL may be wrong
                    raise
                if not failed:
                    listener(Warned(f"{error}; trying again for up to {WAIT_SECONDS:.0f} s"))
                failed = True
                time.sleep(pause)
                continue
            if failed:
                listener(Note(f"{url} answers again"))
            answered = True
            return answer

    return call


def _options(request: Request) -> dict[str, Any]:
    """Returns the options of a request and its file as JSON-able values."""
    options = {} if request.config is None else file.read(request.config)
    options |= {name: value for name, value in request.options.items() if value is not None}
    return {name: _plain(value) for name, value in options.items() if name != "out"}


def _plain(value: Any) -> Any:
    """Returns a JSON-able value: tuples as lists, paths as text."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _refuse_local(request: Request) -> None:
    local = {name: getattr(request, name) for name in ("live", "wait", "with_printed", "metrics")}
    _refuse({**request.options, **local}, (*local, *SERVER_SET))


def _refuse(values: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raises UsageError for options that a service chooses."""
    for name in names:
        if values.get(name):
            raise UsageError(f"--{name.replace('_', '-')} cannot be combined with --server: the service chooses it")
