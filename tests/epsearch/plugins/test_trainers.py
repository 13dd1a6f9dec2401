"""Studies of somebody else's trainer: searched, stored, certified, reported and gone on with as those of ours."""

import os
import re
import shutil
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from epsearch.failures.errors import UsageError
from epsearch.loop.content import PARTS
from epsearch.plugins.loading import NOISY, VERSION
from epsearch.runners import overheads
from epsearch.runners.registry import LOCAL
from epsearch.session import session
from epsearch.session.session import open_store, plan, train
from tests.epsearch.test_cli import one_line
from tests.support import own_trainers
from tests.support.events import Recorded
from tests.support.service import client_of, settings
from trainers.foreign import fork_servers
from trainers.foreign.fork_servers import OFF, SWITCH

TEXT = Path(own_trainers.__file__).read_text(encoding="utf-8")
SIZES = {"seeds": 2, "tasks": 4, "cv_tasks": 2, "examples_per_task": 100, "repeats": 1, "points": 3}
OURS = {"runner": "local", "device": "cpu", "workers": 2}
SEARCH = SIZES | OURS | {"search": "lr=log:0.01..1", "certify": 1, "name": "one"}
OPTIONS = [part for name, value in (SIZES | OURS).items() for part in (f"--{name.replace('_', '-')}", str(value))]
SOFTMAX = ["--trainer", "mine:softmax", "--search", "lr=log:0.01..1", "--set", "memory=5"]


@pytest.fixture(autouse=True)
def mine(tmp_path, monkeypatch):
    """A function that writes the user's module, as it is or changed."""
    monkeypatch.chdir(tmp_path)

    def write(text=TEXT):
        (tmp_path / "mine.py").write_text(text, encoding="utf-8")

    write()
    return write


@pytest.fixture
def study(tmp_path):
    """A function that builds a study of one."""
    from epsearch.preparation.build import build
    from epsearch.study.kinds import Search

    def make(trainer="softmax", **options):
        given = {"set": "memory=5"} if trainer == "softmax" else {}
        return build(Search, SEARCH | {"trainer": f"mine:{trainer}", "out": tmp_path / "runs"} | given | options)

    return make


def records(study):
    with open_store(study.storage) as store:
        found = [content for phase in ("cv", "eval") for content, _ in store.contents(phase)]
    return found


@pytest.mark.slow
def test_it_is_searched_evaluated_and_certified(study):
    loop, effort = train(study())
    assert effort.trained == 6 + 2
    assert loop.best is not None and loop.done
    (certificate,) = loop.certificates.values()
    assert certificate.within(0.0)
    accuracies = np.array([record.accuracies[-1] for record in loop.records.values()])
    assert ((accuracies > 0.15) & (accuracies < 1)).any(axis=1).all()
    for one in records(study()):
        assert (
            one["method"] == "mine:softmax" and set(one["config"]) == {"lr", "memory"} and one["config"]["memory"] == 5
        )
        assert len(one[PARTS]) == 16
    assert train(study())[1].trained == 0


COUNTS = f"{TEXT}\nwith open('imports', 'a') as file:\n    file.write('x')\n"


@pytest.mark.slow
def test_members_are_copies_of_one_import_and_certificates_are_not(mine, study, tmp_path, monkeypatch):
    """Their results, keys and certificates are those of members that import it anew, and the plan knows the import."""
    imports, results = tmp_path / "imports", []
    mine(COUNTS)
    for way, expected in (("", 1 + 1), (OFF, 8 + 1)):
        monkeypatch.setenv(SWITCH, way)
        study(workers=1)  # which reads its declaration
        imports.unlink(missing_ok=True)
        loop, _ = train(study(workers=1, out=tmp_path / f"runs{way}"))
        assert len(imports.read_text()) == expected
        found = {key: (one.fingerprint, one.accuracies, one.content) for key, one in loop.records.items()}
        results.append((found, {key: one.within(0.0) for key, one in loop.certificates.items()}))
    assert len(results[0][0]) == 8 and set(results[0][1].values()) == {True}
    assert str(results[0]) == str(results[1])
    imported = overheads.expected_seconds(overheads.import_of("mine:softmax"), 0.0)
    eta = plan(study(workers=1, points=5, name="two", out=tmp_path / "runs")).eta
    assert imported > 0 and eta.start == pytest.approx(LOCAL.overhead + imported * (1 + 1))


