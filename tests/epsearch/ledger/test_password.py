"""The ledger's password: nothing that a study writes, prints or starts has it."""

import os
import sqlite3
import subprocess
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from sqlalchemy import create_engine

from epsearch.ledger import location
from epsearch.ledger.location import VARIABLE, hide_storage
from epsearch.runners.registry import runner_of
from epsearch.session import session
from results.ledger import database
from results.ledger.dialects import engine, postgresql
from results.ledger.store import Store, StoreError
from tests.support.ledgers import ARGUMENTS

PASSWORD = "s3cr&t wörd"
ENCODED = "s3cr%26t%20w%C3%B6rd"
FORMS = (PASSWORD, ENCODED, "s3cr%26t+w", "s3cr", "wörd")
URLS = {
    "login": f"postgresql://me:{ENCODED}@db.example/ledger",
    "parameter": f"postgresql://db.example/ledger?user=me&password={ENCODED}&connect_timeout=3",
    "encoded parameter": f"postgresql://db.example/ledger?user=me&pass%77ord={ENCODED}",
}


class Connection(sqlite3.Connection):
    """Says of the server what one of psycopg does."""

    info = SimpleNamespace(parameter_status={"server_encoding": "UTF8"}.get)

    def execute(self, statement, *values):
        return super().execute("SELECT 1" if statement.startswith("SET ") else statement, *values)


@pytest.fixture(autouse=True)
def server(monkeypatch, tmp_path):
    """A PostgreSQL server that is an SQLite file, and lets in whoever knows the password."""

    file = tmp_path / "server.sqlite"

    def connected(url, **options):
        if url.drivername != "postgresql+psycopg":
            return create_engine(url, **options)
        assert PASSWORD in (url.password, url.query.get("password"))
        return create_engine(f"sqlite:///{file}", connect_args={"factory": Connection})

    def opened(*_, **options):
        return sqlite3.connect(file, factory=Connection, check_same_thread=False)

    monkeypatch.setattr(engine, "create_engine", connected)
    monkeypatch.setattr(postgresql, "_connection_class", lambda: SimpleNamespace(connect=opened))


def everything(folder):
    """Every byte of every file, besides the names."""
    return b"\n".join(bytes(path) + path.read_bytes() for path in folder.rglob("*") if path.is_file())


def nothing_has_the_password(*texts):
    for text in texts:
        found = text if isinstance(text, bytes) else text.encode()
        for form in FORMS:
            assert form.encode() not in found, form


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "url"),
    [("option", URLS["login"]), pytest.param("environment", URLS["encoded parameter"], marks=pytest.mark.slow)],
    ids=["option", "environment"],
)
def test_no_file_and_no_command_shows_it(epsearch, tmp_path, monkeypatch, given, url):
    options, location = [*ARGUMENTS, "--name", "first"], ["--storage", url]
    if given == "environment":
        monkeypatch.setenv(VARIABLE, url)
        location = []
    run = ["run", *options, *location]
    done = [
        epsearch(*run),
        epsearch(*run, "--json"),
        epsearch(*run, "--print-config"),
        epsearch("plan", *options, *location, "--json"),
        epsearch("list", *location),
        epsearch("show", *location),
        epsearch("show", *location, "--json"),
        epsearch("report", *location, "--json"),
    ]
    refused = [epsearch(*run, "--lr", "0.2"), epsearch("show", "none", *location)]
    assert {answer.status for answer in done} == {0} and {answer.status for answer in refused} == {2}
    nothing_has_the_password(everything(tmp_path), *(text for one in done + refused for text in (one.out, one.err)))
    written = yaml.safe_load((tmp_path / "runs" / "first" / "study.yaml").read_text(encoding="utf-8"))
    printed = yaml.safe_load(done[2].out)
    assert written.get("storage") == printed.get("storage")
    if given == "environment":
        assert "storage" not in written and "storage" not in done[6].out
        assert "storage:" not in (tmp_path / "runs" / "first" / "report.html").read_text(encoding="utf-8")
        assert os.environ[VARIABLE] == url
    else:
        assert written["storage"] == "postgresql://me:***@db.example/ledger"


