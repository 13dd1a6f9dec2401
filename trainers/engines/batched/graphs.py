"""Records steps as CUDA graphs and replays them.

A replay has not the cost of launching kernels one by one. A graph holds one step, which reads its number on the device:
what is left over between two looks or two refreshes needs no other. It is trusted after it has taken steps as the code
itself takes them. torch's recorder has bugs where memory ends or a graph is destroyed while others live; what is done
about each stands in docs/gpu.md.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from trainers.notes import first_line, notify

WARM = 2  # steps by which the libraries are set up on the stream that records
PROVEN = 2  # steps that a graph and the code must take alike: with one, a graph that stands still might pass
SPARE = 1.2  # of the memory that a step takes, what must be free for a graph, which has its own
ROUNDING = 10  # of the difference of two runs of the code itself, where these are not the same bit for bit

Step = Callable[[], object]


class GraphMismatch(RuntimeError):
    """A recorded step does something else than the code it was recorded from; the message is one line."""


_refused: list[str] = []  # why this process records no graphs


def refuse(why: str) -> None:
    """Ends the use of CUDA graphs in this process, and tells the user why, once."""
    if not _refused:
        notify(f"steps are taken without CUDA graphs: {why}")
    _refused.append(why)


def refuses_graphs() -> bool:
    """Returns whether steps are taken without graphs in this process, for whatever reason."""
    return bool(_refused)


class Graphs:
    """The graphs of one engine, all in one pool of memory: they are replayed one after another."""

    def __init__(self) -> None:
        self._recorded: dict[tuple[int, ...], tuple[torch.cuda.CUDAGraph, Sequence[Tensor]]] = {}
        self._pool: Any = None  # what torch calls a handle
        self._stream: torch.cuda.Stream | None = None

    def take(self, step: Step, count: int, segment: int, arrays: Sequence[Tensor]) -> None:
        """Takes so many steps of a segment, from a graph where there is one or they are enough to record and prove it.

        step: takes one; arrays: all that it changes, and what it reads of the learners. Raises GraphMismatch.
        """
        # A graph holds addresses. The arrays are kept with it, so that no others can have them.
        key = (segment, *(array.data_ptr() for array in arrays))
        if key not in self._recorded and count >= WARM + PROVEN and not _refused:
            count -= WARM
            if (graph := self._record(step)) is not None:
                count -= PROVEN
                prove(graph.replay, step, arrays)
                self._recorded[key] = graph, arrays
        take = self._recorded[key][0].replay if key in self._recorded else step
        for _ in range(count):
            take()

    def clear(self) -> None:
        """Forgets all graphs, together: one that is destroyed may take a workspace with it that others still use."""
        if self._recorded:
            self._wait()
            for graph, _ in self._recorded.values():
                graph.reset()
            self._recorded.clear()
            self._pool = None  # torch takes no graph into a pool that has been empty

    @property
    def used(self) -> bool:
        """True if steps have been recorded."""
        return bool(self._recorded)

    def _wait(self) -> None:
        torch.cuda.synchronize()

    def _record(self, step: Step) -> torch.cuda.CUDAGraph | None:
        """Takes `WARM` steps and records one, which changes nothing; None where that cannot be."""
        self._stream = self._stream or torch.cuda.Stream()  # type: ignore[no-untyped-call]
        work = _warm_up(step, self._stream)
        if torch.cuda.mem_get_info()[0] < SPARE * work:
            refuse(f"a step takes {work / 2**30:.1f} GiB, and there is no room for a graph beside it")
            return None
        graph = torch.cuda.CUDAGraph()
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        try:
            # Other threads may copy or allocate meanwhile, which "global" takes for a fault of ours.
            with torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local"):
                step()
        except RuntimeError as error:
            # torch may leave the recording stream current, and lose the pool's memory for good.
            torch.cuda.set_stream(torch.cuda.default_stream())
            refuse(f"torch cannot record one here ({first_line(error)})")
            return None
        return graph


def _warm_up(step: Step, stream: torch.cuda.Stream) -> int:
    """Takes `WARM` steps on the stream that will record, for which libraries have workspaces; the bytes they took."""
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()  # a graph's memory comes from the driver
    return int(torch.cuda.max_memory_allocated() - before)


def prove(replay: Step, step: Step, arrays: Sequence[Tensor], count: int = PROVEN) -> None:
    """Takes so many steps by replay and, from where they began, by the code; its outcome stays.

    arrays: all that a step changes. Raises GraphMismatch where they are not the same bit for bit, unless the code is
    not the same as itself either: then where they differ by more than `ROUNDING` times as much.
    """
    start = _copies(arrays)
    _run(replay, count)
    replayed = _copies(arrays)
    _from(start, arrays, step, count)
    if _same(replayed, arrays):
        return
    stepped = _copies(arrays)
    _from(start, arrays, step, count)
    if distance(replayed, stepped) > ROUNDING * distance(stepped, arrays):
        raise GraphMismatch(
            "a CUDA graph takes other steps than the code it was recorded from: this GPU, its driver or torch is at "
            "fault, and nothing of this cohort is stored"
        )


def distance(some: Sequence[Tensor], others: Sequence[Tensor]) -> float:
    """Returns the largest relative difference of two arrays of the same place; infinite where whole numbers differ."""
    largest = 0.0
    for array, other in zip(some, others, strict=True):
        if not _same([array], [other]):
            far = (array - other).norm() / array.norm() if array.is_floating_point() else torch.tensor(torch.inf)
            largest = max(largest, float(far.nan_to_num(torch.inf)))
    return largest


def _run(step: Step, count: int) -> None:
    for _ in range(count):
        step()


def _from(start: Sequence[Tensor], arrays: Sequence[Tensor], step: Step, count: int) -> None:
    for array, value in zip(arrays, start, strict=True):
        array.copy_(value)
    _run(step, count)


def _copies(arrays: Sequence[Tensor]) -> list[Tensor]:
    return [array.clone() for array in arrays]


def _same(some: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    """Returns True if all tensors are equal bit for bit.

    A member that has diverged holds NaN, which does not equal itself.
    """
    bits = (
        (one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8))
        for one, other in zip(some, others, strict=True)
    )
    return all(torch.equal(one, other) for one, other in bits)