@pytest.mark.slow
def test_a_run_imports_it_once_for_its_declaration_and_its_members(mine, epsearch, tmp_path):
    mine(COUNTS)
    more = ["--workers", "1", "--certify", "1", "--quiet", "--out", str(tmp_path / "runs")]
    assert epsearch("run", *OPTIONS, *SOFTMAX, *more).status == 0
    assert (tmp_path / "imports").read_text() == "x" * 2, "and once for the certificate"


@pytest.mark.slow
@pytest.mark.skipif(not fork_servers.POSSIBLE, reason="nothing is copied here")
@pytest.mark.parametrize("here", [True, False])
def test_the_server_of_the_declaration_is_ended_where_a_cluster_trains(study, monkeypatch, here):
    monkeypatch.setattr(session, "runner_of", lambda study: SimpleNamespace(starts_at_once=here))
    with fork_servers.keep_servers():
        declared = study()
        assert len(fork_servers._kept.idle) == 1
        with session._prepared_trainer(declared, SimpleNamespace(note=print)):
            assert len(fork_servers._kept.idle) == here


@pytest.mark.slow
def test_an_import_that_is_made_anew_is_said_once(mine, study):
    mine(f"{TEXT}\nKEPT = open(__file__)\n")
    events = Recorded()
    train(study(certify=0, seeds=1), events)
    (note,) = (one for one in events.notes if "anew" in one)
    assert re.fullmatch(r"each member imports mine:softmax anew: its import opens \S*mine\.py", note)


PRINTS = (
    TEXT
    + """

def prints(values, stream, seed, report):
    print("lr is", values["lr"])
    softmax(values | {"memory": 5}, stream, seed, report)
    if values["lr"] > 0.5:
        raise ValueError("too large")
"""
)


@pytest.mark.slow
def test_what_it_prints_is_in_a_log_of_the_member_and_its_tasks_are_counted(mine, study, tmp_path):
    mine(PRINTS)
    events, logs = Recorded(), tmp_path / "runs" / "one" / "logs"
    train(study("prints", search="lr=0.1..0.5", seeds=1, certify=0), events)
    assert f"the output of each member is in {logs}" in events.notes
    assert (logs / "mine-prints_lr=0.3_seed=0_cv.log").read_text() == "lr is 0.3\n"
    assert {name.rpartition("_")[2] for name in os.listdir(logs)} == {"cv.log", "eval.log"}
    told = [(one.tasks, one.tasks_wanted) for one in events.seen if one.stage != "evaluation"]
    assert told[0] == (0, 6) and {1, 2, 3, 4, 5} & {done for done, _ in told} and told == sorted(told)
    shutil.rmtree(tmp_path / "runs" / "one")
    assert train(study("prints", search="lr=0.1..0.5", seeds=1, certify=0))[1].trained == 0, "the ledger needs no logs"
    with pytest.raises(
        UsageError, match=r"ValueError: too large.*; its output: .*logs/mine-prints_lr=[\d.]+_seed=0_cv"
    ):
        train(study("prints", search="lr=0.5..1", seeds=1, name="two"))


@pytest.mark.slow
def test_the_ledger_has_what_another_study_wants(study):
    train(study())
    assert train(study(name="two", strategy="grid", points=3, certify=0))[1].trained == 0
    assert train(study(name="three", set="memory=6", certify=0))[1].reused == 0


