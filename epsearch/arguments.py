"""Options of studies as arguments of the command line."""

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from epsearch.failures.crash_report import SERVER
from epsearch.failures.errors import UsageError
from epsearch.ledger.location import storage
from epsearch.study import names as named
from epsearch.study import parsers as of
from epsearch.study.hyperparameters import own_values, space
from epsearch.study.option import HELP_GROUPS, OF_METHODS, Option
from epsearch.study.options import options

SEARCHED, *_, RUNS, OUTPUT = HELP_GROUPS
# Of commands that take no study: read and shown as the options of studies are.
OUT, DATA, DATASET, STORAGE = (options()[name] for name in ("out", "data_dir", "dataset", "storage"))

Storage = Annotated[str | None, typer.Option(metavar="URL", help=escape(STORAGE.help))]
AT_A_SERVICE = "A service that is to do it, not this machine; $EPSEARCH_TOKEN is the token for it."
Server = Annotated[
    str | None, typer.Option("--server", metavar="URL", envvar=SERVER, show_envvar=False, help=AT_A_SERVICE)
]
Out = Annotated[
    Path,
    typer.Option("--out", help="Folder of the ledger and the reports.", parser=OUT.parse, metavar="DIRECTORY"),
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

WIDEST = 14  # choices that the help can list in a column of its own
# What the help writes for a value, by who parses it; hyperparameters and words to choose from say it themselves.
TAKES: dict[Callable[..., Any], str] = {
    of.whole: "INT",
    of.whole_or_all: "INT|all",
    named.dataset: "DATASET",
    named.method: "METHOD",
    named.plugin: "NAME",
    named.plugins: "NAME,…",
    own_values: "NAME=VALUE …",
    named.methods: "METHOD,…|all",
    of.sizes: "INT,…",
    of.duration: "TIME",
    of.size: "SIZE",
    named.trainer: "MODULE:NAME",
    of.seeds: "SEEDS",
    of.interval: "LOW HIGH",
    named.settings: "VALUES",
    of.pretrained: "NAME|PATH",
    of.numeric_path: "NAME",
    of.study_name: "NAME",
    of.path: "DIRECTORY",
    space: "SPACE",
    storage: "URL",
}


class _Flags:
    """Of a command: flags without the type that Typer would write after them, `--help` among them."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, shown as the help is to show them."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in params:
            if getattr(one, "is_flag", False):
                one.metavar = ""
        return params


class _Command(_Flags, TyperCommand):
    pass


class _Reads(_Command):
    """A command that no service has, and that reads a ledger."""

    def invoke(self, ctx: Any) -> Any:
        """Runs it; whoever works with a service is told that it is another ledger that is looked at."""
        if line := _other_ledger(ctx):
            sys.stderr.write(f"epsearch: {line}\n")
        return super().invoke(ctx)


class _Changes(_Command):
    """A command that no service has, and that changes a ledger."""

    def invoke(self, ctx: Any) -> Any:
        """Runs it. Raises UsageError for somebody who works with a service, and has not said which ledger is meant."""
        if line := _other_ledger(ctx):
            raise UsageError(f"{line}; --out or --storage says which one, or unset {SERVER}")
        return super().invoke(ctx)


def _other_ledger(ctx: Any) -> str:
    """That a command looks at a ledger of this machine, where the environment names a service; "" where it is named."""
    named = (ctx.get_parameter_source(one) for one in ("folder", "storage"))
    if not os.environ.get(SERVER) or any(one is not None and one.name == "COMMANDLINE" for one in named):
        return ""
    return f"{ctx.command_path} works on a ledger of this machine, not on that of {SERVER}"


AT_LEDGERS: dict[str, type[TyperCommand]] = {"": _Command, "reads": _Reads, "changes": _Changes}


class _Group(_Flags, TyperGroup):
    pass


class Commands(typer.Typer):
    """Commands whose help fits a terminal of 80 columns."""

    def __init__(self, **told: Any) -> None:
        super().__init__(cls=_Group, **told)

    def command(  # type: ignore[override]
        self, name: str | None = None, here: str = "", **told: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """As of Typer; here: what a command that has no --server does to a ledger, one of AT_LEDGERS."""
        return super().command(name, cls=AT_LEDGERS[here], **told)


SEVERAL = ("--search", "--set", "--against")  # flags that take several words


def joined(arguments: Sequence[str]) -> list[str]:
    """Arguments as the parser takes them: other names of a flag as its own, and `--search A=… B=…` as one argument.

    So with each flag of SEVERAL; given several times, all parts of it count.

    >>> joined(["run", "--search", "lr=0.1..1", "memory=10,25", "--race"])
    ['run', '--search', 'lr=0.1..1 memory=10,25', '--race']
    >>> joined(["run", "--search=lr=0.1..1", "--quiet", "--search", "memory=10,25"])
    ['run', '--search', 'lr=0.1..1 memory=10,25', '--quiet']
    >>> joined(["run", "--mem-size=5"])
    ['run', '--memory=5']
    """
    own = {alias: option.flag for option in options().values() for alias in option.aliases}
    others: list[str] = []
    words: dict[str, list[str]] = {flag: [] for flag in SEVERAL}
    target = others
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        flag = own.get(flag, flag)
        if flag in words:
            if flag not in others:  # all parts stand where the first one did
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
    """Returns the keyword parameter from which Typer makes the option; None where it is not given."""
    flag = isinstance(option.default, bool)
    # Two words after one flag; all others are one text, which the option's own converter reads.
    kind: Any = bool if flag else {"interval": tuple[str, str]}.get(option.name, str)
    shown = "" if flag or option.default in (None, ()) else f" [default: {_plain(option.show(option.default))}]"
    also = "".join(f" Also {alias}." for alias in option.aliases)
    told = typer.Option(
        option.flag,
        help=escape(option.help + also + shown),  # or what stands in brackets would be taken for a style
        show_default=False,
        metavar=None if flag else takes(option),
        rich_help_panel=next((panel for panel, names in HELP_GROUPS.items() if option.name in names), OF_METHODS),
    )
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, told]
    )


def _plain(value: Any) -> str:
    """A default as people type it."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def takes(option: Option) -> str:
    """What the option's value is, as the help writes it after the flag.

    >>> from epsearch.study.options import options
    >>> [takes(options()[name]) for name in ("points", "lr", "memory_batch", "trigger", "device")]
    ['INT', 'FLOAT', 'INT|all', 'zero|epsilon', 'auto|cpu|cuda']
    """
    parse: Callable[..., Any] = option.convert
    given: dict[str, Any] = {}
    if isinstance(option.convert, partial):
        parse, given = option.convert.func, option.convert.keywords
    if parse is of.hyperparameter:
        one = given["one"]
        number = "INT" if one.whole else "FLOAT"
        return "|".join(one.choices) or number + "|all" * one.all_for_none
    words = "|".join(given.get("allowed", ()))
    return words if words and len(words) <= WIDEST else TAKES.get(parse, "NAME" if words else "TEXT")


def besides(  # noqa: PLR0913  one each for what may be said
    *,
    extend: Annotated[
        bool,
        typer.Option(
            "--extend",
            help="Extend the search --name; options that are not given keep their values.",
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
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress, only the summary.", rich_help_panel=OUTPUT)
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON on standard output.", rich_help_panel=OUTPUT)
    ] = False,
    live: Live = None,
) -> None:
    """The options of a command that takes a study besides the study's own; `extend` is of searches alone."""
