"""A process that imports a plug-in trainer, and is copied for each learner: a copy has all of the import, and no more.

What a copy would share with others, or would lack, is found here: then the import is not used.
"""

import json
import os
import random
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NoReturn

import numpy as np

from trainers.foreign import guarding, process_tree
from trainers.foreign.declaration import reference_of
from trainers.foreign.guard import JOB, PREPARE, TEMPORARY
from trainers.foreign.inside.loader import import_trainer
from trainers.foreign.inside.main import serve as serve_one
from trainers.foreign.inside.seeds import Seeds
from trainers.foreign.messages import plain
from trainers.foreign.shared_memory import SharedMemory
from trainers.plugins.calls import ForeignError, forget
from trainers.plugins.source import Source

PROC = Path("/proc/self")
FIRST_STEP = "torch._dynamo"  # which torch imports when the first optimizer is made, and for seconds
LONGEST = 80  # characters of a file's name


def serve(control: int, guard: int, folder: Path) -> None:
    """Imports the trainer of the folder's job, answers whether that can be copied, and makes copies until it is left.

    An answer is a line: {"process", "why", "seconds"}, where "why" follows "its import" and is "" if it can be copied,
    or None where it failed, and "seconds" are those of the import; and then {"trainer"}, the process of each copy. A
    request has one byte and the ends of three pipes; or it is PREPARE, to import what learners need besides a
    declaration, which is answered as the import is.
    """
    epsearch = socket.socket(fileno=control)
    place = folder / JOB
    job = json.loads(place.read_text(encoding="utf-8"))
    place.unlink()
    seeds = Seeds(0, 1)
    why = _import(job, folder / TEMPORARY, seeds)
    seconds = time.time() - job["begun"]
    _answer(epsearch, {"process": os.getpid(), "why": why, "seconds": seconds})
    if why == "":
        guarding.silence()
    while why == "":
        request, ends, _, _ = socket.recv_fds(epsearch, 1, 3)
        if request == PREPARE:
            begun, why = time.time(), _prepare(seeds, _open_files(), folder / TEMPORARY)
            _answer(epsearch, {"process": os.getpid(), "why": why, "seconds": seconds + time.time() - begun})
        elif len(ends) != 3 or not _copy(epsearch, guard, ends):
            return
        for end in ends:
            os.close(end)


def _copy(epsearch: socket.socket, guard: int, ends: list[int]) -> bool:
    """Makes a copy that the guard adopts, as the process between them ends at once; returns False if it cannot."""
    if between := os.fork():
        return os.waitpid(between, 0)[1] == os.EX_OK
    status = os.EX_OSERR
    try:
        between = os.getpid()
        if trainer := os.fork():
            _answer(epsearch, {"trainer": trainer})
            status = os.EX_OK
        else:
            _train(epsearch, guard, between, ends)
    finally:
        os._exit(status)


def _train(epsearch: socket.socket, guard: int, between: int, ends: list[int]) -> NoReturn:
    requests, answers, printed = ends
    epsearch.close()
    for stream in (1, 2):
        os.dup2(printed, stream)
    os.close(printed)
    while os.getppid() == between:
        time.sleep(0.0005)
    guarding.run(partial(serve_one, requests, answers), guard, SharedMemory())


def _answer(epsearch: socket.socket, said: Mapping[str, Any]) -> None:
    epsearch.sendall(f"{json.dumps(said)}\n".encode())


def _import(job: Mapping[str, Any], temporary: Path, seeds: Seeds) -> str | None:
    """Returns the reason why copies cannot have the import, in words that follow "its import"; None if it fails.

    It is "" if they can. Each copy reads the source from the disk again, so that none trains with changed files.
    seeds: are begun.
    """
    files = _open_files()
    seeds.begin(0)
    try:
        _, source = import_trainer(job["reference"], job["path"], job["expected"])
    except ForeignError:
        return None
    seeds.release()
    forget(reference_of(job["reference"])[0])
    why = (_check if job["kind"] == "declare" else _prepare)(seeds, files, temporary)
    return why or ("keeps a random generator" if _generators(source) else "")


def _prepare(seeds: Seeds, files: Mapping[str, str], temporary: Path) -> str:
    """Imports the modules that the first optimizer of torch imports; then checks as `_check`."""
    if "torch" in sys.modules:
        with suppress(Exception):
            import_module(FIRST_STEP)
    return _check(seeds, files, temporary)


def _check(seeds: Seeds, files: Mapping[str, str], temporary: Path) -> str:
    """Returns the reason why this process cannot be copied, in words; "" where it can.

    files: those open before.
    """
    opened = [name for end, name in _open_files().items() if files.get(end) != name]
    if threads := _threads():
        return f"starts {threads}"
    if process_tree.descendants(os.getpid()):
        return "starts a process"
    if opened:
        return f"opens {plain(opened[0], LONGEST)}"
    if _shares_memory():
        return "shares memory between processes"
    if not all(path.is_dir() for path in temporary.rglob("*")):
        return "writes temporary files"
    return "" if seeds.untouched() else "draws or seeds random numbers"


def _open_files() -> dict[str, str]:
    """Returns end -> what it is open on."""
    files = {}
    for end in os.listdir(PROC / "fd"):
        with suppress(OSError):  # that of the folder itself
            files[end] = os.readlink(PROC / "fd" / end)
    return files


def _threads() -> str:
    """Returns the threads besides the main one, in words; "" without any. Those of libraries count, too."""
    others = [thread for thread in os.listdir(PROC / "task") if thread != str(os.getpid())]
    if not others:
        return ""
    name = plain((PROC / "task" / others[0] / "comm").read_text(encoding="utf-8", errors="replace").strip())
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return f"a thread ({name}){more}"


def _shares_memory() -> bool:
    """Returns whether it has mapped memory that copies would write for each other."""
    lines = (PROC / "maps").read_text(encoding="utf-8", errors="replace").splitlines()
    return any(line.split()[1].endswith("s") and "w" in line.split()[1] for line in lines)


def _generators(source: Source) -> bool:
    """Returns whether a module of the trainer has a generator, or a value with one: copies would share its state."""
    kinds: tuple[type, ...] = (random.Random, np.random.Generator, np.random.RandomState)
    if (torch := sys.modules.get("torch")) is not None:
        kinds += (torch.Generator,)
    modules = [module for module in list(sys.modules.values()) if source.name(getattr(module, "__file__", None) or "")]
    values = [value for module in modules for value in list(vars(module).values())]
    return any(isinstance(part, kinds) for value in values for part in (value, *_parts(value)))


def _parts(value: Any) -> list[Any]:
    """Returns the values in a class, an object or a collection, and the defaults of a function."""
    if isinstance(value, ModuleType):  # that of Python has one, which is seeded for each task
        return []
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, FunctionType):
        return [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    with suppress(Exception):  # an object may answer anything
        return list(dict(vars(value)).values())
    return []
