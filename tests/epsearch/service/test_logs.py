"""The log of a service as JSON: every line of a real one, bugs with tracebacks, libraries; no secret in any of them."""

import io
import json
import logging
import socket
import sys
import threading
import warnings
from datetime import UTC, datetime

import httpx
import pytest

from epsearch.failures import stopping
from epsearch.failures.errors import UsageError
from epsearch.service import logs
from epsearch.service.access.attempts import FREE
from results.ledger.url import LedgerUrl
from tests.support.limits import HANGS
from tests.support.service import SECRETS, STUDY, TOKENS, Process, client_of, settings, until

LEVELS = {"info", "warning", "error"}
SECRET = "a-secret-of-ann-and-nobody-else"


def parsed(text):
    """The objects of a log; fails on a line that is none."""
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        assert list(line)[:4] == ["time", "level", "event", "message"] and line["level"] in LEVELS, line
        assert datetime.fromisoformat(line["time"]).tzinfo == UTC and line["time"].endswith("Z")
        assert line["message"] and "\n" not in line["event"] + line["message"]
        assert line["event"].isidentifier() and line["event"].islower()
    return lines


def only(lines, event):
    """The fields of the one line of an event."""
    (line,) = [line for line in lines if line["event"] == event]
    return {name: value for name, value in line.items() if name not in ("time", "level", "message")}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Lines of `epsearch serve` that has trained, cancelled, deleted and refused something, and was then stopped."""
    folder = tmp_path_factory.mktemp("logs")
    service = Process(folder, "--log-format", "json", environment={"EPSEARCH_TOKENS": f"ann:admin:{SECRET}"})
    try:
        place = httpx.URL(service.url)
        with httpx.Client(base_url=service.url, timeout=HANGS, headers={"authorization": f"Bearer {SECRET}"}) as client:

            def ask(method, path, **options):
                answer = client.request(method, f"/api/v1/studies{path}", **options)
                assert answer.is_success, answer.text

            ask("POST", "", json=STUDY | {"name": "trained"})
            ask("POST", "", json=STUDY | {"name": "called-off", "points": 9, "seeds": 9})
            ask("POST", "/called-off/cancel")
            until(lambda: '"state": "finished"' in service.said)
            ask("DELETE", "/trained?confirm=trained")
            for number in range(FREE + 2):
                guess = {"authorization": f"Bearer guess-number-{number}"}
                assert client.get("/api/v1/studies", headers=guess).status_code == 401
        with socket.create_connection((place.host, place.port), timeout=HANGS) as garbage:
            garbage.sendall(b"no HTTP\r\n\r\n")
            assert b"400" in garbage.recv(100)
    finally:
        service.end()
    assert SECRET not in service.said and "guess" not in service.said
    return parsed(service.said)


@pytest.mark.slow
def test_every_line_of_a_service_is_one_object(told):
    assert told[0]["event"] == "serving" and told[-1]["event"] == "stopped"
    assert told[0]["tokens"] == 1 and told[0]["url"] == told[0]["address"] and "sqlite:///" in told[0]["ledger"]
    assert told[-1]["exit_status"] == stopping.STATUS


@pytest.mark.slow
def test_each_change_has_a_line_with_who_made_it(told):
    changes = [(line["event"], line["study"], line["token"]) for line in told if "token" in line]
    assert changes == [
        ("study_submitted", "trained", "ann"),
        ("study_submitted", "called-off", "ann"),
        ("study_cancelled", "called-off", "ann"),
        ("study_deleted", "trained", "ann"),
    ]


@pytest.mark.slow
def test_each_study_has_a_line_where_it_begins_and_where_it_ends(told):
    begun = only(told, "study_begun")
    assert begun.pop("pid") > 0 and begun == {"event": "study_begun", "study": "trained", "owner": "ann"}
    assert only(told, "study_ended") == {
        **{"event": "study_ended", "study": "trained", "state": "finished"},
        "exit_status": 0,
    }


def test_each_slowed_refusal_has_a_line_and_the_first_is_a_warning(told):
    slowed = [line for line in told if line["event"] == "refusal_slowed"]
    assert [(line["level"], line["count"]) for line in slowed] == [("warning", FREE + 1), ("info", FREE + 2)]
    assert all((line["address"], line["status"]) == ("127.0.0.1", 401) for line in slowed)


def test_messages_of_the_http_server_are_lines_like_others(told):
    (line,) = [line for line in told if line["event"] == logs.OTHERS]
    assert (line["logger"], line["level"]) == ("uvicorn.error", "warning") and "Invalid HTTP request" in line["message"]


@pytest.mark.slow
def test_a_service_that_cannot_start_says_so_in_one_object(tmp_path):
    service = Process(tmp_path, "--log-format", "json", "--host", "0.0.0.0", environment={"EPSEARCH_TOKENS": ""})
    assert service.process.wait(HANGS) == 2
    (line,) = parsed(service.said)
    assert (line["event"], line["level"], line["exit_status"]) == ("failed", "error", 2)
    assert line["message"].startswith("host must be 127.0.0.1 without tokens")


@pytest.mark.slow
def test_an_unknown_format_is_refused(tmp_path):
    service = Process(tmp_path, "--log-format", "xml")
    assert service.process.wait(HANGS) == 2
    assert service.said.startswith("epsearch: no log-format 'xml'; known: text, json")


@pytest.mark.slow
def test_a_bug_has_its_traceback_without_passwords(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "cache"))
    url = "postgresql://me:s3cr3t-word@db.example/ledger"

    def broken(*arguments):
        raise RuntimeError(f"it broke at {url}")

    with (
        logs.write_json_logs() as handler,
        client_of(settings(tmp_path / "runs", tokens=TOKENS), raises=False) as client,
    ):
        handler.urls.append(LedgerUrl.of(url))
        monkeypatch.setattr(client.app.state.service.studies, "page", broken)
        assert client.get("/api/v1/studies", headers={"authorization": f"Bearer {SECRETS['read']}"}).status_code == 500
    err = capsys.readouterr().err
    (line,) = parsed(err)
    assert (line["event"], line["level"], line["status"]) == ("bug", "error", 500)
    assert "in broken" in line["traceback"] and line["traceback"].startswith("Traceback")
    assert "it broke" in line["traceback"] and "s3cr3t" not in err and SECRETS["read"] not in err


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_whatever_libraries_say_is_an_object_too(capsys):
    with logs.write_json_logs():
        logging.getLogger("some.library").warning("50 %% of %s", "it")
        logging.getLogger("some.library").info("nobody needs this")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("it is old", UserWarning, stacklevel=1)
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
    first, second, third = parsed_of_libraries(capsys.readouterr().err)
    assert (first["event"], first["logger"], first["message"]) == (logs.OTHERS, "some.library", "50 % of it")
    assert second["logger"] == "py.warnings" and "it is old" in second["message"]
    assert third["event"] == "bug" and "ZeroDivisionError" in third["traceback"]


def parsed_of_libraries(text):
    """The same, of messages that may have several lines."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("error", "event", "status"),
    [(UsageError("no"), "failed", 2), (KeyboardInterrupt(), "stopped", 130), (ZeroDivisionError("1/0"), "failed", 70)],
)
def test_the_last_line_is_an_object_and_later_ones_are_as_before(tmp_path, monkeypatch, capsys, error, event, status):
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path))
    hooks = threading.excepthook, sys.unraisablehook, logging.getLogger().handlers, logs.LOGGER.handlers
    with pytest.raises(SystemExit) as end, logs.write_json_logs():
        raise error
    assert end.value.code == status
    assert (threading.excepthook, sys.unraisablehook, logging.getLogger().handlers, logs.LOGGER.handlers) == hooks
    (line,) = parsed(capsys.readouterr().err)
    assert (line["event"], line["exit_status"]) == (event, status)
    assert ("traceback" in line) == (status == 70)
    logs.log("nothing", "is written as text")
    logs.log("trouble", "is", logging.WARNING, study="one")
    assert capsys.readouterr().err == "epsearch: is\n"


def test_a_closed_standard_error_ends_nothing(monkeypatch):
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        logs.log("trouble", "unheard", logging.WARNING)
