"""A Ray of this run alone, which a process of its own starts and watches (`head`): what it loses is an error here.

Ray's compiled part ends the process that starts a Ray, or has joined one, when that is lost. So this process joins its
own only when that is needed and known to be there.
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
LOOK_SECONDS = 0.05


class PrivateRay:
    """A Ray at loopback with a process of its own, which ends with this one, whatever ends it.

    cores: how many one-core trials it may run at a time; folder: of this run, for Ray's own files, None for where Ray
    has them by itself; niceness: of its workers, beside ours.
    """

    def __init__(self, cores: int, folder: Path | None = None, niceness: int = 0) -> None:
        self._cores, self._folder, self._niceness = cores, folder, niceness
        self._process: subprocess.Popen[str] | None = None
        self._address: Future[str] = Future()
        self._over, self._lost, self._joined = threading.Lock(), "", False

    def start(self) -> None:
        """Starts it and waits until it answers. Raises Unavailable, also where `end` is called meanwhile."""
        os.environ |= ray_start.SETTINGS
        own = ray_start.PRIVATE | {"RAY_worker_niceness": str(self._niceness)}
        arguments = [str(self._cores)]
        if self._folder is not None:
            own |= cleanup.environment(self._folder)
            if len(str(self._folder.parent)) <= cleanup.LONGEST:
                arguments.append(str(self._folder))
        with self._over:
            if self._lost:
                raise Unavailable(self._trouble("does not start here"))
            # In a session of its own: a Ctrl-C of the terminal is for this process, which then ends that one.
            self._process = subprocess.Popen(
                [sys.executable, *HEAD, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | own,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        threading.Thread(target=self._listen, args=[self._process], daemon=True).start()
        try:
            self._address.result(STEPS * ray_start.START_SECONDS)
        except TimeoutError:
            self._lose(f"it does not answer after {STEPS * ray_start.START_SECONDS} seconds")
        if self._lost:
            raise Unavailable(self._trouble("does not start here"))

    def lost(self) -> str:
        """Returns the loss that ended it, in words; empty while all is well."""
        return self._lost

    def join(self) -> None:
        """Joins this process to it. Raises Unavailable where it has been lost.

        Should its raylet end within the few hundredths of a second in which Ray has begun to register this process, Ray
        ends that, and nothing can be done about it.
        """
        done: Future[None] = Future()
        # In a thread, which is left alone where the head ends first: Ray would then wait for it for minutes.
        if not self._lost:
            threading.Thread(target=self._join, args=[done], daemon=True).start()
        while not self._lost and not wait([done], LOOK_SECONDS).done:
            pass
        if self._lost:
            raise Unavailable(self._trouble("was lost"))
        if (error := done.exception()) is not None:
            raise Unavailable(ray_start.trouble("cannot be joined", first_line(error))) from error
        self._joined = True

    def end(self) -> None:
        """Leaves it and ends its processes, without waiting for them where they belong to a folder's run."""
        if self._joined:
            self._joined = False
            import ray

            ray.shutdown()
        self._lose("it is not needed any more")
        with self._over:
            process = self._process
        if process is None or process.stdin is None:
            return
        with suppress(OSError):
            process.stdin.close()
        if self._folder is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(ray_start.START_SECONDS)

    def kill(self) -> None:
        """Ends its processes at once: the others end with the first."""
        if self._process is not None:
            self._process.kill()

    def _join(self, done: "Future[None]") -> None:
        import ray

        try:
            ray_start.show_the_token()
            with ray_start.at_loopback():
                ray.init(self._address.result(), log_to_driver=False, logging_level=logging.ERROR)
        except BaseException as error:  # noqa: BLE001  raised by the one who waits
            done.set_exception(error)
        else:
            done.set_result(None)

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        """Takes what the head says, until it ends."""
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                said = json.loads(line)
                if "address" in said:
                    self._address.set_result(said["address"])
                else:
                    self._lose(said["lost"])
        self._lose(f"its first process has ended, with status {process.wait()}")

    def _lose(self, what: str) -> None:
        """Keeps the first loss; who waits for the start is told."""
        with self._over:
            self._lost = self._lost or what
        if not self._address.done():
            with suppress(Exception):  # set by the other thread meanwhile
                self._address.set_result("")

    def _trouble(self, what: str) -> str:
        return ray_start.trouble(what, self._lost)
