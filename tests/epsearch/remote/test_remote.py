"""A service elsewhere, as the command line uses it: the same words and output as of a ledger of this machine."""

from __future__ import annotations

import httpx
import pytest

from epsearch.commands import remote
from epsearch.failures.errors import Unavailable, UsageError
from epsearch.remote.client import SERVER, TOKEN, Client
from results.ledger.store import Store
from tests.support import ledgers, service
from tests.support.service import listening, with_a_finished_study


@pytest.fixture
def served(tmp_path, monkeypatch, epsearch):
    """The out folder of a service with a finished study, which the commands ask; its queue is not worked on."""
    own = with_a_finished_study(tmp_path / "served")
    with listening(own) as (url, _):
        monkeypatch.setenv(SERVER, url)
        yield own.out


def here(epsearch, monkeypatch, *arguments):
    """The same command of the ledger itself."""
    with monkeypatch.context() as alone:
        alone.delenv(SERVER)
        return epsearch(*arguments)


@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["show"], ["show", ledgers.NAME, "--json"]])
def test_what_is_only_read_is_said_in_the_same_words(served, epsearch, monkeypatch, arguments):
    there = epsearch(*arguments)
    same = here(epsearch, monkeypatch, *arguments, "--out", served)
    assert there.status == same.status == 0
    if "--json" in arguments:
        places = ("out", "data_dir", "storage")
        for answer in (there.json, same.json):
            for one in answer if isinstance(answer, list) else [answer]:
                for name in places:
                    one.get("config", {}).pop(name, None)
        assert there.json == same.json
    else:
        assert there.out == same.out


def test_a_report_is_downloaded_and_what_it_says_is_printed(served, epsearch, monkeypatch, tmp_path):
    there = epsearch("report", ledgers.NAME, "--out", "mine")
    assert there.status == 0 and f"report  mine/{ledgers.NAME}/report.html" in there.out
    page = (tmp_path / "mine" / ledgers.NAME / "report.html").read_bytes()
    assert page == (served / ledgers.NAME / "report.html").read_bytes()
    same = here(epsearch, monkeypatch, "report", ledgers.NAME, "--out", served)
    assert there.out.partition("report  ")[0] == same.out.partition("report  ")[0]
    assert epsearch("report", "--json").json["report"] == f"runs/{ledgers.NAME}/report.html"


def test_what_is_refused_there_is_one_line_here(served, epsearch):
    for arguments, line in (
        (["run", "--points", "2"], "epsearch: points must be >= 3, got 2\n"),
        (["run", "--dataset", "permuted_digit"], "did you mean 'permuted_digits'?"),
        (["run", "--name", ledgers.NAME, "--points", "5"], "choose another --name"),
        (["run", "--extend", "--points", "5"], "epsearch: extend needs --name, the study that is to grow\n"),
        (["run", "--storage", "sqlite:///x"], "epsearch: --storage is not of a service; with --server leave it out\n"),
        (["run", "--wait"], "epsearch: --wait is not of a service"),
        (["resume", ledgers.NAME, "--workers", "2"], "epsearch: --workers is not of a service"),
        (["resume", ledgers.NAME, "--failed"], "leave out the name"),
        (["resume", "--failed"], "has failed"),
        (["cancel", ledgers.NAME], f"epsearch: study '{ledgers.NAME}' is finished: there is nothing to cancel\n"),
        (["watch", "firs"], f"epsearch: no study 'firs'; known: {ledgers.NAME}; did you mean '{ledgers.NAME}'?\n"),
        (["show", "nobody"], "epsearch: no study 'nobody'"),
        (["list", "--server", "somewhere"], "epsearch: server must be like http://HOST:PORT, got 'somewhere'\n"),
        (["list", "--server", "http://me:secret@host"], "got 'http://host'\n"),
    ):
        answer = epsearch(*arguments)
        assert answer.status == 2 and line in answer.err and answer.err.count("\n") == 1, answer.err


