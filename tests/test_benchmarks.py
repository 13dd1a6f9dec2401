"""The benchmarks count and judge rightly, their page is up to date, and what they call in the trainers still exists."""

import ast
import doctest
import importlib
import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from flops import SIZES, cohort_flop, products, step_flop

from tests.support.made_images import made_images
from tests.support.toy_streams import toy
from trainers import Cohort, Learner

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"
BEFORE_PROTOCOL = "61a329c"  # answered for by candidate_before_learner.py
STARTED = ("candidate.py", "candidate_before_learner.py", "avalanche_agem.py")  # by other benchmarks


@pytest.mark.parametrize("name", ["charts", "compare", "flops", "page", "protocols_page"])
def test_doctests(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted and not found.failed


def test_flop_of_a_step():
    weights = 784 * 256 + 256 * 256 + 256 * 10
    assert step_flop(SIZES, 266) == 2 * 266 * (3 * weights - 784 * 256)
    assert round(step_flop(SIZES, 20) / 1e9, 4) == 0.0242
    assert sum(product.flop for product in products(SIZES, 266)) == step_flop(SIZES, 266)
    half = step_flop(SIZES, 266) - 2 * 266 * 784 * 256  # half of forward pass and weight gradient of the first layer
    assert step_flop(SIZES, 266, density=0.5) == half


def test_flop_of_a_cohort_shares_the_first_task_of_a_seed():
    values = {"memory": 2, "memory_batch": 26}
    cohort = Cohort(tuple(Learner.of("soft_agem", row % 2, **values) for row in range(11)))
    steps = step_flop(SIZES, 10), step_flop(SIZES, 30), step_flop(SIZES, 36)
    assert cohort_flop(cohort, toy(range(3), examples=70, classes=10, pixels=784)) == 7 * (
        2 * steps[0] + 11 * (steps[1] + steps[2])
    )


def turns_of(speed, noise, rng, count=9):
    return [tuple(speed * (1 + rng.gauss(0, noise)) for _ in range(2)) for _ in range(count)]


@pytest.mark.parametrize(("change", "noise", "slower"), [(0.8, 0.02, True), (1.0, 0.02, False), (1.3, 0.02, False)])
def test_compare_sees_a_change_beyond_noise(change, noise, slower):
    from compare import judge

    rng = random.Random(1)
    verdict = judge(turns_of(100, noise, rng), turns_of(100 * change, noise, rng))
    assert verdict.slower is slower
    assert verdict.change.low <= verdict.change.median <= verdict.change.high
    assert verdict.change.median == pytest.approx(change, rel=0.05)


@pytest.mark.slow
def test_compare_does_not_call_noise_a_change():
    from compare import judge

    rng = random.Random(2)
    alarms = sum(judge(turns_of(100, 0.1, rng), turns_of(100, 0.1, rng)).slower for _ in range(40))
    assert alarms <= 1
    assert not judge(turns_of(100, 0.2, rng), turns_of(97, 0.2, rng)).slower


def test_compare_forgives_a_machine_that_slows_down():
    from compare import judge

    slowing = [(100 / turn, 101 / turn) for turn in range(1, 10)]
    assert judge(slowing, slowing).change.median == 1


def test_compare_refuses_what_it_does_not_know():
    command = [sys.executable, str(BENCHMARKS / "compare.py"), "no-such-revision", "."]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 2 and "no-such-revision" in answer.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", [".", BEFORE_PROTOCOL])
def test_a_revision_answers_cases_and_leaves(name, tmp_path):
    import turns
    from revisions import Revision

    if name != "." and subprocess.run(["git", "cat-file", "-e", f"{name}^{{commit}}"], cwd=ROOT).returncode:
        pytest.skip(f"this checkout has no history back to {name}")
    candidate = Revision(name, tmp_path).candidate()
    try:
        for case, steps in (
            ({"members": 1, "memory_batch": 10, "pixels": 64}, 50),
            ({"members": 2, "method": "ewc", "pixels": 64}, 100),
            ({"members": 2, "memory_batch": 10, "network": "reduced_resnet18", "pixels": 256}, 20),
        ):
            candidate.ask(**case, steps=1)
            answer = candidate.answer()
            assert answer == {"steps": steps, "seconds": answer["seconds"]}
            assert abs(turns.rate([answer, answer])) > 0  # of so few steps the time may be less than its noise
    finally:
        candidate.close()


def test_compare_refuses_times_below_their_noise():
    from compare import _trained

    class Busy:
        def ask(self, **case):
            assert case == {"members": 1, "steps": 60}

        def answer(self):
            return {"steps": 60, "seconds": -0.001}

    with pytest.raises(ValueError, match="two tasks took no longer than one: --steps 60 is too few"):
        _trained(Busy(), {"members": 1}, 60)


@pytest.mark.slow
def test_the_strengths_of_a_penalty_do_not_diverge():
    import candidate

    from trainers.population import train_cohort

    training = candidate.Engine(None)._training("mlp", SIZES[0], 54, range(2))
    result = train_cohort(candidate.cohort(candidate.VALUES, "ewc"), training)
    assert (result.diverged_task == -1).all()


@pytest.mark.slow
def test_the_ledger_of_a_revision_holds_its_searches(tmp_path):
    from revisions import Revision

    revision = Revision(".", tmp_path)
    revision.make_ledger(1)
    assert "search-0" in revision.run(["list"])
    assert 0 < revision.runs_per_second("run --print-config") < 100
    with pytest.raises(ValueError, match=r"^\.: epsearch show failed: .*'nothing'"):
        revision.run(["show", "nothing"])


@pytest.mark.parametrize(
    ("candidate", "cohort", "answers"),
    [
        ("PROTOCOL = 1", "class Learner", "benchmarks/candidate.py"),
        ("PROTOCOL = 1", "class TrainConfig", "benchmarks/candidate.py"),
        ("", "class TrainConfig", "candidate_before_learner.py"),
        (None, "class TrainConfig", "candidate_before_learner.py"),
        ("", "class Learner", None),
        ("PROTOCOL = 2", "class TrainConfig", None),
        (None, None, None),
    ],
)
def test_who_answers_for_a_revision(candidate, cohort, answers, tmp_path):
    from revisions import candidate_of

    for path, text in (("benchmarks/candidate.py", candidate), ("trainers/cohort.py", cohort)):
        if text is not None:
            (tmp_path / path).parent.mkdir()
            (tmp_path / path).write_text(f"{text}\n", encoding="utf-8")
    if answers is None:
        with pytest.raises(ValueError, match="does not say PROTOCOL = 1, and no adapter fits"):
            candidate_of(tmp_path)
    else:
        assert candidate_of(tmp_path) == (tmp_path if "/" in answers else BENCHMARKS) / answers


@pytest.mark.slow
def test_the_engine_agrees_with_float64():
    import agreement

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = agreement.worst(None, epsilons=(0.0, 0.5), steps=10)
    finally:
        torch.set_num_threads(threads)
    assert found["largest_parameter_difference"] < 1e-5
    assert found["largest_accuracy_difference"] <= 0.002 and found["largest_projected_share_difference"] < 0.01


def test_made_up_images_are_zero_where_mnist_is():
    import images

    made = images.made_up(2000, 10)
    assert images.density(made) == pytest.approx(images.MNIST_DENSITY, rel=0.02)
    used = (made.train.inputs[:266] > 0).any(axis=0).mean()
    assert 0.6 < used < 0.8  # of MNIST's columns, a batch of 266 uses 71 %


@pytest.mark.slow
def test_the_page_is_made_from_the_results():
    import page

    for path, text in page.pages().items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path}: run benchmarks/page.py"


