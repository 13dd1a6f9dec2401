"""The queue: what was submitted is trained once, in order, by whoever comes, and everybody sees how it stands."""

from __future__ import annotations

import json
import threading

import pytest
from sqlalchemy import insert

from results.ledger import schema
from results.ledger.store import Store
from results.ledger.writers.errors import LeaseHeld, LeaseLost
from results.ledger.writers.holder import UNKNOWN, here
from results.ledger.writers.queue import Labels, Submission, has_ended, waits
from results.ledger.writers.states import CANCELLED, CANCELLING, FAILED, FINISHED, FOLLOWS, QUEUED, RUNNING
from tests.support.holders import dead, needs_proc
from tests.support.leases import FAR, change, content, expire
from tests.support.synthetic import record

GIVEN = {"kind": "run", "options": {"dataset": "digits", "seeds": [0, 1], "name": "é\udc80"}, "extend": False}


def submission(store: Store, name: str = "demo") -> Submission:
    return store.queue.submissions()[name]


def states(store: Store, name: str = "demo") -> list[tuple[str, str]]:
    return [(one.data["state"], one.data["reason"]) for one in store.events.read(name) if one.kind == "state"]


def now(store: Store, name: str = "demo") -> tuple[str, int, bool]:
    there = store.leases.state_of(name)
    assert there is not None
    return there.state, there.token, there.held


def put(store: Store, state: str) -> None:
    """Lets a study of the queue be in a state that it was left in, whatever may follow what."""
    store.queue.submit("demo", GIVEN)
    store.leases.acquire("demo", FAR)
    change(store, f"UPDATE epsearch_leases SET state = '{state}', reason = 'before'")
    expire(store)


def test_a_study_is_submitted(store: Store, other: Store) -> None:
    assert store.queue.submissions() == {} and store.events.last() == 0
    store.queue.submit("demo", GIVEN, 3, "ann")
    one = submission(other)
    assert one == Submission("demo", True, 3, one.submitted, "ann", GIVEN, 0) and one.submitted > 1.6e9
    assert now(other) == (QUEUED, 0, False) and states(other) == [(QUEUED, "")]
    there = other.leases.state_of("demo")
    assert there is not None and there.now == QUEUED and there.holder == UNKNOWN and there.changed >= one.submitted
    assert other.study("demo") is None, "it is no study of the ledger before it begins"
    assert other.leases.acquire("demo", here(), resume=False).token == 1


def test_the_last_submission_counts(store: Store, other: Store) -> None:
    store.queue.submit("demo", GIVEN, 3, "ann")
    store.queue.set_tries("demo", 4)
    before = submission(store)
    store.leases.cancel("demo")
    assert other.queue.submit("demo", {"kind": "compare"}, -1, "bob") is None
    after = submission(store)
    assert (after.given, after.priority, after.tries) == ({"kind": "compare"}, -1, 0)
    assert after.submitter == "ann", "a study keeps its first owner"
    assert store.queue.submission("demo") == after and store.queue.submission("other") is None
    assert after.submitted >= before.submitted and [*store.queue.submissions()] == ["demo"]
    assert now(store) == (QUEUED, 2, False)


@pytest.mark.parametrize("left", [QUEUED, RUNNING])
@pytest.mark.parametrize("given", [GIVEN, {"kind": "compare", "options": {}}])
def test_one_that_is_in_the_queue_stays_as_it_is(
    store: Store, other: Store, left: str, given: dict[str, object]
) -> None:
    """Whoever submits another one, or the same once more, whatever the priority."""
    put(store, left)
    change(store, "UPDATE epsearch_queue SET submitter = 'ann', priority = 3, tries = 2")
    rows, before = content(store), submission(store)
    assert other.queue.submit("demo", given, 9, "eve") == before and content(store) == rows


def test_what_cannot_be_read_is_submitted_again(store: Store, other: Store) -> None:
    store.queue.submit("demo", GIVEN, 3, "ann")
    for damaged in ("[", '{"options": 3}', "{}"):
        change(store, f"UPDATE epsearch_queue SET given = '{damaged}'")
        assert other.queue.submit("demo", GIVEN, 1, "bob") is None and submission(store).given == GIVEN


