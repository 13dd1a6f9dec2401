"""What is submitted while a study is in the queue, or is being trained."""

from __future__ import annotations

import json
import threading

import pytest

from epsearch.service.access.permissions import NotOwner
from epsearch.service.access.tokens import ADMIN, WRITE, Token
from epsearch.service.studies import Busy, Studies
from results.ledger.store import Store
from results.ledger.writers.states import QUEUED, RUNNING
from tests.support import service
from tests.support.leases import FAR

STUDY = service.STUDY | {"name": "mine"}
API = "/api/v1/studies"
JSON = {"Content-Type": "application/json"}
ANN, BEN, ADMINISTRATOR = (Token(name, role, "") for name, role in (("ann", WRITE), ("ben", WRITE), ("root", ADMIN)))


@pytest.fixture
def client(tmp_path):
    """Of a service that trains nothing; "mine" waits behind "first"."""
    with service.client_of(service.settings(tmp_path / "runs")) as made:
        for name in ("first", "mine"):
            assert made.post(f"{API}?priority=3", json=STUDY | {"name": name}).status_code == 201
        yield made


def test_the_same_study_once_more_is_the_one_that_is_being_trained(tmp_path):
    """Another of its name is refused, whatever it differs in."""
    own = service.settings(tmp_path / "runs")
    with Store.open(own.storage) as store, Store.open(own.storage) as far:
        studies = Studies(own, store)
        study = studies.build(STUDY)
        status = studies.submit(study, ANN)
        assert (status.name, status.state, status.note, status.place) == ("mine", QUEUED, "", 1)
        far.leases.acquire("mine", FAR)
        before = store.queue.submissions()["mine"]
        status = studies.submit(study, BEN)
        assert (status.name, status.note) == ("mine", "study 'mine' is being trained already; nothing was changed")
        assert store.queue.submissions()["mine"] == before and store.leases.state_of("mine").state == RUNNING
        with pytest.raises(
            Busy, match=r"^study 'mine' was submitted by 'ann' with other options, and is being trained; "
        ):
            studies.submit(studies.build(STUDY | {"points": 7}), ANN)
        with pytest.raises(NotOwner, match=r"^study 'mine' belongs to 'ann': only 'ann' or an admin may change it$"):
            studies.submit(studies.build(STUDY | {"points": 7}), BEN)


@pytest.mark.slow
@pytest.mark.parametrize("priority", ["", "?priority=1000", "?priority=-5"])
def test_the_same_study_once_more_keeps_its_place(client, priority):
    before = client.get(f"{API}/mine").json()
    answer = client.post(f"{API}{priority}", json=STUDY)
    assert answer.status_code == 200 and answer.json()["note"] == "study 'mine' waits already; nothing was changed"
    assert client.get(f"{API}/mine").json() == before and before["place"] == 2
    assert [one["action"] for one in client.get("/api/v1/audit").json()] == ["submit", "submit"]


@pytest.mark.slow
@pytest.mark.few(6)
@pytest.mark.parametrize(
    "change",
    [
        *(
            {"points": 7},
            {"points": "3.5"},
            {"seeds": 3},
            {"certify": 1},
            {"method": "agem", "search": "lr=log:0.01..0.1", "strategy": "grid"},
        ),
        *({"niceness": 3}, {"workers": 2}, {"kind": "compare", "methods": "van,agem"}, {"time_budget": "2h"}),
    ],
)
def test_another_study_does_not_take_a_name_of_the_queue(client, change):
    before = client.get(f"{API}/mine").json()
    given = STUDY | change
    if "methods" in change:
        given = {"kind": "compare", "methods": "van,agem", "name": "mine", "dataset": "permuted_digits"}
    answer = client.post(f"{API}?priority=1000", json=given)
    if change == {"points": "3.5"}:
        assert answer.status_code == 422
    else:
        assert answer.status_code == 409, answer.text
        assert (
            answer.json()["detail"]
            == "study 'mine' was submitted with other options, and waits; cancel it, or choose another name"
        )
    assert client.get(f"{API}/mine").json() == before
    form = {name: str(value) for name, value in (given | {"kind": given["kind"], "do": "submit"}).items()}
    page = client.post("/new", data=form, headers={"origin": "http://localhost", "accept": "text/html"})
    assert page.status_code == answer.status_code and client.get(f"{API}/mine").json() == before


def test_who_submitted_it_is_named(tmp_path):
    own = service.settings(tmp_path / "runs", tokens=service.TOKENS)
    with Store.open(own.storage) as store:
        studies = Studies(own, store)
        studies.submit(studies.build(STUDY), ANN)
        with pytest.raises(Busy, match=r"^study 'mine' was submitted by 'ann' with other options, and waits; cancel "):
            studies.submit(studies.build(STUDY | {"points": 7}), ADMINISTRATOR)


@pytest.mark.slow
def test_resuming_what_waits_changes_nothing(client):
    before = client.get(f"{API}/mine").json()
    answer = client.post(f"{API}/mine/resume?priority=1000")
    assert answer.status_code == 200 and answer.json()["note"].endswith("waits already; nothing was changed")
    assert client.get(f"{API}/mine").json() == before


