"""The tables of options in docs/commands.md, made of the descriptions of studies; as a program, writes them."""

import re
from collections.abc import Iterable

from epsearch.study.kinds import KINDS, Comparison, MemoryStudy, Search
from epsearch.study.option import GROUPS, LEVELS, Option
from search_spaces.published.definition import definitions, load_definition
from tests.support.sizes import ROOT

PAGE = ROOT / "docs" / "commands.md"
BETWEEN = re.compile(r"(<!-- options: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
OF_DATASETS = ("seeds", "points", "repeats", "cv_tasks", "tasks", "batch_size", "memory", "memory_batch", "lr")
CODE = re.compile(r"(?<![\w`/])(\$[A-Z_]+|--[a-z-]+|folder:PATH|module:\w+|s3://[A-Z/]+)(?![\w`])")


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
        values = vars(load_definition(name))
        cells = " | ".join(str(values["learning_rate" if one == "lr" else one]) for one in OF_DATASETS)
        lines.append(f"| `{name}` | {cells} |")
    return "\n".join(lines)


def tables() -> dict[str, str]:
    """Name in the page -> table: of `run` all options, of the others those that `run` does not have."""
    known = Search.options()
    own = {kind: [one for name, one in KINDS[kind].options().items() if name not in known] for kind in KINDS}
    return {
        Search.kind: table(known.values()),
        Comparison.kind: table(own[Comparison.kind]),
        MemoryStudy.kind: table(own[MemoryStudy.kind]),
        "datasets": defaults(),
    }


def written(page: str) -> str:
    """The page with the tables of today."""
    made = tables()
    return BETWEEN.sub(lambda found: f"{found[1]}\n{made[found[2]]}\n\n{found[3]}", page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
