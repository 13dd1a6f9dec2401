"""Self-check of this machine's GPU, made before a training, and cached."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from epsearch.cache import cache_folder
from epsearch.machine import gpu_kind
from trainers.cohort import PROTOCOL_VERSION, Architecture, Learner
from trainers.numeric_path import NumericPath
from trainers.persistence import checked_files
from trainers.streams.base import TaskStream

VERSION = 1  # of the check
MARK, CONSEQUENCE = "self-checks of GPUs", "the GPU is checked again"
FOREIGN = "own"  # in the place of an outcome, for plug-in trainers
WITHOUT = "nographs"  # begins outcomes with graphs that disagree

# Outcomes, by key, of a process without graphs, for lack of memory or after a disagreement: another process checks them
# again.
_of_this_process: dict[str, str] = {}


@contextmanager
def checked_gpu(
    learner: Learner,
    stream: TaskStream,
    architecture: Architecture,
    path: NumericPath,
    parts: Mapping[str, Mapping[str, str]] | None = None,
) -> Iterator[str]:
    """Checks a GPU before learners like this one are trained; yields the outcome for records, "" for a CPU.

    The outcome is cached. Where only graphs disagree, this process uses none from now on, and notifies; a later
    disagreement, in a training, is cached, too. parts: of plug-ins. Raises SelfCheckFailed.
    """
    if path.device == "cpu":
        yield ""
        return
    from trainers.engines.batched.graphs import GraphMismatch, refuse, refuses_graphs
    from trainers.engines.self_check import check

    key = json.dumps(
        [gpu_kind(path.device), _subject(learner, stream, architecture), str(path), parts or {}], sort_keys=True
    )
    if (outcome := _read_outcomes().get(key) or _of_this_process.get(key)) is None:
        outcome = str(check(learner, stream, architecture, path))
        if outcome.startswith(WITHOUT) or not refuses_graphs():
            _store(key, outcome)
        else:
            _of_this_process[key] = outcome
    if outcome.startswith(WITHOUT):
        refuse("the self-check found that they take other steps on this GPU than the code they are recorded from")
    try:
        yield outcome
    except GraphMismatch:
        _store(key, f"{WITHOUT}-{outcome.partition('-')[2]}")
        raise


def _subject(learner: Learner, stream: TaskStream, architecture: Architecture) -> list[object]:
    """Returns the part of the cache key besides GPU and numeric path: method, network, head, versions."""
    head = "joint" if getattr(stream, "attributes", None) is not None else "linear"
    words = {name: value for name, value in vars(learner.shared).items() if isinstance(value, str)}
    inputs = "" if architecture.residual else getattr(stream, "inputs", "") or stream.pixels.shape[1:]  # type: ignore[attr-defined]
    widths = architecture.hidden if architecture.perceptron else ()
    return [VERSION, PROTOCOL_VERSION, learner.method, words, architecture.network, widths, inputs, head]


def _store(key: str, outcome: str) -> None:
    path = cache_folder() / "gpu-checks"
    with suppress(OSError):  # nothing is lost but the time of checking again
        path.parent.mkdir(parents=True, exist_ok=True)
        checked_files.write(path, MARK, json.dumps(_read_outcomes() | {key: outcome}, indent=1).encode())


def _read_outcomes() -> dict[str, str]:
    """Returns the outcomes in the cache folder, by key."""
    return dict(json.loads(checked_files.read(cache_folder() / "gpu-checks", MARK, CONSEQUENCE) or "{}"))


def in_words(outcome: str) -> str:
    """Returns the outcome of a record in words, for a report.

    >>> in_words("graphs-4e-06")
    'the steps agree with float64 (4e-06 of a step in the median); CUDA graphs take the same steps bit for bit'
    >>> in_words("nographs-4e-06")
    'the steps agree with float64 (4e-06 of a step in the median); CUDA graphs did not, and were not used'
    >>> in_words("")
    'trained before there was a self-check'
    """
    kind, _, figure = outcome.partition("-")
    graphs = {
        "graphs": "; CUDA graphs take the same steps bit for bit",
        "nographs": "; CUDA graphs did not, and were not used",
    }
    if not figure:
        return "of a trainer of its own arithmetic" if outcome == FOREIGN else "trained before there was a self-check"
    return f"the steps agree with float64 ({figure} of a step in the median){graphs.get(kind, '')}"
