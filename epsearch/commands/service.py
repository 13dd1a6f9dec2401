"""Commands of the service: serve, and tokens for it."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from epsearch.arguments import DATA, OUT, Commands, DataDir, Json, Out, Storage
from epsearch.commands.printing import err, printed, url_of
from epsearch.study.options import options

File = Annotated[Path | None, typer.Option("--tokens", metavar="FILE", help="File of tokens, see `epsearch token`.")]


def serve(  # noqa: PLR0913  one each for what may be said
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at.")] = 8470,
    parallel: Annotated[int, typer.Option(min=1, max=256, help="Studies that are trained at a time.")] = 1,
    folder: Out = OUT.default,
    storage: Storage = None,
    data_dir: DataDir = DATA.default,
    tokens: File = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A further name of this service, as browsers type it.")
    ] = None,
    images: Annotated[
        list[Path] | None, typer.Option(metavar="DIRECTORY", help="Folder below which folder:NAME may be a dataset.")
    ] = None,
    allow_modules: Annotated[
        bool, typer.Option("--allow-modules", help="Let clients name module:factory, which runs code of this machine.")
    ] = False,
    address: Annotated[str, typer.Option(metavar="HOST:PORT|auto|local", help="Ray cluster of the studies.")] = "local",
    checkpoints: Annotated[
        str | None, typer.Option(metavar="PLACE", help="Folder or URL that keeps runs which are killed.")
    ] = None,
) -> None:
    """Serve studies over HTTP: pages for people, an API for programs, a queue that survives everything."""
    from epsearch.service.access import tokens as of_tokens
    from epsearch.service.app import serve
    from epsearch.service.settings import Settings

    settings = Settings(
        storage=url_of(folder, storage),
        out=folder,
        data_dir=data_dir,
        host=host,
        port=port,
        parallel=parallel,
        address=options()["address"].parse(address),
        checkpoints=None if checkpoints is None else options()["checkpoints"].parse(checkpoints),
        roots=tuple(images or ()),
        modules=allow_modules,
        names=tuple(allow_host or ()),
        tokens=of_tokens.read(tokens),
    )
    serve(settings, partial(err.print, soft_wrap=True, highlight=False))


def token(
    name: Annotated[str, typer.Argument(help="Whose it is: stands on the studies that are submitted with it.")],
    tokens: Annotated[Path, typer.Option("--tokens", metavar="FILE", help="File to which its hash is added.")],
    role: Annotated[str, typer.Option(metavar="read|write", help="What it may do.")] = "write",
    as_json: Json = False,
) -> None:
    """Make a token for a service; it is printed once, and only its hash is kept."""
    from epsearch.service.access.tokens import make

    secret = make(name, role, tokens)
    printed(Text(secret), {"name": name, "role": role, "token": secret}, as_json, soft_wrap=True)


def add_to(app: Commands) -> None:
    """Adds the commands."""
    app.command("serve")(serve)
    app.command("token")(token)
