"""Whether a service can work: its queue, and what it has to write to."""

import asyncio

from anyio import CapacityLimiter, to_thread

from epsearch.failures.errors import Unavailable
from epsearch.service.settings import Settings
from epsearch.service.work.processes import probe
from epsearch.service.work.scheduler import Scheduler
from results.labels import on_one_line
from results.ledger.store import Store

SECONDS = 5.0  # that a look may take; another one's transaction may be in the way for some of them


class Readiness:
    """Looks at most once at a time, however many ask, in a thread of its own."""

    def __init__(self, settings: Settings, store: Store, scheduler: Scheduler) -> None:
        self._settings, self._store, self._scheduler = settings, store, scheduler
        self._thread = CapacityLimiter(1)
        self._look: asyncio.Future[None] | None = None

    async def check(self) -> None:
        """Raises Unavailable where the queue does not work, and where ledger or out folder take no write in SECONDS.

        Raises StoreError where the ledger fails.
        """
        self._scheduler.check()
        if self._look is None or self._look.done() or self._look.get_loop() is not asyncio.get_running_loop():
            self._look = asyncio.ensure_future(
                to_thread.run_sync(self._write, limiter=self._thread, abandon_on_cancel=True)
            )
            self._look.add_done_callback(lambda look: look.cancelled() or look.exception())  # nobody may have waited
        try:
            await asyncio.wait_for(asyncio.shield(self._look), SECONDS)
        except TimeoutError as error:
            raise Unavailable(f"ledger and out folder have taken no write for {SECONDS:.0f} s") from error

    def _write(self) -> None:
        try:
            probe(self._settings.out)
        except OSError as error:
            where = on_one_line(self._settings.out)
            raise Unavailable(f"cannot write to the out folder {where}: {error.strerror}") from error
        self._store.check_writing()
