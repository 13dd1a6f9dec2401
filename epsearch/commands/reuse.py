"""Commands on stored studies: verify, train, export, import."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from epsearch.arguments import CHANGES, DATA, OUT, READS, Commands, DataDir, Json, Name, Out, Storage
from epsearch.commands.printing import listener, print_result, url_of
from epsearch.failures.errors import UsageError
from epsearch.study import parsers as of
from epsearch.study.limits import LARGEST_SEED


def add_to(app: Commands) -> None:
    """Adds the commands of this module."""
    app.command("verify", here=CHANGES)(verify)  # it stores certificates
    app.command("train", here=READS)(train)
    app.command("export", here=READS)(export)
    app.command("import", here=CHANGES)(import_)


def _seed(value: str) -> int:
    return of.whole(value, "seed", 0, LARGEST_SEED)


def verify(
    name: Name = None,
    sample: Annotated[str, typer.Option(help="Runs to train again, or all.", metavar="INT|all")] = "5",
    seed: Annotated[
        int | None,
        typer.Option(
            parser=_seed,
            metavar="INT",
            help=escape("Seed for drawing the sample. [default: another one every time]"),
        ),
    ] = None,
    folder: Out = OUT.default,
    storage: Storage = None,
    data_dir: DataDir = DATA.default,
    as_json: Json = False,
) -> int:
    """Train a random sample of a study's runs again, alone, and compare; exit status 1 when something differs."""
    from epsearch.reuse.verification import verify
    from epsearch.terminal import reuse

    count = of.whole_or_all(sample, "sample", 1)
    with listener(as_json) as events:
        verification = verify(name, url_of(folder, storage), folder, data_dir, count, seed, events)
    print_result(reuse.verification_text(verification), reuse.verification_json(verification), as_json, wide=True)
    return int(not verification.agrees)


def export(
    names: Annotated[list[str], typer.Argument(metavar="[NAME] FILE", help="The study, and the file to write.")],
    whole: Annotated[bool, typer.Option("--all", help="The whole ledger; no NAME then.")] = False,
    paper: Annotated[
        bool,
        typer.Option("--paper", help="A zip to cite: methods, tables, figures, BibTeX, versions and the study itself."),
    ] = False,
    folder: Out = OUT.default,
    storage: Storage = None,
    as_json: Json = False,
) -> None:
    """Write a study, with its runs and certificates, or a whole ledger into one file."""
    from epsearch.reuse.transfer import export_ledger, export_study
    from epsearch.terminal import reuse

    if paper:
        _export_paper(names, whole, folder, storage, as_json)
        return
    *studies, file = names
    if len(studies) != int(not whole):
        raise UsageError(f"export takes {'FILE alone with --all' if whole else 'NAME and FILE'}, got {' '.join(names)}")
    url, path = url_of(folder, storage), of.path(file, "FILE")
    transfer = export_ledger(path, url) if whole else export_study(studies[0], path, url, folder)
    print_result(reuse.export_text(transfer), transfer._asdict(), as_json, soft_wrap=True)


def _export_paper(names: list[str], whole: bool, folder: Path, storage: str | None, as_json: bool) -> None:
    """Writes a study to cite; its file is NAME-paper.zip where none is named."""
    from epsearch.reuse.paper import export_paper
    from epsearch.terminal import reuse

    if whole or len(names) > 2:
        raise UsageError(f"export --paper takes NAME and FILE, got {'--all' if whole else ' '.join(names)}")
    path = of.path(names[1] if len(names) > 1 else f"{names[0]}-paper.zip", "FILE")
    paper = export_paper(names[0], path, url_of(folder, storage), folder)
    print_result(reuse.paper_text(paper), paper._asdict(), as_json, soft_wrap=True)


def import_(
    file: Annotated[Path, typer.Argument(help="A file of `epsearch export`.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Another name for the study in it.")] = None,
    folder: Out = OUT.default,
    storage: Storage = None,
    as_json: Json = False,
) -> None:
    """Import studies, runs and certificates of an exported file into a ledger, all or nothing."""
    from epsearch.reuse.transfer import import_file
    from epsearch.terminal import reuse

    new_name = None if name is None else of.study_name(name, "name")
    transfer = import_file(of.path(file, "FILE"), url_of(folder, storage), folder, new_name)
    print_result(reuse.import_text(transfer), transfer._asdict(), as_json, soft_wrap=True)


def train(  # noqa: PLR0913  an option each
    save: Annotated[Path, typer.Option(metavar="FILE", help="Where the network's state_dict is written.")],
    name: Name = None,
    row: Annotated[
        str | None,
        typer.Option(
            help=escape("For a search: chosen or baseline; otherwise a row of the study's table. [default: the first]")
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(parser=_seed, metavar="INT", help=escape("Any seed. [default: the study's first]")),
    ] = None,
    stream: Annotated[str, typer.Option(metavar="cv|eval", help="Stream that it is trained on.")] = "eval",
    folder: Out = OUT.default,
    storage: Storage = None,
    data_dir: DataDir = DATA.default,
    as_json: Json = False,
) -> None:
    """Train a study's chosen value once more, and write its network's state_dict."""
    from epsearch.reuse.network import save_network
    from epsearch.terminal import reuse

    stream = of.one_of(stream, "stream", ("cv", "eval"))
    with listener(as_json) as events:
        network = save_network(
            name, of.path(save, "save"), url_of(folder, storage), folder, data_dir, row, seed, stream, events
        )
    print_result(reuse.network_text(network), reuse.network_json(network), as_json, soft_wrap=True)