@pytest.mark.slow
def test_a_killed_one_goes_on(study):
    whole = {key: one.fingerprint for key, one in train(study(name="whole"))[0].records.items()}
    out = study(name="half", storage="sqlite:///half.sqlite", time_budget="1s")

    from epsearch.failures.errors import Interrupted

    for _ in range(40):
        try:
            loop, _ = train(out)
            break
        except Interrupted:
            continue
    assert {key: one.fingerprint for key, one in loop.records.items()} == whole


@pytest.mark.slow
def test_an_edited_one_is_another_one(mine, study, epsearch):
    train(study())
    mine(TEXT + "# edited\n")
    one_line(
        epsearch("run", *OPTIONS, *SOFTMAX, "--name", "one", "--quiet"), "made with another mine.py", "--name one-2"
    )
    assert epsearch("show", "one").status == epsearch("report", "one").status == 0
    assert train(study(name="two"))[1].reused == 0


@pytest.mark.slow
def test_nothing_of_it_is_needed_to_read_a_study(mine, study, epsearch, tmp_path):
    train(study())
    (tmp_path / "mine.py").unlink()
    assert "finished" in epsearch("list").out
    assert epsearch("show", "one").status == epsearch("report", "one").status == 0
    one_line(epsearch("run", *OPTIONS, *SOFTMAX, "--name", "one"), "'mine'")


class TestDeclared:
    @pytest.mark.slow
    def test_parameters_baseline_version_and_requirements(self, study):
        made = study("Declared", search="pull=0..1 count=1..5", strategy="random")
        assert dict(made.set) == {"pull": 0.5, "kind": "a", "count": 3}
        assert made.baseline == (0.25, 3), "the declared default where the baseline says nothing"
        loop, _ = train(made)
        (parts,) = loop.images["plugins"].values()
        assert parts[VERSION] == "1.2" and parts[NOISY] == "yes" and "distribution numpy" in parts

    @pytest.mark.slow
    def test_rerun_noise_and_self_reports_are_told(self, epsearch):
        shown = epsearch(
            "run", *OPTIONS, "--trainer", "mine:Declared", "--search", "pull=0..1", "--name", "one", "--quiet"
        )
        assert "(1 caution)" in shown.out and "another result" not in shown.out
        shown = epsearch("show", "one", "--why")
        assert "Accuracies are self-reported: all members" in " ".join(shown.out.split())
        assert "This is rerun noise, which the trainer declares" in Path("runs/one/report.html").read_text("utf-8")
        assert "compared with nothing" not in shown.out and "Trained a second time" not in shown.out

    @pytest.mark.slow
    def test_one_that_does_not_repeat_itself_without_saying_so_is_told(self, epsearch):
        shown = epsearch("run", *OPTIONS, "--trainer", "mine:Liar", "--search", "lr=0..1", "--quiet")
        assert "trust   a member trained again has another result than its stored one: see why\n" in shown.out
        assert "It is declared to repeat itself, and does not." in " ".join(epsearch("show", "--why").out.split())


@pytest.mark.slow
def test_values_to_compare_with(study):
    assert study(against="lr=0.1").baseline == (0.1,)
    assert study().baseline is None


