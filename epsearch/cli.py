"""The command line: every command parses, calls one function of a room below, and prints."""

import inspect
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.text import Text
from typer.main import get_command

from epsearch.arguments import (
    DATA,
    DATASET,
    OUT,
    Commands,
    DataDir,
    Dataset,
    Json,
    Name,
    Names,
    Out,
    Server,
    Storage,
    besides,
    joined,
    parameter,
)
from epsearch.commands import checking, publishing, remote, service, stored, studies
from epsearch.commands.printing import err, listener, out, printed, url_of
from epsearch.failures.lines import answered
from epsearch.ledger.location import kept_within
from epsearch.study.description import Study
from epsearch.study.kinds import KINDS, Comparison, MemoryStudy, Search
from epsearch.study.limits import SIDE
from epsearch.study.parsers import some_of
from epsearch.terminal.consoles import facts
from results.figures import FORMATS

app = Commands(
    name="epsearch",
    help="Finds the soft constraint ε of ε-SOFT-GEM, a continual-learning method, and compares it with others.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # whatever is raised becomes one line: failures/lines.py
)


def _print_version(wanted: bool) -> None:
    if wanted:
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
    sys.exit(answered(run))


def run() -> object:
    """Runs the command line; its exit status, or None for 0. Raises what `failures.lines` explains."""
    command = get_command(app)
    try:
        # Not through its `main`, which takes Ctrl-C and a closed pipe for the end, without a word.
        with kept_within(sys.argv), command.make_context("epsearch", joined(sys.argv[1:])) as context:
            return command.invoke(context)
    except typer.Exit as end:
        return end.exit_code


TRAINING: dict[str, str] = {
    Search.kind: "Search ε, or another hyperparameter, evaluate the choice on the remaining tasks, write a report.",
    Comparison.kind: "Train every method on the evaluation tasks and set the paper's table beside the result.",
    MemoryStudy.kind: "Train methods with an episodic memory at several sizes of it, beside the paper's memory tables.",
}


def _command(kind: type[Study], act: Callable[..., None]) -> Callable[..., int]:
    """A command that takes a study: the options of its description, and those of the output.

    kind: whose options it has; act: called with the study that they make, and with the options that remain.
    """

    def command(**values: Any) -> int:
        from epsearch.preparation.build import build  # late, as in all commands: `--help` need not wait for it

        given, config = {name: values.pop(name) for name in kind.options()}, values.pop("config")
        if (server := values.pop("server", None)) is not None and not values["print_config"]:
            extend, quiet, as_json = bool(values.get("extend")), values["quiet"], values["as_json"]
            remote.only_here({**given, **values})
            if act is _plan:
                return remote.plan(server, given, config, extend, as_json)
            return remote.run(server, kind.kind, given, config, extend, quiet, as_json)
        study = _grown(given, config) if values.get("extend") else build(kind, given, config)
        if values.pop("print_config"):
            sys.stdout.write(study.to_yaml())
        else:
            act(study, **values)
        return 0

    others = inspect.signature(besides).parameters.items()
    taken = {*inspect.signature(act).parameters, "config", "print_config"} - ({"extend"} if not kind.grows else set())
    taken |= {"server"}
    own = [one for name, one in others if name in taken]
    signature = inspect.Signature([*map(parameter, kind.options().values()), *own])
    # Typer reads both: the order and the defaults from the one, the types from the other.
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    return command


def _grown(given: dict[str, Any], config: Path | None) -> Study:
    """The stored search that is to be extended, with other options."""
    from epsearch import api

    return api.grown(given, config)


def _plan(study: Search, quiet: bool, as_json: bool, extend: bool = False) -> None:
    """Prints what a run would take."""
    from epsearch.session import session
    from epsearch.session.plan_text import in_words

    with listener(quiet or as_json) as events:
        ahead = session.plan(study, events, extend)
    words = in_words(ahead)
    printed(facts(words), ahead.as_json() | {"words": words}, as_json)


for _kind, _help in TRAINING.items():
    app.command(_kind, help=_help)(_command(KINDS[_kind], studies.train))
app.command("plan", help="What a run with these options would take; nothing is trained.")(_command(Search, _plan))


