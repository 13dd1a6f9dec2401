"""CUDA graphs on the CPU: a step is recorded operator by operator, with the arrays that these had, and replayed."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from trainers.engines import make_engine
from trainers.engines.batched.graphs import WARM, Graphs


class Recorder(TorchDispatchMode):
    """Operators in their order; what a step makes anew keeps its place in memory, as in a graph's pool."""

    def __init__(self):
        super().__init__()
        self.operators = []

    def __torch_dispatch__(self, operator, types, arguments=(), named=None):
        named = named or {}
        given = [one.untyped_storage().data_ptr() for one in tree_leaves((arguments, named)) if _tensor(one)]
        result = operator(*arguments, **named)
        fresh = [
            one if _tensor(one) and one.untyped_storage().data_ptr() not in given else None for one in _all(result)
        ]
        self.operators.append((operator, arguments, named, fresh))
        return result

    def replay(self):
        for operator, arguments, named, fresh in self.operators:
            for place, made in zip(fresh, _all(operator(*arguments, **named)), strict=True):
                if place is not None:
                    place.copy_(made)

    def reset(self):
        self.operators.clear()


class Emulated(Graphs):
    """Records without a device; `fault` changes what was recorded."""

    def __init__(self, fault=lambda recorder: None):
        super().__init__()
        self.recorded, self.replayed, self._fault = 0, 0, fault

    def take(self, step, count, segment, arrays):
        self._arrays = arrays
        super().take(step, count, segment, arrays)

    def _wait(self):
        pass

    def _record(self, step):
        for _ in range(WARM):
            step()
        before = [one.clone() for one in self._arrays]
        recorder = Recorder()
        with recorder:
            step()
        for array, value in zip(self._arrays, before, strict=True):  # a device only records
            array.copy_(value)
        self._fault(recorder)
        self.recorded += 1
        return recorder


def stands_still(recorder):
    """Whose replay takes the same step again: the last operator moves its number on."""
    operator, *_ = recorder.operators.pop()
    assert "add_" in str(operator)


def emulated(fault=lambda recorder: None):
    """`make_engine`, whose engines record graphs where they would on a GPU."""

    def make(cohort, seeds, stream, architecture, path):
        engine = make_engine(cohort, seeds, stream, architecture, path)
        if getattr(engine, "recordable", False):
            engine.graphs = Emulated(fault)
            if hasattr(engine._feed, "_uploaded"):  # NumPy's part of a batch is no operator of torch
                engine._feed._uploaded = torch.from_numpy(stream.pixels)
        return engine

    return make


def _all(result):
    return result if isinstance(result, (tuple, list)) else (result,)


def _tensor(value):
    return isinstance(value, torch.Tensor)
