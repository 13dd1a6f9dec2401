"""Checkpoints in S3, as moto answers for it: runs that are killed go on, and no credential is written anywhere."""

import re
import subprocess
import sys
from contextlib import ExitStack

import pytest

import trainers.checkpoints
from epsearch.session import session
from tests.epsearch.conftest import SMALL
from tests.support import moto_s3
from tests.support.events import Recorded
from tests.support.killing import train_until_kept
from tests.support.learners import few, train
from tests.support.limits import HANGS
from tests.support.numeric_paths import MKL, rows_equal
from tests.support.toy_streams import toy
from trainers.forks import fork
from trainers.persistence.places import place
from trainers.persistence.runs import works

pytestmark = pytest.mark.service
URL = f"s3://{moto_s3.BUCKET}/some/where"


@pytest.fixture
def s3(monkeypatch):
    """The bucket, from outside."""
    with moto_s3.server() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield moto_s3.files(environment["AWS_ENDPOINT_URL"])


@pytest.fixture(autouse=True)
def nothing_has_failed_before():
    yield
    works(place(URL))


@pytest.fixture(autouse=True)
def after_every_task(monkeypatch):
    monkeypatch.setattr(trainers.checkpoints, "AT_MOST_EVERY", 0.0)


@pytest.mark.parametrize("method", ["soft_agem", "ewc", "er", "prognn"])
def test_a_killed_run_goes_on(method, s3, monkeypatch):
    stream, learners = toy(range(4)), [few(method, epsilon=0.3), few(method, lr=0.03)]
    whole = train(learners, stream, MKL)
    train_until_kept(monkeypatch, 2, learners, stream, MKL, store=URL)
    assert len(s3.find(moto_s3.BUCKET)) == 2
    again = train(learners, stream, MKL, store=URL)
    assert all(rows_equal(whole, row, again, row) for row in range(2)) and again.saved == 2 * 3 * 6
    assert s3.find(moto_s3.BUCKET) == []


def test_forks_and_damage(s3):
    stream, one = toy(range(4)), few("soft_agem", epsilon=0.3)
    whole = train([one], stream, MKL, store=URL, keep="all")
    names = sorted(s3.find(moto_s3.BUCKET))
    assert len(names) == 4
    assert rows_equal(whole, 0, train([fork(one, 1)], stream, MKL, store=URL), 0)
    s3.pipe_file(names[1], s3.cat_file(names[1])[:-1])
    with pytest.raises(ValueError, match="nothing that a machine like this one has kept after task 1"):
        train([fork(one, 1)], stream, MKL, store=URL)


def test_a_study_leaves_nothing(s3, small_study, tmp_path):
    plain, _ = session.train(small_study(out=tmp_path / "plain", seeds=1))
    events = Recorded()
    kept, _ = session.train(small_study(seeds=1, checkpoints=URL), events)
    found = {key: record.fingerprint for key, record in kept.records.items()}
    assert found == {key: record.fingerprint for key, record in plain.records.items()}
    assert s3.find(moto_s3.BUCKET) == [] and not events.notes and not events.warnings


def command(*options):
    given = [part for name, value in SMALL.items() for part in ("--" + name.replace("_", "-"), str(value))]
    arguments = [sys.executable, "-m", "epsearch", "run", *given, "--checkpoints", *options]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=HANGS)


def test_a_whole_command(s3, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = command(URL, "--seeds", "1")
    assert done.returncode == 0, done.stderr
    said = [done.stdout, done.stderr]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5 and not any(moto_s3.SECRET in text for text in said)
    assert not any(moto_s3.SECRET.encode() in path.read_bytes() for path in files)
    (study,) = tmp_path.rglob("study.yaml")
    assert f"checkpoints: {URL}" in study.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("url", "environment", "line"),
    [
        ("s3://no-such-bucket/x", {}, "checkpoints s3://no-such-bucket/x cannot be written and read: The specified"),
        (
            URL,
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"},
            "read: (Could not connect to the|no answer within 60 seconds)",
        ),
        (URL, {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "cannot be written and read: Unable to locate"),
    ],
    ids=["no bucket", "no server", "no credentials"],
)
def test_a_bucket_that_cannot_be_used_is_one_line(url, environment, line, s3, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))  # where credentials may lie
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    done = command(url)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and re.search(line, done.stderr), done.stderr
    assert moto_s3.SECRET not in done.stderr and s3.ls("") == [moto_s3.BUCKET]


def test_a_server_that_goes_away_stops_nothing(small_study, tmp_path, monkeypatch):
    plain, _ = session.train(small_study(out=tmp_path / "plain", seeds=1))
    events, stopped, original = Recorded(), [], trainers.checkpoints.Checkpoints.save
    with ExitStack() as stack:
        for name, value in stack.enter_context(moto_s3.server()).items():
            monkeypatch.setenv(name, value)

        def save(self, *given):
            original(self, *given)
            if not stopped:
                stopped.append(True)
                stack.close()

        monkeypatch.setattr(trainers.checkpoints.Checkpoints, "save", save)
        kept, _ = session.train(small_study(seeds=1, workers=1, checkpoints=URL), events)
    found = {key: record.fingerprint for key, record in kept.records.items()}
    assert stopped and found == {key: record.fingerprint for key, record in plain.records.items()}
    (line,) = events.notes
    assert line.startswith(f"checkpoints at {URL} cannot be used, ") and moto_s3.SECRET not in line