@pytest.mark.slow
def test_a_url_of_the_environment_stands_nowhere_else(epsearch, tmp_path, monkeypatch):
    """Not even without its password: in no file, no answer, no line of an error, no event."""
    url, lines = URLS["parameter"], []
    monkeypatch.setenv(VARIABLE, url)
    run = ["run", *ARGUMENTS, "--name", "first"]
    answers = [
        epsearch("list"),  # of an empty database
        epsearch("show", "first"),
        epsearch(*run),
        epsearch(*run, "--json"),
        epsearch(*run, "--print-config"),
        epsearch(*run, "--lr", "0.2"),
        epsearch("plan", *ARGUMENTS),
        *(epsearch(command, "first", "--json") for command in ("show", "report")),
        epsearch("list", "--json"),
        epsearch("db", "upgrade"),
        epsearch("db", "upgrade", "--json"),
        epsearch("verify", "first", "--sample", "1"),
        epsearch("train", "first", "--save", "model.pt"),
        epsearch("export", "first", "first.zip"),
        epsearch("import", "first.zip"),
        epsearch("report", "first", "--out", "/dev/null/nowhere"),
    ]
    # What a database says when it fails, as a line and as an event.
    url_of_it = location.ledger_url(tmp_path)
    with pytest.raises(StoreError) as caught, database.one_line_errors(url_of_it, "read"):
        raise sqlite3.OperationalError(f"no {url} here")
    lines += [str(caught.value), repr(url_of_it)]
    statuses = [answer.status for answer in answers]
    assert (statuses.count(0), statuses.count(2), len(statuses)) == (14, 3, 17)
    for text in [everything(tmp_path).decode(errors="replace"), *lines, *(a.out + a.err for a in answers)]:
        assert "db.example" not in text and "ledger?user" not in text
    assert f"the ledger ${VARIABLE}" in lines[0]
    assert f"${VARIABLE}" in answers[10].out


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_a_url_of_a_file_is_masked_in_what_is_printed(epsearch, tmp_path, url):
    (tmp_path / "mine.yaml").write_text(f"storage: {url}\n", encoding="utf-8")
    printed = epsearch("run", "--config", "mine.yaml", "--print-config")
    assert "***" in yaml.safe_load(printed.out)["storage"]
    nothing_has_the_password(printed.out, printed.err)


@pytest.mark.slow
def test_a_written_study_runs_again_where_the_environment_has_the_url(epsearch, monkeypatch):
    epsearch("run", *ARGUMENTS, "--name", "first", "--storage", URLS["login"], "--quiet")
    again = ["run", "--config", "runs/first/study.yaml", "--json"]
    refused = epsearch(*again)
    assert refused.status == 2 and refused.err.count("\n") == 1
    assert "storage postgresql://me:***@db.example/ledger has *** for its password" in refused.err
    assert f"set {VARIABLE}" in refused.err
    monkeypatch.setenv(VARIABLE, URLS["login"].replace("db.example", "other.example"))
    other = epsearch(*again)
    assert other.status == 2 and "db.example" in other.err and f"{VARIABLE} is another URL" in other.err
    assert "other.example" not in other.err
    nothing_has_the_password(other.err, refused.err)
    monkeypatch.setenv(VARIABLE, URLS["login"])
    assert epsearch(*again).json["effort"]["trained"] == 0


def test_what_is_given_goes_before_the_environment(epsearch, small_options, monkeypatch):
    monkeypatch.setenv(VARIABLE, "sqlite:////nowhere/at/all.sqlite")
    assert "/nowhere/at" in epsearch("list").err
    assert "here.sqlite" in epsearch("list", "--storage", "sqlite:///here.sqlite").err
    printed = epsearch("run", *small_options, "--storage", "sqlite:///here.sqlite", "--print-config").out
    assert yaml.safe_load(printed)["storage"] == "sqlite:///here.sqlite"


WRONG = {
    "another kind": f"mysql://me:{ENCODED}@db.example/ledger",
    "no kind": f"me:{ENCODED}@db.example/ledger",
    "libpq's form": f"host=db.example password={ENCODED}",
    "no port": f"postgresql://me:{ENCODED}@db.example:port/ledger",
    "no folder": f"sqlite:///nowhere/x?password={ENCODED}",
}


