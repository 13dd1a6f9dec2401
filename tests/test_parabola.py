"""benchmarks/parabola.py trains what `epsearch run` trains, goes on after a kill, and its page says what is to come."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import machine
import numpy as np
import pytest

from epsearch import api
from epsearch.loop.content import run_key
from epsearch.loop.jobs import Run
from epsearch.preparation.build import build
from epsearch.study.kinds import Search
from results.ledger.store import Store
from tests.support.descendants import descendants, gone
from tests.support.limits import HANGS
from tests.trainers.streams.test_permuted import write_idx
from trainers.streams.pixels import mnist

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "parabola.py"
PATH = "cpu-float32-mkl"


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def data_dir(tmp_path):
    mnist.load.cache_clear()
    yield write_idx(tmp_path / "data", images=(60, 12))
    mnist.load.cache_clear()


def made_up(piece):
    """Members of a piece with scores by ε, seed and formula alone: 90 at 0, less to the right."""
    curve, epsilons = piece
    lost = 20 if curve.formula == "subtraction" else 4 if curve.phase == "cv" else -2
    return [
        {**curve._asdict(), "epsilon": epsilon, "A_T": 90 + curve.seed / 8 - lost * epsilon}
        | {"F_T": 0.1 * epsilon, "a_1": 80.0, "a_t": 95.0, "commit": "made up", "numeric_path": PATH}
        for epsilon in epsilons
    ]


def all_of(sizes):
    import parabola

    return [one for piece in parabola.left(sizes, []) for one in made_up(piece)]


def found_of(members):
    """A file's content."""
    import parabola

    return {"sizes": parabola.TINY._asdict(), "members": members}


def test_every_member_is_trained_once_and_minutes_come_before_hours():
    import parabola

    sizes, pieces = parabola.Sizes(), parabola.left(parabola.Sizes(), [])
    members = [(curve, epsilon) for curve, some in pieces for epsilon in some]
    assert len(members) == len(set(members)) == 11 * len(list(parabola.curves(sizes)))
    assert len(set(sizes.epsilons)) == 11 and {0.0, 0.07185, 1.0} <= set(sizes.epsilons)
    assert all(len(some) == 1 or len(some) * curve.tasks * curve.images <= 1_000_000 for curve, some in pieces)
    kinds = list(dict.fromkeys((curve.phase, curve.tasks, curve.images, curve.formula) for curve, _ in pieces))
    assert kinds[:3] == [("cv", 3, images, "exact") for images in (500, 2_000, 8_000)]
    assert kinds[3:7] == [(*at, 60_000, by) for at in (("cv", 3), ("eval", 17)) for by in ("exact", "subtraction")]
    assert [one[1:3] for one in kinds[7:]] == [(3, 20_000), (5, 60_000), (10, 60_000)]
    assert [curve.seed for curve, _ in pieces if curve.phase == "eval" and curve.seed] == [1] * 22 + [2] * 22
    assert {curve.seed for curve, _ in pieces if curve.phase == "cv"} == {0, 1, 2}


@pytest.mark.slow
@pytest.mark.parametrize("subtracted", [False, True], ids=["exact", "subtraction"])
def test_members_are_those_of_the_command(tmp_path, data_dir, subtracted):
    import parabola

    sizes = parabola.Sizes(60, (20, 30), 3, (0.0, 0.5, 1.0))
    formula, path = ("subtraction", f"{PATH}-subtracted") if subtracted else ("exact", PATH)
    options = {"dataset": "permuted_mnist", "data_dir": data_dir, "examples_per_task": 60, "memory": 3, "seeds": 1}
    options |= {"strategy": "grid", "points": 3, "repeats": 1, "choose": "tried", "certify": 0, "runner": "local"}
    study = build(Search, options | {"numeric_path": path, "out": tmp_path / "runs", "allow_shared": True})
    api.run(study)
    with Store.read(study.storage) as store:
        stored = {record.key: record for record in store.all_runs()}
    known = 0
    for phase, tasks in (("cv", 3), ("eval", 17)):
        curve = parabola.Curve(phase, tasks, 60, formula, 0)
        images = study.request(phase).open().describe()
        for member in parabola.trained((curve, sizes.epsilons), sizes, str(data_dir), PATH):
            ours = parabola.study_of(curve, sizes, str(data_dir), PATH)
            record = stored.get(run_key(ours, images, Run(phase, ours.learner((member["epsilon"],), 0))))
            if record is None:  # of the evaluation, that of the chosen value and of ε = 0 alone
                continue
            known += 1
            told = parabola.summary(record.accuracies, record.violations)
            assert {name: member[name] for name in told} == told and member["steps"] == record.steps
            assert member["numeric_path"] == path and curve == parabola.curve_of(member)
    assert known == len(stored) >= 3


