"""The command line: each command parses, calls one function, and prints."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from importlib.metadata import version
from typing import Annotated

import typer
from rich.markup import escape
from rich.text import Text
from typer.main import get_command
from typer.models import CommandInfo, TyperInfo

from epsearch.arguments import (
    CHANGES,
    DATA,
    DATASET,
    OUT,
    Commands,
    DataDir,
    Dataset,
    Json,
    Metrics,
    Name,
    Names,
    Out,
    Server,
    Storage,
    WithPrinted,
    join_arguments,
    name_of,
)
from epsearch.commands import checking, publishing, reproducing, reuse, service, slurm, studies, training
from epsearch.commands.printing import err, json_alone, listener, out, print_result, url_of, view
from epsearch.doors import door
from epsearch.failures.lines import run_command
from epsearch.ledger.location import hide_storage
from epsearch.study.limits import SIDE
from epsearch.study.parsers import some_of, words
from results.figures import FORMATS

app = Commands(
    name="epsearch",
    help="Finds the soft constraint ε of ε-SOFT-GEM, a continual-learning method, and compares it with others.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # every error becomes one line: failures/lines.py
)


def _print_version(required: bool) -> None:
    if required:
        out.print(f"epsearch {version('epsearch')}")
        raise typer.Exit


@app.callback()
def _every_command(
    version_: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """The options before every command."""


def main() -> None:
    """Runs the command line and ends with its status, as `python -m epsearch` does, which handles signals besides."""
    sys.exit(run_command(run))


def run() -> object:
    """Runs the command line; returns the exit status, or None for 0. Raises errors for `failures.lines`."""
    command = get_command(app.only(sys.argv[1:2]))
    try:
        # Not through its `main`, which ends silently after Ctrl-C or with a closed pipe.
        alone = json_alone() if "--json" in sys.argv else nullcontext()
        # All commands go along as `obj`: `slurm` reads the line of another one.
        with (
            alone,
            hide_storage(sys.argv),
            command.make_context("epsearch", join_arguments(sys.argv[1:]), obj=app) as context,
        ):
            return command.invoke(context)
    except typer.Exit as end:
        return end.exit_code


training.add_to(app)
reproducing.add_to(app)


@app.command()
def report(  # noqa: PLR0913  an option each
    names: Names = None,
    figures: Annotated[
        str, typer.Option(metavar=",".join(FORMATS), help="Also write each figure for a paper, in these formats.")
    ] = "",
    with_printed: WithPrinted = False,
    metrics: Metrics = "",
    folder: Out = OUT.default,
    storage: Storage = None,
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Write the report of a study again, from the ledger alone; of several searches, one that compares them."""
    formats = some_of(figures, "figures", FORMATS) if figures else ()
    with door(server, folder, storage) as side:
        view(side.report(names or [], formats, with_printed, words(metrics)), as_json)


@app.command("list")
def list_(folder: Out = OUT.default, storage: Storage = None, server: Server = None, as_json: Json = False) -> None:
    """List the studies of a ledger and how far they are."""
    from epsearch.terminal import lists

    with door(server, folder, storage) as side:
        rows = side.list()
    print_result(lists.studies(rows), [*map(lists.as_json, rows)], as_json, wide=True)


