"""Messages at the end of submitted studies, sent in a thread: whoever waits for them waits for no other host."""

import logging
import threading
from contextlib import suppress
from urllib.parse import quote

from epsearch import notice
from epsearch.failures.errors import Unavailable, UsageError
from epsearch.findings import listing
from epsearch.service.logs import log
from epsearch.service.settings import Settings
from results.ledger.errors import StoreError
from results.ledger.store import Store
from results.ledger.writers.queue import Submission


def send(submission: Submission, settings: Settings, store: Store) -> None:
    """Sends the message that a submission asked for, if it did; a failure is one line on standard error."""
    url = submission.given.get("notify")
    if isinstance(url, str) and url:
        thread = threading.Thread(target=_send, args=(url, submission.study, settings, store), daemon=True)
        thread.start()


def _send(url: str, name: str, settings: Settings, store: Store) -> None:
    page = "" if settings.url is None else f"{settings.url}/studies/{quote(name, safe='')}"
    with suppress(StoreError):  # a ledger that fails has its own line
        try:
            notice.check_url(url, settings.notify_hosts)  # the hosts may be others than at the submission
            status = listing.status(store, name, settings.storage, settings.out)
            why = notice.send(url, notice.message(status, page))
        except (UsageError, Unavailable) as error:
            why = str(error)
        if why:
            log("message_unsent", f"no message about {name} could be sent: {why}", logging.WARNING, study=name)
