"""What `list` says stands in summaries: written with the records, never against them, and read without a loop."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from epsearch.findings.listing import list_studies, upgrade
from epsearch.ledger.location import ledger_url
from epsearch.preparation import history
from epsearch.preparation.build import build, extend_search
from epsearch.preparation.data import open_evaluation
from epsearch.session import session
from epsearch.session.session import make_folder, stored_loop, sum_up
from epsearch.status import UNKNOWN, read_status
from epsearch.study.description import Disjointness
from epsearch.study.kinds import Comparison, MemoryStudy
from results.ledger.store import Store
from search_spaces import STRATEGIES
from tests.epsearch.conftest import TINY
from tests.support.drive import fake, make
from tests.support.ledgers import ARGUMENTS, NAME, execute, finished, of_development, query
from tests.support.limits import HANGS

PEAK = fake(lambda one: 0.9 - 0.4 * (getattr(one, "epsilon", 0.0) - 0.4) ** 2 + 0.001 * one.seed)
FLAT = fake(lambda one: 0.5)
RUN = ["run", *ARGUMENTS, "--name", NAME, "--quiet", "--json"]
ROOT = Path(__file__).parents[3]


def begun(study, store, extend=False):
    """The loop of a study that stands in the ledger, as a command that trains has it."""
    earlier = history.save(store, study, open_evaluation(study)[0].describe(), Disjointness(), extend)
    loop = make(study, store, earlier=earlier)
    sum_up(loop, store.study(study.name))
    return loop


def listed(study):
    (row,) = list_studies(study.storage, study.out)
    return row.status, row.chosen, row.score, row.inert


def replayed(study, store):
    """The same, from the records alone."""
    loop = stored_loop(store.study(study.name), store, study.storage, study.out)
    return loop.state(), loop.choice(), loop.best and loop.best.value, loop.inert


def follow(study, train=PEAK, extend=False):
    """Trains to the end, one cohort after another, from the last to the first; all that was listed on the way.

    Replaying takes as long as the search so far: after every third cohort, and at the end.
    """
    make_folder(study.out)
    with Store.open(study.storage) as store:
        loop, found = begun(study, store, extend), []
        while True:
            found.append(listed(study))
            assert loop.done == (found[-1][0] == "finished")
            if len(found) % 3 == 1 or loop.done:
                assert found[-1] == replayed(study, store)
            if loop.done:
                return found
            loop.tell([train(loop.ask()[-1])])


SEARCHES = {
    **{name: {"strategy": name} for name in STRATEGIES},
    "race": {"race": True, "seeds": 4},
    "on the evaluation": {"score_on": "eval"},
    "two parameters": {"strategy": "random", "search": "epsilon=0..1 lr=log:0.01..0.1"},
}


@pytest.mark.slow
@pytest.mark.few(6)
@pytest.mark.parametrize("options", SEARCHES.values(), ids=SEARCHES)
def test_a_search_is_listed_as_its_records_have_it(small_study, options):
    found = follow(small_study(name="one", certify=1, **options))
    assert found[0][1:] == (None, None, False) and found[0][0].split()[0] in ("repeat", "batch")
    assert found[-1][0] == "finished" and found[-1][1] and 0 < found[-1][2] < 1
    assert len({status for status, *_ in found}) > 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "own"),
    [
        (Comparison, {"methods": "van,agem", "memory": 3}),
        (Comparison, {"methods": "van,agem", "memory": 3, "tune": True}),
        (MemoryStudy, {"sizes": "2,3"}),
    ],
    ids=["comparison", "tuned comparison", "memory study"],
)
def test_a_table_is_listed_as_its_records_have_it(tmp_path, kind, own):
    study = build(
        kind, {name: one for name, one in TINY.items() if name != "memory"} | own | {"out": tmp_path / "runs"}
    )
    found = follow(study)
    assert found[-1] == ("finished", None, None, False) and len(found) > 4


@pytest.mark.slow
def test_a_study_that_grows_is_listed_as_it_is_now(small_study):
    study = small_study(name="one", certify=0)
    follow(study)
    after = follow(extend_search(study, {"seeds": 3}), extend=True)
    assert after[0][0].startswith("repeat 1 of 2: ") and after[-1][0] == "finished"


@pytest.mark.slow
def test_equal_scores_have_no_best(small_study):
    assert follow(small_study(name="one", certify=0), FLAT)[-1][3] is True


@pytest.mark.slow
def test_no_loop_is_made(small_study, monkeypatch):
    study = small_study(name="one", certify=0)
    before = follow(study)[-1]
    monkeypatch.setattr(session, "make_loop", None)
    monkeypatch.setattr(Store, "get", None)
    assert listed(study) == before


@pytest.fixture
def out(tmp_path):
    """A copy of the finished ledger, where the commands look for it."""
    shutil.copytree(finished(), tmp_path / "runs")
    return tmp_path / "runs"


def summaries(out):
    return query(out, "SELECT * FROM epsearch_summaries")


def wrong(out):
    """A summary that is sound as a row, and not what the records say."""
    with Store.open(ledger_url(out)) as store:
        loop = stored_loop(store.study(NAME), store, ledger_url(out), out)
        loop.row = store.study(NAME).checksum
        loop.state = lambda: "evaluation: 1 of 9 members trained"
        loop.sum_up()


LOST = {
    "missing": "DELETE FROM epsearch_summaries",
    "damaged": "UPDATE epsearch_summaries SET summary = replace(summary, 'finished', 'finishes')",
    "no text": "UPDATE epsearch_summaries SET summary = x'00'",
    "of another study": "UPDATE epsearch_summaries SET name = 'other'",
}


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("statement", LOST.values(), ids=LOST)
def test_without_a_summary_show_replays_and_a_run_writes_it(epsearch, out, statement):
    before, kept = epsearch("list", "--json").json, summaries(out)
    execute(out, statement)
    (row,) = epsearch("list", "--json").json
    unknown = {"status": UNKNOWN, "detail": UNKNOWN, "summary": "", "chosen": None, "score": None, "inert": False}
    assert row == before[0] | unknown
    assert f"{UNKNOWN} means unknown: `epsearch show NAME` computes it" in epsearch("list").out
    shown = epsearch("show", "--json").json
    assert (shown["finished"], shown["chosen"], shown["score"]) == (True, before[0]["chosen"], before[0]["score"])
    assert summaries(out) != kept  # who reads writes none
    assert epsearch(*RUN).json["effort"]["trained"] == 0
    assert epsearch("list", "--json").json == before and kept[0] in summaries(out)


@pytest.mark.slow
def test_a_run_mends_a_summary_that_is_wrong(epsearch, out):
    kept = summaries(out)
    wrong(out)
    assert epsearch("list", "--json").json[0]["status"] == "evaluation: 1 of 9 members trained"
    epsearch(*RUN)
    assert summaries(out) == kept


@pytest.mark.slow
def test_the_command_sums_up_what_is_not(epsearch, out):
    before = epsearch("list", "--json").json
    execute(out, "DELETE FROM epsearch_summaries")
    of_development(out)
    assert [row["status"] for row in epsearch("list", "--json").json] == [UNKNOWN]
    assert epsearch("db", "upgrade", "--json").json["summed_up"] == 1
    assert epsearch("list", "--json").json == before
    assert upgrade(ledger_url(out), out, None)["summed_up"] == 0


@pytest.mark.slow
def test_a_study_that_cannot_be_read_is_not_summed_up(epsearch, out):
    execute(out, "UPDATE epsearch_studies SET config = '{'", "DELETE FROM epsearch_summaries")
    assert epsearch("db", "upgrade", "--json").json["summed_up"] == 0
    assert epsearch("list", "--json").json[0]["status"].startswith("damaged: ")


@pytest.mark.slow
def test_what_another_program_made_of_the_study_is_not_summed_up(small_study):
    """One that is still at work on what the study was before it grew."""
    study = small_study(name="one", certify=0)
    make_folder(study.out)
    with Store.open(study.storage) as store:
        before = begun(study, store)
        before.tell([PEAK(before.ask()[0])])
        after = begun(extend_search(study, {"points": 5}), store, extend=True)
        now = listed(study)
        before.tell([PEAK(before.ask()[0])])
        assert listed(study) == now
        after.tell([PEAK(after.ask()[0])])
        assert listed(study) != now


CHILD = """
import os, signal, sys
from results.ledger import store
from results.ledger.store import Store
from epsearch.loop.search import SearchLoop

