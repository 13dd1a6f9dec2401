"""The processes in which studies are trained: each leads a group of its own, and outlives the service."""

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from epsearch.ledger import evaluation_log
from epsearch.ledger.location import FILE, VARIABLE
from epsearch.service.access.tokens import VARIABLE as TOKENS
from epsearch.service.settings import Settings

LOG = "service.log"
LAST_BYTES = 4096
PROBE_BYTES = 4096


class Process:
    """One study's process."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name, self._log = name, settings.out / name / LOG
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._begins = log.tell()
            self._process = subprocess.Popen(
                _command(name, settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(settings),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Of the process, which is that of its group."""
        return self._process.pid

    def status(self) -> int | None:
        """Its exit status, negative for a signal; None while it is there."""
        return self._process.poll()

    def interrupt(self) -> None:
        """Lets it end in good order: after the last stored cohort."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def last_words(self) -> str:
        """The line that said why it ended; "" without one."""
        with suppress(OSError), self._log.open("rb") as log:
            log.seek(max(self._begins, log.seek(0, os.SEEK_END) - LAST_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
            said = [line.removeprefix("epsearch: ") for line in lines if line.startswith("epsearch: ")]
            return said[-1] if said else ""
        return ""


def probe(folder: Path) -> None:
    """Writes some bytes into a folder that is there, and leaves nothing. Raises OSError where it cannot."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(PROBE_BYTES))
        file.flush()


def _command(name: str, settings: Settings) -> list[str]:
    command = [sys.executable, "-m", "epsearch.service.work.job"]
    command += ["--out", str(settings.out), "--data-dir", str(settings.data_dir), "--address", settings.address]
    command += ["--checkpoints", settings.checkpoints] if settings.checkpoints else []
    return [*command, "--", name]  # whatever the name, it is no option


def environment(settings: Settings) -> dict[str, str]:
    """That of a study's process: ours without the tokens, with the ledger's URL where that is no file in the folder.

    Without the file of looks of whoever has started the service: others use it, too.
    """
    environment = {name: value for name, value in os.environ.items() if name not in (TOKENS, VARIABLE)}
    environment[evaluation_log.VARIABLE] = evaluation_log.NONE
    in_folder = (settings.out / FILE).absolute()
    if settings.storage.file != in_folder:
        environment[VARIABLE] = settings.storage.revealed
    return environment