@pytest.mark.slow
def test_what_has_ended_is_submitted_again_by_anybody_and_resumed(client):
    assert client.post(f"{API}/mine/cancel").status_code == 200
    answer = client.post(f"{API}?priority=5", json=STUDY | {"points": 7})
    assert (answer.status_code, answer.json()["priority"], answer.json()["note"]) == (201, 5, "")
    assert client.get(f"{API}/mine").json()["config"]["points"] == 7
    client.post(f"{API}/mine/cancel")
    answer = client.post(f"{API}/mine/resume?priority=2").json()
    assert (answer["state"], answer["priority"], answer["note"]) == ("queued", 2, "")


@pytest.mark.slow
def test_an_extension_that_waits_is_not_replaced(tmp_path):
    own = service.with_a_finished_study(tmp_path / "runs")
    with service.client_of(own) as client:
        name = service.ledgers.NAME
        first = client.post(f"{API}/{name}/extend?priority=2", json={"seeds": 3})
        assert (first.status_code, first.json()["note"], first.json()["state"]) == (200, "", "queued")
        again = client.post(f"{API}/{name}/extend?priority=9", json={"seeds": 3})
        assert again.status_code == 200 and again.json()["note"].endswith("nothing was changed")
        other = client.post(f"{API}/{name}/extend", json={"seeds": 4})
        assert other.status_code == 409 and "cancel it" in other.json()["detail"]
        assert client.get(f"{API}/{name}").json()["priority"] == 2


@pytest.mark.slow
def test_of_two_who_submit_at_once_one_is_told_that_the_other_was_first(tmp_path):
    own = service.settings(tmp_path / "runs")
    with Store.open(own.storage) as store:
        studies, told, ready = Studies(own, store), list[str](), threading.Barrier(6)
        wanted = [studies.build(STUDY | {"points": 3 + 2 * number}) for number in range(6)]

        def submit(number):
            ready.wait()
            try:
                told.append(
                    studies.submit(wanted[number], Token(f"person {number}", WRITE, "")).note or f"person {number}"
                )
            except (Busy, NotOwner) as error:
                told.append(f"busy: {error}")

        threads = [threading.Thread(target=submit, args=(number,)) for number in range(6)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        (first,) = (one for one in told if not one.startswith("busy: "))
        assert store.queue.submissions()["mine"].submitter == first and len(told) == 6
        assert [one.who for one in store.queue.changes(10)] == [first]


def test_an_extension_that_changes_nothing_is_not_queued(tmp_path):
    own = service.with_a_finished_study(tmp_path / "runs")
    with service.client_of(own) as client:
        name = service.ledgers.NAME
        for options in ({}, {"seeds": client.get(f"{API}/{name}").json()["config"]["seeds"]}):
            answer = client.post(f"{API}/{name}/extend", json=options).json()
            assert answer["state"] == "finished"
            assert answer["note"].endswith("no option differs from its own; nothing to train")
        assert not client.get("/api/v1/audit").json()


def labelled(client, **labels):
    return client.put(f"{API}/mine/labels", json=labels)


@pytest.mark.parametrize("notes", ["\ud800", "a\x00b", "bell \x07"])
def test_notes_that_cannot_be_stored_are_refused(client, notes):
    code = f"U+{ord(next(letter for letter in notes if letter not in 'ab el')):04X}"
    answer = client.put(f"{API}/mine/labels", content=json.dumps({"notes": notes}), headers=JSON)
    assert answer.status_code == 422
    assert answer.json()["detail"] == f"notes must be text that can be stored, got the character {code}"
    assert client.get(f"{API}/mine").json()["notes"] == "" and client.get(API).status_code == 200


def test_options_that_cannot_be_stored_are_refused(client):
    body = json.dumps(STUDY | {"name": "other", "claim": "soft_agem > agem + \ud800"})
    answer = client.post(API, content=body, headers=JSON)
    assert answer.status_code == 422 and answer.json()["detail"].endswith("got the character U+D800")
    assert client.get(f"{API}/other").status_code == 404


def test_notes_that_an_earlier_version_stored_can_be_read_and_mended(client, tmp_path):
    own = service.settings(tmp_path / "runs")
    with Store.open(own.storage) as store:
        store.queue.audit("ann", "label", "mine", {"tags": [], "notes": "half \ud800"})
    assert client.get(f"{API}/mine").json()["notes"] == "half \\ud800"
    assert labelled(client, notes="whole").json()["notes"] == "whole"


def test_a_label_that_is_left_out_stays(client):
    assert labelled(client, tags=["kept"], notes="also kept").status_code == 200
    misspelt = labelled(client, note="typo")
    assert misspelt.status_code == 422
    assert misspelt.json()["detail"] == "no label 'note'; known: tags, notes; did you mean 'notes'?"
    for labels in ({}, {"tags": ["kept"]}, {"notes": "also kept"}):
        changed = labelled(client, **labels).json()
        assert (changed["tags"], changed["notes"]) == (["kept"], "also kept")


@pytest.mark.parametrize("name", ["notify", "priority"])
def test_what_belongs_into_the_url_is_no_option(client, name):
    answer = client.post(API, json=STUDY | {"name": "other", name: "3"})
    assert answer.status_code == 422
    assert answer.json()["detail"] == f"{name} goes into the URL, like ?{name}='3'; leave it out of the body"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (f"{API}/mine/nothing", "there is nothing at '/api/v1/studies/mine/nothing'"),
        (f"{API}/mine/runs", "not answer DELETE"),
    ],
)
def test_the_words_of_the_framework_are_ours(client, path, words):
    assert words in client.delete(path).json()["detail"]
