"""Check of whether a service can work: its queue, and writes to ledger and out folder."""

import asyncio
from collections.abc import Awaitable, Callable

from anyio import CapacityLimiter, to_thread

from epsearch.failures.errors import Unavailable
from epsearch.service.settings import Settings
from epsearch.service.work.processes import probe
from epsearch.service.work.scheduler import Scheduler
from results.labels import on_one_line
from results.ledger.store import Store

SECONDS = 5.0  # that the writes may take; a transaction of another process may block them for a while


def readiness(settings: Settings, store: Store, scheduler: Scheduler) -> Callable[[], Awaitable[None]]:
    """Returns the check, which writes at most once at a time, in a thread of its own.

    It raises Unavailable if the queue does not work, or ledger or out folder accept no write within SECONDS, and
    StoreError if the ledger fails.
    """
    limiter = CapacityLimiter(1)
    writing: asyncio.Future[None] | None = None

    def write() -> None:
        try:
            probe(settings.out)
        except OSError as error:
            raise Unavailable(
                f"cannot write to the out folder {on_one_line(settings.out)}: {error.strerror}"
            ) from error
        store.check_writing()

    async def check() -> None:
        nonlocal writing
        scheduler.check()
        if writing is None or writing.done() or writing.get_loop() is not asyncio.get_running_loop():
            writing = asyncio.ensure_future(to_thread.run_sync(write, limiter=limiter, abandon_on_cancel=True))
            # Its error is read here, too: every request that waited for it may have timed out.
            writing.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            await asyncio.wait_for(asyncio.shield(writing), SECONDS)
        except TimeoutError as error:
            raise Unavailable(f"ledger and out folder have accepted no write for {SECONDS:.0f} s") from error

    return check