class Killed(Exception):
    """In the place of a kill."""


def test_what_is_stored_is_not_trained_again(tmp_path, data_dir, monkeypatch):
    import parabola

    file, trained = tmp_path / "found.json", []
    monkeypatch.setattr(parabola.members, "fastest_here", lambda *_: "the fastest here")
    monkeypatch.setattr(parabola.members, "ProcessPoolExecutor", lambda workers, **_: ThreadPoolExecutor(1))

    def train(piece, *_):
        if len(trained) == 12:
            raise Killed
        trained.append(piece)
        return made_up(piece)

    monkeypatch.setattr(parabola, "trained", train)
    with pytest.raises(Killed):
        parabola.make(file, parabola.TINY, str(data_dir), 1, np.inf)
    before = json.loads(file.read_text(encoding="utf-8"))
    assert len(trained) == 12 and 0 < len(before["members"]) < len(all_of(parabola.TINY))
    parabola.make(file, parabola.TINY, str(data_dir), 1, -1.0)
    assert json.loads(file.read_text(encoding="utf-8")) == before, "no time is left, so nothing is begun"
    kept, trained[:] = list(trained), []
    monkeypatch.setattr(parabola.members, "fastest_here", lambda *_: "the fastest elsewhere")
    monkeypatch.setattr(parabola, "trained", lambda piece, *_: (trained.append(piece), made_up(piece))[1])
    parabola.make(file, parabola.TINY, str(data_dir), 2, np.inf)
    after = json.loads(file.read_text(encoding="utf-8"))
    assert after["numeric_path"] == "the fastest here"
    assert kept + trained == parabola.left(parabola.TINY, [])
    assert [(*parabola.curve_of(one), one["epsilon"]) for one in after["members"]] == sorted(
        (*parabola.curve_of(one), one["epsilon"]) for one in all_of(parabola.TINY)
    )
    with pytest.raises(ValueError, match=r"^found.json has members of other sizes"):
        parabola.make(file, parabola.Sizes(), str(data_dir), 1, np.inf)


@pytest.mark.exhaustive
def test_a_killed_script_goes_on_and_leaves_no_process(tmp_path, data_dir):
    """Its workers end with it, and all members come out as without the kill."""
    command = [sys.executable, str(SCRIPT), "--data-dir", str(data_dir), "--workers", "2", "--tiny"]
    killed, whole = tmp_path / "killed.json", tmp_path / "whole.json"
    with subprocess.Popen([*command, str(killed)], stdout=subprocess.DEVNULL) as process:
        end = time.monotonic() + HANGS
        while not killed.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        processes = [os.pidfd_open(one) for one, _ in descendants(process.pid)]
        process.kill()
    assert len(json.loads(killed.read_text(encoding="utf-8"))["members"]) < 180 and len(processes) > 2
    assert all([gone(one) for one in processes])
    for file in (killed, whole):
        subprocess.run([*command, str(file)], check=True, stdout=subprocess.DEVNULL)
    mine, others = (json.loads(file.read_text(encoding="utf-8"))["members"] for file in (killed, whole))
    apart = {"seconds": 0, "commit": ""}  # files may be edited while this test runs
    assert len(mine) == 180 and [one | apart for one in mine] == [one | apart for one in others]


