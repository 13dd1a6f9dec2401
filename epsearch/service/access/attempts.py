"""Wrong tokens by address: counted, reported to the log, and answered slowly."""

import logging
import time

from epsearch.service.logs import log

WINDOW = 60.0  # seconds for which an address is remembered
FREE = 5  # wrong tokens in that time that are answered at once
SLOW_SECONDS = 1.0  # delay of the answers to further ones
MOST_ADDRESSES = 1000


class Attempts:
    """Wrong tokens of one service."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[float, int]] = {}  # address -> (monotonic time of the first, how many since)

    def wrong(self, address: str) -> float:
        """Counts a wrong token; returns the delay of its answer, in seconds."""
        now = time.monotonic()
        since, count = self._counts.pop(address, (now, 0))
        if now - since > WINDOW:
            since, count = now, 0
        self._counts[address] = since, count + 1
        if len(self._counts) > MOST_ADDRESSES:
            del self._counts[next(iter(self._counts))]
        if count < FREE:
            return 0.0
        first, message = count == FREE, f"{count + 1} wrong tokens from {address}"
        level, message = (logging.WARNING, f"{message}; further ones are slowed") if first else (logging.INFO, message)
        log("refusal_slowed", message, level, address=address, count=count + 1, status=401)
        return SLOW_SECONDS
