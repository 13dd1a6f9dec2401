"""Log files of what plug-in trainers print: appended to, and bounded in size.

A log is a help to its reader and no result: whatever fails while it is written is passed over.
"""

import os
from contextlib import suppress
from pathlib import Path

MOST = 2**20  # bytes that are kept, the last ones
SLACK = MOST // 4  # more of them until the file is cut, or every line would write all of it again


def append(path: Path, chunk: bytes) -> bool:
    """Appends to a log, and cuts its beginning if it is too long; returns whether that was possible.

    The folder must exist: one that was removed meanwhile is not made again.
    """
    try:
        with open(path, "ab") as file:
            file.write(chunk[-MOST:])
            size = file.tell()
        if size > MOST + SLACK:
            cut(path)
    except OSError:
        return False
    return True


def cut(path: Path) -> None:
    """Removes all but the last MOST bytes of a log, and a line that is cut in two. Raises OSError."""
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END) <= MOST:
            return
        file.seek(-MOST, os.SEEK_END)
        content = file.read()
    beside = path.with_name(f"{path.name}.{os.getpid()}.cut")
    try:
        beside.write_bytes(content[content.find(b"\n") + 1 :])
        os.replace(beside, path)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise
