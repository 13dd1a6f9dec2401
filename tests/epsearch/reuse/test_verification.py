"""Runs trained again and compared with what is stored: what agrees, what differs, what another machine may do."""

import json
import shutil
from dataclasses import replace

import pytest

from epsearch import api
from epsearch.failures.errors import UsageError
from epsearch.findings import listing
from epsearch.loop import jobs
from epsearch.loop.content import run_of
from epsearch.preparation.build import build
from epsearch.reuse import verification
from epsearch.reuse.verification import verify
from epsearch.session import session
from epsearch.study.kinds import Comparison, MemoryStudy, ProtocolStudy
from results.ledger import schema
from results.ledger.record import ALONE, RERUN
from results.ledger.store import Store
from tests.epsearch.conftest import TINY
from tests.support import ledgers
from tests.support.events import Recorded
from tests.support.ledgers import NAME


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The out folder of a finished search, in the working directory."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(ledgers.finished(), tmp_path / "runs")


@pytest.fixture
def store(runs):
    with Store.open(f"sqlite:///{runs}/epsearch.sqlite") as opened:
        yield opened


def rewritten(store, key, **values):
    """Gives a stored run other values, with a checksum that fits."""
    record = replace(store.get([key])[key], **values)
    with store._writing() as connection:
        connection.execute(schema.runs.update().where(schema.runs.c.key == key).values(schema.to_row(record)))


def all_of(answer):
    return {one["key"]: one for one in answer.json["runs"]}


@pytest.mark.slow
def test_all_runs_of_a_search_agree_and_it_is_noted(epsearch, runs, store):
    before = ledgers.results(runs)
    answer = epsearch("verify", NAME, "--sample", "all", "--json")
    assert answer.status == 0 and answer.json["agrees"]
    assert answer.json["sample"] == answer.json["stored"] == len(store.all_runs())
    assert {one["stream"] for one in answer.json["runs"]} == {"cv", "eval"}
    for one in answer.json["runs"]:
        assert one["same"] and one["same_parameters"] and one["same_kind_of_machine"]
        assert (one["tolerance"], one["accuracy_difference"]) == (0.0, 0.0)
    noted = store.certificates(all_of(answer), RERUN)
    assert len(noted) == len(before) and {one.kind for one in noted.values()} == {RERUN}
    assert ledgers.results(runs) == before and len(store.certificates(all_of(answer), ALONE)) == 2
    assert store.leases.states() == {} or not store.leases.states()[NAME].held
    page = api.report(NAME, session.LedgerUrl(f"sqlite:///{runs}/epsearch.sqlite"), runs).report.read_text()
    assert f"{len(before)} runs trained again, alone, by `epsearch verify`" in page.replace("&#x27;", "'")


@pytest.mark.slow
def test_a_sample_is_drawn_again_by_its_seed(epsearch, runs):
    first, second = (epsearch("verify", NAME, "--sample", "2", "--seed", "7") for _ in range(2))
    assert first.out == second.out and first.status == 0
    assert "2 of 2 runs of first the same bit for bit" in first.out and "--seed 7 draws them again" in first.out