def test_tables_of_docs_are_made_from_the_results():
    import doc_tables

    for page, text in doc_tables.tables():
        assert text in (ROOT / page).read_text(encoding="utf-8"), f"{page}: run benchmarks/doc_tables.py"


def test_the_page_says_how_to_fill_what_is_missing(tmp_path):
    import page

    text = " ".join(page.pages(tmp_path)["docs/performance.md"].split())
    for name, (_, command) in page.SECTIONS.items():
        assert f"`{command}` writes `benchmarks/results/{name}.json`" in text
    assert "| whole search | – |" in text


@pytest.mark.slow
def test_grown_ledgers_can_be_made(tmp_path, monkeypatch):
    import grown

    from epsearch.findings import listing
    from epsearch.ledger.location import ledger_url

    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "cache"))
    grown.make(tmp_path, name="one", strategy="grid")
    (row,) = listing.list_studies(ledger_url(tmp_path), tmp_path)
    assert (row.name, row.status) == ("one", "finished") and row.chosen["epsilon"] == pytest.approx(0.3, abs=0.2)


def test_results_say_what_they_were_measured_on():
    for file in (BENCHMARKS / "results").glob("*.json"):
        facts = json.loads(file.read_text(encoding="utf-8"))["facts"]
        assert {"processor", "cores", "python", "torch", "commit", "measured"} <= set(facts), file.name


