"""Settings of a service, from the options of `epsearch serve`."""

import socket
from dataclasses import dataclass
from pathlib import Path

from epsearch.failures.errors import UsageError
from epsearch.service.access.tokens import Tokens
from epsearch.service.logs import TEXT
from epsearch.service_url import ServiceUrl, is_loopback
from results.ledger.url import LedgerUrl
from results.ledger.writers.queue import NO_LIMITS, Limits

LARGEST_BODY = 2**20  # bytes, as of a study's file
MOST_CONNECTIONS = 1000  # served by uvicorn at a time; further ones are answered 503
IDLE_SECONDS = 75  # until an idle connection is closed: longer than the pauses of clients that poll
MOST_AT_ONCE = 256
NOBODY = Tokens()


@dataclass(frozen=True)
class Settings:
    """Settings of one service."""

    storage: LedgerUrl
    """The ledger, with the queue."""
    out: Path
    """Folder of the reports, and of the ledger by default."""
    data_dir: Path
    """Folder of the datasets."""
    host: str = "127.0.0.1"
    """Address to listen at."""
    port: int = 8470
    """0 for any free port."""
    parallel: int = 1
    """Number of studies trained at a time."""
    parallel_each: int | None = None
    """The same of one owner; None for any number."""
    limits: Limits = NO_LIMITS
    """Most studies of one owner, and of all, that wait or run."""
    address: str = "local"
    """Ray cluster of the studies, see `--address`."""
    checkpoints: str | None = None
    """As of `--checkpoints`."""
    roots: tuple[Path, ...] = ()
    """Folders below which clients may name folders of images; none by default."""
    modules: bool = False
    """True to let clients name streams as module:factory, which runs code of this machine."""
    url: ServiceUrl | None = None
    """The URL of its users where it is not its own address, as behind a proxy."""
    names: tuple[str, ...] = ()
    """Further host names of the service, besides its own address and name, loopback, and that of its URL."""
    notify_hosts: tuple[str, ...] = ()
    """Hosts to which messages at the end of studies may be sent."""
    log_format: str = TEXT
    """Format of the log on standard error, one of `logs.FORMATS`."""
    tokens: Tokens = NOBODY
    """Tokens of its clients; without any, every client may do everything, so the host must be loopback."""

    @property
    def most_running(self) -> int:
        """Number of studies of one owner that are trained at a time."""
        return self.parallel if self.parallel_each is None else min(self.parallel, self.parallel_each)

    @property
    def hosts(self) -> frozenset[str]:
        """Names and addresses allowed in the Host header of a request."""
        here = {self.host, socket.gethostname()} if not _any(self.host) else {socket.gethostname()}
        public = () if self.url is None else (self.url.host,)
        return frozenset(name.lower() for name in (*here, "localhost", "127.0.0.1", "::1", *public, *self.names))

    @property
    def root(self) -> str:
        """Path below which its users see it, without a slash at its end; "" for none."""
        return "" if self.url is None else self.url.root

    @property
    def secure(self) -> bool:
        """True if its URL is HTTPS: then cookies are Secure, and answers have HSTS."""
        return self.url is not None and self.url.scheme == "https"


def check(settings: Settings) -> None:
    """Raises UsageError for a service that everybody could use, and for impossible settings."""
    if not is_loopback(settings.host) and not settings.tokens.needed:
        raise UsageError(
            f"host must be 127.0.0.1 without tokens, got {settings.host!r}; `epsearch token NAME --tokens FILE` makes "
            "one for --tokens FILE"
        )
    if not 1 <= settings.parallel <= MOST_AT_ONCE:
        raise UsageError(f"parallel must be in [1, {MOST_AT_ONCE}], got {settings.parallel}")
    for name, value in (
        ("parallel-each", settings.parallel_each),
        ("max-queued-each", settings.limits.each),
        ("max-queued", settings.limits.all),
    ):
        if value is not None and value < 1:
            raise UsageError(f"{name} must be 1 or more, got {value}")
    if not 0 <= settings.port < 2**16:
        raise UsageError(f"port must be in [0, 65535], got {settings.port}")
    for root in settings.roots:
        if not root.is_dir():
            raise UsageError(f"--images must be a folder, got {root}")


def _any(host: str) -> bool:
    return host in ("0.0.0.0", "::")
