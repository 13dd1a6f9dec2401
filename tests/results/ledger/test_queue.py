"""The queue of several services on one ledger: limits of open submissions hold, whoever submits at once."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from results.ledger.store import Store
from results.ledger.writers.errors import QueueFull
from results.ledger.writers.queue import Limits


@pytest.mark.slow
def test_limits_hold_under_eight_clients_at_once(url: str) -> None:
    """On both databases: each client has a ledger of its own, as services that share one."""
    limits, together, refused = Limits(each=3, all=5), threading.Barrier(8), Counter[str]()

    def submit(number: int) -> None:
        with Store.open(url) as store:
            together.wait()
            for one in range(4):
                try:
                    store.queue.submit(f"{number}-{one}", {"options": {}}, submitter="ab"[number % 2], limits=limits)
                except QueueFull as error:
                    refused[str(error)] += 1

    Store.open(url).close()
    threads = [threading.Thread(target=submit, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    with Store.open(url) as store:
        owners = Counter(one.submitter for one in store.queue.submissions().values())
        assert owners.total() == 5 and max(owners.values()) == 3 and refused.total() == 27
        assert all("studies waiting or running already, as many as are allowed" in text for text in refused), refused
        (name, *_) = store.queue.submissions()
        store.queue.close(name)
        owner = store.queue.submissions()[name].submitter
        assert store.queue.submit("one more", {"options": {}}, submitter=owner, limits=limits) is None
