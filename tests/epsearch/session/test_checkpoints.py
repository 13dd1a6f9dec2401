"""`--checkpoints`: checked at the start, used by every worker, empty when all runs are in the ledger."""

import pytest
from fsspec.implementations.memory import MemoryFileSystem

import trainers.checkpoints
from epsearch.failures.errors import Interrupted, UsageError
from epsearch.session import session
from results.ledger.store import Store
from tests.support.events import Recorded
from trainers.persistence.places import Folder, Remote

PLACES = ["folder", "memory://session/runs"]


@pytest.fixture(autouse=True)
def after_every_task(monkeypatch):
    monkeypatch.setattr(trainers.checkpoints, "AT_MOST_EVERY", 0.0)


@pytest.fixture(params=PLACES)
def where(request, tmp_path):
    return str(tmp_path / "checkpoints") if request.param == "folder" else request.param


@pytest.fixture
def one_round(small_study):
    def make(**options):
        return small_study(seeds=1, repeats=1, points=3, certify=1, workers=1, **options)

    return make


def files(where, tmp_path):
    if "://" in where:
        return MemoryFileSystem().find(where.removeprefix("memory:/"))
    return [path for path in (tmp_path / "checkpoints").rglob("*") if path.is_file()]


def scores(loop):
    return {key: record.fingerprint for key, record in loop.records.items()}


@pytest.mark.slow
def test_they_change_nothing_and_are_gone_once_the_runs_are_in_the_ledger(where, one_round, tmp_path, monkeypatch):
    plain, _ = session.train(one_round(out=tmp_path / "plain"))
    there, original = [], Store.add

    def add(self, records, summary):
        there.append(len(files(where, tmp_path)))
        original(self, records, summary)

    monkeypatch.setattr(Store, "add", add)
    events = Recorded()
    loop, _ = session.train(one_round(checkpoints=where), events)
    assert scores(loop) == scores(plain) and not events.notes
    assert min(there) > 0  # when a run is stored, the last of its checkpoints is still there
    assert files(where, tmp_path) == []


@pytest.mark.slow
def test_a_run_whose_result_never_reached_the_ledger_is_not_trained_again(one_round, tmp_path, monkeypatch):
    def lost(self, records, summary):
        raise Interrupted

    study = one_round(checkpoints=str(tmp_path / "checkpoints"))
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(Store, "add", lost)
        session.train(study)
    left = len(files("folder", tmp_path))
    assert left > 0
    loop, effort = session.train(study)
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "new"))  # whose first tasks would save steps, too
    again, whole = session.train(one_round(out=tmp_path / "again"))
    assert scores(loop) == scores(again)
    assert effort.saved == whole.saved + 2 * 6  # both tasks of the first cohort's only member
    assert files("folder", tmp_path) == []


def test_they_are_no_part_of_what_a_study_is(one_round, tmp_path):
    plain, kept = one_round(), one_round(checkpoints=str(tmp_path / "x"))
    assert plain.identity() == kept.identity() and plain.name == kept.name
    assert f"checkpoints: {tmp_path / 'x'}" in kept.to_yaml()


def test_a_folder_is_made_absolute(one_round, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert one_round(checkpoints="here").checkpoints == str(tmp_path / "here")


@pytest.mark.parametrize(
    "url", ["s3://key:a-secret@bucket/runs", "sftp://me:a-secret@host/runs", "abfs://x@y/z?sas_token=a-secret"]
)
def test_a_url_with_credentials_is_refused_without_them(url, one_round):
    with pytest.raises(UsageError, match="checkpoints must be a URL without a password") as refused:
        one_round(checkpoints=url)
    assert "a-secret" not in str(refused.value) and "***" in str(refused.value)


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("nothing://x", "checkpoints nothing://x cannot be written and read: Protocol not known: nothing; give"),
        ("gs://bucket/x", "checkpoints gs://bucket/x cannot be written and read: Please install gcsfs"),
        ("/dev/null/x", "checkpoints /dev/null/x cannot be written and read: Not a directory; give a folder or"),
    ],
)
def test_what_cannot_be_used_is_told_before_anything_is_trained(where, line, epsearch, small_options, tmp_path):
    answer = epsearch("run", *small_options, "--checkpoints", where)
    assert answer.status == 2 and answer.err.count("\n") == 1 and line in answer.err
    assert not (tmp_path / "runs" / "epsearch.sqlite").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Folder, Remote])
def test_a_store_that_fails_on_the_way_loses_nothing(kind, one_round, tmp_path, monkeypatch):
    where = str(tmp_path / "checkpoints") if kind is Folder else "memory://session/failing"
    plain, _ = session.train(one_round(out=tmp_path / "plain"))
    original = kind.write

    def fail(self, name, *given):
        if not name.startswith("check/"):
            raise OSError(28, "No space left on device")
        original(self, name, *given)

    monkeypatch.setattr(kind, "write", fail)
    events = Recorded()
    loop, _ = session.train(one_round(checkpoints=where), events)
    assert scores(loop) == scores(plain)
    line = f"checkpoints at {where} cannot be used, No space left on device: training goes on without them"
    assert set(events.notes) == {line}
