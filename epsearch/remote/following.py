"""A study of a service as it is followed from here: a service that has gone for a while is waited for."""

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from epsearch.control.watching import Seen
from epsearch.events import Listener, Note, Warned
from epsearch.failures.errors import Unavailable
from epsearch.remote.client import Client, quoted
from results.ledger.writers.events import Event
from results.ledger.writers.states import CANCELLING, QUEUED, RUNNING

Answer = TypeVar("Answer")
PATIENCE = 300.0  # seconds for which a service that has answered before is waited for
PAUSE = 2.0  # seconds between two tries


class Followed:
    """A study of a service, to be watched."""

    def __init__(self, client: Client, name: str, listener: Listener, pause: float = PAUSE) -> None:
        self._client, self._name, self._path = client, name, f"/studies/{quoted(name)}"
        self._listener, self._pause, self._answered = listener, pause, False

    def look(self) -> Seen:
        """How it stands. Raises UsageError, and Unavailable where the service stays away."""
        there = self._again(lambda: self._client.get(f"{self._path}/standing"))
        going_on = there["state"] in (QUEUED, RUNNING, CANCELLING) or there["waits"]
        return Seen(there["state"], there["reason"], there["summary"], going_on)

    def events(self, after: int) -> list[Event]:
        """What happened to it. Raises as `look`."""
        return self._again(partial(self._client.events, self._name, after))

    def _again(self, ask: Callable[[], Answer]) -> Answer:
        """What is answered; a service that never did is not waited for: its address may be wrong."""
        deadline, gone = time.monotonic() + PATIENCE, False
        while True:
            try:
                found = ask()
            except Unavailable as error:
                if not self._answered or time.monotonic() > deadline:
                    raise
                if not gone:
                    self._listener(Warned(f"{error}; trying again for up to {PATIENCE:.0f} s"))
                gone = True
                time.sleep(self._pause)
                continue
            if gone:
                self._listener(Note(f"{self._client.url} answers again"))
            self._answered = True
            return found