def test_nobody_answers(epsearch):
    answer = epsearch("list", "--server", "http://127.0.0.1:1")
    assert answer.status == 1 and answer.err.startswith("epsearch: the service http://127.0.0.1:1 does not answer: ")


def test_a_study_is_submitted_followed_and_cancelled(served, epsearch, monkeypatch):
    """While it waits in the queue: nobody works on that here."""
    with Store.open(service.settings(served).storage) as store:

        def looks(*arguments):
            store.cancel("mine")
            return followed(*arguments)

        followed = remote._Followed.events
        monkeypatch.setattr(remote._Followed, "events", looks)
        answer = epsearch("run", *ledgers.ARGUMENTS, "--name", "mine")
        assert answer.status == 130
        assert answer.err.startswith("submitted mine; Ctrl-C ends the watching, not the study\nmine is queued\n")
        assert store.submissions()["mine"].given["options"]["points"] == ledgers.STUDY["points"]
        again = epsearch("list", "--json").json
        assert {one["name"]: one["state"] for one in again} == {ledgers.NAME: "finished", "mine": "cancelled"}
        assert epsearch("resume", "mine", "--quiet").status == 130


def test_a_study_of_the_queue_is_cancelled(served, epsearch):
    with Client(remote_url()) as client:
        client.post("/studies", service.STUDY | {"name": "waits"})
    answer = epsearch("cancel", "waits", "--json")
    assert answer.status == 0 and answer.json == {"name": "waits", "state": "cancelled"}
    assert epsearch("watch", "waits").status == 1


def remote_url():
    import os

    return os.environ[SERVER]


@pytest.mark.service
def test_a_study_from_here_to_its_report(tmp_path, monkeypatch, epsearch):
    """Trained by a service, it prints and downloads what it would here."""
    own = service.settings(tmp_path / "served")
    arguments = ("run", *ledgers.ARGUMENTS, "--name", "mine", "--quiet")
    with listening(own, works=True) as (url, _):
        there = epsearch(*arguments, "--server", url, "--out", "far")
        assert there.status == 0, there.err
        grown = epsearch("run", "--name", "mine", "--extend", "--seeds", "3", "--server", url, "--out", "far")
        assert grown.status == 0 and "mine is running" in grown.err
    same = epsearch(*arguments, "--out", "near")
    assert there.out.partition("report  ")[0] == same.out.partition("report  ")[0]
    assert (tmp_path / "far" / "mine" / "report.html").is_file()


def test_a_token_is_sent_and_never_shown(monkeypatch):
    asked = []

    def answer(request):
        asked.append(request)
        return httpx.Response(401, json={"detail": "a token is needed"})

    monkeypatch.setenv(TOKEN, "the-secret-of-ann")
    with (
        Client("http://there:1/", transport=httpx.MockTransport(answer)) as client,
        pytest.raises(UsageError, match=r"^http://there:1 wants a token; EPSEARCH_TOKEN names it") as refused,
    ):
        client.get("/studies")
    assert asked[0].headers["authorization"] == "Bearer the-secret-of-ann" and "secret-of" not in str(refused.value)


@pytest.mark.parametrize(
    ("response", "kind", "line"),
    [
        (
            httpx.Response(503, json={"detail": "the ledger is locked"}),
            Unavailable,
            "could not do it: the ledger is loc",
        ),
        (httpx.Response(502, text="<html>"), Unavailable, "could not do it: status 502"),
        (httpx.Response(422, json={"detail": [1]}), UsageError, r"^\[1\]$"),
        (httpx.Response(404, text="no such page"), UsageError, "^status 404$"),
        (httpx.Response(200, text="<html>"), Unavailable, "is no service of epsearch"),
    ],
)
def test_whatever_answers_is_one_line(response, kind, line):
    with (
        Client("http://there:1", transport=httpx.MockTransport(lambda request: response)) as client,
        pytest.raises(kind, match=line),
    ):
        client.get("/studies")
