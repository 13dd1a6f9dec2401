"""The log on the page of a study, which reads from the ledger what is new alone."""

from epsearch.service.web.log_cache import LINES, LogCache
from results.ledger.store import Store
from results.ledger.writers.holder import here


def warn(store, *lines):
    store.events.append([("warning", {"line": line}) for line in lines])


def lines(cache):
    return [text.removeprefix("warning: ") for _, text in cache.get("mine") if text.startswith("warning: ")]


def test_a_new_study_has_nothing_of_a_deleted_one_of_its_name(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as store:
        cache = LogCache(store)
        assert lines(cache) == []
        store.leases.acquire("mine", here())
        warn(store, "one", "two")
        assert lines(cache) == ["two", "one"]
        warn(store, "three")
        assert lines(cache) == ["three", "two", "one"]
        store.delete_study("mine", tuple)
        assert lines(cache) == []
        warn(store, "four")
        assert lines(cache) == ["four"]
        store.delete_study("mine", tuple)
        warn(store, "five")  # before anybody has looked
        assert lines(cache) == ["five"]
        warn(store, *map(str, range(LINES)))
        assert lines(cache) == [str(number) for number in reversed(range(LINES))]
