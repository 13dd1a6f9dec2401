"""A private Ray of this run, started and watched by a process of its own (`head`): its loss is an error here.

Ray's compiled code ends a process that has started or joined a Ray when that is lost. So this process joins its Ray
only when it needs it and the Ray is ready.
"""

import json
import logging
import os
import subprocess
import sys
import threading
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path

from epsearch.failures.errors import Unavailable
from epsearch.runners.on_ray import cleanup, ray_start
from trainers.notes import first_line

HEAD = ["-P", "-m", "epsearch.runners.on_ray.head"]  # arguments of Python
STEPS = 4  # of Ray's start, each of which has START_SECONDS
POLL_SECONDS = 0.05


class PrivateRay:
    """A Ray at loopback with a process of its own, which ends with this one.

    cores: number of one-core trials at a time; folder: of this run, for Ray's files, None for Ray's default; niceness:
    of its workers, added to ours.
    """

    def __init__(self, cores: int, folder: Path | None = None, niceness: int = 0) -> None:
        self._cores, self._folder, self._niceness = cores, folder, niceness
        self._process: subprocess.Popen[str] | None = None
        self._address: Future[str] = Future()
        self._lock, self._loss, self._joined = threading.Lock(), "", False

    def start(self) -> None:
        """Starts it and waits until it answers. Raises Unavailable, also if `end` is called meanwhile."""
        os.environ |= ray_start.SETTINGS
        environment = ray_start.PRIVATE | {"RAY_worker_niceness": str(self._niceness)}
        arguments = [str(self._cores)]
        if self._folder is not None:
            environment |= cleanup.environment(self._folder)
            if len(str(self._folder.parent)) <= cleanup.LONGEST:
                arguments.append(str(self._folder))
        with self._lock:
            if self._loss:
                raise Unavailable(self._trouble("does not start here"))
            # In a session of its own, without the terminal's Ctrl-C: this process ends it.
            self._process = subprocess.Popen(
                [sys.executable, *HEAD, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | environment,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        threading.Thread(target=self._listen, args=[self._process], daemon=True).start()
        try:
            self._address.result(STEPS * ray_start.START_SECONDS)
        except TimeoutError:
            self._lose(f"it does not answer after {STEPS * ray_start.START_SECONDS} seconds")
        if self._loss:
            raise Unavailable(self._trouble("does not start here"))

    def loss(self) -> str:
        """Returns the reason of its loss; empty while it works."""
        return self._loss

    def join(self) -> None:
        """Joins this process to it. Raises Unavailable if it has been lost.

        If its raylet ends within the few hundredths of a second in which Ray registers this process, Ray ends this
        process, which cannot be prevented.
        """
        done: Future[None] = Future()
        # In a thread, which is abandoned if the head ends first: Ray would wait for it for minutes.
        if not self._loss:
            threading.Thread(target=self._join, args=[done], daemon=True).start()
        while not self._loss and not wait([done], POLL_SECONDS).done:
            pass
        if self._loss:
            raise Unavailable(self._trouble("was lost"))
        if (error := done.exception()) is not None:
            raise Unavailable(ray_start.trouble("cannot be joined", first_line(error))) from error
        self._joined = True

    def end(self) -> None:
        """Leaves it and ends its processes; waits for them only without a run's folder."""
        if self._joined:
            self._joined = False
            import ray

            ray.shutdown()
        self._lose("it is no longer needed")
        with self._lock:
            process = self._process
        if process is None or process.stdin is None:
            return
        with suppress(OSError):
            process.stdin.close()
        if self._folder is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(ray_start.START_SECONDS)

    def kill(self) -> None:
        """Kills its first process, with which the others end."""
        if self._process is not None:
            self._process.kill()

    def _join(self, done: "Future[None]") -> None:
        import ray

        try:
            ray_start.enable_token()
            with ray_start.at_loopback():
                ray.init(self._address.result(), log_to_driver=False, logging_level=logging.ERROR)
        except BaseException as error:  # noqa: BLE001  raised by the thread that waits
            done.set_exception(error)
        else:
            done.set_result(None)

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        """Reads the messages of the head, until it ends."""
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                message = json.loads(line)
                if "address" in message:
                    self._address.set_result(message["address"])
                else:
                    self._lose(message["lost"])
        self._lose(f"its first process has ended, with status {process.wait()}")

    def _lose(self, reason: str) -> None:
        """Stores the first reason of a loss, and ends the wait for the start."""
        with self._lock:
            self._loss = self._loss or reason
        if not self._address.done():
            with suppress(Exception):  # set by the other thread meanwhile
                self._address.set_result("")

    def _trouble(self, failure: str) -> str:
        return ray_start.trouble(failure, self._loss)
