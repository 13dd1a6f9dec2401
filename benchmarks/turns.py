"""Candidates that take turns: each is a process of its own that waits for a request on standard input and answers it.

Rates measured one after the other differ by what else the machine did meanwhile. Here all candidates are started
first; then one after the other works for a second or so while the rest sleep, and the turns repeat. Standard library
only: candidates of other environments import this file too.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def environment(threads: int, *paths: Path) -> dict[str, str]:
    """Of a process that imports what lies in these folders."""
    places = {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    return os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads)) | places


class Ended(SystemExit):
    """A candidate that ended by itself; its own words are on standard error."""


class Candidate:
    """The driver's side: a running process, and requests to it."""

    def __init__(self, command: Sequence[str], threads: int, source: Path = ROOT) -> None:
        """`source` is the checkout that the process imports from."""
        self._name = " ".join(command)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(threads, source, source / "benchmarks"),
        )

    def ask(self, **request: Any) -> None:
        assert self._process.stdin is not None
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise Ended(f"this candidate ended by itself: {self._name}") from None

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Ended(f"this candidate ended by itself: {self._name}")
        content: dict[str, Any] = json.loads(line)
        return content

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def together(candidates: Sequence[Candidate], **request: Any) -> list[dict[str, Any]]:
    """All of them at the same time; returns their answers."""
    for candidate in candidates:
        candidate.ask(**request)
    return [candidate.answer() for candidate in candidates]


def rate(answers: Sequence[dict[str, Any]]) -> float:
    """Steps per second of processes that work side by side."""
    return float(sum(answer["steps"] / answer["seconds"] for answer in answers))


def summary(values: Sequence[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def serve(work: Callable[..., dict[str, Any]]) -> None:
    """The candidate's side: answers every request with what `work` returns, until the driver hangs up."""
    for request, answer in requests():
        answer(work(**request))


def requests() -> Iterator[tuple[dict[str, Any], Callable[[dict[str, Any]], None]]]:
    """Requests and how to answer them. Whatever else prints to standard output is sent to standard error."""
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        yield json.loads(line), lambda answer: print(json.dumps(answer), file=out, flush=True)