WRONG = {
    ("--trainer", "mine:softmax", "--search", "lr=0.1..1", "--memory", "5"): "memory is an option of epsearch's own",
    (
        "--trainer",
        "mine:softmax",
        "--search",
        "lr=0.1..1",
        "--network",
        "mlp",
    ): "network has no part in a study of a trainer",
    (
        "--trainer",
        "mine:softmax",
        "--search",
        "lr=0.1..1",
        "--method",
        "agem",
    ): "method has no part in a study of a trainer",
    (
        "--trainer",
        "mine:softmax",
        "--search",
        "lr=0.1..1",
        "--reference-rows",
        "joint",
    ): "reference-rows has no part in a study of a trainer",
    ("--trainer", "mine:softmax"): "search must name what is searched of a trainer",
    ("--trainer", "mine:sotfmax", "--search", "lr=0.1..1"): "did you mean 'softmax'?",
    ("--trainer", "nowhere:train", "--search", "lr=0.1..1"): "nowhere",
    ("--trainer", "mine", "--search", "lr=0.1..1"): "no trainer 'mine'",
    ("--trainer", "mine:softmax", "--search", "n=0.1..1"): "'n' is a column of every table of runs",
    ("--trainer", "mine:softmax", "--search", "lr=0.1..1", "--against", "memory=3"): "against must have a value of all",
    ("--trainer", "mine:Declared", "--search", "pul=0..1"): "did you mean 'pull'?",
    ("--trainer", "mine:Declared", "--search", "count=0..5"): "count must be whole, >= 1 and <= 9, got 0",
    ("--trainer", "mine:Declared", "--search", "pull=0..1", "--set", "kind=c"): "no kind 'c'; known: a, b",
    ("--trainer", "mine:softmax", "--search", "lr=0.1..1", "--memory-limit", "4"): "memory-limit must be a size",
    ("--against", "lr=0.1"): "against is for a trainer of your own",
    ("--time-limit", "1h"): "time-limit is for a trainer of your own",
}


@pytest.mark.slow
@pytest.mark.few(10)
@pytest.mark.parametrize("options", WRONG, ids=" ".join)
def test_what_cannot_be_is_one_line(options, epsearch, tmp_path):
    one_line(epsearch("run", *OPTIONS, *options, "--quiet"), WRONG[options])
    assert not (tmp_path / "runs").exists()


HOSTILE = {
    "killed": ([], "ended by itself with status 3"),
    "slow": (["--time-limit", "2s"], "took longer than 2 s"),
    "short": ([], "returned after it had reported 1 of 2 tasks"),
}


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("name", HOSTILE)
def test_what_misbehaves_ends_the_study_in_one_line(name, epsearch):
    options, line = HOSTILE[name]
    told = epsearch(
        "run", *OPTIONS, "--trainer", f"mine:{name}", "--search", "lr=0..1", "--name", "one", "--quiet", *options
    )
    one_line(told, line, f"'mine:{name}'")
    assert "failed" in epsearch("list").out


@pytest.mark.slow
def test_one_that_diverges_is_a_diverged_member(study):
    loop, _ = train(study("diverging", search="lr=0..1"))
    states = {record.content["config"]["lr"]: record.status for record in loop.records.values() if record.phase == "cv"}
    assert states == {0.0: "ok", 0.5: "ok", 1.0: "diverged"}
    assert loop.best.point == (0.5,)


@pytest.mark.slow
def test_a_plan_knows_how_long_members_took(study):
    first = plan(study())
    assert first.eta is None and "first one will tell" in first.unmeasured
    train(study())
    again = plan(study(name="two", points=5))
    assert again.eta is not None and again.eta.low < again.eta.high


def test_what_has_no_part_in_it_stands_nowhere(study):
    text = study().to_yaml()
    assert "trainer: mine:softmax" in text and "set: {memory: 5}" in text
    assert not [name for name in ("memory_batch:", "network:", "numeric_path:", "method:", "interval:") if name in text]


@pytest.mark.slow
def test_a_study_is_read_as_it_was_when_the_trainer_declares_something_else(mine, study, epsearch):
    """In a process that knows the new declaration, as a service does."""
    train(study("Declared", search="pull=0..1"))
    mine(TEXT.replace('"kind": {', '"sort": {').replace('values["pull"]', "1"))
    study("Declared", search="pull=0..1 sort=a,b", strategy="random", name="two")
    assert epsearch("report", "one").status == 0
    shown = epsearch("show", "one", "--json").json
    assert shown["config"]["set"] == {"pull": 0.5, "kind": "a", "count": 3}


@pytest.mark.slow
def test_runs_are_verified_and_noise_is_no_fault(study, epsearch):
    for trainer, search, same in (("softmax", "lr=0.1..1", 2), ("Declared", "pull=0..1", 0)):
        train(study(trainer, search=search, name=trainer, certify=0))
        found = epsearch("verify", trainer, "--sample", "2", "--json")
        assert found.status == 0 and found.json["agrees"]
        assert sum(one["same"] for one in found.json["runs"]) == same
    assert "the trainer is declared not to repeat itself" in epsearch("verify", "Declared", "--sample", "1").out


