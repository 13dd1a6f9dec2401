"""The example of one file comes to the numbers of epsearch itself, from its own code alone."""

import ast
import importlib.util
import re
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import epsearch
from results.points import point_of
from results.search_tables import baseline_pair
from results.statistics.paired import sign_flip_p
from search_spaces.narrowing_rule import narrow
from trainers.engines import one_thread

FILE = Path(__file__).parent.parent / "examples" / "epsearch_in_200_lines.py"
SMALL = {"tasks": 4, "cv_tasks": 2, "examples_per_task": 200, "points": 4, "repeats": 2, "seeds": 2, "memory": 5}
TEST_IMAGES = 355
ROUNDING = 3
"""Test images of a member that rounding may decide, of 710. On three arithmetics of one machine it decided none; the
chosen ε is 10 images ahead of the next, of 1,420."""


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location(FILE.stem, FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[FILE.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[FILE.stem]


@pytest.fixture(scope="module")
def both(example, tmp_path_factory):
    """(the example's settings, ε, ledger; results of the same study by epsearch)."""
    settings = example.Settings(**SMALL)
    with one_thread():
        chosen, ledger = example.search(settings)
    local = {"runner": "local", "device": "cpu", "certify": 0, "out": tmp_path_factory.mktemp("runs")}
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("EPSEARCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        study = epsearch.Search(dataset="permuted_digits", choose="tried", **asdict(settings), **local)
        return settings, chosen, ledger, epsearch.run(study).results


def test_it_has_at_most_200_lines_and_nothing_of_the_project():
    text = FILE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200
    nodes = list(ast.walk(ast.parse(text)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    others = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
    assert others == {"numpy", "torch", "sklearn"}


def test_its_settings_are_options_of_epsearch_with_the_same_defaults(example):
    study, settings = epsearch.Search(dataset="permuted_digits"), asdict(example.Settings())
    settings["seeds"] = tuple(range(settings["seeds"]))
    settings["examples_per_task"] = None  # all there are
    assert {name: study.value(name) for name in settings} == settings
    assert example.Settings().examples_per_task == int((~example.TEST).sum())
    assert int(example.TEST.sum()) == TEST_IMAGES


@pytest.mark.slow
def test_it_trains_the_same_members_and_chooses_the_same_epsilon(both):
    settings, chosen, ledger, results = both
    first, others = range(settings.cv_tasks), range(settings.cv_tasks, settings.tasks)
    records = {(first, epsilon_of(one, results), one.seed): one for one in results.search}
    records |= {(others, epsilon_of(one, results), one.seed): one for one in results.evaluation}
    assert ledger.keys() == records.keys()
    off = {key: TEST_IMAGES * len(key[0]) * (ledger[key] - records[key].accuracies[-1].mean()) for key in ledger}
    assert {key: images for key, images in off.items() if abs(images) > ROUNDING + 0.01} == {}
    assert (chosen,) == results.chosen and chosen > 0


def epsilon_of(record, results):
    (epsilon,) = point_of(record, results.parameters)
    return float(epsilon)


@pytest.mark.slow
def test_its_verdict_has_the_numbers_of_epsearch(both, example):
    settings, chosen, ledger, results = both
    pair = baseline_pair(results, evaluation=True)
    expected = {
        "ε = ": chosen,
        "A_T ": mean(results.members_of(results.chosen)),
        "reaches ": mean(results.evaluation_of(results.chosen)),
        "A-GEM's ": mean(results.evaluation_of(results.baseline)),
        "tasks it reaches .* %, ": pair.mean,
        "higher in ": pair.wins,
        "p = ": sign_flip_p(pair.differences),
    }
    text = example.verdict(chosen, ledger, settings)
    found = {words: float(re.search(rf"{words}([+-]?[\d.]+\d|\d)", text)[1]) for words in expected}
    allowed = 0.01 + 2 * 100 * ROUNDING / (TEST_IMAGES * settings.cv_tasks)
    assert found == pytest.approx(expected, abs=allowed)
    assert found["p = "] == expected["p = "] and found["higher in "] == expected["higher in "]
    assert len(re.findall(r"\.(?: |$)", text)) == 2


def mean(records):
    return 100 * float(np.mean([one.accuracies[-1].mean() for one in records]))


def test_its_narrowing_is_the_rule_of_epsearch(example):
    rng = np.random.default_rng(0)
    spans = set()
    for _ in range(500):
        scores = rng.integers(0, 4, rng.integers(3, 12)).astype(float).tolist()  # few values, so that many are equal
        spans.add(example.narrow(scores))
        assert example.narrow(scores) == narrow(scores)[1]
    assert None in spans and len(spans) > 10


@pytest.mark.slow
def test_its_direction_is_that_of_the_paper(example):
    """A worked example, and the product with the reference direction, which is ε."""
    import torch

    g, reference = torch.tensor([3.0, 0.0]), torch.tensor([-2.0, 2.0])
    torch.testing.assert_close(example.direction(g, reference, 0.0), torch.tensor([1.5, 1.5]))
    soft = example.direction(g, reference, 0.5)
    torch.testing.assert_close(soft, torch.tensor([0.146447, 0.853553]))
    assert float(soft @ reference / reference.norm()) == pytest.approx(0.5)
    assert torch.equal(example.direction(g, -reference, 0.5), g)
    assert torch.equal(example.direction(g, 0 * reference, 0.5), g)
