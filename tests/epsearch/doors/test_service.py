"""A service elsewhere, as the command line uses it: the same words and output as of a ledger of this machine."""

from __future__ import annotations

import re

import httpx
import pytest

from epsearch.arguments import SERVER
from epsearch.doors.client import TOKEN, Client
from epsearch.doors.ledger import UV
from epsearch.doors.service import ServiceDoor, make_patient_caller
from epsearch.failures.errors import Unavailable, UsageError
from results.ledger.store import Store
from tests.support import ledgers, service
from tests.support.events import Recorded
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


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["show"], ["show", ledgers.NAME, "--json"]])
def test_what_is_only_read_is_said_in_the_same_words(served, epsearch, monkeypatch, arguments):
    there = epsearch(*arguments)
    same = here(epsearch, monkeypatch, *arguments, "--out", served)
    assert there.status == same.status == 0
    if "--json" in arguments:
        assert without_places(there.json) == without_places(same.json)
    else:
        assert there.out.split() == hidden(same.out, served).split()


def without_places(answer):
    """An answer without the options that name a folder: a service hides its own."""
    for study in answer if isinstance(answer, list) else [answer]:
        for name in ("out", "data_dir", "storage"):
            study.get("config", {}).pop(name, None)
    return answer


def hidden(text, served):
    """A text as a service sends it: with the options of its folders in place of these."""
    return text.replace(f"{served}/data", "DATA").replace(str(served), "OUT")


@pytest.mark.slow
def test_a_command_of_an_answer_begins_as_the_last_one_did(served, epsearch, monkeypatch, tmp_path):
    """In a checkout alone `uv run` makes it work; a command that is found without it needs none."""
    monkeypatch.setenv(UV, "1")
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = here(epsearch, monkeypatch, "report", ledgers.NAME, "--out", served).out
    assert "next    uv run epsearch " in answer and f"why     uv run epsearch show {ledgers.NAME} " in answer
    (tmp_path / "epsearch").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "epsearch").chmod(0o755)
    assert "uv run" not in here(epsearch, monkeypatch, "report", ledgers.NAME, "--out", served).out


@pytest.mark.slow
def test_a_report_is_downloaded_and_what_it_says_is_printed(served, epsearch, monkeypatch, tmp_path):
    there = epsearch("report", ledgers.NAME, "--out", "mine")
    assert there.status == 0 and f"report  mine/{ledgers.NAME}/report.html" in there.out
    page = (tmp_path / "mine" / ledgers.NAME / "report.html").read_bytes()
    assert page.decode() == hidden((served / ledgers.NAME / "report.html").read_text(encoding="utf-8"), served)
    same = here(epsearch, monkeypatch, "report", ledgers.NAME, "--out", served)
    place = f" --out {served}"  # the options of the ledger, which nobody needs beside a service
    assert there.out.partition("report  ")[0] == same.out.partition("report  ")[0].replace(place, "")
    assert epsearch("report", "--json").json["report"] == f"runs/{ledgers.NAME}/report.html"


@pytest.mark.slow
def test_what_is_refused_there_is_one_line_here(served, epsearch):
    for arguments, line in (
        (["run", "--points", "2"], "epsearch: points must be >= 3, got 2\n"),
        (["run", "--dataset", "permuted_digit"], "did you mean 'permuted_digits'?"),
        (["run", "--name", ledgers.NAME, "--points", "5"], "choose another --name"),
        (["run", "--extend", "--points", "5"], "epsearch: --extend needs --name, the study to extend\n"),
        (["run", "--storage", "sqlite:///x"], "--storage cannot be combined with --server: the service chooses it\n"),
        (["run", "--wait"], "epsearch: --wait cannot be combined with --server"),
        (["resume", ledgers.NAME, "--workers", "2"], "epsearch: --workers cannot be combined with --server"),
        (["resume", ledgers.NAME, "--failed"], "leave out the name"),
        (["resume", "--failed"], "has failed"),
        (["cancel", ledgers.NAME], f"epsearch: study '{ledgers.NAME}' is finished: there is nothing to cancel\n"),
        (["watch", "firs"], f"epsearch: no study 'firs'; known: {ledgers.NAME}; did you mean '{ledgers.NAME}'?\n"),
        (["show", "nobody"], "epsearch: no study 'nobody'"),
        (["list", "--server", "somewhere"], "epsearch: server must be like https://HOST:PORT/PATH, got 'somewhere'\n"),
        (["list", "--server", "http://me:secret@host"], "got 'http://host'\n"),
    ):
        answer = epsearch(*arguments)
        assert answer.status == 2 and line in answer.err and answer.err.count("\n") == 1, answer.err


