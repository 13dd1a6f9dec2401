"""Commands as they are with --server: the same words and output, of studies that a service has."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from epsearch.commands import printing
from epsearch.commands.printing import listener, printed
from epsearch.failures.errors import Interrupted, UsageError
from results.labels import count_text
from results.ledger.writers.states import CANCELLED, CANCELLING, FAILED, FINISHED

if TYPE_CHECKING:
    from epsearch.remote.client import Client

OURS = ("storage", "data_dir", "checkpoints", "address")
"""Options that a service has chosen; --out says where a report is downloaded to."""
POLL_SECONDS = 0.5
AFTER_A_KILL = 15.0  # seconds beyond the deadline until a cancelled study is cancelled


def run(
    server: str, kind: str, given: Mapping[str, Any], config: Path | None, extend: bool, quiet: bool, as_json: bool
) -> int:
    """Submits a study, follows it, downloads its report and prints its outcome; the exit status.

    given: options as the command line has them, None where they are not given. Ctrl-C ends the following alone.
    """
    from epsearch.remote.client import Client, quoted

    options = _options(given, config)
    with Client(server) as client:
        name, last = str(options.get("name") or ""), 0
        if name:
            last = _last(client, name)
        if extend:
            if not name:
                raise UsageError("extend needs --name, the study that is to grow")
            answer = client.post(f"/studies/{quoted(name)}/extend", {k: v for k, v in options.items() if k != "name"})
        else:
            answer = client.post("/studies", {"kind": kind, **options})
        return _follow(client, answer, Path(given.get("out") or "runs"), quiet, as_json, last)


def plan(server: str, kind: str, given: Mapping[str, Any], config: Path | None, extend: bool, as_json: bool) -> int:
    """Prints what a study would take there, as the service measures it; the exit status. Arguments as of `run`."""
    from epsearch.remote.client import Client
    from epsearch.terminal.consoles import facts

    if extend:
        raise UsageError("a service plans new studies alone; leave out --extend")
    with Client(server) as client:
        ahead = client.post("/plan", {"kind": kind, **_options(given, config)})
    printed(facts(ahead["words"]), ahead, as_json)
    return 0


def resume(server: str, name: str | None, failed: bool, folder: Path, quiet: bool, as_json: bool) -> int:
    """Resumes a study, or all that have failed, one after another; the exit status."""
    from epsearch.remote.client import Client, quoted

    if failed and name is not None:
        raise UsageError(f"--failed resumes all studies that have failed; leave out the name {name!r}")
    status = 0
    with Client(server) as client:
        names = [one.name for one in client.listed(state=FAILED)] if failed else [name or client.newest()]
        if not names:
            raise UsageError(f"no study of {server} has failed")
        before = {one: _last(client, one) for one in names}
        answers = [client.post(f"/studies/{quoted(one)}/resume") for one in names]
        for answer in answers:
            status = max(status, _follow(client, answer, folder, quiet, as_json, before[answer["name"]]))
    return status


def _follow(client: "Client", answer: Mapping[str, Any], folder: Path, quiet: bool, as_json: bool, last: int) -> int:
    """Follows a study from an event on; answer: of the service, to whom it was submitted."""
    from epsearch.control.watching import follow
    from epsearch.remote.client import quoted
    from epsearch.remote.following import Followed

    name = answer["name"]
    if not quiet and not as_json:
        told = answer["note"] or f"submitted {name}; Ctrl-C ends the watching, not the study"
        printing.err.print(told, soft_wrap=True, highlight=False)
    with listener(quiet or as_json) as events:
        seen = follow(Followed(client, name, events), events, last)
    if seen.state != FINISHED:
        if seen.state == CANCELLED:
            raise Interrupted
        return printing.followed(name, seen, as_json)
    page = download(client, [name], folder)
    _outcome(client, f"/studies/{quoted(name)}/outcome", as_json, path=str(page), run=answer["state"] != FINISHED)
    return 0


def report(server: str, names: Sequence[str] | None, folder: Path, as_json: bool) -> None:
    """Downloads the report of a study, or the page that sets several side by side, and prints what it says."""
    from epsearch.remote.client import Client, quoted

    with Client(server) as client:
        several = list(names or [client.newest()])
        page = download(client, several, folder)
        if len(several) > 1:
            printed(Text(f"report  {page}"), {"studies": several, "report": str(page)}, as_json, soft_wrap=True)
            return
        _outcome(client, f"/studies/{quoted(several[0])}/outcome", as_json, path=str(page))


def download(client: "Client", names: Sequence[str], folder: Path) -> Path:
    """Writes the page of a study, or of several side by side, into the folder; its path. Raises UsageError."""
    from epsearch.api import SIDE_BY_SIDE
    from epsearch.remote.client import quoted
    from epsearch.session.session import make_folder
    from results.files import write_atomically

    alone = len(names) == 1
    page = (
        client.content(f"/studies/{quoted(names[0])}/report") if alone else client.content("/compare", study=[*names])
    )
    place = folder / (names[0] if alone else SIDE_BY_SIDE)
    make_folder(place)
    return write_atomically(place / "report.html", page)


def list_(server: str, as_json: bool) -> None:
    """Prints the studies of a service."""
    from epsearch.remote.client import Client
    from epsearch.terminal import lists

    with Client(server) as client:
        rows = client.listed()
    printed(lists.studies(rows), [row._asdict() for row in rows], as_json, wide=True)


def show(server: str, name: str | None, as_json: bool) -> None:
    """Prints what is known of a study of a service."""
    from epsearch.remote.client import Client, quoted

    with Client(server) as client:
        _outcome(client, f"/studies/{quoted(name or client.newest())}/shown", as_json)


def watch(server: str, name: str, as_json: bool) -> int:
    """Follows a study of a service to its end; the exit status."""
    from epsearch.control.watching import follow
    from epsearch.remote.client import Client
    from epsearch.remote.following import Followed

    with Client(server) as client, listener(as_json) as events:
        seen = follow(Followed(client, name, events), events)
    return printing.followed(name, seen, as_json)


def cancel(server: str, name: str, deadline: float, as_json: bool) -> None:
    """Cancels a study of a service, and waits until it is."""
    from epsearch.remote.client import Client, quoted

    with Client(server) as client:
        answer = client.post(f"/studies/{quoted(name)}/cancel", deadline=deadline)
        state, end = answer["state"], time.monotonic() + deadline + AFTER_A_KILL
        while state == CANCELLING and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
            state = client.get(f"/studies/{quoted(name)}/standing")["state"]
    told = answer["note"] or f"study {name} is {state}"
    printed(Text(told), {"name": name, "state": state}, as_json)


def delete(server: str, name: str, sure: Callable[[str], bool], as_json: bool) -> None:
    """Deletes a study of a service; sure: is asked a question before. Raises Interrupted where nobody is sure."""
    from epsearch.remote.client import Client, quoted

    with Client(server) as client:
        path = f"/studies/{quoted(name)}"
        there = client.get(f"{path}/standing")  # that it is there, before anybody is asked
        if not sure(f"delete study {name}, which is {there['state']} at {client.url}, with its members?"):
            raise Interrupted
        removed = client.delete(path, confirm=name)
    stay = f" ({removed['shared']} that other studies use stay)" if removed["shared"] else ""
    text = f"deleted study {name} with {count_text(removed['members'], 'member')}{stay}"
    printed(Text(text), removed, as_json, soft_wrap=True)


def _last(client: "Client", name: str) -> int:
    """The last event of a study that may not be there yet."""
    from epsearch.remote.client import quoted

    try:
        return int(client.get(f"/studies/{quoted(name)}/standing")["event"])
    except UsageError:  # whatever else is wrong, the next call says
        return 0


def _outcome(client: "Client", route: str, as_json: bool, **query: Any) -> None:
    """Prints a text that the service has made for a terminal like ours, or JSON."""
    if as_json:
        printed("", client.get(route, format="json", **query), as_json)
    else:
        sys.stdout.write(
            client.text(
                route, width=printing.out.width, colours=printing.out.is_terminal and not printing.out.no_color, **query
            )
        )


def _options(given: Mapping[str, Any], config: Path | None) -> dict[str, Any]:
    """Options of a command and its file as a service takes them."""
    from epsearch.study import file

    written = {} if config is None else file.read(config)
    return {name: _plain(value) for name, value in (written | _given(given)).items() if name != "out"}


def _given(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _plain(value: Any) -> Any:
    """A value as JSON has it: tuples as lists, paths as text."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def only_here(given: Mapping[str, Any], names: Sequence[str] = OURS) -> None:
    """Raises UsageError for options that say what this machine does, where a service has chosen that for itself."""
    for name in ("live", "wait", *names):
        if given.get(name):
            raise UsageError(f"--{name.replace('_', '-')} cannot be combined with --server: the service chooses it")
