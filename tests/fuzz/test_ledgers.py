"""Damaged ledgers × list, show, report, run: one line or the right answer, and nothing damaged is ever a result."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager, suppress

import pytest

from tests.epsearch.conftest import *  # noqa: F403  the fixtures that call the command line
from tests.support.ledgers import ARGUMENTS, NAME, finished, results

pytestmark = pytest.mark.fuzz

SHARE = float(os.environ.get("EPSEARCH_FUZZ_SHARE", "1"))
IN_PROCESS, AS_PROCESSES = max(1, round(200 * SHARE)), max(1, round(100 * SHARE))
SEED = 20_000
COMMANDS = {
    "list": ["list", "--json"],
    "show": ["show", NAME, "--json"],
    "report": ["report", NAME, "--json"],
    "run": ["run", *ARGUMENTS, "--name", NAME, "--json"],
}
FOUND = ("chosen", "chosen_score", "rounds", "evaluation")
TABLES = (
    *("epsearch_runs", "epsearch_studies", "epsearch_certificates", "epsearch_summaries", "epsearch_schema"),
    *("epsearch_leases", "epsearch_claims", "epsearch_events", "epsearch_reruns"),
)
JUNK = (
    None,
    "",
    "{",
    "[]",
    "{}",
    "NaN",
    "[[NaN]]",
    0,
    -1,
    2**62,
    1e308,
    b"\x00\xff",
    "\x00",
    "ok",
    "[" * 5000,
    "[/red]",
)


def flip_bytes(file, draw):
    content = bytearray(file.read_bytes())
    for _ in range(draw.choice((1, 2, 10, 100))):
        content[draw.randrange(len(content))] ^= draw.randrange(1, 256)
    file.write_bytes(content)


def flip_text(file, draw):
    """Within what the rows say, where the file as such stays whole."""
    content = bytearray(file.read_bytes())
    start = draw.choice([place for word in (b'{"', b"[[", b"ok", b"cv") for place in places(content, word)])
    content[start + draw.randrange(min(200, len(content) - start))] ^= 1 << draw.randrange(7)
    file.write_bytes(content)


def places(content, word):
    place = content.find(word)
    while place >= 0:
        yield place
        place = content.find(word, place + 1)


def truncate(file, draw):
    os.truncate(file, draw.randrange(file.stat().st_size))


def zero_page(file, draw):
    content = bytearray(file.read_bytes())
    start = draw.randrange(len(content) // 4096) * 4096
    content[start : start + 4096] = bytes(4096)
    file.write_bytes(content)


def alter_row(file, draw):
    """A column of some rows says something else."""
    table = draw.choice(TABLES)
    with changing(file) as connection:
        column = draw.choice(columns(connection, table))
        chosen = f"WHERE abs(random()) % {draw.choice((1, 3, 9))} = 0"
        connection.execute(f"UPDATE OR REPLACE {table} SET {column} = ? {chosen}", (draw.choice(JUNK),))


def alter_json(file, draw):
    """A value somewhere in a row's JSON is another one, or gone."""
    table, column = draw.choice(
        (
            ("epsearch_studies", "config"),
            ("epsearch_summaries", "summary"),
            ("epsearch_leases", "holder"),
            ("epsearch_events", "data"),
            *(("epsearch_runs", name) for name in ("content", "accuracies", "initial", "within")),
        )
    )
    with changing(file) as connection:
        key, text = draw.choice(connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall())
        changed = json.dumps(altered(json.loads(text), draw))
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, key))


def altered(value, draw):
    """The value with one leaf changed."""
    if isinstance(value, dict) and value:
        name = draw.choice(list(value))
        return {**value, name: altered(value[name], draw)}
    if isinstance(value, list) and value:
        place = draw.randrange(len(value))
        return [*value[:place], altered(value[place], draw), *value[place + 1 :]]
    return draw.choice([one for one in (0, 0.5, 1, -1, None, True, "x", [], {}, 10**30) if one != value])


def drop_column(file, draw):
    table = draw.choice(TABLES)
    with changing(file) as connection:
        kept = columns(connection, table)
        kept.remove(draw.choice(kept))
        rebuild(connection, table, kept)


def retype(file, draw):
    """A table whose columns have other types, so that other values come back."""
    table, kind = draw.choice(TABLES), draw.choice(("INTEGER", "BLOB", "TEXT", "REAL", "NUMERIC"))
    with changing(file) as connection:
        rebuild(connection, table, [f"CAST({name} AS {kind}) AS {name}" for name in columns(connection, table)])


def drop_table(file, draw):
    with changing(file) as connection:
        connection.execute(f"DROP TABLE {draw.choice(TABLES)}")


def make_view(file, draw):
    table = draw.choice(TABLES)
    with changing(file) as connection:
        connection.execute(f"ALTER TABLE {table} RENAME TO other")
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM {draw.choice(('other', table))}")


DAMAGE = (flip_bytes, flip_text, truncate, zero_page, alter_row, alter_json, drop_column, retype, drop_table, make_view)