@app.command("show")
def show_(
    name: Name = None,
    why: Annotated[bool, typer.Option("--why", help="The reasons of its answer, every metric and caution.")] = False,
    folder: Out = OUT.default,
    storage: Storage = None,
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Show a study: its options, its progress and its results. Nothing is written."""
    with door(server, folder, storage) as side:
        view(side.show(name, why), as_json)


studies.add_to(app)


reuse.add_to(app)
checking.add_to(app)
service.add_to(app)
publishing.add_to(app)
slurm.add_to(app)

db = Commands(help="Bring a ledger of an older epsearch up to date.", add_completion=False)
app.add_typer(db, name="db")


@db.command(here=CHANGES)
def upgrade(folder: Out = OUT.default, storage: Storage = None, as_json: Json = False) -> None:
    """Bring a ledger up to date: its tables, and what `list` shows; an SQLite file is copied beside itself first."""
    from epsearch.findings.listing import upgrade

    upgraded = upgrade(url_of(folder, storage), folder, partial(err.print, soft_wrap=True))
    done = f"; summaries made for `epsearch list`: {upgraded['summed_up']}" if upgraded["summed_up"] else ""
    text = Text(f"the ledger {upgraded['ledger']} has schema version {upgraded['version']}: it is up to date{done}")
    print_result(text, upgraded, as_json, soft_wrap=True)


datasets = Commands(help="List the known datasets; decode the images of one, or check them.", add_completion=False)
app.add_typer(datasets, name="datasets")


@datasets.callback(invoke_without_command=True)
def list_datasets(context: typer.Context, data_dir: DataDir = DATA.default, as_json: Json = False) -> None:
    """List the known datasets, which are present, and where; or decode or check the images of one."""
    if context.invoked_subcommand is not None:
        return
    from epsearch import api
    from epsearch.terminal import lists

    rows = api.list_datasets(data_dir)
    print_result(lists.datasets(rows), rows, as_json)


@datasets.command()
def prepare(
    dataset: Dataset,
    data_dir: DataDir = DATA.default,
    image_size: Annotated[
        int | None, typer.Option(min=1, max=SIDE, help=escape("Side in pixels. [default: the dataset's]"))
    ] = None,
    skip_corrupt: Annotated[bool, typer.Option("--skip-corrupt", help="Leave out what cannot be decoded.")] = False,
    as_json: Json = False,
) -> None:
    """Decode the images of a dataset once, into the cache from which every run takes them."""
    from epsearch.preparation.images import prepare
    from epsearch.terminal import lists

    with listener(as_json) as events:
        prepared = prepare(DATASET.parse(dataset), data_dir, image_size, skip_corrupt, events)
    print_result(lists.decoded_images(prepared), prepared._asdict(), as_json)


@datasets.command()
def check(dataset: Dataset, data_dir: DataDir = DATA.default, as_json: Json = False) -> int:
    """Count a dataset's images, and name those that cannot be decoded; exit status 1 when something is wrong."""
    from epsearch.preparation.images import check
    from epsearch.terminal import lists

    with listener(as_json) as events:
        inspected = check(DATASET.parse(dataset), data_dir, events)
    print_result(lists.inspection_text(inspected), inspected._asdict(), as_json)
    return int(bool(inspected.corrupt or inspected.differences))


@app.command()
def plugins(as_json: Json = False) -> None:
    """List the plug-ins that installed packages provide: methods, networks, streams, strategies and all other kinds."""
    from epsearch.plugins.names import all_installed
    from epsearch.terminal import lists

    rows = all_installed()
    print_result(lists.plugins(rows), [row._asdict() for row in rows], as_json)


@app.command()
def doctor(folder: Out = OUT.default, data_dir: DataDir = DATA.default, as_json: Json = False) -> int:
    """Check versions, GPU, torchvision, Ray and disk; exit status 1 when something is broken."""
    from epsearch.doctor import diagnose
    from epsearch.terminal import lists

    checks = diagnose(folder, data_dir)
    print_result(lists.checks(checks), checks, as_json)
    return int(any(check["ok"] is False for check in checks))


PANELS = {
    "Search": ("run", "compare", "memory", "protocols", "reproduce", "plan", "resume", "watch", "cancel", "slurm"),
    "Manage": ("list", "show", "report", "train", "delete", "clean", "db", "datasets"),
    "Trust": ("verify", "check", "doctor"),
    "Share": ("export", "import", "publish", "serve", "token", "plugins"),
}
"""Groups of commands in the help."""


def _group(commands: Sequence[CommandInfo | TyperInfo]) -> None:
    """Puts commands into their groups."""
    groups = {command: panel for panel, names in PANELS.items() for command in names}
    for command in commands:
        command.rich_help_panel = groups[name_of(command)]


_group([*app.registered_commands, *app.registered_groups])