def dies(work, count):
    calls = []
    def call(*given, **more):
        found = work(*given, **more)
        calls.append(1)
        if len(calls) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    return call

{place} = dies({place}, {count})
from epsearch.cli import main
main()
"""


# A function, after whose so-manieth call a run is killed: before the end of a transaction, after it, after the loop has
# moved on.
@pytest.mark.slow
@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("place", "count"),
    [
        ("store._sum_up", 1),
        ("store._sum_up", 5),
        ("Store.add", 1),
        ("Store.add", 6),
        ("Store.certify", 1),
        ("SearchLoop._advance", 3),
    ],
)
def test_a_kill_leaves_what_the_records_have(epsearch, tmp_path, place, count):
    """Or what they had of a round that has just ended: the next one is begun by the program that goes on."""
    command = [sys.executable, "-c", CHILD.format(place=place, count=count), *RUN]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, timeout=HANGS, env=environment, stderr=subprocess.PIPE)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (told,) = (row["status"] for row in epsearch("list", "--json").json)
    state, _, status = told.partition(": ")
    assert state == "interrupted"
    url = ledger_url(tmp_path / "runs")
    with Store.read(url) as store:
        loop = stored_loop(store.study(NAME), store, url, tmp_path / "runs")
    if status not in (loop.state(), ""):
        known, of, wanted = status.partition(": ")[2].removesuffix(" members trained").partition(" of ")
        assert of and known == wanted and status.startswith("repeat 1 of 1: ") and loop.evaluating
    assert (status == "") == (place == "store._sum_up" and count == 1)
    assert epsearch(*RUN).status == 0
    assert epsearch("list", "--json").json[0]["status"] == "finished"


LIGHT = """
import sys
from epsearch.cli import run
status = run()
print([name for name in ("numpy", "trainers.streams", "epsearch.loop.base") if name in sys.modules], file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.slow
def test_a_list_needs_no_arrays(out):
    """Neither when its modules are imported nor when it is printed: it is there at once."""
    command = [sys.executable, "-c", LIGHT, "list", "--out", str(out)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, timeout=HANGS, env=environment, capture_output=True, text=True, check=True)
    assert NAME in done.stdout and done.stderr.strip() == "[]"


@pytest.mark.slow
def test_json_of_the_list_has_what_it_had(epsearch, out):
    (row,) = json.loads(epsearch("list", "--json").out)
    before = {"name", "command", "dataset", "status", "chosen", "score", "created", "inert", "state", "objective"}
    assert before < set(row) and row["objective"] == "A_T" and row["command"] == row["kind"]
    assert read_status(row).as_json() | {"command": "run"} == row