@app.command()
def report(
    names: Names = None,
    figures: Annotated[
        str, typer.Option(metavar=",".join(FORMATS), help="Also write each figure for a paper, in these formats.")
    ] = "",
    folder: Out = OUT.default,
    storage: Storage = None,
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Write the report of a study again, from the ledger alone; of several searches, one that compares them."""
    if server is not None:
        remote.report(server, names, folder, as_json)
        return
    from epsearch import api
    from epsearch.terminal import outcome

    ledger, formats = url_of(folder, storage), some_of(figures, "figures", FORMATS) if figures else ()
    if names is not None and len(names) > 1:
        several, page = api.side_by_side(names, ledger, folder, formats)
        printed(outcome.side_by_side(several, page), outcome.side_by_side_as_json(several, page), as_json)
        return
    result = api.report(names[0] if names else None, ledger, folder, formats)
    printed(outcome.shown(result), outcome.as_json(result), as_json)


@app.command("list")
def list_(folder: Out = OUT.default, storage: Storage = None, server: Server = None, as_json: Json = False) -> None:
    """List the studies of a ledger and how far they are."""
    if server is not None:
        remote.list_(server, as_json)
        return
    from epsearch.findings import listing
    from epsearch.terminal import lists

    rows = listing.list_studies(url_of(folder, storage), folder)
    printed(lists.studies(rows), [row._asdict() for row in rows], as_json, wide=True)


@app.command("show")
def show_(
    name: Name = None, folder: Out = OUT.default, storage: Storage = None, server: Server = None, as_json: Json = False
) -> None:
    """Show a study: its options, how far it is, what it has found. Nothing is written."""
    if server is not None:
        remote.show(server, name, as_json)
        return
    from epsearch.findings import listing
    from epsearch.terminal import lists

    loop = listing.load(name, url_of(folder, storage), folder)
    printed(lists.study(loop), lists.study_as_json(loop), as_json)


studies.add_to(app)


stored.add_to(app)
checking.add_to(app)
service.add_to(app)
publishing.add_to(app)

db = Commands(help="Bring a ledger of an older epsearch up to date.", add_completion=False)
app.add_typer(db, name="db")


@db.command(here="changes")
def upgrade(folder: Out = OUT.default, storage: Storage = None, as_json: Json = False) -> None:
    """Bring a ledger up to date: its tables, and what `list` shows; an SQLite file is copied beside itself first."""
    from epsearch.findings.listing import upgrade

    upgraded = upgrade(url_of(folder, storage), folder, partial(err.print, soft_wrap=True))
    done = f"; summaries made for `epsearch list`: {upgraded.summed_up}" if upgraded.summed_up else ""
    shown = Text(f"the ledger {upgraded.ledger} has schema version {upgraded.version}: it is up to date{done}")
    printed(shown, upgraded._asdict(), as_json, soft_wrap=True)


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
    printed(lists.datasets(rows), [row._asdict() for row in rows], as_json)


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
    printed(lists.prepared(prepared), prepared._asdict(), as_json)


@datasets.command()
def check(dataset: Dataset, data_dir: DataDir = DATA.default, as_json: Json = False) -> int:
    """Count a dataset's images, and name those that cannot be decoded; exit status 1 when something is wrong."""
    from epsearch.preparation.images import check
    from epsearch.terminal import lists

    with listener(as_json) as events:
        inspected = check(DATASET.parse(dataset), data_dir, events)
    printed(lists.inspected(inspected), inspected._asdict(), as_json)
    return int(bool(inspected.corrupt or inspected.differences))


@app.command()
def plugins(as_json: Json = False) -> None:
    """List what installed packages provide: methods, networks, streams, strategies, metrics, figures, trainers."""
    from epsearch.plugins.naming import everything
    from epsearch.terminal import lists

    rows = everything()
    printed(lists.plugins(rows), [row._asdict() for row in rows], as_json)


@app.command()
def doctor(folder: Out = OUT.default, data_dir: DataDir = DATA.default, as_json: Json = False) -> int:
    """Check versions, GPU, torchvision, Ray and disk; exit status 1 when something is broken."""
    from epsearch.doctor import diagnose
    from epsearch.terminal import lists

    checks = diagnose(folder, data_dir)
    printed(lists.checks(checks), [check._asdict() for check in checks], as_json)
    return int(any(check.ok is False for check in checks))
