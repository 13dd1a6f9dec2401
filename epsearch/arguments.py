"""Options of studies as arguments of the command line."""

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo, TyperInfo

from epsearch.failures.crash_report import SERVER
from epsearch.failures.errors import UsageError
from epsearch.study.description import Study
from epsearch.study.kinds import KINDS, Comparison, Search
from epsearch.study.option import BASIC, DATASETS, OUTPUT, RUNS, SEARCHED, Option

ESSENTIAL = ("extend", "table", "help", "help_all")
"""Options besides those of a study that its short help has, with the study's BASIC ones."""
COMPARED = {"plan": Search.kind, "reproduce": Comparison.kind}
"""Commands that take the options of another command."""
WHOLE = "epsearch.whole"  # key of `Context.meta`


def help_text(option: Option, value: str = "") -> str:
    """Returns the help of an option, with its other flags and its default.

    value: the default of the study at hand, in place of where it comes from.
    """
    also = "".join(f" Also {alias}." for alias in option.aliases)
    usual = value or option.default_text
    default = f" [default: {usual}]" if usual else ""
    return escape(option.help + also + default)  # or brackets would be taken for a style


# For commands without a study, parsed as the options of studies.
OUT, DATA, DATASET, STORAGE = (Study.options()[name] for name in ("out", "data_dir", "dataset", "storage"))
READS, CHANGES = "reads", "changes"
SEVERAL = tuple(
    dict.fromkeys(
        option.flag for kind in KINDS.values() for option in kind.options().values() if option.type.words == 0
    )
)
"""Flags that take several words."""

