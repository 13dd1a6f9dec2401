"""The tables of options and routes in the docs, made of what the code declares; as a program, writes them."""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from typer.main import get_command

from epsearch.cli import app
from epsearch.service.app import application
from epsearch.service.settings import Settings
from epsearch.study.kinds import KINDS, Comparison, MemoryStudy, ProtocolStudy, Search
from epsearch.study.option import GROUPS, LEVELS, Option
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from search_spaces.published.definition import definitions, load_definition
from tests.support.sizes import ROOT

PAGES = tuple(ROOT / "docs" / name for name in ("commands.md", "http-api.md"))
BETWEEN = re.compile(r"(<!-- options: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
OF_DATASETS = ("seeds", "points", "repeats", "cv_tasks", "tasks", "batch_size", "memory", "memory_batch", "lr")
CODE = re.compile(r"(?<![\w`/])(\$[A-Z_]+|--[a-z-]+|folder:\w+|module:\w+|s3://[A-Z/]+)(?![\w`])")
COMMON = ("--out", "--storage", "--server", "--data-dir", "--quiet", "--json")
"""Flags of many commands, which have one table for all of them."""


def code(text: str) -> str:
    """The text with its flags, variables and patterns as code."""
    return CODE.sub(r"`\1`", text)


def row(option: Option) -> str:
    """A line of Markdown."""
    flags = ", ".join(f"`{flag}`" for flag in (option.flag, *option.aliases))
    value = f"`{option.type.metavar}`".replace("|", "\\|") if option.type.metavar else ""
    default = code(option.usual) if option.usual else f"`{option.default_text}`" if option.default_text else ""
    if option.name == "data_dir":
        default = "the cache folder"  # which another user has elsewhere
    return f"| {flags} | {value} | {code(option.help)} | {default} | {option.level} |"


def table(options: Iterable[Option]) -> str:
    """Options by group, the basic ones of a group first."""
    ordered = sorted(options, key=lambda one: (GROUPS.index(one.group), LEVELS.index(one.level)))
    return "\n".join(("| option | value | what it is | default | level |", "| --- " * 5 + "|", *map(row, ordered)))


def defaults() -> str:
    """What the definitions of datasets say, a line a dataset."""
    lines = [
        f"| dataset | {' | '.join(f'`{name}`' for name in OF_DATASETS)} |",
        "| --- " * (len(OF_DATASETS) + 1) + "|",
    ]
    for name in (*definitions(), "folder:PATH"):
        values = vars(load_definition(name)) | {"cv_tasks": load_definition(name).cv_tasks or 0}
        cells = " | ".join(str(values["learning_rate" if one == "lr" else one]) for one in OF_DATASETS)
        lines.append(f"| `{name}` | {cells} |")
    return "\n".join(lines)


def commands() -> dict[str, Any]:
    """Name -> command of click, without those of studies, whose options are declared elsewhere."""
    found = dict(_below("", get_command(app)))
    return {name: one for name, one in found.items() if name.split()[0] not in (*KINDS, "plan", "reproduce")}


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if name and command.params:
        yield name, command
    for word, one in getattr(command, "commands", {}).items():
        yield from _below(f"{name} {word}".strip(), one)


def parameters(command: Any) -> str:
    """Arguments and options of a command; then the flags that many commands have."""
    own = [one for one in command.params if one.opts[0] not in COMMON]
    shared = [f"`{flag}`" for flag in COMMON if any(flag in one.opts for one in command.params)]
    also = f"{'Also' if own else 'Options:'} {', '.join(shared)} ([of many commands](#options-of-many-commands))."
    return "\n\n".join([*([parameter_table(own)] if own else []), *([also] if shared else [])])


def parameter_table(found: Iterable[Any]) -> str:
    """Parameters of click, one a line."""
    return "\n".join(("| option | value | what it is | default |", "| --- " * 4 + "|", *map(parameter, found)))


def parameter(one: Any) -> str:
    """A line of Markdown of a parameter of click."""
    words, _, usual = one.help.replace("\\[", "[").partition(" [default: ")
    default = usual.removesuffix("]") or ("" if one.default in (None, False, (), [], "") else str(one.default))
    if "--data-dir" in one.opts:
        default = "the cache folder"  # which another user has elsewhere
    flags = ", ".join(f"`{flag}`" for flag in one.opts) if one.param_type_name == "option" else f"`{label(one)}`"
    value = f"`{one.metavar}`" if one.metavar and one.param_type_name == "option" else ""
    cells = (flags, value, code(words), "required" if one.required else code(default))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def label(one: Any) -> str:
    """The name of an argument as a usage line has it."""
    name = one.metavar or one.name.upper().replace("NAMES", "NAME …")
    return name if one.required else f"[{name}]"


def common() -> str:
    """The flags of many commands, each as the first command that has it says."""
    every = [one for command in commands().values() for one in command.params]
    return parameter_table(next(one for one in every if flag in one.opts) for flag in COMMON)


def _beside_those_of_studies(name: str) -> list[Any]:
    """Parameters of a command that a comparison does not have, and its argument."""
    known = {one.name for one in dict(_below("", get_command(app)))[Comparison.kind].params}
    every = dict(_below("", get_command(app)))[name].params
    return [one for one in every if one.name not in known or one.param_type_name == "argument"]


def routes() -> str:
    """Routes of the service with their parameters, from its OpenAPI description."""
    lines = ["| request | what it does | parameters |", "| --- | --- | --- |"]
    for path, operations in openapi()["paths"].items():
        for method, one in operations.items():
            names = ", ".join(f"`{each['name']}`" for each in one.get("parameters", ()) if each["in"] != "path")
            lines.append(f"| `{method.upper()} {path}` | {' '.join(one['description'].split())} | {names} |")
    return "\n".join(lines)


def openapi() -> Mapping[str, Any]:
    """The description of a service without studies."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = Settings(LedgerUrl(f"sqlite:///{folder / 'epsearch.sqlite'}"), folder, folder / "data")
        with Store.open(settings.storage) as store:
            found: Mapping[str, Any] = application(settings, store, works=False).openapi()
    return found


def tables() -> dict[str, str]:
    """Name in the pages -> table: of `run` all options, of other studies those that `run` does not have."""
    known = Search.options()
    own = {kind: [one for name, one in KINDS[kind].options().items() if name not in known] for kind in KINDS}
    return {
        Search.kind: table(known.values()),
        Comparison.kind: table(own[Comparison.kind]),
        MemoryStudy.kind: table(own[MemoryStudy.kind]),
        ProtocolStudy.kind: table(own[ProtocolStudy.kind]),
        "reproduce": parameter_table(_beside_those_of_studies("reproduce")),
        "definitions": defaults(),
        "common": common(),
        "routes": routes(),
        **{name: parameters(one) for name, one in commands().items()},
    }


def written(page: str) -> str:
    """The page with the tables of today."""
    made = tables()
    return BETWEEN.sub(lambda found: f"{found[1]}\n{made[found[2]]}\n\n{found[3]}", page)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