@pytest.mark.slow
def test_what_differs_is_said_and_ends_with_1(epsearch, runs, store):
    wrong, parameters = store.all_runs()[:2]
    accuracies = wrong.accuracies.copy()
    accuracies[0, 0] += 0.25 if accuracies[0, 0] < 0.5 else -0.25
    rewritten(store, wrong.key, accuracies=accuracies)
    rewritten(store, parameters.key, fingerprint="0" * 16)
    answer = epsearch("verify", NAME, "--sample", "all", "--json")
    found = all_of(answer)
    assert answer.status == 1 and not answer.json["agrees"]
    assert {key for key, one in found.items() if not one["agrees"]} == {wrong.key, parameters.key}
    assert found[wrong.key]["accuracy_difference"] == pytest.approx(0.25)
    assert found[parameters.key]["accuracy_difference"] == 0 and not found[parameters.key]["same_parameters"]
    shown = epsearch("verify", NAME, "--sample", "all")
    assert shown.status == 1 and shown.err.count("Traceback") == 0
    assert "2 differ from what is stored, accuracies by up to 25 percentage points; none may differ on" in shown.out


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "status", "alike"), [("feedbeef", 0, False), ("", 0, None)])
def test_another_machine_may_round_differently(epsearch, runs, store, machine, status, alike):
    record = store.all_runs()[0]
    cohort = record.cohort.partition(".")[0] + (f".{machine}" if machine else "")
    rewritten(store, record.key, fingerprint="0" * 16, cohort=cohort)
    answer = epsearch("verify", NAME, "--sample", "all", "--json")
    one = all_of(answer)[record.key]
    assert answer.status == status and one["agrees"] and not one["same"]
    assert one["same_kind_of_machine"] is alike and one["tolerance"] == pytest.approx(0.02)
    said = epsearch("verify", NAME, "--sample", "all").out
    assert "1 differ within the tolerance, accuracies by at most 0" in said
    assert ("another kind of machine" if machine else "the ledger does not say") in said


@pytest.mark.slow
def test_what_differs_by_more_than_rounding_differs_on_any_machine(epsearch, runs, store):
    record = store.all_runs()[0]
    other = 1 - record.accuracies
    rewritten(store, record.key, accuracies=other, cohort="0123456789ab.feedbeef")
    assert epsearch("verify", NAME, "--sample", "all", "--json").status == 1


@pytest.mark.slow
def test_a_damaged_run_is_no_agreement(epsearch, runs, store):
    key = next(one.key for one in store.all_runs() if one.phase == "eval")
    ledgers.execute(runs, "UPDATE epsearch_runs SET steps = steps + 1 WHERE key = :key", key=key)
    answer = epsearch("verify", NAME, "--sample", "1", "--json")
    assert answer.status == 1 and [*answer.json["damaged"]] == [key]
    assert "1 damaged record of the ledger is not used" in epsearch("verify", NAME, "--sample", "1").out


def test_a_run_knows_the_learner_that_it_is_of(runs, store):
    loop = listing.load(NAME, session.LedgerUrl(f"sqlite:///{runs}/epsearch.sqlite"), runs)
    assert loop.records
    for key, record in loop.records.items():
        assert loop._key(run_of(record)) == key


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Comparison, {"methods": "agem,van,ewc", "seeds": 1}),
        (MemoryStudy, {"methods": "agem,soft_agem", "sizes": "1,2", "seeds": 1}),
    ],
)
def test_tables_are_verified_too(epsearch, tmp_path, kind, options):
    known = {name: value for name, value in TINY.items() if name in kind.options()}
    study = build(kind, known | {"out": tmp_path / "runs", "name": "table"} | options)
    api.run(study)
    answer = epsearch("verify", "--sample", "all", "--json")
    assert answer.status == 0 and answer.json["name"] == "table"
    assert answer.json["sample"] == len({one["key"] for one in answer.json["runs"]}) > 2
    network = epsearch("train", "table", "--save", "model.pt", "--json")
    assert network.status == 0 and network.json["same_as_stored"]
    rows = epsearch("train", "table", "--save", "model.pt", "--row", "none")
    assert rows.status == 2 and "no row 'none'; known: " in rows.err
    row, *others = rows.err.partition("known: ")[2].split("; ")
    begin = row.rpartition(", ")[0]
    unique = not any(other.startswith(f"{begin}, ") for other in others)
    assert begin and epsearch("train", "table", "--save", "model.pt", "--row", begin).status == (0 if unique else 2)


