"""Commands of the service: serve, and tokens for it."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from epsearch.arguments import DATA, OUT, Commands, DataDir, Json, Out, Storage
from epsearch.commands.printing import err, print_result, url_of
from epsearch.failures.errors import UsageError
from epsearch.study.description import Study
from epsearch.study.parsers import duration, one_of

File = Annotated[Path | None, typer.Option("--tokens", metavar="FILE", help="File of tokens, see `epsearch token`.")]


def _expires(value: str) -> float:
    return duration(value, "expires")


def _print(event: str, message: str, **fields: Any) -> None:
    """Prints the message of an event."""
    err.print(message, soft_wrap=True, highlight=False)


def serve(  # noqa: PLR0913  an option each
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at.")] = 8470,
    parallel: Annotated[int, typer.Option(min=1, max=256, help="Studies that are trained at a time.")] = 1,
    parallel_each: Annotated[
        int | None, typer.Option(metavar="INT", help="Studies of one owner that are trained at a time; default: any.")
    ] = None,
    max_queued: Annotated[
        int | None, typer.Option(metavar="INT", help="Studies that may wait or run; default: any.")
    ] = None,
    max_queued_each: Annotated[
        int | None, typer.Option(metavar="INT", help="Studies of one owner that may wait or run; default: any.")
    ] = None,
    folder: Out = OUT.default,
    storage: Storage = None,
    data_dir: DataDir = DATA.default,
    tokens: File = None,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Its URL behind a proxy, like https://lab.example/epsearch."),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A further name of this service, as browsers type it.")
    ] = None,
    notify_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A host to which messages at the end of studies may be sent."),
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
    log_format: Annotated[str, typer.Option(metavar="text|json", help="Format of the lines that it writes.")] = "text",
) -> None:
    """Serve studies over HTTP: pages for people, an API for programs, a queue that survives everything."""
    from epsearch.service import logs

    as_json = one_of(log_format, "log-format", logs.FORMATS) == logs.JSON
    with logs.write_json_logs() if as_json else nullcontext() as handler:
        # Imported now, as a signal may come meanwhile.
        from epsearch.service.access import tokens as of_tokens
        from epsearch.service.app import serve
        from epsearch.service.settings import Settings
        from epsearch.service_url import parse
        from results.ledger.writers.queue import Limits

        ledger = url_of(folder, storage)
        if handler is not None:
            handler.urls.append(ledger)
        settings = Settings(
            storage=ledger,
            out=folder,
            data_dir=data_dir,
            host=host,
            port=port,
            parallel=parallel,
            parallel_each=parallel_each,
            limits=Limits(max_queued_each, max_queued),
            address=Study.options()["address"].parse(address),
            checkpoints=None if checkpoints is None else Study.options()["checkpoints"].parse(checkpoints),
            roots=tuple(images or ()),
            modules=allow_modules,
            url=None if url is None else parse(url),
            names=tuple(allow_host or ()),
            notify_hosts=tuple(name.lower() for name in notify_host or ()),
            log_format=log_format,
            tokens=of_tokens.read(tokens),
        )
        serve(settings, _print if handler is None else logs.log)


def token(
    tokens: Annotated[Path, typer.Option("--tokens", metavar="FILE", help="File of their hashes.")],
    name: Annotated[
        str | None,
        typer.Argument(help="Owner of the studies submitted with it; OWNER/DEVICE for one of several."),
    ] = None,
    role: Annotated[str, typer.Option(metavar="read|write|admin", help="What it may do.")] = "write",
    expires: Annotated[
        float | None, typer.Option(parser=_expires, metavar="TIME", help="Time until it expires, like 30d.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the tokens of the file, and make none.")] = False,
    revoke: Annotated[
        str | None, typer.Option(metavar="NAME", help="Remove a token: services refuse it from then on.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a token for a service; it is printed once, and only its hash is kept. Or list or revoke them."""
    from epsearch.service.access import tokens as of_tokens

    if sum((name is not None, listed, revoke is not None)) != 1:
        raise UsageError("token takes one of NAME, --list and --revoke NAME")
    if name is not None:
        secret = of_tokens.make(name, role, tokens, expires)
        print_result(Text(secret), {"name": name, "role": role, "token": secret}, as_json, soft_wrap=True)
    elif revoke is not None:
        of_tokens.revoke(revoke, tokens)
        print_result(Text(f"revoked the token {revoke}"), {"name": revoke}, as_json, soft_wrap=True)
    else:
        people = of_tokens.of_file(tokens)
        lines = [
            f"{person.name}  {person.role}" + (f"  expires {person.expires}" if person.expires else "")
            for person in people
        ]
        data = [{"name": person.name, "role": person.role, "expires": person.expires or None} for person in people]
        print_result(Text("\n".join(lines) or "no tokens"), data, as_json, soft_wrap=True)


def add_to(app: Commands) -> None:
    """Adds the commands."""
    app.command("serve")(serve)
    app.command("token")(token)
