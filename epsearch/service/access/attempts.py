"""Wrong tokens by the address that has sent them: counted, told once in a while, and answered slowly."""

import sys
import time
from typing import NamedTuple

WINDOW = 60.0  # seconds for which an address is remembered
FREE = 5  # wrong tokens in that time that are answered at once
SLOW_SECONDS = 1.0  # until the others are answered
MOST_ADDRESSES = 1000


class _Seen(NamedTuple):
    since: float
    times: int


class Attempts:
    """Those of one service."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def wrong(self, address: str) -> float:
        """Counts one more, and returns the seconds after which it is to be answered."""
        now, before = time.monotonic(), self._seen.pop(address, None)
        if before is None or now - before.since > WINDOW:
            before = _Seen(now, 0)
        self._seen[address] = one = before._replace(times=before.times + 1)
        if len(self._seen) > MOST_ADDRESSES:
            del self._seen[next(iter(self._seen))]
        if one.times == FREE + 1:
            print(f"epsearch: {one.times} wrong tokens from {address}; further ones are slowed", file=sys.stderr)
        return SLOW_SECONDS if one.times > FREE else 0.0