def test_the_page_names_every_command():
    text = "".join(
        (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        for page in (
            "performance",
            "strategies",
            "methods",
            "avalanche",
            "images",
            "coverage",
            "reliability",
            "parabola",
            "scenarios",
            "reproduction",
            "along",
            "protocols",
        )
    )
    for file in BENCHMARKS.glob("*.py"):
        code = file.read_text(encoding="utf-8")
        if "def main" in code and file.name not in STARTED:
            assert f"benchmarks/{file.name}" in text, file.name


def is_module(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # below a module that is no package
        return False


@pytest.mark.slow
def test_names_that_benchmarks_import_exist():
    """Most benchmarks run too long for a test, and a rename would show only when somebody measures."""
    ours = ("epsearch", "trainers", "search_spaces", "results")
    for file in BENCHMARKS.glob("*.py"):
        if file.name == "candidate_before_learner.py":  # works in checkouts of older revisions alone
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in ours:
                module = importlib.import_module(node.module)
                for name in (one.name for one in node.names):
                    assert hasattr(module, name) or is_module(f"{node.module}.{name}"), f"{file.name}: no {name}"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), [("reduced_resnet18", 32), ("resnet18", 64)])
def test_flop_of_residual_networks_are_those_that_torch_counts(name, size):
    import image_steps
    from torch.utils.flop_counter import FlopCounterMode

    step = image_steps.step_of(image_steps.network(name), size, 0, 1, False, "cpu")
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        step()
    counted = counter.get_total_flops() / 1e9 / image_steps.BATCH
    assert image_steps.gflop(image_steps.network(name), size) == pytest.approx(counted, rel=0.01)


@pytest.mark.slow
def test_steps_of_residual_networks_can_be_measured():
    import image_steps

    net = image_steps.network("reduced_resnet18")
    steps = {together: image_steps.step_of(net, 16, 4, 2, together, "cpu") for together in (False, True)}
    with torch.no_grad():
        seen = image_steps.in_turns(steps, 2)
    assert all(len(times) == 2 and min(times) > 0 for times in seen.values())
    row = image_steps._row(("reduced_resnet18", 16, 4, True), seen[True], 2)
    assert row["members"] == "together" and row["member_steps_per_second"] > 0


@pytest.mark.slow
def test_the_plain_residual_network_is_ours():
    """The same parameters have the same gradients, apart and, as a sum, in one pass."""
    import image_limits
    import image_steps

    net, size = image_steps.network("reduced_resnet18"), 32
    torch.manual_seed(0)
    x, labels = torch.rand(1, 6, size, size, 3), torch.tensor([[1, 2, 3, 4, 5, 6]])
    row = torch.from_numpy(net.init(image_steps.generator(0, "init")))[None]
    parts, weight = (2, 4), torch.cat([torch.full((part,), 1 / part) for part in (2, 4)])[None, :, None]
    into = [torch.empty_like(row) for _ in parts]
    with torch.no_grad():
        net.gradients(row, net.statistics(row), image_steps.Batch(x, labels, None), weight, parts, into)
    plain = image_limits.plain_network()
    for own, values in zip(plain.parameters(), net.layout.views(row).values(), strict=True):
        own.data.copy_(values[0])
    images = x[0].permute(0, 3, 1, 2)
    seen = image_limits.gradients(plain, list(zip(images.split(parts), labels[0].split(parts), strict=True)))
    for layer in plain.modules():
        if isinstance(layer, image_limits.NormalisedApart):
            layer.parts = parts
    seen.append(image_limits.joined_gradient(plain, images, labels[0], parts))
    for name, first, second, both in zip(net.layout.views(row), *seen, strict=True):
        of_each = [net.layout.views(one)[name][0] for one in into]
        for seen_one, own in ((first, of_each[0]), (second, of_each[1]), (both, of_each[0] + of_each[1])):
            assert (seen_one - own).norm() < 1e-3 * own.norm(), name


@pytest.mark.slow
def test_limits_of_residual_networks_can_be_measured(monkeypatch):
    import image_limits
    import steps_page

    monkeypatch.setattr(image_limits, "TESTS", (2,))
    monkeypatch.setattr(image_limits, "SIDE", 8)
    text, _ = steps_page.limits(image_limits.measured(1, (4,), with_compiler=False))
    assert "| convolutions alone |" in text and "torch.compile |" not in text