def test_nobody_answers(epsearch):
    answer = epsearch("list", "--server", "http://127.0.0.1:1")
    assert answer.status == 1 and answer.err.startswith("epsearch: the service http://127.0.0.1:1 does not answer: ")


@pytest.mark.slow
def test_a_study_is_submitted_followed_and_cancelled(served, epsearch, monkeypatch):
    """While it waits in the queue: nobody works on that here."""
    with Store.open(service.settings(served).storage) as store:

        def looks(*arguments):
            store.leases.cancel("mine")
            return followed(*arguments)

        followed = ServiceDoor._events
        monkeypatch.setattr(ServiceDoor, "_events", looks)
        answer = epsearch("run", *ledgers.ARGUMENTS, "--name", "mine")
        assert answer.status == 130
        assert answer.err.startswith("submitted mine; Ctrl-C ends the watching, not the study\nmine is queued\n")
        assert store.queue.submissions()["mine"].given["options"]["points"] == ledgers.STUDY["points"]
        again = epsearch("list", "--json").json
        assert {one["name"]: one["state"] for one in again} == {ledgers.NAME: "finished", "mine": "cancelled"}
        assert epsearch("resume", "mine", "--quiet").status == 130


@pytest.mark.slow
def test_a_study_of_the_queue_is_cancelled(served, epsearch):
    with Client(remote_url()) as client:
        client.post("/studies", service.STUDY | {"name": "waits"})
    answer = epsearch("cancel", "waits", "--json")
    again = epsearch("cancel", "waits")
    assert again.status == 0 and again.out == "study 'waits' was cancelled already\n"
    assert answer.status == 0 and answer.json == {"name": "waits", "state": "cancelled"}
    assert epsearch("watch", "waits").status == 1
    refused = epsearch("run", *ledgers.ARGUMENTS, "--name", "waits", "--quiet")
    assert refused.status == 2, "as without a service"
    assert refused.err == "epsearch: study 'waits' was cancelled; `epsearch resume waits` takes it up again\n"


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
    place = " --out near"  # the options of the ledger, which nobody needs beside a service
    assert there.out.partition("report  ")[0] == same.out.partition("report  ")[0].replace(place, "")
    trained = re.search(r"\d+ members trained, \d+ from the ledger", " ".join(same.out.split()))[0]
    assert trained in " ".join(there.out.split()) and not trained.startswith("0")
    assert (tmp_path / "far" / "mine" / "report.html").is_file()


def test_a_token_is_sent_and_never_shown(monkeypatch):
    asked = []

    def answer(request):
        asked.append(request)
        return httpx.Response(401, json={"detail": "a token is needed"})

    for secret, line in (
        ("the-secret-of-ann", r"^http://there:1 does not know the token in EPSEARCH_TOKEN; "),
        ("", "^http://there:1 needs a token; set EPSEARCH_TOKEN to yours$"),
    ):
        monkeypatch.setenv(TOKEN, secret)
        with (
            Client("http://there:1/", transport=httpx.MockTransport(answer)) as client,
            pytest.raises(UsageError, match=line) as refused,
        ):
            client.get("/studies")
        assert "secret-of" not in str(refused.value)
    assert [one.headers.get("authorization") for one in asked] == ["Bearer the-secret-of-ann", None]


def test_an_address_as_a_browser_shows_it_is_that_of_the_service():
    asked = []

    def answer(request):
        asked.append(str(request.url))
        return httpx.Response(200, json={})

    with Client("http://there:1/studies/first#log", transport=httpx.MockTransport(answer)) as client:
        client.get("/studies")
    assert asked == ["http://there:1/api/v1/studies"]


