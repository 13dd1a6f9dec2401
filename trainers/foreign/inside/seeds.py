"""Seeds the random generators that a plug-in trainer may use.

Python's, NumPy's global one, and torch's once it is imported. They are seeded anew for every task, from the seed and
the task alone, and tests do not move them: what a trainer draws depends neither on what is measured nor on whether the
run has been resumed.
"""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from trainers.schedule import generator


class Seeds:
    """The generators of a run. threads: of torch, set when it is imported, as its seed is."""

    def __init__(self, seed: int, threads: int) -> None:
        self._seed, self._threads, self._number = seed, threads, 0
        self._hook = _ImportHook("torch", self._set_torch)
        if "torch" in sys.modules:
            self._set_torch()
        else:
            sys.meta_path.insert(0, self._hook)

    def begin(self, task: int) -> None:
        """Sets the seeds of all generators for a task."""
        self._number = int(generator(self._seed, "own trainer", task).integers(2**32))
        random.seed(self._number)
        np.random.seed(self._number)
        if torch := _torch():
            torch.manual_seed(self._number)

    def release(self) -> None:
        """Leaves torch alone if it is imported from now on."""
        if self._hook in sys.meta_path:
            sys.meta_path.remove(self._hook)

    def untouched(self) -> bool:
        """Returns whether nobody has drawn anything, or has seeded a generator, since `begin`."""
        python, numpy, torch = random.Random(self._number), np.random.RandomState(self._number), _torch()
        if random.getstate() != python.getstate():
            return False
        if not all(map(np.array_equal, np.random.get_state(), numpy.get_state())):
            return False
        return torch is None or torch.equal(
            torch.get_rng_state(), torch.Generator().manual_seed(self._number).get_state()
        )

    @contextmanager
    def preserve(self) -> Iterator[None]:
        """Restores all generators after the context, as if nothing had been drawn in it."""
        python, numpy, torch = random.getstate(), np.random.get_state(), _torch()
        on_cpu = torch.get_rng_state() if torch else None
        on_gpu = torch.cuda.get_rng_state_all() if torch and torch.cuda.is_initialized() else []
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            if torch:
                torch.set_rng_state(on_cpu)
                if on_gpu:
                    torch.cuda.set_rng_state_all(on_gpu)

    def _set_torch(self) -> None:
        torch = sys.modules["torch"]
        torch.set_num_threads(self._threads)
        torch.manual_seed(self._number)


class _ImportHook(MetaPathFinder):
    """Calls something when a module has been imported for the first time."""

    def __init__(self, name: str, call: Any) -> None:
        self._name, self._call = name, call

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Finds the module as others do."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self._call()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _torch() -> Any:
    """Returns torch once it is wholly imported; None where nobody has imported it."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "manual_seed") else None
