"""Commands on studies: train, cancel, watch, resume, delete, clean."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from epsearch.arguments import CHANGES, OUT, Commands, Json, Live, Out, Server, Storage, parameter
from epsearch.commands import printing
from epsearch.commands.printing import ask, listener, print_result, url_of, view
from epsearch.doors import door
from epsearch.doors.door import Door, Request, View
from epsearch.failures.errors import Cancelled, UsageError
from epsearch.status import CANCEL_SECONDS
from epsearch.study.description import Study
from epsearch.study.option import PLACE, RESUME
from epsearch.study.parsers import duration
from results.ledger.writers.states import FINISHED

Named = Annotated[str, typer.Argument(help="Name of the study, see `epsearch list`.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
RESUMES = tuple(
    name
    for name, option in Study.options().items()
    if option.scope in (RESUME, PLACE) and name not in ("out", "storage")
)
"""Options that may change when a study is resumed, except `out` and `storage`, which name the ledger."""


def train(side: Door, request: Request, quiet: bool, as_json: bool) -> int:
    """Trains what is missing, writes the report, and prints the outcome; asks before it resumes a cancelled study."""

    def run(resume: bool) -> View:
        with listener(quiet or as_json) as events:
            return side.run(request, events, resume)

    try:
        outcome = run(resume=False)
    except Cancelled as error:
        if not printing.at_a_terminal() or not ask(f"{error.study} was cancelled; take it up again?", yes=False):
            raise
        outcome = run(resume=True)
    return view(outcome, as_json)


def cancel(
    name: Named,
    deadline: Annotated[
        str, typer.Option(metavar="TIME", help="Kill it after this time, where it has not stopped by itself.")
    ] = f"{CANCEL_SECONDS:.0f}s",
    folder: Out = OUT.default,
    storage: Storage = None,
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Stop a study that is being trained, from any terminal; what is finished is kept."""
    seconds = duration(deadline, "deadline")
    with door(server, folder, storage) as side:
        status = side.cancel(name, seconds)
    text = status.note or f"study {name} is {status.state}"
    print_result(Text(text), {"name": name, "state": status.state}, as_json)


def watch(
    name: Named, folder: Out = OUT.default, storage: Storage = None, server: Server = None, as_json: Json = False
) -> int:
    """Follow a study that is being trained, from another terminal; exit status 0 if it is finished at the end."""
    from epsearch.terminal import lists

    with door(server, folder, storage) as side, listener(as_json) as events:
        status = side.watch(name, events)
    print_result(lists.final_state(status), lists.final_state_as_json(status), as_json)
    return int(status.state != FINISHED)


def resume(
    name: str | None, failed: bool, out: Path, storage: str | None, quiet: bool, as_json: bool, **options: Any
) -> int:
    """Train a stored study on, also one that was cancelled or has failed; its options need not be typed again."""
    if failed and name is not None:
        raise UsageError(f"--failed resumes all studies that have failed; leave out the name {name!r}")
    wait, live, server = (options.pop(option) for option in ("wait", "live", "server"))
    status = 0
    with door(server, out, storage) as side:
        for train_on in side.resume(name, failed, options, bool(wait), live or ()):
            with listener(quiet or as_json) as events:
                outcome = train_on(events)
            status = max(status, view(outcome, as_json))
    return status


def delete(
    name: Named,
    yes: Yes = False,
    folder: Out = OUT.default,
    storage: Storage = None,
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Delete a study from the ledger, with the members that no other study uses; its reports stay."""
    with door(server, folder, storage) as side:
        deleted = side.delete(name, lambda question: ask(question, yes))
    view(deleted, as_json)


def clean(
    older_than: Annotated[str, typer.Option(metavar="TIME", help="Age of what is removed, like 30d or 12h.")],
    yes: Yes = False,
    folder: Out = OUT.default,
    storage: Storage = None,
    as_json: Json = False,
) -> None:
    """Remove what nobody needs: members that no study has, old events, kept tasks. Studies are never removed."""
    from epsearch.control.removing import Removal, clean
    from epsearch.terminal import lists

    def sure(removal: Removal) -> bool:
        return ask(f"remove {lists.removal_text(removal)}?", yes)

    removal = clean(url_of(folder, storage), folder, duration(older_than, "older-than"), sure)
    empty = not (removal.runs or removal.events or removal.files)
    text = "there is nothing to remove" if empty else f"removed {lists.removal_text(removal)}"
    print_result(Text(text), lists.removal_as_json(removal), as_json, soft_wrap=True)


def _with_options(act: Callable[..., int], names: tuple[str, ...]) -> Callable[..., int]:
    """Returns a command with these options of studies."""
    annotations = {
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
        *(
            inspect.Parameter(name, keyword, default=defaults.get(name, False), annotation=annotations[name])
            for name in annotations
        ),
        *(parameter(Study.options()[name]) for name in names),
    ]

    def command(**values: Any) -> int:
        return act(**values)

    command.__doc__ = act.__doc__
    command.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in taken}
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
        app.command(name, here=CHANGES if act is clean else "")(act)