@contextmanager
def changing(file):
    """A connection whose changes are kept; a change that the database refuses is none."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection, suppress(sqlite3.Error):
        yield connection


def columns(connection, table):
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def rebuild(connection, table, kept):
    connection.execute(f"CREATE TABLE other AS SELECT {', '.join(kept)} FROM {table}")
    connection.execute(f"DROP TABLE {table}")
    connection.execute(f"ALTER TABLE other RENAME TO {table}")


def damaged(out, number):
    """A copy of the finished ledger, damaged in the way that has this number."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(finished(), out, ignore=shutil.ignore_patterns(NAME))
    damage = DAMAGE[number % len(DAMAGE)]
    damage(out / "epsearch.sqlite", random.Random(SEED + number))
    return damage.__name__


@pytest.fixture(scope="module")
def reference():
    """What the sound ledger answers, and its rows by key."""
    folder = finished()
    return {row[0]: row for row in results(folder)}


def check(command, status, out, err, folder, reference, known):
    """What came of one command on one damaged ledger: "served", "told" or "refused"."""
    assert status in (0, 1, 2), (status, err)
    assert "Traceback" not in err + out
    if status:
        lines = [line for line in err.splitlines() if line.startswith("epsearch: ")]
        assert out == "" and len(lines) == 1 and err.splitlines()[-1] == lines[0], err
        return "refused"
    answer = json.loads(out)
    if command == "list":
        for row in answer:
            assert row["status"].startswith(("damaged: ", "needs ")) or row["name"] == NAME
            if row["status"] == "finished":
                assert row["chosen"] == known["chosen"] and row["score"] == known["chosen_score"]
        return "served" if [row["status"] for row in answer] == ["finished"] else "told"
    if command == "show":
        if answer["finished"]:
            assert answer["chosen"] == known["chosen"] and answer["score"] == known["chosen_score"]
        return "served" if answer["finished"] else "told"
    check_records(folder / NAME, reference)
    if command == "run":
        assert {name: answer[name] for name in FOUND} == {name: known[name] for name in FOUND}
        with suppress(sqlite3.Error):
            stored = {row[0]: row for row in results(folder)}
            assert {key: stored[key] for key in reference} == reference
        return "told" if "damaged" in err else "served"
    whole = {name: answer[name] for name in FOUND} == {name: known[name] for name in FOUND}
    assert whole or any("not finished" in note or "damaged" in note for note in answer["notes"]), answer["notes"]
    return "served" if whole else "told"


def check_records(folder, reference):
    """Every record in the report's tables is one of the sound ledger."""
    import pandas as pd

    runs, accuracies = (pd.read_parquet(folder / f"{name}.parquet") for name in ("runs", "accuracies"))
    for key, rows in accuracies.groupby("key"):
        true = json.loads(reference[key][7])
        for row in rows.itertuples():
            assert true[row.k - 1][row.j - 1] == row.accuracy
    for row in runs.itertuples():
        assert (row.seed, row.status, row.steps) == (
            reference[row.key][4],
            reference[row.key][5],
            reference[row.key][6],
        )


@pytest.fixture(scope="module")
def known():
    """The answer of `report` on the sound ledger."""
    copy = finished().parent / "known"
    shutil.copytree(finished(), copy, ignore=shutil.ignore_patterns(NAME), dirs_exist_ok=True)
    done = process(copy.parent, ["report", NAME, "--json", "--out", "known"])
    return json.loads(done.stdout)


def process(folder, arguments):
    return subprocess.run(
        [sys.executable, "-c", "from epsearch.cli import main; main()", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"EPSEARCH_CACHE": str(folder / "cache")},
    )


def test_damaged_ledgers_in_one_process(epsearch, tmp_path, reference, known, figures):
    counts = {command: dict.fromkeys(("served", "told", "refused"), 0) for command in COMMANDS}
    for number in range(IN_PROCESS):
        kind = damaged(tmp_path / "runs", number)
        for command, arguments in COMMANDS.items():
            answer = epsearch(*arguments)
            try:
                what = check(command, answer.status, answer.out, answer.err, tmp_path / "runs", reference, known)
            except AssertionError as error:
                raise AssertionError(f"ledger {number} ({kind}), {command}: {error}") from error
            counts[command][what] += 1
    for command, by_outcome in counts.items():
        figures(f"damaged ledgers, {command}", tried=IN_PROCESS, **by_outcome)


def test_damaged_ledgers_as_processes(tmp_path, reference, known, figures):
    counts = dict.fromkeys(("served", "told", "refused"), 0)
    commands = list(COMMANDS.items())
    for number in range(AS_PROCESSES):
        kind = damaged(tmp_path / "runs", 10_000 + number)
        command, arguments = commands[number // len(DAMAGE) % len(commands)]
        done = process(tmp_path, arguments)
        try:
            what = check(command, done.returncode, done.stdout, done.stderr, tmp_path / "runs", reference, known)
        except AssertionError as error:
            raise AssertionError(f"ledger {number} ({kind}), {command}: {error}") from error
        counts[what] += 1
    figures("damaged ledgers as processes", tried=AS_PROCESSES, **counts)
