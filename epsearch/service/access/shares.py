"""How much of the service one kind of work, or one token, may take: threads, and requests at a time.

A request that waits for a thread waits in the event loop, so that work of one kind never keeps another from an answer.
"""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter

from epsearch.failures.errors import Unavailable

T = TypeVar("T")

READERS = 24  # threads that read lists, states and logs
REPORTERS = 8  # that compute what a study has found
WRITERS = 6  # that change the ledger, for which each may wait; fewer than connections of its database
WATCHERS = 4  # for monitoring


class TooMany(Unavailable):
    """Somebody has asked for more at a time, or too often, than anybody may."""

    def __init__(self, words: str, seconds: float) -> None:
        super().__init__(f"{words}; try again in {max(1.0, seconds):.0f} s")
        self.seconds = max(1, round(seconds))
        """When another try may succeed, in seconds from now."""


class Shares:
    """Requests of one kind under way, by token; used within the event loop alone."""

    def __init__(self, what: str, each: int, most: int) -> None:
        self._what, self._each, self._most = what, each, most
        self._open: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Those under way."""
        return self._open.total()

    def check(self, token: str, seconds: float) -> None:
        """Raises TooMany where a token has as many as it may have, Unavailable where all tokens together have.

        token: its name; seconds: when another try may succeed.
        """
        if self._open[token] >= self._each:
            raise TooMany(f"a token may have {self._each} {self._what} at a time", seconds)
        if self.total >= self._most:
            raise Unavailable(f"the service has {self._most} {self._what} already; try again later")

    @contextmanager
    def taken(self, token: str, seconds: float) -> Iterator[None]:
        """Counts one more while the block lasts. Arguments and errors as of `check`."""
        self.check(token, seconds)
        self._open[token] += 1
        try:
            yield
        finally:
            self._open[token] -= 1
            self._open += Counter()  # without those that have none


class Threads(APIRouter):
    """A router whose plain functions run in threads of its own, at most so many at a time."""

    def __init__(self, threads: int, **options: Any) -> None:
        super().__init__(**options)
        self.limiter = CapacityLimiter(threads)
        """Of its threads."""

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Adds a route, as FastAPI does."""
        threaded = endpoint if iscoroutinefunction(endpoint) else in_thread(endpoint, self.limiter)
        super().add_api_route(path, threaded, **options)


def in_thread(
    function: Callable[..., T], limiter: CapacityLimiter | None = None
) -> Callable[..., Coroutine[Any, Any, T]]:
    """Returns a coroutine function that runs a plain one in a thread.

    The end of the service does not wait for what runs there.
    """

    @wraps(function)
    async def awaited(*args: Any, **options: Any) -> T:
        work = partial(function, *args, **options)
        return await to_thread.run_sync(work, limiter=limiter, abandon_on_cancel=True)

    return awaited
