"""A file with all that is needed to mend a fault of ours, and with no password in it."""

import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from epsearch.cache import cache_folder
from results.ledger.url import LedgerUrl, without_passwords

TOKENS = "EPSEARCH_TOKENS"


def write(error: BaseException, workers: str = "", urls: Sequence[LedgerUrl] = ()) -> str:
    """Writes the report of an error to the cache folder, or to that of temporary files; says where it lies.

    workers: the traceback of another process, where the fault is there. Passwords of `urls`, and of URLs on the
    command line and in the environment, are stars in it, wherever they stand. Where neither folder takes it, the words
    say that.
    """
    text = without_passwords(report(error, workers), [*given_urls(), *urls])
    name = f"crash-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    for folder in (cache_folder() / "crashes", Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / name
            # File names among the arguments may be no text, which UTF-8 has no letters for.
            file.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError:
            continue
        return f"please send us the crash report {file}"
    return "no crash report could be written"


def report(error: BaseException, workers: str = "") -> str:
    """What happened, to which command, with which versions: text that may still hold passwords."""
    from epsearch.machine import PACKAGES, installed  # late: this module is there before all others, for their faults

    versions = {name: installed(name) or "not installed" for name in ("epsearch", *PACKAGES)}
    return "\n".join(
        [
            f"epsearch crash report, {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
            "",
            "arguments, one a line:",
            *(f"  {argument}" for argument in sys.argv[1:]),
            f"folder: {_folder()}",
            # A database's URL that the environment gave stands nowhere else.
            *(f"{name}={_said(name, value)}" for name, value in _ours().items()),
            f"Python {platform.python_version()} on {platform.platform()}",
            *(f"{name} {version}" for name, version in versions.items()),
            "",
            *([workers, ""] if workers else []),
            "".join(traceback.format_exception(error)),
        ]
    )


SERVER = "EPSEARCH_SERVER"


def given_urls() -> list[LedgerUrl]:
    """URLs of the command line and the environment: those whose passwords may stand in what is printed."""
    # Of a ledger's URL only the variable's name is printed; a service's, which has no password, as it is.
    named = ((value, "" if name == SERVER else name) for name, value in _ours().items())
    given = [*((text, "") for text in sys.argv[1:]), *named]
    return [LedgerUrl(text, variable) for text, variable in given if "://" in text]


def _ours() -> dict[str, str]:
    """Variables of the environment that epsearch reads."""
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith("EPSEARCH_")}


def _said(name: str, value: str) -> str:
    """What may be said of a variable: a service's tokens are secrets, and URLs may have passwords."""
    return "tokens" if name == TOKENS else "a URL" if "://" in value else value


def _folder() -> str:
    """The working directory, from which relative paths among the arguments go."""
    try:
        return os.getcwd()
    except OSError:
        return "gone"
