"""Training processes: each leads a process group of its own, and outlives the service."""

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from epsearch.failures.crash_report import SERVER, TOKEN, TOKENS
from epsearch.ledger import evaluation_log
from epsearch.ledger.location import FILE, VARIABLE
from epsearch.operating_system import interrupt, new_group
from epsearch.service.settings import Settings

LOG = "service.log"
LARGEST_LOG = 2**20  # bytes after which a new process begins a new file, and the last one is kept beside it
LAST_BYTES = 4096
PROBE_BYTES = 4096


class StudyProcess:
    """Training process of one study."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name, self._log = name, settings.out / name / LOG
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # there is none yet; Windows renames no file that is open
            if self._log.stat().st_size > LARGEST_LOG:
                self._log.replace(_earlier(self._log))
        with self._log.open("ab") as log:
            self._begins = log.tell()
            self._process = subprocess.Popen(
                _command(name, settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(settings),
                **new_group(),
            )

    @property
    def pid(self) -> int:
        """Id of the process, and of its group."""
        return self._process.pid

    def status(self) -> int | None:
        """Returns the exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def interrupt(self) -> None:
        """Asks it to end, with everything stored that is trained."""
        interrupt(self._process)

    def last_error(self) -> str:
        """Returns its last line of an error; empty if there is none."""
        with suppress(OSError), self._log.open("rb") as log:
            log.seek(max(self._begins, log.seek(0, os.SEEK_END) - LAST_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
            errors = [line.removeprefix("epsearch: ") for line in lines if line.startswith("epsearch: ")]
            return errors[-1] if errors else ""
        return ""


def output(name: str, settings: Settings, most: int) -> str:
    """Returns the last output of a study's processes, at most so many bytes; "" without any.

    Behind it stands the end of the newest log of a member, where trainers have written any.
    """
    log = settings.out / name / LOG
    text = (_end(_earlier(log), most) + _end(log, most))[-most:]
    with suppress(OSError):
        logs = sorted((settings.out / name / "logs").glob("*.log"), key=lambda file: file.stat().st_mtime)
        for newest in logs[-1:]:
            text += f"\nlogs/{newest.name}:\n".encode() + _end(newest, most // 4)
    return text.decode(errors="replace").strip("\n")


def _earlier(log: Path) -> Path:
    return log.with_name(f"{log.name}.1")


def _end(file: Path, most: int) -> bytes:
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, opened.seek(0, os.SEEK_END) - most))
            return opened.read(most)
    except OSError:
        return b""


def probe(folder: Path) -> None:
    """Writes a temporary file into an existing folder. Raises OSError if it cannot."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(PROBE_BYTES))
        file.flush()


def _command(name: str, settings: Settings) -> list[str]:
    command = [sys.executable, "-m", "epsearch.service.work.job"]
    command += ["--out", str(settings.out), "--data-dir", str(settings.data_dir), "--address", settings.address]
    command += ["--checkpoints", settings.checkpoints] if settings.checkpoints else []
    return [*command, "--", name]  # a name may look like an option


def environment(settings: Settings) -> dict[str, str]:
    """Returns the variables of a study's process: without tokens, with the ledger's URL unless it is the usual file.

    Also without the service to which commands of this user would be sent. The log of evaluations is switched off: that
    of the user who started the service is not that of its clients.
    """
    environment = {name: value for name, value in os.environ.items() if name not in (SERVER, TOKEN, TOKENS, VARIABLE)}
    environment[evaluation_log.VARIABLE] = evaluation_log.NONE
    in_folder = (settings.out / FILE).absolute()
    if settings.storage.file != in_folder:
        environment[VARIABLE] = settings.storage.revealed
    return environment