def test_a_service_that_goes_away_is_waited_for_with_one_line():
    coming = [{"state": "running"}, None, None, {"state": "running"}]

    def answer(request):
        if (now := coming.pop(0)) is None:
            raise httpx.ConnectError("connection refused")
        return httpx.Response(200, json=now)

    heard = Recorded()
    with Client("http://there:1", transport=httpx.MockTransport(answer)) as client:
        call = make_patient_caller(client.url, heard, pause=0.0)
        assert [call(lambda: client.get("/studies/mine/standing"))["state"] for _ in range(2)] == ["running", "running"]
    assert heard.warnings == [
        "the service http://there:1 does not answer: connection refused; trying again for up to 300 s"
    ]
    assert heard.notes == ["http://there:1 answers again"] and not coming


def test_a_service_that_never_answered_is_not_waited_for():
    def answer(request):
        raise httpx.ConnectError("connection refused")

    with (
        Client("http://there:1", transport=httpx.MockTransport(answer)) as client,
        pytest.raises(Unavailable, match="does not answer"),
    ):
        make_patient_caller(client.url, Recorded(), pause=0.0)(lambda: client.get("/studies/mine/standing"))


@pytest.mark.slow
def test_a_study_is_deleted_there_by_somebody_who_is_sure(served, epsearch):
    alone = epsearch("delete", ledgers.NAME)
    assert alone.status == 2 and "without a terminal, --yes says so" in alone.err
    assert f"delete study {ledgers.NAME}, which is finished at http://" in alone.err
    here = epsearch("delete", ledgers.NAME, "--yes", "--storage", "sqlite:///x")
    assert here.status == 2 and "--storage cannot be combined with --server" in here.err
    gone = epsearch("delete", ledgers.NAME, "--yes", "--json")
    assert gone.status == 0 and gone.json["name"] == ledgers.NAME and gone.json["members"] > 0
    assert epsearch("list", "--json").json == []


@pytest.mark.slow
def test_a_study_is_planned_there(served, epsearch, monkeypatch):
    from epsearch.service.work.planning import Planner

    asked = []

    def planned(planner, study):
        asked.append(study)
        return {"study": study.name, "words": {"members": "12 to train"}}

    monkeypatch.setattr(Planner, "_make", planned)
    answer = epsearch("plan", *ledgers.ARGUMENTS, "--name", "mine")
    assert answer.status == 0 and "12 to train" in answer.out and asked[0].name == "mine"
    assert epsearch("plan", "--name", "mine", "--json").json["study"] == "mine"
    assert epsearch("plan", "compare", "--name", "compared", "--json").json["study"] == "compared"
    assert [study.kind for study in asked] == ["run", "run", "compare"]
    assert epsearch("plan", "--name", "mine", "--extend").err.endswith("leave out --extend\n")


@pytest.mark.parametrize(
    "arguments",
    [["clean", "--older-than", "1d"], ["verify"], ["import", "x.zip"], ["db", "upgrade"]],
    ids=lambda words: words[0],
)
def test_what_a_service_does_not_do_changes_no_ledger_here_by_mistake(epsearch, monkeypatch, arguments):
    monkeypatch.setenv(SERVER, "http://there:1")
    refused = epsearch(*arguments)
    words = " ".join(one for one in arguments[:2] if one.isalpha() and one != "x")
    line = f"epsearch: epsearch {words} works on a ledger of this machine, not on that of EPSEARCH_SERVER; --out or "
    assert refused.status == 2 and refused.err.startswith(line) and refused.err.count("\n") == 1
    named = epsearch(*arguments, "--out", "runs")
    assert "EPSEARCH_SERVER" not in named.err


def test_what_only_reads_a_ledger_here_says_so(epsearch, monkeypatch):
    monkeypatch.setenv(SERVER, "http://there:1")
    for arguments in (["export", "mine", "x.zip"], ["publish", "mine", "--to", "tensorboard", "x"]):
        answer = epsearch(*arguments)
        said, failed = answer.err.splitlines()
        assert said == (
            f"epsearch: epsearch {arguments[0]} works on a ledger of this machine, not on that of EPSEARCH_SERVER"
        )
        assert "no ledger" in failed


@pytest.mark.slow
def test_a_study_that_is_finished_is_not_trained_again(served, epsearch):
    answer = epsearch("run", *ledgers.ARGUMENTS, "--name", ledgers.NAME, "--out", "far")
    assert answer.status == 0 and ledgers.NAME in answer.err and answer.err.count("\n") == 1
    assert "report  far/" in answer.out


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
