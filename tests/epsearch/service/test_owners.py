"""Who may change which study, how many studies one may have, and whose turn it is."""

from __future__ import annotations

import itertools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from epsearch.service.access.permissions import NotOwner, check_change
from epsearch.service.access.tokens import ADMIN, READ, WRITE, Token, Tokens, digest
from epsearch.service.work import scheduler
from epsearch.service.work.scheduler import Scheduler
from results.ledger.store import Store
from results.ledger.writers.queue import Limits, Submission, in_turn
from tests.support import service
from tests.support.ledgers import NAME
from tests.support.limits import HANGS
from tests.support.service import STUDY

API = "/api/v1/studies"
PEOPLE = {"ann": WRITE, "ann/laptop": WRITE, "ben": WRITE, "board": READ, "root": ADMIN}
TOKENS = Tokens(tuple(Token(name, role, digest(f"a-secret-of-{name}")) for name, role in PEOPLE.items()))
OWNERS = {"of_ann": "ann", "of_nobody": ""}
MAY = {*itertools.product(("ann", "ann/laptop"), ["of_ann"]), *itertools.product(["root"], OWNERS)}
"""(token, study) of changes that are allowed."""
CHANGES = {
    "cancel": ("POST", "/cancel", None),
    "resume": ("POST", "/resume", None),
    "extend": ("POST", "/extend", {"seeds": 3}),
    "label": ("PUT", "/labels", {"tags": ["paper"]}),
    "other options": ("POST", "", STUDY | {"points": 7}),
    "delete": ("DELETE", "?confirm={name}", None),
}
FORMS = {
    **{"cancel": {}, "resume": {}, "extend": {"seeds": "3"}, "labels": {"tags": "paper"}},
    "delete": {"confirm": "{name}"},
}


def bearer(name):
    return {"Authorization": f"Bearer a-secret-of-{name}", "accept": "application/json"}


@pytest.fixture
def client(tmp_path):
    """A service that trains nothing, with two waiting studies: ann's, and one without an owner."""
    own = service.settings(tmp_path / "runs", tokens=TOKENS)
    with service.client_of(own) as made, Store.open(own.storage) as store:
        assert made.post(API, json=STUDY | {"name": "of_ann"}, headers=bearer("ann")).status_code == 201
        given = store.queue.submissions()["of_ann"].given
        store.queue.submit("of_nobody", given | {"options": given["options"] | {"name": "of_nobody"}})
        yield made


def states(client):
    return {
        one["name"]: (one["state"], one["submitter"])
        for one in client.get(API, headers=bearer("root")).json()["studies"]
    }


@pytest.mark.slow
@pytest.mark.few(30)
@pytest.mark.parametrize("study", OWNERS)
@pytest.mark.parametrize("name", PEOPLE)
@pytest.mark.parametrize("change", CHANGES)
def test_a_study_is_changed_by_its_owner_and_by_admins(client, change, name, study):
    method, path, body = CHANGES[change]
    address = f"{API}/{study}" if change != "other options" else API
    before = states(client)
    answer = client.request(
        method,
        address + path.format(name=study),
        json=body and body | {"name": study} if change == "other options" else body,
        headers=bearer(name),
    )
    if (name, study) in MAY:
        assert answer.status_code not in (401, 403, 404) and answer.status_code < 500, answer.text
    else:
        assert answer.status_code == 403 and states(client) == before
        whose = {"of_ann": "belongs to 'ann': only 'ann' or an admin", "of_nobody": "only an admin"}[study]
        assert ("may only read" if PEOPLE[name] == READ else whose) in answer.json()["detail"]


@pytest.mark.slow
@pytest.mark.few(30)
@pytest.mark.parametrize("study", OWNERS)
@pytest.mark.parametrize("name", PEOPLE)
@pytest.mark.parametrize("change", FORMS)
def test_so_do_the_forms_of_pages(client, change, name, study):
    before, heads = states(client), bearer(name) | {"accept": "text/html", "origin": "http://localhost"}
    page = client.get(f"{API[7:]}/{study}", headers=heads).text
    form = {field: value.format(name=study) for field, value in FORMS[change].items()}
    answer = client.post(f"{API[7:]}/{study}/{change}", data=form, headers=heads, follow_redirects=False)
    allowed = (name, study) in MAY
    assert (f"/studies/{study}/cancel" in page, f"/studies/{study}/change" in page) == (allowed, allowed)
    if allowed:
        assert answer.status_code not in (401, 403, 404) and answer.status_code < 500, answer.text
    else:
        assert answer.status_code == 403 and states(client) == before
    assert PEOPLE[name] == READ or allowed or "or an admin may change it." in page or "only an admin" in page


@pytest.mark.slow
def test_an_owner_stays_when_an_admin_changes_the_study(client):
    client.post(f"{API}/of_ann/cancel", headers=bearer("root"))
    assert states(client)["of_ann"] == ("cancelled", "ann")
    assert client.post(f"{API}/of_ann/resume", headers=bearer("root")).json()["submitter"] == "ann"
    audit = client.get("/api/v1/audit", headers=bearer("ben")).json()
    assert [(one["who"], one["action"]) for one in audit] == [("root", "resume"), ("root", "cancel"), ("ann", "submit")]


