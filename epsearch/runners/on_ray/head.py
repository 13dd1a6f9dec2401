"""The process that starts a private Ray and watches it, for `private`; a program: CORES [FOLDER].

It writes JSON objects to standard output, one a line: the address of its Ray, then what has been lost. It ends, and
its Ray with it, when its standard input is closed.
"""

import json
import logging
import os
import sys
import threading
import time
from pathlib import Path

from epsearch.runners.on_ray import ray_start
from trainers.notes import first_line

EVERY = 0.2  # seconds between two looks
OBJECT_STORE_BYTES = 10**8  # jobs and results are small; Ray would reserve 30 % of the memory


def start(cores: int, folder: Path | None = None) -> str:
    """Starts a Ray in this process, at loopback alone; returns the address of its head.

    cores: how many one-core trials it may run at a time; folder: for its own files, with a short path, None for where
    Ray has them by itself.
    """
    import ray

    with ray_start.starting():
        ray.init(
            address="local",
            _node_ip_address=ray_start.LOOPBACK,
            _temp_dir=None if folder is None else str(folder),
            num_cpus=cores,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    return str(ray.get_runtime_context().gcs_address)


def ended() -> str:
    """Which of the processes that the Ray of this process cannot do without has ended; empty while all run."""
    node = ray_start.inner("_private.worker")._global_node
    return next((f"its {kind} has ended" for kind, _ in node.dead_processes() if kind in ray_start.NEEDED), "")


def main() -> None:
    """Starts it, watches it until it is lost, and says so; see the module."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Ray prints what nobody is to read
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        address = start(int(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else None)
        print(json.dumps({"address": address}), file=answers, flush=True)
        while not (what := ended()):
            time.sleep(EVERY)
    except Exception as error:  # noqa: BLE001  whatever it is, it is Ray's, and told to who asked for it
        what = first_line(error)
    print(json.dumps({"lost": what}), file=answers, flush=True)
    _end()


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    _end()


def _end() -> None:
    """Ends this process at once, and all that it has started."""
    for process in ray_start.started():
        process.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
