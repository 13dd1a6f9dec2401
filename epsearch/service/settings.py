"""What a service is told when it starts."""

import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path

from epsearch.failures.errors import UsageError
from epsearch.service.access.tokens import Tokens
from results.ledger.url import LedgerUrl

LARGEST_BODY = 2**20  # bytes: as of a study's file
MOST_CONNECTIONS = 1000  # that uvicorn serves at a time; the next ones are answered 503
# For which an idle connection is kept: longer than the pauses of those who poll, who would meet its end now and then.
IDLE_SECONDS = 75
MOST_AT_ONCE = 256
NOBODY = Tokens()


@dataclass(frozen=True)
class Settings:
    """Of one service, from `epsearch serve`."""

    storage: LedgerUrl
    """The ledger, which has the queue, too."""
    out: Path
    """Folder of the reports, and of the ledger where no other place is given."""
    data_dir: Path
    """Folder of the datasets."""
    host: str = "127.0.0.1"
    """Address to listen at."""
    port: int = 8470
    """0 for any that is free."""
    parallel: int = 1
    """Studies that are trained at a time."""
    address: str = "local"
    """Ray cluster of the studies, as after `--address`."""
    checkpoints: str | None = None
    """As after `--checkpoints`."""
    roots: tuple[Path, ...] = ()
    """Folders below which clients may name folders of images; none by default."""
    modules: bool = False
    """Whether clients may name streams as module:factory, which runs code of this machine."""
    names: tuple[str, ...] = ()
    """Further names under which clients may reach it; its own address and name, and loopback, are known."""
    tokens: Tokens = NOBODY
    """Who may do what; without any, everybody who reaches it may do everything, so it must be at loopback."""

    @property
    def hosts(self) -> frozenset[str]:
        """Names and addresses that a request may have been sent to."""
        own = {self.host, socket.gethostname()} if not _any(self.host) else {socket.gethostname()}
        return frozenset(name.lower() for name in (*own, "localhost", "127.0.0.1", "::1", *self.names))


def check(settings: Settings) -> None:
    """Raises UsageError for a service that everybody could use, or that could not work."""
    if not _loopback(settings.host) and not settings.tokens.needed:
        raise UsageError(
            f"host is {settings.host!r}, which others can reach, and there are no tokens; allowed without: 127.0.0.1; "
            "`epsearch token NAME --tokens FILE` makes one, and --tokens FILE names the file"
        )
    if not 1 <= settings.parallel <= MOST_AT_ONCE:
        raise UsageError(f"parallel must be in [1, {MOST_AT_ONCE}], got {settings.parallel}")
    if not 0 <= settings.port < 2**16:
        raise UsageError(f"port must be in [0, 65535], got {settings.port}")
    for root in settings.roots:
        if not root.is_dir():
            raise UsageError(f"there is no folder {root}, given as --images")


def _any(host: str) -> bool:
    return host in ("0.0.0.0", "::")


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
