"""Crash reports: files with all data of a bug, without passwords."""

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

SERVER, TOKEN, TOKENS = "EPSEARCH_SERVER", "EPSEARCH_TOKEN", "EPSEARCH_TOKENS"
"""Variables: a service and the token for it, of its clients; the tokens that a service accepts."""


def write(error: BaseException, workers: str = "", urls: Sequence[LedgerUrl] = ()) -> str:
    """Writes the report of an error to the cache or temporary folder; returns its path in words.

    workers: the traceback of another process, for a bug there. Passwords of `urls`, and of URLs on the command line and
    in the environment, are masked. Returns other words where neither folder is writable.
    """
    text = without_passwords(report(error, workers), [*option_urls(), *urls])
    name = f"crash-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    for folder in (cache_folder() / "crashes", Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / name
            # File names among the arguments may be invalid UTF-8.
            file.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError:
            continue
        return f"please send us the crash report {file}"
    return "no crash report could be written"


def report(error: BaseException, workers: str = "") -> str:
    """Returns error, command, environment and versions; it may contain passwords."""
    from epsearch.machine import PACKAGES, installed_version  # late, as this module is imported before all others

    versions = {name: installed_version(name) or "not installed" for name in ("epsearch", *PACKAGES)}
    return "\n".join(
        [
            f"epsearch crash report, {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
            "",
            "arguments, one a line:",
            *(f"  {argument}" for argument in sys.argv[1:]),
            f"folder: {_folder()}",
            # Variables that epsearch reads, such as a database's URL.
            *(f"{name}={_mask(name, value)}" for name, value in _variables().items()),
            f"Python {platform.python_version()} on {platform.platform()}",
            *(f"{name} {version}" for name, version in versions.items()),
            "",
            *([workers, ""] if workers else []),
            "".join(traceback.format_exception(error)),
        ]
    )


def option_urls() -> list[LedgerUrl]:
    """Returns URLs of the command line and the environment, whose passwords must be masked."""
    # A ledger's URL is printed as its variable's name; a service's has no password.
    named = ((value, "" if name == SERVER else name) for name, value in _variables().items())
    texts = [*((text, "") for text in sys.argv[1:]), *named]
    return [LedgerUrl(text, variable) for text, variable in texts if "://" in text]


def _variables() -> dict[str, str]:
    """Returns the environment variables of epsearch."""
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith("EPSEARCH_")}


def _mask(name: str, value: str) -> str:
    """Returns a variable's value, without tokens and URLs, which may have passwords."""
    return "masked" if name in (TOKEN, TOKENS) else "a URL" if "://" in value else value


def _folder() -> str:
    """Returns the working directory, to which relative paths refer."""
    try:
        return os.getcwd()
    except OSError:
        return "gone"
