"""Limits of one kind of work, or of one token: threads, and requests at a time.

A request that waits for a thread waits in the event loop, so that work of one kind delays no other.
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
REPORTERS = 8  # threads that compute results of studies
WRITERS = 6  # threads that change the ledger and may wait for it; fewer than connections of its database
WATCHERS = 4  # threads for monitoring


class TooMany(Unavailable):
    """More requests, or more at a time, than a token may have."""

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(f"{reason}; try again in {max(1.0, seconds):.0f} s")
        self.seconds = max(1, round(seconds))
        """When another try may succeed, in seconds from now."""


class Quota:
    """Counts requests under way by token; used within the event loop alone.

    name: of such requests, in the plural; each, most: at a time, of one token and of all.
    """

    def __init__(self, name: str, each: int, most: int) -> None:
        self._name, self._each, self._most = name, each, most
        self._open: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Requests under way."""
        return self._open.total()

    def check(self, token: str, seconds: float) -> None:
        """Raises TooMany if a token has its maximum, Unavailable if all tokens together have theirs.

        token: its name; seconds: when another try may succeed.
        """
        if self._open[token] >= self._each:
            raise TooMany(f"a token may have {self._each} {self._name} at a time", seconds)
        if self.total >= self._most:
            raise Unavailable(f"the service has {self._most} {self._name} already; try again later")

    @contextmanager
    def acquire(self, token: str, seconds: float) -> Iterator[None]:
        """Counts one more request while the block lasts; for arguments and errors see `check`."""
        self.check(token, seconds)
        self._open[token] += 1
        try:
            yield
        finally:
            self._open[token] -= 1
            self._open += Counter()  # drops tokens without a request


class ThreadedRouter(APIRouter):
    """A router that runs plain functions in a limited number of threads of its own."""

    def __init__(self, threads: int, **options: Any) -> None:
        super().__init__(**options)
        self.limiter = CapacityLimiter(threads)
        """Limiter of its threads."""

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Adds a route, as FastAPI does."""
        threaded = endpoint if iscoroutinefunction(endpoint) else in_thread(endpoint, self.limiter)
        super().add_api_route(path, threaded, **options)


def in_thread(
    function: Callable[..., T], limiter: CapacityLimiter | None = None
) -> Callable[..., Coroutine[Any, Any, T]]:
    """Returns a coroutine function that runs a plain one in a thread.

    The end of the service does not wait for such threads.
    """

    @wraps(function)
    async def run(*args: Any, **options: Any) -> T:
        work = partial(function, *args, **options)
        return await to_thread.run_sync(work, limiter=limiter, abandon_on_cancel=True)

    return run
