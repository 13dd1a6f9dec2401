"""The guard process of a plug-in trainer.

It starts the process that trains, and ends it with all processes that it has started. `python -m trainers.foreign.child
REQUESTS ANSWERS LIFE PARENT FOLDER`: two ends of pipes, one of a socket pair that epsearch holds the other end of,
epsearch's process, and a folder that is removed at the end. The guard goes when that end is closed or its parent is
another one, so also when epsearch was killed, and tells the status of the trainer where that went by itself. It runs no
foreign code, so nothing that a trainer does to its own threads or memory can keep it from that.
"""

import os
import select
import shutil
import signal
import sys
import time
import traceback
from contextlib import suppress
from types import FrameType

from trainers.foreign import process_tree
from trainers.foreign.shared_memory import SharedMemory

EVERY = 0.1  # seconds between two looks at who has ended
TIDYING = 5.0  # seconds that helpers have to remove shared memory of processes that were killed
WAIT_SECONDS = 10.0  # seconds that killed processes have to go; one that waits for a disk may take longer


def main(arguments: list[str]) -> None:
    """As the module says."""
    requests, answers, life, parent = (int(one) for one in arguments[:4])
    process_tree.become_subreaper()
    memory = SharedMemory()
    guard, trainer = os.getpid(), os.fork()
    if trainer == 0:
        os.close(life)
        _train(requests, answers, guard, memory)
    os.close(requests)
    os.close(answers)
    with open(os.devnull, "r+b") as nowhere:
        for stream in (1, 2):  # else it would hold the trainer's output open
            os.dup2(nowhere.fileno(), stream)
    signal.signal(signal.SIGTERM, _leave)
    try:
        _watch(trainer, life, parent, memory)
    finally:
        _end(guard, memory)
        shutil.rmtree(arguments[4], ignore_errors=True)


def _train(requests: int, answers: int, guard: int, memory: SharedMemory) -> None:
    """Runs the trainer in the new process; never returns."""
    status = os.EX_SOFTWARE
    try:
        os.setsid()  # whoever kills its own group leaves the guard out
        process_tree.die_with_parent()
        if os.getppid() == guard:
            from trainers.foreign.inside.main import serve

            serve(requests, answers)
            status = os.EX_OK
    except BaseException:  # noqa: BLE001  the guard's own code must not run here
        traceback.print_exc()
    finally:
        with suppress(Exception):  # whatever a trainer has done to its process
            memory.record([os.getpid()])
            memory.remove(but=os.getpid())
        os._exit(status)  # threads that were left behind would be waited for


def _watch(trainer: int, life: int, parent: int, memory: SharedMemory) -> None:
    """Returns when the trainer has ended, which is told, or is to be ended."""
    while os.getppid() == parent:
        if memory.grows():
            memory.record(one.pid for one in process_tree.descendants(os.getpid()))
        while ended := _reaped():
            if ended[0] == trainer:
                with suppress(OSError):
                    os.write(life, f"{os.waitstatus_to_exitcode(ended[1])}\n".encode())
                return
        if select.select([life], [], [], EVERY)[0]:
            return


def _end(guard: int, memory: SharedMemory) -> None:
    """Ends all that is below the guard; where it adopts orphans, nothing is once it has no child."""
    begun = time.monotonic()
    while time.monotonic() < begun + WAIT_SECONDS:
        # Again, as a look misses the children of a process that ends meanwhile.
        memory.record(one.pid for one in process_tree.descendants(guard))
        process_tree.end(lambda: process_tree.descendants(guard, tidying=time.monotonic() > begun + TIDYING))
        while ended := _reaped():
            pass
        if ended is None:
            break
        time.sleep(EVERY / 10)
    memory.remove()


def _reaped() -> tuple[int, int] | None:
    """Returns (process, status) of one that has ended; () where none has, None where there are none."""
    try:
        found = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return found if found[0] else ()  # type: ignore[return-value]


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main(sys.argv[1:])