Storage = Annotated[str | None, typer.Option(metavar="URL", help=help_text(STORAGE))]
AT_A_SERVICE = "URL of a service that runs the command; $EPSEARCH_TOKEN is its token."
Server = Annotated[
    str | None, typer.Option("--server", metavar="URL", envvar=SERVER, show_envvar=False, help=AT_A_SERVICE)
]
Out = Annotated[
    Path,
    typer.Option("--out", help="Folder of the ledger and the reports.", parser=OUT.parse, metavar="DIRECTORY"),
]
Notify = Annotated[
    str | None,
    typer.Option(
        help="Send a message to this URL at the end, as JSON with `text`.", metavar="URL", rich_help_panel=OUTPUT
    ),
]
Live = Annotated[
    list[str] | None,
    typer.Option(
        "--live",
        help="Log members as they are trained, to mlflow:URI or tensorboard:FOLDER; may be given several times.",
        metavar="TOOL:WHERE",
        rich_help_panel=OUTPUT,
    ),
]
PRINTED_TOO = "Set the paper's printed rows beside results of other sizes, too."
WithPrinted = Annotated[bool, typer.Option("--with-printed", help=PRINTED_TOO)]
LATEX_METRICS = "Metrics of the LaTeX table, in its order, with commas between; by default all."
Metrics = Annotated[str, typer.Option("--metrics", metavar="NAME,…", help=LATEX_METRICS)]
DataDir = Annotated[Path, typer.Option(help="Folder of datasets.", parser=DATA.parse, metavar="DIRECTORY")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Dataset = Annotated[str, typer.Argument(help="Name of a dataset of images, or folder:PATH.")]
Name = Annotated[
    str | None, typer.Argument(help=escape("Name of the study, see `epsearch list`. [default: the newest]"))
]
Names = Annotated[
    list[str] | None,
    typer.Argument(help=escape("Names of studies; several searches are set side by side. [default: the newest]")),
]


def _without_flag_types(parameters: list[Any]) -> list[Any]:
    """Removes the types of flags from the help, also for `--help` itself."""
    for each in parameters:
        if getattr(each, "is_flag", False):
            each.metavar = ""
    return parameters


def _shorten(command: Any, ctx: Any) -> None:
    """Hides the expert options of a command that takes a study, unless --help-all stands in it; shows their values."""
    kind = KINDS.get(COMPARED.get(ctx.info_name, ctx.info_name))
    if kind is None or not any(each.name == "help_all" for each in command.params):
        return
    whole = WHOLE in ctx.meta
    values = _of_a_pack(kind) if ctx.info_name == "reproduce" else _values(kind)
    for each in command.params:
        option = kind.options().get(each.name)
        if each.param_type_name == "argument":
            continue
        if option is not None:
            each.hidden = not whole and option.level != BASIC
            each.help = help_text(option, values.get(option.name, ""))
        else:
            each.hidden = not whole and each.name not in ESSENTIAL


def _of_a_pack(kind: type[Study]) -> dict[str, str]:
    """Returns the defaults that a pack sets, in words."""
    return {
        name: "the pack's"
        for name, option in kind.options().items()
        if option.usual == DATASETS or name == DATASET.name
    }


def _values(kind: type[Study]) -> dict[str, str]:
    """Returns the defaults that depend on the dataset, for that of the command line; {} for an unknown one."""
    from epsearch.preparation.build import build  # late: other commands need no definitions

    words = " ".join(sys.argv).replace("=", " ").split()
    dataset = next((words[i + 1] for i, word in enumerate(words[:-1]) if word == DATASET.flag), None)
    try:
        study = build(kind, {} if dataset is None else {"dataset": dataset}, None)
    except UsageError:
        return {}
    options = {name: option for name, option in kind.options().items() if option.usual == DATASETS}
    values = {name: option.show(study.value(name)) for name, option in options.items()}
    return {
        name: ",".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in values.items()
        if value is not None
    }


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        """Returns all parameters."""
        return _without_flag_types(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Writes the help; that of a study is short."""
        _shorten(self, ctx)
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Runs the command; one for local ledgers warns users of a service.

        Raises UsageError where it would change a ledger that the command line does not name.
        """
        sources = (ctx.get_parameter_source(name) for name in ("folder", "storage"))
        named = any(source is not None and source.name == "COMMANDLINE" for source in sources)
        if ctx.obj in (READS, CHANGES) and os.environ.get(SERVER) and not named:
            line = f"{ctx.command_path} works on a ledger of this machine, not on that of {SERVER}"
            if ctx.obj == CHANGES:
                raise UsageError(f"{line}; --out or --storage says which one, or unset {SERVER}")
            sys.stderr.write(f"epsearch: {line}\n")
        return super().invoke(ctx)


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        """Returns all parameters."""
        return _without_flag_types(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Writes the help, as `_Command` does."""
        _shorten(self, ctx)
        super().format_help(ctx, formatter)


class Commands(typer.Typer):
    """Commands whose help fits a terminal of 80 columns."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=_Group, **settings)

    def command(  # type: ignore[override]
        self, name: str | None = None, here: str = "", **settings: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Returns Typer's decorator.

        here: READS or CHANGES if the command works only on a local ledger and has no --server.
        """
        context = {"obj": here, **settings.pop("context_settings", {})}
        return super().command(name, cls=_Command, context_settings=context, **settings)

    def only(self, names: Sequence[str]) -> "Commands":
        """Returns the commands with those of these names alone, or all where none of them has one.

        Typer takes a tenth of a second to make all, and each start of the program needs one.
        """
        application = copy(self)
        application.registered_commands = [command for command in self.registered_commands if name_of(command) in names]
        application.registered_groups = [group for group in self.registered_groups if name_of(group) in names]
        return application if application.registered_commands or application.registered_groups else self


def name_of(command: CommandInfo | TyperInfo) -> str:
    """Returns the name of a command, or of a group of commands."""
    return command.name or str(getattr(command.callback, "__name__", ""))


def join_arguments(arguments: Sequence[str]) -> list[str]:
    """Returns arguments for the parser: aliases as the flags, and `--search A=… B=…` as one argument.

    The same holds for each flag of SEVERAL; parts of repeated flags are joined.

    >>> join_arguments(["run", "--search", "lr=0.1..1", "memory=10,25", "--race"])
    ['run', '--search', 'lr=0.1..1 memory=10,25', '--race']
    >>> join_arguments(["run", "--search=lr=0.1..1", "--quiet", "--search", "memory=10,25"])
    ['run', '--search', 'lr=0.1..1 memory=10,25', '--quiet']
    >>> join_arguments(["compare", "--settings", "ewc.lr=1", "si.lr=0.1", "--json"])
    ['compare', '--settings', 'ewc.lr=1 si.lr=0.1', '--json']
    >>> join_arguments(["run", "--mem-size=5"])
    ['run', '--memory=5']
    """
    flags = {alias: option.flag for option in Study.options().values() for alias in option.aliases}
    others: list[str] = []
    words: dict[str, list[str]] = {flag: [] for flag in SEVERAL}
    target = others
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        flag = flags.get(flag, flag)
        if flag in words:
            if flag not in others:  # all parts come in the place of the first
                others.append(flag)
            target = words[flag]
            if equals:
                target.append(value)
        else:
            target = others if argument.startswith("--") else target
            target.append(flag + equals + value)
    for flag, parts in words.items():
        if parts:
            others.insert(others.index(flag) + 1, " ".join(parts))
    return others


def parameter(option: Option) -> inspect.Parameter:
    """Returns the keyword parameter from which Typer makes the option; its default is None."""
    kind: Any = {"": bool}.get(option.type.metavar, tuple[str, str] if option.type.words == 2 else str)
    declared = typer.Option(
        option.flag,
        help=help_text(option),
        show_default=False,
        metavar=option.type.metavar or None,
        rich_help_panel=option.group,
    )
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, declared]
    )


def _print_whole_help(ctx: typer.Context, wanted: bool) -> None:
    """Prints the help with all options, and ends the program."""
    if wanted:
        ctx.meta[WHOLE] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


def besides(  # noqa: PLR0913  an option each
    *,
    extend: Annotated[
        bool,
        typer.Option(
            "--extend",
            help="Extend the search --name; other options keep their values.",
            rich_help_panel=SEARCHED,
        ),
    ] = False,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Wait for the end of another run of this study.", rich_help_panel=RUNS),
    ] = False,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="URL",
            envvar=SERVER,
            show_envvar=False,
            help=AT_A_SERVICE,
            rich_help_panel=RUNS,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="YAML file of options; the command line wins.", metavar="FILE", rich_help_panel=OUTPUT),
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the effective study and stop.", rich_help_panel=OUTPUT)
    ] = False,
    with_printed: Annotated[bool, typer.Option("--with-printed", help=PRINTED_TOO, rich_help_panel=OUTPUT)] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="All that the plan says.", rich_help_panel=OUTPUT)] = False,
    metrics: Annotated[
        str, typer.Option("--metrics", metavar="NAME,…", help=LATEX_METRICS, rich_help_panel=OUTPUT)
    ] = "",
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress, only the summary.", rich_help_panel=OUTPUT)
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON on standard output.", rich_help_panel=OUTPUT)
    ] = False,
    live: Live = None,
    notify: Notify = None,
    help_all: Annotated[
        bool,
        typer.Option(
            "--help-all",
            is_eager=True,
            callback=_print_whole_help,
            help="Show all options and exit; with --dataset, their values for it.",
        ),
    ] = False,
) -> None:
    """Declares the options of commands that take a study, besides the study's own.

    `extend` is for searches, `metrics` for tables of methods, `verbose` for plans.
    """
