"""The guard process of a plug-in trainer.

It starts the process that trains, and ends it with all processes that it has started. `python -m trainers.foreign.child
REQUESTS ANSWERS LIFE PARENT FOLDER`: two ends of pipes, one of a socket pair that epsearch holds the other end of,
epsearch's process, and a folder that is removed at the end. The guard goes when that end is closed or its parent is
another one, so also when epsearch was killed, and tells the status of the trainer where that went by itself. It runs no
foreign code, so nothing that a trainer does to its own threads or memory can keep it from that.
"""

import os
import shutil
import signal
import sys
from contextlib import suppress
from functools import partial

from trainers.foreign import guarding, process_tree
from trainers.foreign.shared_memory import SharedMemory
from trainers.operating_system import readable


def main(arguments: list[str]) -> None:
    """Runs the guard process, as the module says."""
    requests, answers, life, parent = (int(number) for number in arguments[:4])
    process_tree.become_subreaper()
    memory = SharedMemory()
    guard, trainer = os.getpid(), os.fork()
    if trainer == 0:
        os.close(life)
        guarding.run(partial(_serve, requests, answers), guard, memory)
    os.close(requests)
    os.close(answers)
    guarding.silence()
    signal.signal(signal.SIGTERM, guarding.leave)
    try:
        _watch(trainer, life, parent, memory)
    finally:
        guarding.end(guard, memory)
        shutil.rmtree(arguments[4], ignore_errors=True)


def _serve(requests: int, answers: int) -> None:
    from trainers.foreign.inside.main import serve

    serve(requests, answers)


def _watch(trainer: int, life: int, parent: int, memory: SharedMemory) -> None:
    """Returns when the trainer has ended, which is told, or is to be ended."""
    while os.getppid() == parent:
        if memory.grows():
            memory.record(process.pid for process in process_tree.descendants(os.getpid()))
        while ended := guarding.reap():
            if ended[0] == trainer:
                with suppress(OSError):
                    os.write(life, f"trainer {os.waitstatus_to_exitcode(ended[1])}\n".encode())
                return
        if readable(life, guarding.EVERY):
            return


if __name__ == "__main__":
    main(sys.argv[1:])
