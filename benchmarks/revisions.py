"""Revisions side by side: copied out, asked for cases in one protocol, each with a ledger that it made itself."""

import io
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import turns

HERE = Path(__file__).parent
CANDIDATE = "candidate.py"
ADAPTERS = {"candidate_before_learner.py": "class TrainConfig"}  # what trainers/cohort.py of those checkouts holds
SECONDS = 2  # that a measurement of a command takes, at least: one that is over at once runs several times
SEARCHES = 2
SEARCH = (
    "run --dataset permuted_digits --tasks 4 --cv-tasks 2 --seeds 2 --examples-per-task 60 --memory 3 --memory-batch 8 "
    "--repeats 1 --points 3 --certify 0 --runner local --device cpu --numeric-path cpu-float32-torch --quiet"
)


def candidate_of(source: Path) -> Path:
    """What answers for a checkout: its own candidate where that speaks today's protocol, else the adapter that fits.

    Raises ValueError where there is none.
    """
    own, today = source / "benchmarks" / CANDIDATE, _protocol(HERE / CANDIDATE)
    if (spoken := _protocol(own)) == today:
        return own
    declared = _text(source / "trainers" / "cohort.py")
    for adapter, sign in ADAPTERS.items():
        if spoken is None and sign in declared:
            return HERE / adapter
    raise ValueError(f"its benchmarks/{CANDIDATE} does not say PROTOCOL = {today}, and no adapter fits")


def _protocol(candidate: Path) -> int | None:
    """Which one a candidate says that it speaks."""
    match = re.search(r"^PROTOCOL = (\d+)$", _text(candidate), re.MULTILINE)
    return int(match[1]) if match else None


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


class Revision:
    """A git revision, or . for the working tree. Its candidate, a process of its own, takes cases; its commands run.

    Raises ValueError for what is neither, and where nothing takes cases for it. folder: for the checkout and for what
    commands write; in the folder around it, compiled Python is shared with other revisions.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self._name, self._folder = name, folder
        self._source = turns.ROOT if name == "." else self._checkout(folder / "source")
        try:
            self._command = [sys.executable, "-P", str(candidate_of(self._source)), "engine", "--threads", "1"]
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def candidate(self) -> turns.Candidate:
        """A new process that takes cases."""
        return turns.Candidate(self._command, 1, self._source)

    def make_ledger(self, searches: int = SEARCHES) -> None:
        """Fills the ledger that its commands find with tiny searches."""
        for number in range(searches):
            self.run([*SEARCH.split(), "--name", f"search-{number}"])

    def runs_per_second(self, command: str) -> float:
        """Of `epsearch` with these arguments, from the start of the process to its end."""
        count, started = 0, time.perf_counter()
        while (passed := time.perf_counter() - started) < SECONDS or not count:
            self.run(command.split())
            count += 1
        return count / passed

    def run(self, arguments: list[str]) -> str:
        """What `epsearch` prints. Raises ValueError where it fails."""
        work = self._folder / "work"
        work.mkdir(parents=True, exist_ok=True)
        environment = turns.environment(1, self._source) | {
            "EPSEARCH_CACHE": str(self._folder / "cache"),
            "EPSEARCH_LOOKS": "none",
            # Wherever compiled Python lies already, each revision compiles what it imports once, while it warms up.
            "PYTHONPYCACHEPREFIX": str(self._folder.parent / "bytecode"),
        }
        for name in ("EPSEARCH_STORAGE", "PYTHONDONTWRITEBYTECODE"):
            environment.pop(name, None)
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "epsearch", *arguments],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
        )
        if ended.returncode:
            said = ended.stderr.strip().splitlines() or ["nothing"]
            raise ValueError(f"{self._name}: epsearch {arguments[0]} failed: {said[-1]}")
        return ended.stdout

    def _checkout(self, folder: Path) -> Path:
        """Copied out, so that nothing stays behind in the repository."""
        packed = subprocess.run(
            ["git", "-C", str(turns.ROOT), "archive", f"{self._name}^{{commit}}"], capture_output=True
        )
        if packed.returncode:
            raise ValueError(f"{self._name!r} is neither a git revision nor . for the working tree")
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        return folder
