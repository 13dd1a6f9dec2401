"""Commands on studies that are stored: verify, train, export, import."""

from typing import Annotated

import typer
from rich.markup import escape

from epsearch.arguments import DATA, OUT, Commands, DataDir, Json, Name, Out, Storage
from epsearch.commands.printing import listener, printed, url_of
from epsearch.study import parsers as of
from epsearch.study.limits import LARGEST_SEED


def add_to(app: Commands) -> None:
    """Adds the commands of this module."""
    for one in (verify,):
        app.command(one.__name__.rstrip("_"))(one)


def verify(
    name: Name = None,
    sample: Annotated[str, typer.Option(help="Runs to train again, or all.", metavar="INT|all")] = "5",
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, max=LARGEST_SEED, metavar="INT", help=escape("Draws the sample. [default: another one every time]")
        ),
    ] = None,
    folder: Out = OUT.default,
    storage: Storage = None,
    data_dir: DataDir = DATA.default,
    as_json: Json = False,
) -> int:
    """Train a random sample of a study's runs again, alone, and compare; exit status 1 when something differs."""
    from epsearch.stored.verification import verify
    from epsearch.terminal import stored

    wanted = of.whole_or_all(sample, "sample", 1)
    with listener(as_json) as events:
        found = verify(name, url_of(folder, storage), folder, data_dir, wanted, seed, events)
    printed(stored.verified(found), stored.verified_as_json(found), as_json, wide=True)
    return int(not found.agrees)
