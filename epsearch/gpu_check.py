"""The self-check of this machine's GPU: made before anything is trained on it, and kept in the cache folder."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from epsearch.cache import cache_folder
from epsearch.machine import gpu_kind
from trainers.cohort import PROTOCOL_VERSION, Architecture, Learner
from trainers.numeric_path import NumericPath
from trainers.persistence import sealed
from trainers.streams.base import TaskStream

VERSION = 1  # of the check
MARK, AGAIN = "self-checks of GPUs", "the GPU is checked again"
FOREIGN = "own"  # in the place of a result: a trainer's arithmetic is its own
WITHOUT = "nographs"  # begins what is found where graphs disagree

# Outcomes, by key, of a process that records no graphs, as they had no room or disagreed for another method: of graphs
# nothing was learnt, and another process checks again.
_of_this_process: dict[str, str] = {}


@contextmanager
def proving(
    learner: Learner,
    stream: TaskStream,
    architecture: Architecture,
    path: NumericPath,
    parts: Mapping[str, Mapping[str, str]] | None = None,
) -> Iterator[str]:
    """Within it learners such as this one may be trained; yields what the self-check says, as a record has it.

    The check is made now, unless it is known what it says; of a CPU it says nothing. Where graphs alone disagree, this
    process uses none from now on, and one line says so; where they do later, in a training, that is kept, too.

    parts: what code of others is made of. Raises SelfCheckFailed.
    """
    if path.device != "cuda":
        yield ""
        return
    from trainers.engines.batched.graphs import GraphMismatch, refuse, refused
    from trainers.engines.self_check import check

    key = json.dumps([gpu_kind(), _subject(learner, stream, architecture), str(path), parts or {}], sort_keys=True)
    if (found := _known().get(key) or _of_this_process.get(key)) is None:
        found = str(check(learner, stream, architecture, path))
        if found.startswith(WITHOUT) or not refused():
            _keep(key, found)
        else:
            _of_this_process[key] = found
    if found.startswith(WITHOUT):
        refuse("the self-check found that they take other steps on this GPU than the code they are recorded from")
    try:
        yield found
    except GraphMismatch:
        _keep(key, f"{WITHOUT}-{found.partition('-')[2]}")
        raise


def _subject(learner: Learner, stream: TaskStream, architecture: Architecture) -> list[object]:
    """What the outcome depends on besides the GPU and its numeric path: method, network, head and how these are set."""
    head = "joint" if getattr(stream, "attributes", None) is not None else "linear"
    words = {name: value for name, value in vars(learner.shared).items() if isinstance(value, str)}
    inputs = "" if architecture.residual else getattr(stream, "inputs", "") or stream.pixels.shape[1:]  # type: ignore[attr-defined]
    widths = architecture.hidden if architecture.perceptron else ()
    return [VERSION, PROTOCOL_VERSION, learner.method, words, architecture.network, widths, inputs, head]


def _keep(key: str, found: str) -> None:
    path = cache_folder() / "gpu-checks"
    with suppress(OSError):  # nothing is lost but the time of checking again
        path.parent.mkdir(parents=True, exist_ok=True)
        sealed.write(path, MARK, json.dumps(_known() | {key: found}, indent=1).encode())


def _known() -> dict[str, str]:
    """Outcomes of this machine's cache folder, by key."""
    return dict(json.loads(sealed.read(cache_folder() / "gpu-checks", MARK, AGAIN) or "{}"))


def in_words(found: str) -> str:
    """What a record's self-check says, for a report.

    >>> in_words("graphs-4e-06")
    'the steps agree with float64 (4e-06 of a step in the median); CUDA graphs take the same steps bit for bit'
    >>> in_words("nographs-4e-06")
    'the steps agree with float64 (4e-06 of a step in the median); CUDA graphs did not, and were not used'
    >>> in_words("")
    'trained before there was a self-check'
    """
    kind, _, figure = found.partition("-")
    graphs = {
        "graphs": "; CUDA graphs take the same steps bit for bit",
        "nographs": "; CUDA graphs did not, and were not used",
    }
    if not figure:
        return "of a trainer of its own arithmetic" if found == FOREIGN else "trained before there was a self-check"
    return f"the steps agree with float64 ({figure} of a step in the median){graphs.get(kind, '')}"