def test_of_many_who_submit_different_studies_at_once_one_is_in_the_queue(store: Store, other: Store) -> None:
    answers: list[Submission | None] = []
    ready = threading.Barrier(8)

    def work(one: Store, number: int) -> None:
        ready.wait()
        answers.append(one.queue.submit("demo", GIVEN | {"number": number}, number, f"person {number}"))

    threads = [threading.Thread(target=work, args=(one, n)) for n, one in enumerate([store, other] * 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers.count(None) == 1 and all(one == submission(store) for one in answers if one)
    assert states(store) == [(QUEUED, "")]


@pytest.mark.parametrize("state", [state for state in FOLLOWS if state != QUEUED])
def test_nothing_is_submitted_while_somebody_trains_it(store: Store, other: Store, state: str) -> None:
    store.leases.acquire("demo", FAR)
    change(store, f"UPDATE epsearch_leases SET state = '{state}'")
    rows = content(store)
    with pytest.raises(LeaseHeld, match="demo") as caught:
        other.queue.submit("demo", {"kind": "run"}, 9, "eve")
    assert caught.value.holder == FAR and content(store) == rows
    assert store.add([record()]) == 1


@pytest.mark.parametrize("state", FOLLOWS)
def test_what_has_ended_or_was_left_is_submitted_again_and_its_stopped_holder_writes_no_more(
    store: Store, other: Store, state: str
) -> None:
    put(store, state)
    store.queue.close("demo")
    assert other.queue.submit("demo", GIVEN) is None
    assert now(other) == (QUEUED, 2, False) and states(other)[-1] == (QUEUED, "") and submission(other).open
    before = content(other)
    for work in (
        lambda: store.add([record()]),
        lambda: store.leases.enter(RUNNING),
        lambda: store.events.append([("note", {})]),
    ):
        with pytest.raises(LeaseLost):
            work()
    assert not store.leases.renew() and content(other) == before


def test_one_that_holds_it_but_has_not_begun_goes_on(store: Store, other: Store) -> None:
    store.queue.submit("demo", GIVEN)
    before = submission(store)
    store.leases.acquire("demo", FAR, begin=False)
    assert other.queue.submit("demo", GIVEN) == before
    store.leases.begin()
    assert now(other) == (RUNNING, 1, True)


@needs_proc
def test_a_dead_holder_keeps_nothing_from_being_submitted(store: Store, other: Store) -> None:
    store.leases.acquire("demo", dead())
    other.queue.submit("demo", GIVEN)
    assert now(other) == (QUEUED, 2, False)


def test_of_several_the_highest_priority_is_first_then_the_oldest_then_the_name(store: Store) -> None:
    for name, priority in [("b", 0), ("a", 0), ("low", -5), ("high", 7), ("c", 0)]:
        store.queue.submit(name, GIVEN, priority)
    change(store, "UPDATE epsearch_queue SET submitted = 5 WHERE study IN ('a', 'b')")
    assert [*store.queue.submissions()] == ["high", "a", "b", "c", "low"]


def test_a_submission_is_closed_and_stays(store: Store) -> None:
    store.queue.submit("demo", GIVEN, 0, "ann")
    store.queue.submit("another", GIVEN)
    store.queue.close("demo")
    store.queue.close("nothing")
    assert not submission(store).open and submission(store).submitter == "ann" and submission(store, "another").open
    store.queue.submit("demo", GIVEN)
    assert submission(store).open


def test_starts_are_counted(store: Store) -> None:
    store.queue.submit("demo", GIVEN)
    store.queue.submit("another", GIVEN)
    store.queue.set_tries("demo", 3)
    assert (submission(store).tries, submission(store, "another").tries) == (3, 0)


@pytest.mark.parametrize("state", FOLLOWS)
@pytest.mark.parametrize("held", [True, False])
def test_only_what_was_left_running_is_put_back(store: Store, other: Store, state: str, held: bool) -> None:
    put(store, state)
    if held:
        change(store, "UPDATE epsearch_leases SET expires = expires + 3600")
    rows, wanted = content(other), not held and state in (QUEUED, RUNNING)
    assert other.queue.put_back("demo") == wanted
    if wanted:
        assert now(other) == (QUEUED, 1, False) and states(other)[-1] == (QUEUED, "") and submission(other).open
        there = other.leases.state_of("demo")
        assert there is not None and there.reason == ""
    else:
        assert content(other) == rows


@pytest.mark.parametrize("state", FOLLOWS)
@pytest.mark.parametrize("held", [True, False])
def test_only_what_nobody_trains_fails(store: Store, other: Store, state: str, held: bool) -> None:
    put(store, state)
    if held:
        change(store, "UPDATE epsearch_leases SET expires = expires + 3600")
    rows, wanted = content(other), not held and state in (QUEUED, RUNNING)
    assert other.queue.fail("demo", "what\nwas wrong: \x00\udc80") == wanted
    if wanted:
        there = other.leases.state_of("demo")
        assert there is not None and (there.now, there.reason) == (FAILED, "what was wrong:   ")
        assert states(other)[-1] == (FAILED, "what was wrong:   ") and not submission(other).open
    else:
        assert content(other) == rows


def test_of_what_was_never_submitted_nothing_is_left(store: Store) -> None:
    assert (
        not store.queue.put_back("demo") and not store.queue.fail("demo", "why") and store.leases.cancel("demo") is None
    )
    assert content(store)["epsearch_leases"] == content(store)["epsearch_events"] == []


def test_a_queued_study_is_cancelled_at_once(store: Store, other: Store) -> None:
    store.queue.submit("demo", GIVEN)
    there = other.leases.cancel("demo")
    assert there is not None and (there.state, there.token) == (CANCELLED, 1)
    assert has_ended(there.state, there.held) and not waits(there.state, there.held)
    assert states(store) == [(QUEUED, ""), (CANCELLED, "")] and submission(store).open
    assert not store.queue.put_back("demo"), "a process that was told to stop does not undo it"


@pytest.mark.parametrize("state", FOLLOWS)
def test_every_state_waits_or_has_ended_or_is_on_its_way(state: str) -> None:
    assert not waits(state, True) and not has_ended(state, True)
    assert waits(state, False) == (state in (QUEUED, RUNNING))
    assert has_ended(state, False) == (state in (CANCELLED, FAILED, FINISHED))
    assert waits(state, False) or has_ended(state, False) or state == CANCELLING


def test_a_study_is_deleted_with_its_submission(store: Store, other: Store) -> None:
    for name in ("demo", "another"):
        store.queue.submit(name, GIVEN)
        store.queue.audit("ann", "submit", name, {})
    other.leases.acquire("demo", here())
    other.delete_study("demo", list)
    other.leases.release()
    assert [*store.queue.submissions()] == ["another"] and store.events.read("demo") == []
    assert {one.study for one in store.queue.changes(9)} == {"demo", "another"}, "who asked for what is never deleted"
    store.queue.submit("demo", GIVEN)
    assert now(store) == (QUEUED, 2, False)


def test_events_have_numbers_over_all_studies(store: Store, other: Store) -> None:
    store.queue.submit("demo", GIVEN)
    other.queue.submit("another", GIVEN)
    other.leases.acquire("another", here())
    other.events.append([("progress", {"n": n}) for n in range(3)])
    store.leases.cancel("demo")
    seen = store.events.read(None, 0, 100)
    assert [one.id for one in seen] == sorted({one.id for one in seen}) and store.events.last() == seen[-1].id
    assert [(one.study, one.kind) for one in seen] == [
        *[("demo", "state"), ("another", "state"), ("another", "state")],
        *[("another", "progress")] * 3,
        ("demo", "state"),
    ]
    assert store.events.read(None, seen[2].id, 2) == seen[3:5] and store.events.read(None, seen[-1].id, 5) == []
    assert store.events.read(None, seen[2].id, 0) == []
    assert store.events.newest("another", "progress") == seen[5]
    assert store.events.newest("another", "progress", "state") == seen[5]
    assert store.events.newest("another", "note") is None and store.events.newest("nothing", "state") is None
    assert store.queue.submit("another", GIVEN) is not None
    assert store.events.last() == seen[-1].id


def test_who_asked_for_what_is_kept(store: Store, other: Store) -> None:
    detail = {"priority": 3, "options": {"name": "é\udc80"}}
    store.queue.audit("ann", "submit", "demo", detail)
    other.queue.audit("", "cancel", "another", {})
    newest, oldest = store.queue.changes(9)
    assert (oldest.who, oldest.action, oldest.study, json.loads(oldest.detail)) == ("ann", "submit", "demo", detail)
    assert newest.id > oldest.id and newest.time >= oldest.time > 1.6e9
    assert (
        store.queue.changes(1) == [newest]
        and store.queue.changes(9, "demo") == [oldest]
        and store.queue.changes(9, "x") == []
    )


def test_who_only_reads_sees_the_queue(url: str, store: Store) -> None:
    store.queue.submit("demo", GIVEN)
    store.queue.audit("ann", "submit", "demo", {})
    with Store.read(url) as reader:
        assert reader.queue.submissions() == store.queue.submissions() and reader.events.last() == store.events.last()
        assert reader.queue.changes(9) == store.queue.changes(9)
        assert reader.events.newest("demo", "state") == store.events.newest("demo", "state")


@pytest.mark.parametrize(
    ("column", "junk"),
    [("given", "'['"), ("given", "'[]'"), ("submitted", "-1e308"), ("submitted", "1e308")],
)
def test_what_is_damaged_of_a_submission_says_nothing(store: Store, column: str, junk: str) -> None:
    store.queue.submit("demo", GIVEN, 3, "ann")
    store.queue.submit("another", GIVEN)
    change(store, f"UPDATE epsearch_queue SET {column} = {junk} WHERE study = 'demo'")
    one = submission(store)
    assert (one.study, one.open, one.priority, one.submitter) == ("demo", True, 3, "ann")
    assert one.given == ({} if column == "given" else GIVEN) and 0 <= one.submitted < 1e11
    assert [*store.queue.submissions()] == ["demo", "another"]


def test_what_is_no_number_says_nothing(store: Store) -> None:
    if store._engine.name != "sqlite":
        return  # has columns of one kind
    store.queue.submit("another", GIVEN, 1)
    for column in ("open", "priority", "tries", "submitted", "submitter"):
        store.queue.submit("demo", GIVEN, 3, "ann")
        change(store, f"UPDATE epsearch_queue SET {column} = CAST('x' AS BLOB) WHERE study = 'demo'")
        one = submission(store)
        assert getattr(one, column) in (False, 0, "") and [*sorted(store.queue.submissions())] == ["another", "demo"]


@pytest.mark.slow
def test_of_many_who_submit_take_and_leave_at_once_nothing_is_lost(store: Store, other: Store) -> None:
    """Whatever the order: every change is whole, the numbers of events grow, and nobody waits for ever."""
    failures: list[BaseException] = []

    def work(one: Store, turns: int) -> None:
        try:
            for turn in range(turns):
                one.queue.submit(f"study {turn % 3}", GIVEN, turn)
                one.queue.set_tries(f"study {turn % 3}", turn)
                one.queue.fail(f"study {turn % 3}", "why") if turn % 2 else one.queue.put_back(f"study {turn % 3}")
                one.leases.cancel(f"study {turn % 2}")
        except BaseException as error:  # noqa: BLE001  told by the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(one, 8)) for one in (store, other, store, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    seen = store.events.read(None, 0, 1000)
    assert [one.id for one in seen] == sorted({one.id for one in seen})
    for name, there in store.leases.states().items():
        assert states(store, name)[-1][0] == there.state, "the last event is the state"
    for one in store.queue.submissions().values():
        assert one.given == GIVEN


def test_an_event_that_cannot_be_read_is_left_out(store: Store) -> None:
    store.queue.submit("demo", GIVEN)
    with store.transaction("write to") as connection:
        row = {"study": "demo", "token": 0, "kind": "progress", "data": "[", "time": 1.0}
        connection.execute(insert(schema.events).values(**row))
    assert store.events.newest("demo", "progress") is None and len(store.events.read(None, 0, 9)) == 1
    assert store.events.last() == store.events.read(None, 0, 9)[-1].id + 1


def test_one_service_alone_closes_a_submission(store: Store, other: Store) -> None:
    store.queue.submit("demo", GIVEN)
    assert (store.queue.close("demo"), other.queue.close("demo"), other.queue.close("nothing")) == (True, False, False)
    assert other.queue.open_submissions() == {}


def test_open_submissions_are_those_of_all_without_what_is_trained(store: Store, other: Store) -> None:
    for name, priority in (("a", 0), ("b", 2), ("closed", 5), ("c", 1)):
        store.queue.submit(name, GIVEN, priority, "ann")
    store.queue.close("closed")
    every = {name: one._replace(given={}) for name, one in other.queue.submissions().items() if one.open}
    assert other.queue.open_submissions() == every and [*every] == ["b", "c", "a"]


def test_the_newest_labels_count_until_the_study_is_deleted(store: Store, other: Store) -> None:
    def label(name: str, *tags: str) -> None:
        store.queue.audit("ann", "label", name, {"tags": [*tags], "notes": "a\nb"})

    label("demo", "old")
    label("demo", "new", "é")
    label("gone", "x")
    store.queue.audit("ann", "delete", "gone", {})
    store.queue.audit("ann", "label", "damaged", {"tags": "text", "notes": 5})
    known = {"demo": Labels(("new", "é"), "a\nb"), "damaged": Labels()}
    assert other.queue.labels() == known
    assert other.queue.labels("demo") == {"demo": known["demo"]} and other.queue.labels("gone") == {}


def test_the_first_submission_of_one_study_is_that_among_all(store: Store, other: Store) -> None:
    for action, name in (("submit", "a"), ("submit", "b"), ("delete", "b"), ("submit", "a"), ("submit", "b")):
        store.queue.audit("ann", action, name, {})
    every = other.queue.first_submitted()
    assert {*every} == {"a", "b"} and other.queue.first_submitted("nothing") == {}
    assert all(other.queue.first_submitted(name) == {name: every[name]} for name in every)