@pytest.mark.slow
def test_runs_of_protocols_are_verified_by_schedule_and_part(epsearch, tmp_path):
    options = {"protocols": "chf,seen-tasks-on-memory,30-percent,cv-tasks", "examples_per_task": 300, "points": 2}
    known = {name: value for name, value in TINY.items() if name in ProtocolStudy.options()}
    api.run(build(ProtocolStudy, known | {"tasks": 6, "out": tmp_path / "runs", "name": "mine", "seeds": 1} | options))
    answer = epsearch("verify", "--sample", "all", "--json")
    labels = {one["run"] for one in answer.json["runs"]}
    assert answer.status == 0 and {one["stream"] for one in answer.json["runs"]} == {
        "cv",
        "eval",
        "memory",
        "validation",
    }
    assert len({(one["run"], one["stream"]) for one in answer.json["runs"]}) == answer.json["stored"]
    assert any("first 2 tasks" in label for label in labels) and any("up to step " in label for label in labels)
    assert any(", from task 3 ε = " in label for label in labels)
    assert " memory " in epsearch("verify", "--sample", "all").out
    for row, seed in (("chf", "0"), ("chf", "8"), ("cv-tasks", "0")):
        network = epsearch("train", "mine", "--save", "model.pt", "--row", row, "--seed", seed, "--json")
        assert network.status == 0 and network.json["same_as_stored"] is (True if seed == "0" else None)
    wrong = epsearch("train", "mine", "--save", "model.pt", "--row", "chf", "--stream", "cv")
    assert wrong.status == 2 and "stream must be eval for chf" in wrong.err


@pytest.mark.slow
def test_bad_input_is_one_line(epsearch, runs):
    for arguments in (
        ("verify", "nobody"),
        ("verify", NAME, "--sample", "0"),
        ("verify", NAME, "--seed", "-1"),
        ("verify", NAME, "--out", "elsewhere"),
        ("train", NAME, "--save", "runs/epsearch.sqlite"),
        ("train", NAME, "--save", "m.pt", "--stream", "test"),
    ):
        answer = epsearch(*arguments)
        assert answer.status == 2 and answer.out == "" and answer.err.count("\n") == 1, arguments


def test_a_damaged_study_is_one_line(epsearch, runs):
    ledgers.execute(runs, "UPDATE epsearch_studies SET config = '{}'")
    answer = epsearch("verify", NAME)
    assert answer.status == 2 and answer.err == (
        "epsearch: study 'first' cannot be read, damaged: its checksum does not match\n"
    )


def test_a_ledger_that_cannot_be_written_to_is_verified_all_the_same(runs, store, monkeypatch):
    listener = Recorded()

    def refuse(*_, **__):
        raise UsageError("attempt to write a readonly database")

    monkeypatch.setattr(verification, "open_store", refuse)
    found = verify(NAME, session.LedgerUrl(f"sqlite:///{runs}/epsearch.sqlite"), runs, runs, 1, 0, listener)
    assert found.agrees and listener.warnings == [
        "the verification is not stored in the ledger: attempt to write a readonly database"
    ]


def test_a_study_of_a_gpu_says_so_where_there_is_none(runs, store, monkeypatch):
    monkeypatch.setattr("epsearch.session.reruns.cuda_present", lambda: False)
    row = store.study(NAME)
    store.change_study(row, {**row.config, "study": {**row.config["study"], "device": "cuda"}})
    url = session.LedgerUrl(f"sqlite:///{runs}/epsearch.sqlite")
    with pytest.raises(UsageError, match=r"has no runs yet|was trained on a CUDA GPU, and torch finds none here"):
        verify(NAME, url, runs, runs)


def test_what_is_kept_of_first_tasks_is_not_used(epsearch, runs, monkeypatch):
    """Damage could hide there: a run that is verified is trained from its start."""
    folders = []
    original = jobs.bytes_free
    monkeypatch.setattr(jobs, "bytes_free", lambda *told: folders.append(told) or original(*told))
    assert epsearch("verify", NAME, "--sample", "2").status == 0 and folders == []


@pytest.mark.slow
def test_json_has_no_number_that_json_lacks(epsearch, runs, store):
    record = store.all_runs()[0]
    within = record.within.copy()
    within[:] = 0.5 if (record.within != record.within).all() else float("nan")
    rewritten(store, record.key, within=within)
    answer = epsearch("verify", NAME, "--sample", "all", "--json")
    found = json.loads(answer.out, parse_constant=lambda _: pytest.fail("no JSON"))["runs"]
    (one,) = (one for one in found if one["key"] == record.key)
    assert answer.status == 1 and one["accuracy_difference"] is None
