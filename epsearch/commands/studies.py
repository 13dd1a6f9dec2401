"""Commands that train, and those for studies that are there: cancel, watch, resume, delete, clean."""

import inspect
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from epsearch.arguments import OUT, Commands, Json, Live, Out, Server, Storage, parameter
from epsearch.commands import printing, remote
from epsearch.commands.printing import ask, listener, printed, url_of
from epsearch.failures.errors import Cancelled, UsageError
from epsearch.study.description import Study
from epsearch.study.option import PLACE, RESUME
from epsearch.study.parsers import duration
from results.labels import count_text

if TYPE_CHECKING:
    from epsearch.events import Listener

Named = Annotated[str, typer.Argument(help="Name of the study, see `epsearch list`.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
RESUMES = tuple(
    name for name, one in Study.options().items() if one.scope in (RESUME, PLACE) and name not in ("out", "storage")
)
"""Options that say where and how a stored study runs; the ledger is where the study is."""


def train(
    study: Study,
    quiet: bool,
    as_json: bool,
    extend: bool = False,
    wait: bool = False,
    resume: bool = False,
    live: Sequence[str] | None = None,
) -> None:
    """Trains what is missing, writes the report, and prints the outcome; a cancelled study is asked about."""
    from epsearch import api
    from epsearch.events import together, warner

    def run(resume: bool) -> "api.Outcome":
        with listener(quiet or as_json) as terminal:
            with ExitStack() as stack:
                loggers = [stack.enter_context(api.live(one, warner(terminal))) for one in live or ()]
                result = api.run(study, together(terminal, *loggers), extend, wait, resume)
            for one in live or ():
                _publish_rest(result.study, one, terminal)
            return result

    try:
        result = run(resume)
    except Cancelled as error:
        if not printing.at_a_terminal() or not ask(f"{error.study} was cancelled; take it up again?", yes=False):
            raise
        result = run(True)
    from epsearch.terminal import outcome  # imports pandas, which can wait

    printed(outcome.shown(result), outcome.as_json(result), as_json)


def _publish_rest(study: Study, target: str, terminal: "Listener") -> None:
    """Publishes means, evaluation and report. The training has ended well, whatever fails here."""
    from epsearch import api
    from epsearch.events import Warned

    tool, _, where = target.partition(":")
    try:
        api.publish(study.name, tool, where, study.out, study.storage)
    except UsageError as error:
        terminal(Warned(str(error)))


def cancel(
    name: Named,
    deadline: Annotated[
        str, typer.Option(metavar="TIME", help="Kill it after this time, where it has not stopped by itself.")
    ] = "30s",
    folder: Out = OUT.default,
    storage: Storage = None,
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Stop a study that is being trained, from any terminal; what is finished is kept."""
    from epsearch.control.cancelling import cancel

    seconds = duration(deadline, "deadline")
    if server is not None:
        remote.cancel(server, name, seconds, as_json)
        return
    there = cancel(name, url_of(folder, storage), seconds)
    printed(Text(f"study {name} is {there.state}"), {"name": name, "state": there.state}, as_json)


def watch(
    name: Named, folder: Out = OUT.default, storage: Storage = None, server: Server = None, as_json: Json = False
) -> int:
    """Follow a study that is being trained, from another terminal; exit status 0 if it is finished at the end."""
    if server is not None:
        return remote.watch(server, name, as_json)
    from epsearch.control.watching import watch

    with listener(as_json) as events:
        seen = watch(name, url_of(folder, storage), events)
    return printing.followed(name, seen, as_json)


def resume(
    name: str | None, failed: bool, out: Path, storage: str | None, quiet: bool, as_json: bool, **given: Any
) -> int:
    """Train a stored study on, also one that was cancelled or has failed; its options need not be typed again."""
    if (server := given.pop("server")) is not None:
        remote.only_here(given, RESUMES)
        return remote.resume(server, name, failed, out, quiet, as_json)
    from epsearch.control import resuming

    ledger = url_of(out, storage)
    if failed and name is not None:
        raise UsageError(f"--failed resumes all studies that have failed; leave out the name {name!r}")
    for one in resuming.failed(ledger) if failed else [name]:
        wait = bool(given.get("wait"))
        placed = {option: given[option] for option in RESUMES}
        train(resuming.stored(one, ledger, out, placed), quiet, as_json, wait=wait, resume=True, live=given["live"])
    return 0


def delete(
    name: Named,
    yes: Yes = False,
    folder: Out = OUT.default,
    storage: Storage = None,
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Delete a study from the ledger, with the members that no other study uses; its reports stay."""
    if server is not None:
        remote.only_here({"storage": storage, "out": folder != OUT.default}, ("storage", "out"))
        remote.delete(server, name, lambda question: ask(question, yes), as_json)
        return
    from epsearch.control.removing import Removal, delete

    def sure(removal: Removal) -> bool:
        return ask(f"delete study {name} with {_removed(removal)}?", yes)

    removal = delete(name, url_of(folder, storage), folder, sure)
    printed(Text(f"deleted study {name} with {_removed(removal)}"), _as_json(removal), as_json, soft_wrap=True)


def clean(
    older_than: Annotated[str, typer.Option(metavar="TIME", help="Age of what is removed, like 30d or 12h.")],
    yes: Yes = False,
    folder: Out = OUT.default,
    storage: Storage = None,
    as_json: Json = False,
) -> None:
    """Remove what nobody needs: members that no study has, old events, kept tasks. Studies are never removed."""
    from epsearch.control.removing import Removal, clean

    def sure(removal: Removal) -> bool:
        return ask(f"remove {_removed(removal)}?", yes)

    removal = clean(url_of(folder, storage), folder, duration(older_than, "older-than"), sure)
    empty = not (removal.runs or removal.events or removal.files)
    text = "there is nothing to remove" if empty else f"removed {_removed(removal)}"
    printed(Text(text), _as_json(removal), as_json, soft_wrap=True)


def _removed(removal: Any) -> str:
    """What a removal takes, in words."""
    parts = [count_text(len(removal.runs), "member")]
    if not removal.studies:
        parts += [count_text(removal.events, "event"), count_text(len(removal.files), "kept task")]
    text = ", ".join(parts)
    if removal.shared:
        text += f" ({removal.shared} that other studies use stay)"
    if removal.unreadable:
        text += f" (all members stay, as {', '.join(removal.unreadable)} cannot be read and may use them)"
    return text


def _as_json(removal: Any) -> dict[str, Any]:
    return asdict(removal) | {"runs": sorted(removal.runs), "files": sorted(map(str, removal.files))}


def _with_options(act: Callable[..., int], names: tuple[str, ...]) -> Callable[..., int]:
    """The command with some of the options of studies, for `RESUMES`."""
    own = {
        "name": Annotated[
            str | None, typer.Argument(help="Name of the study, see `epsearch list`. \\[default: the newest]")
        ],
        "failed": Annotated[bool, typer.Option("--failed", help="All studies that have failed, one after the other.")],
        "wait": Annotated[bool, typer.Option("--wait", help="Wait for the end of another run of the study.")],
        "out": Out,
        "storage": Storage,
        "server": Server,
        "quiet": Annotated[bool, typer.Option("--quiet", help="No progress, only the summary.")],
        "as_json": Json,
        "live": Live,
    }
    defaults = {"name": None, "storage": None, "server": None, "out": OUT.default, "live": None}
    keyword = inspect.Parameter.KEYWORD_ONLY
    taken = [
        *(inspect.Parameter(one, keyword, default=defaults.get(one, False), annotation=own[one]) for one in own),
        *(parameter(Study.options()[one]) for one in names),
    ]

    def command(**values: Any) -> int:
        return act(**values)

    command.__doc__ = act.__doc__
    command.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in taken}
    return command


COMMANDS: dict[str, Callable[..., Any]] = {
    "cancel": cancel,
    "watch": watch,
    "resume": _with_options(resume, RESUMES),
    "delete": delete,
    "clean": clean,
}


def add_to(app: Commands) -> None:
    """Adds the commands."""
    for name, act in COMMANDS.items():
        app.command(name, here="changes" if act is clean else "")(act)
