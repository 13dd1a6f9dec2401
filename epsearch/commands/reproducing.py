"""The command `reproduce`: packs, a row held against print, the table of all answers."""

import inspect
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from epsearch.arguments import OUT, Commands
from epsearch.commands import studies, training
from epsearch.commands.printing import print_result, url_of
from epsearch.failures.errors import UsageError

Table = Annotated[
    bool, typer.Option("--table", help="Print the answers of a ledger as a Markdown table, and train nothing.")
]
PLACES = ("out", "storage")
"""Options of the ledger whose answers are a table."""


def add_to(app: Commands) -> None:
    """Adds the command."""
    train = training.reproduce(studies.train)
    signature = inspect.signature(train)

    def command(table: bool = False, **values: Any) -> int:
        """Train a published row, and say whether the printed number holds: within, outside, or cannot tell."""
        if not table and values["from_pack"] is not None:
            return train(**values)
        if table and (values["from_pack"] is not None or values["server"] is not None):
            raise UsageError("--table is for a whole ledger of this machine; leave PACK and --server out")
        # A list has neither options of a study nor a training.
        names = [
            name
            for name, parameter in signature.parameters.items()
            if values[name] not in (None, False, parameter.default)
        ]
        if others := [name.replace("_", "-") for name in names if name not in (*PLACES, "as_json")]:
            raise UsageError(f"{others[0]} is for a pack; name one before it, as `epsearch reproduce` lists them")
        if table:
            _print_table(OUT.parse(values["out"] or OUT.default), values["storage"], values["as_json"])
        else:
            _list(values["as_json"])
        return 0

    parameters = [*signature.parameters.values()]
    parameters.insert(1, inspect.Parameter("table", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Table))
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app.command("reproduce")(command)


def _print_table(out: Path, storage: str | None, as_json: bool) -> None:
    from epsearch.findings.reproductions import reproductions
    from results.pages.reproductions import reproductions_sheet
    from results.pages.sheet import as_markdown

    rows = reproductions(url_of(out, storage), out)
    if as_json:
        print_result("", rows, as_json)
    else:
        sys.stdout.write(as_markdown(reproductions_sheet(rows)))


def _list(as_json: bool) -> None:
    from epsearch.findings.reproductions import all_packs
    from epsearch.terminal import lists

    rows = all_packs()
    print_result(lists.packs(rows), [row.as_data() for row in rows], as_json, wide=True)