@pytest.mark.slow
def test_somebody_else_may_ask_for_the_same_study(client):
    answer = client.post(API, json=STUDY | {"name": "of_ann"}, headers=bearer("ben"))
    assert answer.status_code == 200 and "nothing was changed" in answer.json()["note"]


@pytest.mark.slow
def test_a_study_of_the_command_line_is_taken_over_by_an_admin_alone(tmp_path):
    """Its options are no secret: a submission must not make them the way to somebody else's results."""
    own = service.with_a_finished_study(tmp_path / "runs", tokens=TOKENS)
    with service.client_of(own) as client:
        options = client.get(f"{API}/{NAME}", headers=bearer("ben")).json()["config"]
        body = {name: value for name, value in options.items() if name in STUDY} | {"name": NAME, "certify": 4}
        answer = client.post(API, json=body, headers=bearer("ben"))
        assert answer.status_code == 403 and "only an admin may change it" in answer.json()["detail"]
        assert states(client)[NAME] == ("finished", None)
        assert client.post(API, json=body, headers=bearer("root")).status_code == 201


@pytest.mark.slow
def test_what_was_changed_is_in_the_audit_and_on_its_page(client):
    client.post(f"{API}/of_ann/cancel", headers=bearer("ann"))
    client.post(API, json=STUDY | {"name": "of_ann", "points": 7}, headers=bearer("ann/laptop"))
    newest = client.get("/api/v1/audit", headers=bearer("ann")).json()[0]
    assert newest["who"] == "ann/laptop" and f'"changed": {{"points": [{STUDY["points"]}, 7]}}' in newest["detail"]
    page = client.get("/changes", headers=bearer("board") | {"accept": "text/html"}).text
    assert f"points {STUDY['points']} → 7" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "priority", "status"), [("ann", 1, 403), ("ann", 0, 201), ("ann", -5, 201), ("root", 9, 201)]
)
def test_only_an_admin_lets_a_study_go_first(client, name, priority, status):
    answer = client.post(f"{API}?priority={priority}", json=STUDY | {"name": "new"}, headers=bearer(name))
    assert answer.status_code == status
    if status == 403:
        assert answer.json()["detail"] == "priority must be 0 or less, got 1; only an admin may let a study go first"
        assert "new" not in states(client)


@pytest.mark.slow
def test_people_see_themselves_and_admins_see_all(client):
    def seen(name):
        return {one["name"]: one for one in client.get("/api/v1/people", headers=bearer(name)).json()}

    assert [*seen("root")] == ["ann", "ben", "board", "root"] and [*seen("ann/laptop")] == ["ann"]
    ann = seen("ann")["ann"]
    assert [one["name"] for one in ann["tokens"]] == ["ann", "ann/laptop"]
    assert (ann["queued"], ann["running"], ann["studies"], ann["max_queued"], ann["max_running"]) == (1, 0, 1, None, 1)
    heads = {name: bearer(name) | {"accept": "text/html"} for name in PEOPLE}
    assert "of_ann" in client.get("/people/ann", headers=heads["ann"]).text
    assert client.get("/people/ann", headers=heads["ben"]).status_code == 404
    assert "/people/ben" in client.get("/people", headers=heads["root"]).text
    assert "of_ann" in client.get("/?submitter=ann", headers=heads["ben"]).text
    assert "of_ann" not in client.get("/?submitter=ben", headers=heads["ben"]).text
    seen_by_admins = client.get("/api/v1/people", headers=bearer("root")).text
    assert not any(token.digest in seen_by_admins for token in TOKENS.valid)


@pytest.mark.slow
def test_a_full_queue_is_a_refusal_that_passes(tmp_path):
    own = service.settings(tmp_path / "runs", tokens=TOKENS, limits=Limits(each=1))
    with service.client_of(own) as client:
        for name, status in (("first", 201), ("second", 429)):
            answer = client.post(API, json=STUDY | {"name": name}, headers=bearer("ann"))
            assert answer.status_code == status
        assert answer.json()["detail"].startswith("'ann' has 1 study waiting or running already")
        assert int(answer.headers["Retry-After"]) > 0
        assert client.post(API, json=STUDY | {"name": "third"}, headers=bearer("ben")).status_code == 201
        assert client.post(API, json=STUDY | {"name": "first"}, headers=bearer("ann")).status_code == 200


@pytest.mark.slow
def test_quotas_hold_under_eight_clients(tmp_path):
    """Each submits twelve studies at once with seven others: no owner gets more than three, all together fifteen."""
    people = [f"person-{number}" for number in range(8)]
    tokens = Tokens(tuple(Token(name, WRITE, digest(f"a-secret-of-{name}")) for name in people))
    own = service.settings(tmp_path / "runs", tokens=tokens, limits=Limits(each=3, all=15))

    def submits(name):
        with httpx.Client(base_url=url, headers=bearer(name), timeout=HANGS) as client:
            bodies = (STUDY | {"name": f"{name}-{number}"} for number in range(12))
            return [client.post(API, json=body).status_code for body in bodies]

    with service.listening(own) as (url, _), Store.open(own.storage) as store:
        with ThreadPoolExecutor(8) as pool:
            statuses = Counter(status for every in pool.map(submits, people) for status in every)
        owners = Counter(each.submitter for each in store.queue.open_submissions().values())
        actions = [change.action for change in store.queue.changes(100)]
    assert owners.total() == 15 and max(owners.values()) <= 3 and statuses == {201: 15, 429: 81}
    assert actions == ["submit"] * 15, "what was refused is no change"