@pytest.mark.slow
def test_bad_input_is_one_line(tmp_path):
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (tmp_path / f"{name}-ubyte").write_bytes(b"\0\0\x08")
    command = [sys.executable, str(SCRIPT), "--data-dir", str(tmp_path), "--tiny", str(tmp_path / "found.json")]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 2 and "Traceback" not in answer.stderr and not (tmp_path / "found.json").exists()
    assert "not an IDX" in answer.stderr.splitlines()[-1]


@pytest.mark.slow
def test_the_whole_page():
    import parabola
    import parabola_page

    text, plots = parabola_page.section(found_of(all_of(parabola.TINY)))
    assert text.startswith("All of it is measured: 10 curves, 3 seeds each.") and len(plots) == 4
    assert all(svg.startswith("<svg") for svg in plots.values())
    assert all(f"](images/{name})" in text for name in plots if "-dark" not in name)
    assert "| A_T %, exact minus subtraction | 0.00 ± 0.00 |" in text and "+16.00 ± 0.00 |" in text
    assert text.endswith(f"Numeric paths: {PATH}. Commits: made up.")
    fall = "A_T falls by 4.00 points with the exact gradient and by 20.00 with the subtraction: the difference, "
    assert f"{fall}16.00 ± 0.00 points, is rounding" in text
    assert "with the exact gradient, by images a task: 20 images: 0; 30 images: 0;" in text
    lost = "| search stream, 3 tasks × 60 images | exact | 0 | 90.12 | 1 | 2.00 ± 0.00 |"
    assert (
        lost in text and "| search stream, 3 tasks × 60 images | by subtraction | 0 | 90.12 | 0 | 0.00 ± 0.00 |" in text
    )


@pytest.mark.slow
def test_a_page_of_what_is_there_names_what_is_to_come():
    import parabola
    import parabola_page

    every = all_of(parabola.TINY)
    some = [one for one in every if (one["phase"], one["tasks"], one["images"]) == ("cv", 3, 60)]
    text, plots = parabola_page.section(found_of(some[:-1]))  # the last curve lacks a value
    assert "Still to come" in text and "3 tasks × 60 images, by subtraction (2 of 3 seeds)" in text
    assert "evaluation stream, 17 tasks × 60 images, exact (0 of 3 seeds)" in text
    assert "What a choice on the search stream costs" not in text and "Fewer images" not in text
    assert sorted(plots) == ["parabola-metrics.svg", "parabola-streams-dark.svg", "parabola-streams.svg"]
    text, plots = parabola_page.section(found_of(every[:5]))  # no curve is whole
    assert "Still to come" in text and "###" not in text and plots == {}


@pytest.mark.slow
def test_members_that_diverged_have_no_mean():
    import parabola
    import parabola_page

    a = np.full((3, 3), np.nan)
    assert parabola.summary(a, np.full(3, np.nan))["A_T"] is None
    members = all_of(parabola.TINY)
    for one in members:
        lost = one["epsilon"] == 1 and one["phase"] == "eval" and one["formula"] == "subtraction" and one["seed"] == 0
        one |= {"A_T": None} if lost else {}
    text, _ = parabola_page.section(found_of(members))
    assert "On the evaluation stream, 17 tasks × 60 images, a member of the largest ε diverged." in text
    assert "nan" not in text.lower()


def test_results_alone_make_no_other_commit(tmp_path, monkeypatch):
    """While results are written, members go on to have the commit that they were trained with."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    for name in ("machine.py", "results/one.json"):
        (tmp_path / "benchmarks" / name).write_text("1\n", encoding="utf-8")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.setattr(machine, "__file__", str(tmp_path / "benchmarks" / "machine.py"))
    clean = machine._commit()
    (tmp_path / "benchmarks" / "results" / "one.json").write_text("2\n", encoding="utf-8")
    assert machine._commit() == clean and len(clean) >= 10 and not clean.endswith("+")
    (tmp_path / "benchmarks" / "machine.py").write_text("2\n", encoding="utf-8")
    assert machine._commit() == f"{clean}+"