@pytest.mark.slow
def test_a_service_shows_a_study_of_one(study, tmp_path):
    """Its pages and its API, the form with its options, and its plan."""
    train(study())
    with client_of(settings(tmp_path / "runs", modules=True)) as client:
        page = client.get("/studies/one").text
        assert "mine:softmax" in page and "No member was trained" not in page and 'class="error"' not in page
        again = unescape(re.search(r'/new\?([^"]*trainer=[^"]*)"', page)[1])
        form = client.get(f"/new?{again}").text
        assert 'value="mine:softmax"' in form and "lr=log:0.01..1" in form and "memory=5" in form
        assert client.get("/api/v1/studies/one").json()["chosen"].keys() == {"lr"}
        assert client.get("/studies/one/report").status_code == 200


SHOWS = """
def train(values, stream, seed, report):
    with open("seen.txt", "a") as file:
        file.write(repr(sorted(values.items())) + "\\n")
    for task in range(len(stream)):
        stream.train(task)
        report(task, accuracies=[0.5 + 0.1 * values["augment"] + 0.01 * seed] * (task + 1))
"""


@pytest.mark.slow
def test_truth_values_and_none_reach_one_that_declares_nothing(mine, study, epsearch, tmp_path):
    mine(SHOWS)
    text = "set: {clip: null, on: on}\nsearch: [{augment: [true, false]}]\n"
    (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
    options = [*OPTIONS, "--strategy", "grid", "--trainer", "mine:train", "--certify", "1", "--quiet"]
    assert epsearch("run", "--config", "study.yaml", *options, "--name", "one").status == 0
    seen = set((tmp_path / "seen.txt").read_text(encoding="utf-8").splitlines())
    assert seen == {repr([("augment", one), ("clip", None), ("on", "on")]) for one in (True, False)}
    shown = epsearch("show", "one", "--json").json
    assert shown["chosen"] == {"augment": True} and shown["config"]["set"] == {"clip": None, "on": "on"}
    again = epsearch("run", *options, "--search", "augment=True,False", "--set", "clip=None", "on=on", "--name", "one")
    assert again.status == 0 and len(seen) == 2
    assert "0 members trained" in epsearch("run", "--config", "runs/one/study.yaml").out.replace("\n", " ")


@pytest.mark.slow
def test_modules_with_the_name_of_a_package_of_ours_are_refused(mine, study, epsearch, tmp_path):
    for name in ("trainers", "results", "search_spaces", "epsearch"):
        (tmp_path / name).mkdir()
        mine(f"from {name}.losses import scale\n{SHOWS}")
        (tmp_path / name / "losses.py").write_text("def scale(x): return x\n", encoding="utf-8")
        line = f"'{name}' is a package of epsearch, not {tmp_path / name}; give yours another name"
        for command in ("run", "check"):
            given = ["mine:train"] if command == "check" else ["--trainer", "mine:train"]
            one_line(epsearch(command, *given, "--search", "augment=1,2"), line)
        (tmp_path / name / "losses.py").unlink()
    (tmp_path / "results" / "report.html").touch()  # a folder of other things hides nothing
    mine(f"from results.labels import A_T\n{SHOWS}")
    study("train", search="augment=1,2", strategy="grid")


@pytest.mark.slow
def test_none_is_no_accuracy(mine, epsearch):
    mine(SHOWS.replace("* (task + 1)", "* task + [None]"))
    options = [*OPTIONS, "--trainer", "mine:train", "--search", "augment=1,2", "--strategy", "grid", "--points", "2"]
    answer = epsearch("run", *options, "--certify", "0", "--quiet")
    assert (
        answer.status != 0
        and "report() takes a row of numbers in [0, 1] as accuracies; got None among them" in answer.err
    )
