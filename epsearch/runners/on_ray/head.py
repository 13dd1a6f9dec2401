"""Starts and watches a private Ray in a process of its own; a program: CORES [FOLDER].

It writes JSON objects to standard output, one a line: the address of its Ray, then the reason of its loss. It ends,
with its Ray, when its standard input is closed.
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

POLL_SECONDS = 0.2
OBJECT_STORE_BYTES = 10**8  # jobs and results are small; Ray would reserve 30 % of the memory


def start(cores: int, folder: Path | None = None) -> str:
    """Starts a Ray at loopback; returns the address of its head.

    cores: number of one-core trials at a time; folder: for its files, with a short path, None for Ray's default.
    """
    import ray

    with ray_start.allow_slow_start():
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


def loss() -> str:
    """Returns the essential process of this Ray that has ended, in words; empty while all run."""
    node = ray_start.private_module("_private.worker")._global_node
    return next((f"its {kind} has ended" for kind, _ in node.dead_processes() if kind in ray_start.NEEDED), "")


def main() -> None:
    """Starts a Ray, and watches it until it is lost."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # discards Ray's own output
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        address = start(int(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else None)
        print(json.dumps({"address": address}), file=answers, flush=True)
        while not (reason := loss()):
            time.sleep(POLL_SECONDS)
    except Exception as error:  # noqa: BLE001  any error of Ray's is reported to the driver
        reason = first_line(error)
    print(json.dumps({"lost": reason}), file=answers, flush=True)
    _end()


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    _end()


def _end() -> None:
    """Ends this process and its Ray at once."""
    for process in ray_start.processes():
        process.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
