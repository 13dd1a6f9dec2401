"""A ledger that loses results while a study trains has them at its end; where it cannot be written, a file has them."""

import sqlite3
from contextlib import closing
from pathlib import Path
from zipfile import ZipFile

import pytest

from epsearch import Interrupted, run
from epsearch.failures import stopping
from epsearch.preparation.build import build
from epsearch.reuse.transfer import import_file
from epsearch.session import session
from epsearch.session.confirmation import SAVED
from epsearch.study.kinds import Comparison, Search
from results.ledger.errors import StoreError, StoreGone
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from tests.epsearch.conftest import SMALL, TINY
from tests.support.events import Recorded

OPTIONS = {"repeats": 2, "points": 3, "certify": 1, "name": "mine"}


class Harm(Recorded):
    """Harms the ledger once some members are stored; again with every further one if it is to persist."""

    def __init__(self, harm, after=4, persists=False):
        super().__init__()
        self._harm, self._after, self._persists, self.done = harm, after, persists, 0

    def records(self, stored):
        super().records(stored)
        if len(self.stored) >= self._after and (self._persists or not self.done):
            self.done += 1
            self._harm()


def statements(file, *lines):
    with closing(sqlite3.connect(file)) as connection, connection:
        for line in lines:
            connection.execute(line)


def content(storage):
    """Keys of runs and certificates, with names and summaries of studies."""
    with Store.read(storage) as store:
        runs = {record.key: record.fingerprint for record in store.all_runs()}
        names = {one.name: store.summaries()[one.name].status for one in store.studies() if not one.damage}
        return runs, set(store.certificates(runs)), names


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    study = build(Search, SMALL | OPTIONS | {"out": tmp_path_factory.mktemp("undisturbed")})
    run(study)
    return content(study.storage)


def replace_by_copy(file):
    """Renames a copy from before the first result over the file, as one who restores a backup."""
    copy = file.with_name("copy")
    with closing(sqlite3.connect(file)) as connection, closing(sqlite3.connect(copy)) as target:
        connection.backup(target)
    statements(copy, "DELETE FROM epsearch_runs", "DELETE FROM epsearch_certificates")
    copy.replace(file)


HARMS = {
    "an older copy in its place": replace_by_copy,
    "an empty ledger in its place": lambda file: (
        Store.open(f"sqlite:///{file}2").close() or Path(f"{file}2").replace(file)
    ),
    "removed": lambda file: file.unlink(),
    "removed with its log": lambda file: [one.unlink() for one in file.parent.glob(f"{file.name}*")],
    "moved away": lambda file: file.rename(file.with_name("away")),
    "its rows deleted": lambda file: statements(file, "DELETE FROM epsearch_runs"),
    "all of its rows deleted": lambda file: statements(
        file,
        *(f"DELETE FROM epsearch_{name}" for name in ("runs", "studies", "summaries", "leases", "claims", "events")),
    ),
    "its study deleted": lambda file: statements(file, "DELETE FROM epsearch_studies"),
    "its certificates deleted": lambda file: statements(file, "DELETE FROM epsearch_certificates"),
}


FEW = ("an older copy in its place", "removed with its log", "its rows deleted", "its study deleted")


def harms():
    """Every harm after the first, a middle and the last result; in the default suite a few in the middle."""
    for name, harm in HARMS.items():
        for place, after in {"first": 1, "middle": 5, "last": None}.items():
            marks = [] if name in FEW and after == 5 else [pytest.mark.slow]
            yield pytest.param(harm, after, marks=marks, id=f"{name}, {place}")


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize(("harm", "after"), [*harms()])
def test_what_the_ledger_has_lost_is_stored_again(small_study, undisturbed, harm, after):
    study = small_study(**OPTIONS)
    events = Harm(lambda: harm(study.storage.file), after or len(undisturbed[0]))
    run(study, events)
    assert events.done == 1
    assert content(study.storage) == undisturbed
    assert run(study).effort.trained == 0


@pytest.mark.slow
def test_it_is_said_in_one_line(small_study):
    study = small_study(**OPTIONS)
    events = Harm(lambda: HARMS["its rows deleted"](study.storage.file))
    run(study, events)
    (line,) = [one for one in events.warnings if "lacked" in one]
    assert line == "the ledger lacked 4 results of study 'mine' at the end, stored again now"
    events = Harm(lambda: HARMS["removed"](study.storage.file))
    run(study.but(name="again", seeds=(5, 6)), events)
    assert any("is not the file that it was" in one for one in events.warnings)


