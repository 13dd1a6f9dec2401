"""Options of studies as arguments of the command line."""

import inspect
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from epsearch.study.option import Option


def joined(arguments: Sequence[str]) -> list[str]:
    """`--search A=… B=…` as one argument, which is what the parser takes; given several times, all parts count.

    >>> joined(["run", "--search", "lr=0.1..1", "memory=10,25", "--race"])
    ['run', '--search', 'lr=0.1..1 memory=10,25', '--race']
    >>> joined(["run", "--search=lr=0.1..1", "--quiet", "--search", "memory=10,25"])
    ['run', '--search', 'lr=0.1..1 memory=10,25', '--quiet']
    """
    others: list[str] = []
    spaces: list[str] = []
    target = others
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        if flag == "--search":
            if flag not in others:  # all parts stand where the first one did
                others.append(flag)
            if equals:
                spaces.append(value)
            target = spaces
        else:
            target = others if argument.startswith("--") else target
            target.append(argument)
    if spaces:
        others.insert(others.index("--search") + 1, " ".join(spaces))
    return others


def parameter(option: Option) -> inspect.Parameter:
    """Returns the keyword parameter from which Typer makes the option; None where it is not given."""
    flag = isinstance(option.default, bool)
    # Two words after one flag; all others are one text, which the option's own converter reads.
    kind: Any = bool if flag else {"interval": tuple[str, str]}.get(option.name, str)
    shown = "" if flag or option.default in (None, ()) else f" [default: {_plain(option.show(option.default))}]"
    told = typer.Option(option.flag, *option.aliases, help=option.help + shown, show_default=False)
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, told]
    )


def _plain(value: Any) -> str:
    """A default as people type it."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