@pytest.mark.slow
def test_workers_in_virtual_time_train_a_study_no_faster_than_its_rounds_allow(tmp_path, monkeypatch):
    import virtual

    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "cache"))
    options = {"name": "one", "strategy": "grid", "points": 3, "repeats": 2, "seeds": 2, "tasks": 5, "cv_tasks": 3}
    options["choose"] = "tried"
    ran = virtual.run(options, 64, lambda job: 10.0, tmp_path, clock=lambda: 0.0)
    assert ran.whole == ran.bound == 30.0 and ran.search == 20.0  # two rounds and the evaluation, all members at a time
    assert ran.busy == 10.0 * ran.members and ran.driver == 0.0
    alone = virtual.run(options | {"name": "two", "lr": 0.05}, 1, lambda job: 10.0, tmp_path, clock=lambda: 0.0)
    assert alone.whole == alone.bound == alone.busy == 10.0 * alone.members


def test_the_section_of_many_workers_shows_what_was_measured():
    import cluster_page

    row = {"study": "a grid", "workers": 64, "member_seconds": 1.0, "search": 2.0, "busy_search": 96.0}
    row |= {"whole": 5.0, "bound": 4.0, "driver": 0.5, "jobs": 100}
    text, _ = cluster_page.section({"virtual": [row], "load_before": {"virtual": 0.25}, "clock": "processor"})
    assert "| a grid | 64 | 1 | 75.0 % | 80.0 % | 5.0 | 0.32 |" in text and "processor time" in text


def test_alarms_are_near_duplicates_that_are_no_copies():
    import near_duplicates

    others = made_images(4, train=2, test=1, size=16).pixels
    near = np.clip(others[:3].astype(int) + np.resize([1, 0, -1], others[:3].shape), 0, 255).astype(np.uint8)
    found, alarms = near_duplicates.compared(np.concatenate([others[:2], near]), others)
    assert (found["copies"], found["alarms"], alarms.tolist()) == (2, 3, [2, 3, 4])
    (pair, *_) = near_duplicates.pairs(near, others, np.array([1]))
    np.testing.assert_array_equal(pair, np.concatenate([near[1], others[1]], axis=1))


def test_the_cells_of_the_interval_are_all_there():
    import interval_cells as cells

    assert len(set(cells.CELLS)) == len(cells.CELLS) == 21 * (3 + 2) + 8 * 6
    assert {one.curve for one in cells.CELLS} == {*cells.CURVES} and {one.noise for one in cells.CELLS} == {
        *cells.NOISES
    }
    cell = cells.Cell("cliff behind 0.85, NaN", "failed", "narrowing", 3)
    (x, scores), (_, again) = cells.table(cell, 1), cells.table(cell, 1)
    assert scores.shape == (len(x), 3) and np.array_equal(scores, again, equal_nan=True)
    assert np.isnan(scores[x >= 0.85]).all() and np.isfinite(scores[x < 0.85]).all()
    assert cells.missed(cells.CURVES["parabola, steep"], 0.5, 1.0, (False, False)) == pytest.approx(0.003)
    lower = cells.CURVES["ε = 0 apart, higher"]
    assert cells.missed(lower, 0.0, 0.2, (False, False)) == 0 < 0.01 < cells.missed(lower, 0.0, 0.2, (True, False))


def test_a_cell_falls_short_by_its_exact_interval(tmp_path):
    import interval_coverage as coverage

    row = {"cell": list(coverage.CELLS[0]), "tables": 1000, "covered": 950}
    assert coverage.lowest(row) > 0.91 > coverage.lowest({**row, "covered": 925})
    found = coverage.measured(coverage.Cell("parabola, steep", "equal", "grid of 11", 5), 3)
    assert (found["tables"], found["covered"], sum(found["kinds"].values())) == (3, 3, 3)
    assert 0 <= found["curve"] < 0.5 and 0 <= found["tried"] < 0.5
    found_by = coverage.summed([found, {**row, "cell": list(coverage.CELLS[1]), "covered": 900}])
    assert [one["cell"] for one in found_by["cells"]] == [list(coverage.CELLS[0]), list(coverage.CELLS[1])]
    assert found_by["short"] == [one.name for one in coverage.CELLS[:2]], "three tables show nothing, 900 too little"
    file = tmp_path / "stored.json"
    file.write_text(json.dumps({"code": "mine", "cells": [found]}), encoding="utf-8")
    assert coverage.read(file, "mine") == [found] and coverage.read(file, "other") == []
    assert coverage.read(tmp_path / "none", "mine") == []
