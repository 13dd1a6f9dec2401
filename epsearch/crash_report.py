"""A file with all that is needed to mend a fault of ours, and with no password in it."""

import os
import platform
import re
import sys
import tempfile
import traceback
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

from epsearch.cache import cache_folder

PASSWORD = re.compile(r"://[^:/@\s]*:(.*)@|(?i:password)=([^&\s]*)")
HIDDEN = "***"
SHORTEST_ALONE = 4  # characters of a password that is looked for outside of URLs, too


def write(error: BaseException, workers: str = "") -> str:
    """Writes the report of an error to the cache folder, or to that of temporary files; says where it lies.

    workers: the traceback of another process, where the fault is there.
    """
    text = without_secrets(report(error, workers))
    name = f"crash-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    for folder in (cache_folder() / "crashes", Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / name
            file.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError:
            continue
        return f"please send us the crash report {file}"
    return "no crash report could be written"


def report(error: BaseException, workers: str = "") -> str:
    """What happened, to which command, with which versions: text that may still hold passwords."""
    from epsearch.machine import PACKAGES, installed

    versions = {name: installed(name) or "not installed" for name in ("epsearch", *PACKAGES)}
    ours = {name: value for name, value in sorted(os.environ.items()) if name.startswith("EPSEARCH_")}
    lines = [
        f"epsearch crash report, {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
        "",
        "arguments, one a line:",
        *(f"  {argument}" for argument in sys.argv[1:]),
        f"folder: {_folder()}",
        *(f"{name}={value}" for name, value in ours.items()),
        f"Python {platform.python_version()} on {platform.platform()}",
        *(f"{name} {version}" for name, version in versions.items()),
        "",
        *([workers, ""] if workers else []),
        "".join(traceback.format_exception(error)),
    ]
    return "\n".join(lines)


def without_secrets(text: str) -> str:
    """The text without the passwords of URLs in it, wherever else they stand, quoted or not.

    >>> without_secrets("--storage postgresql://me:s%2Fcret@host/db failed: s/cret is wrong")
    '--storage postgresql://me:***@host/db failed: *** is wrong'
    """
    found = {secret for groups in PASSWORD.findall(text) for secret in groups if secret}
    text = PASSWORD.sub(lambda match: match[0].replace(match[1] or match[2] or HIDDEN, HIDDEN), text)
    alone = {form for secret in found for form in (secret, unquote(secret)) if len(form) >= SHORTEST_ALONE}
    for secret in sorted(alone, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "gone"