@pytest.mark.parametrize("url", WRONG.values(), ids=WRONG)
def test_errors_do_not_show_it(epsearch, small_options, url):
    answers = [epsearch("run", *small_options, "--storage", url), epsearch("list", "--storage", url)]
    if "://" in url:
        answers.append(epsearch("list", url))
    for answer in answers:
        assert answer.status == 2 and answer.out == "" and answer.err.count("\n") == 1
        nothing_has_the_password(answer.err)


def test_what_the_driver_says_does_not_show_it(epsearch, monkeypatch):
    def refuse(*_):
        raise sqlite3.OperationalError(f"no connection to 'host=db.example password={PASSWORD}' nor with {ENCODED}")

    monkeypatch.setattr(postgresql, "_connection_class", lambda: SimpleNamespace(connect=lambda *_, **__: refuse()))
    answer = epsearch("list", "--storage", URLS["login"])
    assert answer.status == 2 and "no connection to 'host=db.example" in answer.err
    nothing_has_the_password(answer.err)
    with pytest.raises(StoreError) as caught:
        Store.read(URLS["login"])
    nothing_has_the_password("".join(traceback.format_exception(caught.value)))


def test_a_study_in_a_traceback_does_not_show_it(small_study):
    study = small_study(storage=URLS["login"])
    nothing_has_the_password(repr(study), str(asdict(study)), str(vars(study)), study.to_yaml())
    assert study.storage.revealed == URLS["login"]


@pytest.mark.parametrize("stars", ["*", "**", "****"])
def test_any_run_of_stars_is_a_masked_password(epsearch, monkeypatch, stars):
    url = f"postgresql://me:{stars}@db.example/ledger"
    answer = epsearch("list", "--storage", url)
    assert answer.status == 2 and "storage postgresql://me:***@db.example/ledger has *** for" in answer.err
    monkeypatch.setenv(VARIABLE, URLS["login"])
    assert location.storage(url).revealed == URLS["login"]


@pytest.mark.slow
def test_a_path_is_not_searched_for_passwords(epsearch, tmp_path):
    folder = tmp_path / "pass=1"
    folder.mkdir()
    url = f"sqlite:///{folder}/x.sqlite"
    assert str(location.storage(url)) == url
    assert str(location.storage(f"{url}?password=secret")) == f"{url}?password=***"
    assert epsearch("run", *ARGUMENTS, "--storage", url, "--quiet").status == 0
    assert epsearch("list", "--storage", url, "--json").json[0]["status"] == "finished"


SHOW = """
import os, subprocess, sys
from pathlib import Path
from epsearch.ledger.location import hide_storage
with hide_storage(sys.argv):
    print(Path("/proc/self/cmdline").read_bytes())
    print(subprocess.run([sys.executable, "-c", "import os; print(dict(os.environ))"], capture_output=True, text=True))
print(os.environ["EPSEARCH_STORAGE"] == sys.argv[2])
"""


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="only Linux shows processes this way")
@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_neither_the_processs_title_nor_processes_that_it_starts_have_it(url):
    started = subprocess.run(
        [sys.executable, "-c", SHOW, "--storage", url, f"--storage={url}"],
        env=os.environ | {VARIABLE: url},
        capture_output=True,
        text=True,
        check=True,
    )
    *shown, kept = started.stdout.splitlines()
    assert "db.example" in shown[0] and "PATH" in shown[1] and kept == "True"
    nothing_has_the_password(*shown)


def test_training_takes_it_out_of_the_environment(small_study, monkeypatch):
    """Also where no command line is: what Ray starts inherits the environment of its driver."""
    seen = []
    monkeypatch.setenv(VARIABLE, URLS["login"])
    study = small_study()
    ready = lambda study: seen.append(dict(os.environ)) or pytest.skip("seen")  # noqa: E731
    monkeypatch.setitem(vars(runner_of(study)), "ready", ready)
    with pytest.raises(pytest.skip.Exception):
        session.train(study)
    assert VARIABLE not in seen[0] and os.environ[VARIABLE] == URLS["login"]


def test_the_environment_is_as_it_was_behind_it(monkeypatch):
    monkeypatch.setenv(VARIABLE, "sqlite:///a")
    with hide_storage(), hide_storage():
        assert VARIABLE not in os.environ
    assert os.environ[VARIABLE] == "sqlite:///a"