@pytest.mark.slow
def test_a_comparison_has_its_rows_again(tmp_path):
    options = TINY | {"methods": "van,agem", "name": "table"}
    study = build(Comparison, options | {"out": tmp_path / "runs"})
    run(study, Harm(lambda: HARMS["removed"](study.storage.file), after=2))
    other = build(Comparison, options | {"out": tmp_path / "other"})
    run(other)
    assert content(study.storage) == content(other.storage)


@pytest.mark.few(1)
@pytest.mark.parametrize("after", [pytest.param(5, marks=pytest.mark.slow), None], ids=["middle", "last"])
@pytest.mark.parametrize("harm", ["truncated", "overwritten", "no database"])
def test_a_file_that_is_damaged_in_place_loses_nothing(small_study, undisturbed, tmp_path, harm, after, monkeypatch):
    """Either the ledger has everything at the end, or the file of saved results has it."""
    monkeypatch.setattr(session, "WAIT_SECONDS", 2.0)
    study = small_study(**OPTIONS)

    def damage():
        file = study.storage.file
        statements(file, "PRAGMA wal_checkpoint(PASSIVE)")  # all is in the file itself
        size = file.stat().st_size
        with file.open("r+b") as opened:
            if harm == "truncated":
                opened.truncate(0)
            else:
                opened.write((b"no database " if harm == "no database" else b"\0") * (size // 12))

    failed = False
    try:
        run(study, Harm(damage, after or len(undisturbed[0])))
    except StoreError:
        failed = True
    if failed:
        assert not stopping.CONFIRMED.is_set()
        storage = LedgerUrl.of(f"sqlite:///{tmp_path / 'new' / 'ledger.sqlite'}")
        (tmp_path / "new").mkdir()
        import_file(study.out / "mine" / SAVED, storage, tmp_path / "new")
        runs, *_ = content(storage)
        assert runs.items() <= undisturbed[0].items()
        assert len(runs) >= 5
    else:
        assert content(study.storage) == undisturbed


@pytest.fixture
def broken(monkeypatch):
    """Lets the ledger take no results from now on."""

    def go():
        def refuse(self, *arguments, **options):
            raise StoreGone("cannot write to the ledger: the server is away")

        monkeypatch.setattr(session, "WAIT_SECONDS", 0.0)
        monkeypatch.setattr(Store, "_insert", refuse)

    return go


@pytest.mark.slow
def test_results_that_cannot_be_stored_are_in_a_file(epsearch, small_options, monkeypatch, tmp_path, broken):
    broken()
    answer = epsearch("run", *small_options, "--name", "mine")
    assert answer.status == 1
    assert answer.err.endswith(f"the server is away; {stopping.RESUMES}\n")
    assert (
        "could not be stored and are in runs/mine/unsaved-results.zip; `epsearch import` takes them over" in answer.err
    )
    assert stopping.KEPT not in answer.err
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    answer = epsearch("import", f"runs/mine/{SAVED}", "--out", "runs")
    assert answer.status == 0
    with Store.read(f"sqlite:///{tmp_path / 'runs' / 'epsearch.sqlite'}") as store:
        stored = {record.key for record in store.all_runs()}
    assert stored
    answer = epsearch("run", *small_options, "--name", "mine", "--json")
    assert answer.json["effort"]["reused"] >= len(stored) if "effort" in answer.json else answer.status == 0


@pytest.mark.slow
def test_certificates_that_cannot_be_stored_are_in_a_file(small_study, broken):
    """Also where all members were stored by an earlier run."""
    study = small_study(**OPTIONS | {"certify": 0})
    run(study)
    broken()
    with pytest.raises(StoreError):
        run(study.but(certify=1))
    with ZipFile(study.out / "mine" / SAVED) as saved:
        assert len(saved.read("certificates.jsonl").splitlines()) == 1


@pytest.mark.slow
def test_a_run_that_fails_elsewhere_says_that_results_are_stored(small_study):
    study = small_study(**OPTIONS)

    class Ended(Recorded):
        def records(self, stored):
            super().records(stored)
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        run(study, Ended())
    assert stopping.CONFIRMED.is_set()
    assert not (study.out / "mine" / SAVED).exists()


@pytest.mark.slow
def test_nothing_is_saved_where_nothing_was_trained(small_study, broken):
    study = small_study(**OPTIONS)
    run(study)
    broken()
    run(study)
    assert not (study.out / "mine" / SAVED).exists()
