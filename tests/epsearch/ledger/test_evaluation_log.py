"""The file of looks: appended by many at once, read however it was left, and never in the way."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from epsearch.ledger import evaluation_log
from epsearch.ledger.evaluation_log import EvaluationLog, user_log
from tests.support.limits import HANGS
from trainers.notes import redirect_notes


def record(number, seed=0, phase="eval", created="2026-01-01T00:00:00+00:00"):
    content = {"method": "agem", "epsilon": None, "config": {"lr": number}, "stream": {"tasks": [1, 3]}, "seed": seed}
    return SimpleNamespace(phase=phase, content=content, created=created)


def rates(file):
    return [run["config"]["lr"] for run, _ in EvaluationLog(file).read()]


def test_a_choice_is_kept_once_whatever_the_seed(tmp_path):
    file = tmp_path / "new" / "looks.jsonl"
    EvaluationLog(file).add([record(1, seed=1, created="2026-02"), record(1, seed=0, created="2026-01"), record(2)])
    EvaluationLog(file).add([record(1, seed=5), record(3, phase="cv")])
    assert rates(file) == [1, 2] and EvaluationLog(file).read()[0][1] == "2026-01"
    assert file.stat().st_mode & 0o077 == 0


WRITER = """
import sys
from pathlib import Path
from epsearch.ledger.evaluation_log import EvaluationLog
from tests.epsearch.ledger.test_evaluation_log import record
for number in range(20):
    EvaluationLog(Path(sys.argv[1])).add([record(1000 * int(sys.argv[2]) + number), record(number)])
"""


@pytest.mark.slow
def test_processes_that_append_at_once_lose_and_repeat_nothing(tmp_path):
    file = tmp_path / "looks.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, file, str(one)]) for one in (1, 2)]
    assert [writer.wait(HANGS) for writer in writers] == [0, 0]
    assert sorted(rates(file)) == sorted([*range(20), *(1000 * one + n for one in (1, 2) for n in range(20))])
    assert len(file.read_bytes().splitlines()) == 60


@pytest.mark.parametrize("torn", [b'{"when": "2026', b"\xff\xfe", b'{"when": 3, "run": {}}', b"[" * 100_000, b"null"])
def test_a_torn_line_takes_no_other_with_it(tmp_path, torn):
    file = tmp_path / "looks.jsonl"
    EvaluationLog(file).add([record(1)])
    with file.open("ab") as end:
        end.write(torn)
    assert rates(file) == [1]
    EvaluationLog(file).add([record(1), record(2)])
    assert rates(file) == [1, 2] and json.loads(file.read_bytes().splitlines()[-1])


def blocked(tmp_path, kind):
    file = tmp_path / "looks.jsonl"
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "folder":
            file.mkdir()
        case "below a file":
            (tmp_path / "flat").write_text("")
            return tmp_path / "flat" / "looks.jsonl"
        case "no home":
            return evaluation_log.Path("~/.local/share/epsearch/looks.jsonl")
    return file


@pytest.mark.parametrize("kind", ["pipe", "folder", "below a file", "no home"])
def test_what_cannot_be_written_is_told_once(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    file, lines = blocked(tmp_path, kind), []
    before = sorted(tmp_path.rglob("*"))
    kept = EvaluationLog(file)
    with redirect_notes(lines.append):
        kept.add([record(1)])
        kept.add([record(2)])
    assert len(lines) == 1 and lines[0].count("\n") == 0 and str(file) in lines[0] and kept.trouble in lines[0]
    assert kept.read() == [] and sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_home_that_is_read_only_is_told_once(tmp_path):
    (tmp_path / "home").mkdir(mode=0o500)
    lines = []
    with redirect_notes(lines.append):
        EvaluationLog(tmp_path / "home" / "looks.jsonl").add([record(1)])
    assert len(lines) == 1


def test_a_lock_that_is_never_given_back_stops_nothing(tmp_path, monkeypatch):
    file, lines = tmp_path / "looks.jsonl", []
    monkeypatch.setattr(evaluation_log, "WAIT_SECONDS", 0.0)
    with evaluation_log._open_locked(file), redirect_notes(lines.append):
        EvaluationLog(file).add([record(1)])
    assert len(lines) == 1 and "locked" in lines[0] and rates(file) == []


def test_where_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("EPSEARCH_LOOKS", "none")
    user_log().add([record(1)])
    monkeypatch.setenv("EPSEARCH_LOOKS", str(tmp_path / "one"))
    user_log().add([record(1)])
    monkeypatch.delenv("EPSEARCH_LOOKS")
    monkeypatch.setattr(evaluation_log, "user_data_path", lambda name: tmp_path / name)
    user_log().add([record(2)])
    assert rates(tmp_path / "one") == [1] and rates(tmp_path / "epsearch" / "looks.jsonl") == [2]