def one(study, owner, submitted, priority=0):
    return Submission(study, True, priority, submitted, owner, {}, 0)


@pytest.mark.parametrize(
    ("turns", "order"),
    [
        ({}, "a1 b1 c1 a2 b2 a3"),
        ({"a": 100.0}, "b1 c1 a1 b2 a2 a3"),
        ({"a": 100.0, "b": 200.0, "c": 50.0}, "c1 a1 b1 a2 b2 a3"),
    ],
)
def test_owners_take_turns(turns, order):
    waiting = [
        one("a1", "a", 1),
        one("a2", "a", 2),
        one("a3", "a", 3),
        one("b1", "b", 4),
        one("b2", "b", 5),
        one("c1", "c", 6),
    ]
    assert [each.study for each in in_turn(reversed(waiting), turns)] == order.split()
    first = [*waiting, one("urgent", "a", 9, priority=1)]
    assert next(each.study for each in in_turn(first, turns)) == "urgent"


def test_without_owners_the_oldest_is_next():
    waiting = [one("new", "", 3), one("old", "", 1), one("same", "", 1)]
    assert [each.study for each in in_turn(waiting, {"": 5.0})] == ["old", "same", "new"]


class Process:
    """A process that goes on until `ended`."""

    def __init__(self, name, settings):
        self.name, self.pid, self.ended = name, 1, None
        begun.append(self)

    def status(self):
        return self.ended

    def interrupt(self):
        """Nothing."""

    def last_error(self):
        return ""


begun: list[Process] = []


def test_nobody_waits_for_all_studies_of_somebody_else(tmp_path, monkeypatch):
    """Ann submits six, then eight others one each; a service that is started again goes on with the same turns."""
    monkeypatch.setattr(scheduler, "StudyProcess", Process)
    begun.clear()
    own = service.settings(tmp_path / "runs", parallel=3, parallel_each=2)
    with Store.open(own.storage) as store:
        for number in range(6):
            store.queue.submit(f"ann-{number}", {"options": {}}, submitter="ann")
        worker = Scheduler(own, store)
        worker.step()
        assert [each.name for each in begun] == ["ann-0", "ann-1"], "no owner has more than two at a time"
        for number in range(8):
            store.queue.submit(f"other-{number}", {"options": {}}, submitter=f"other-{number}")
        while len(begun) < 14:
            for each in begun:
                if each.ended is None:
                    each.ended = 0
                    store.queue.fail(each.name, "over")
            worker.step()
            worker.step()
            assert (
                max(Counter(each.name.partition("-")[0] for each in begun if each.ended is None).get("ann", 0), 0) <= 2
            )
        order = [each.name for each in begun]
    assert order[2:10] == [f"other-{number}" for number in range(8)], order
    assert order[10:] == [f"ann-{number}" for number in range(2, 6)]


def test_turns_outlast_the_service(tmp_path, monkeypatch):
    monkeypatch.setattr(scheduler, "StudyProcess", Process)
    begun.clear()
    own = service.settings(tmp_path / "runs")
    with Store.open(own.storage) as store:
        for owner, number in itertools.product(("ann", "ben"), range(3)):
            store.queue.submit(f"{owner}-{number}", {"options": {}}, submitter=owner)
        for _ in range(6):
            Scheduler(own, store).step()
            store.queue.fail(begun[-1].name, "over")
    assert [each.name for each in begun] == ["ann-0", "ben-0", "ann-1", "ben-1", "ann-2", "ben-2"]


@pytest.mark.slow
def test_places_are_those_of_the_turns(client):
    for name in ("second", "third"):
        assert client.post(API, json=STUDY | {"name": name}, headers=bearer("ann")).status_code == 201
    assert client.post(API, json=STUDY | {"name": "last"}, headers=bearer("ben")).json()["place"] == 3
    places = {one["name"]: one["place"] for one in client.get(API, headers=bearer("ben")).json()["studies"]}
    assert places == {"of_ann": 1, "of_nobody": 2, "last": 3, "second": 4, "third": 5}
    assert all(one["ahead"] == [] for one in client.get(API, headers=bearer("ben")).json()["studies"])
    alone = client.get(f"{API}/second/standing", headers=bearer("ben")).json()
    assert alone["ahead"] == ["of_ann", "of_nobody", "last"]


def test_a_token_without_an_owner_owns_nothing():
    with pytest.raises(NotOwner, match="was not submitted with a token: only an admin may change it"):
        check_change("of_nobody", "", Token("/laptop", WRITE, ""))
