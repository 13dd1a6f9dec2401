"""Options of studies as arguments of the command line."""

import inspect
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from epsearch.study.options import Option


def joined(arguments: Sequence[str]) -> list[str]:
    """`--search A=… B=…` as one argument, which is what the parser takes.

    >>> joined(["run", "--search", "lr=0.1..1", "memory=10,25", "--race"])
    ['run', '--search', 'lr=0.1..1 memory=10,25', '--race']
    >>> joined(["run", "--search=lr=0.1..1", "--quiet", "--search", "memory=10,25"])
    ['run', '--search', 'lr=0.1..1 memory=10,25', '--quiet']
    """
    others: list[str] = []
    spaces: list[str] = []
    place, collecting = None, False
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        if flag == "--search":
            place, collecting = len(others) if place is None else place, True
            spaces += [value] * bool(equals)
        elif collecting and not argument.startswith("--"):
            spaces.append(argument)
        else:
            collecting = False
            others.append(argument)
    if place is None:
        return others
    return [*others[:place], "--search", *([" ".join(spaces)] if spaces else []), *others[place:]]


def parameter(option: Option) -> inspect.Parameter:
    """Returns the keyword parameter from which Typer makes the option; None where it is not given."""
    flags = [option.flag, *option.aliases]
    flag = isinstance(option.default, bool)
    kind: Any = bool if flag else tuple[str, str] if option.name == "interval" else str
    shown = "" if flag or option.default in (None, ()) else f" [default: {_plain(option.show(option.default))}]"
    annotation = Annotated[kind | None, typer.Option(*flags, help=option.help + shown, show_default=False)]
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
