"""Forks whose origins are kept, in part, or not at all: the result is the same, and nothing is trained twice."""

import re
from collections import Counter

import numpy as np
import pytest

import trainers.checkpoints
import trainers.networks
from epsearch.testing.toy import suit_stream
from tests.support.killing import train_until_kept
from tests.support.learners import IN_SEQUENCE, OPTIMIZERS, SMALL, STRENGTHS, few, train
from tests.support.made_images import made_images
from tests.support.numeric_paths import COMPILED, MKL, TWIN, rows_equal
from tests.support.toy_streams import toy
from trainers import Architecture, Cohort
from trainers.footprint import bytes_of
from trainers.forks import fork, steps_of
from trainers.numeric_path import NumericPath
from trainers.paths import train_path
from trainers.population import Training
from trainers.streams.images.split import SplitStream

STREAM = toy(range(4), examples=62)  # six batches of 10 and one of 2
STEPS = 7
MEASURE = (4, 20)
PATHS = (MKL, TWIN, *(pytest.param(one, marks=pytest.mark.slow) for one in COMPILED[1:]))


def learner(method="soft_agem", seed=0, **values):
    return few(method, seed, **{"epsilon": 0.3, "strength": STRENGTHS.get(method), "fisher_every": 4} | values)


def along(learners, path=MKL, stream=STREAM, architecture=SMALL, progress=None, **options):
    """The result of `train_path`; options: those of `Training`."""
    stream = suit_stream(learners[0].declared, stream)
    return train_path(Cohort(tuple(learners)), Training(stream, architecture, path, **options), progress)


def forks_of(one):
    """With the same values; with others; and a fork of a fork."""
    return [fork(one, 1), fork(one, 1, lr=0.03), fork(fork(one, 0, lr=0.05), 2, lr=0.02)]


def same(result, other, count):
    for row in range(count):
        assert rows_equal(result, row, other, row) and np.array_equal(result.params[row], other.params[row])
        assert np.array_equal(result.statistics[row], other.statistics[row])
    np.testing.assert_array_equal(result.inside, other.inside)
    return np.array_equal(result.steps, other.steps)


@pytest.mark.slow
@pytest.mark.few(8)
@pytest.mark.parametrize("path", PATHS, ids=str)
@pytest.mark.parametrize("method", IN_SEQUENCE)
def test_it_is_the_same_bit_for_bit_kept_or_not(method, path, tmp_path):
    one = learner(method)
    train([one], STREAM, path, store=tmp_path, keep="all", measure=MEASURE)
    train([fork(one, 0, lr=0.05)], STREAM, path, store=tmp_path, keep="all", measure=MEASURE)
    kept = train(forks_of(one), STREAM, path, store=tmp_path, measure=MEASURE)
    anew = along(forks_of(one), path, measure=MEASURE)
    assert same(kept, anew, 3) and not np.isnan(anew.inside[:, :, 0]).all()
    # Alone, as tensors of more members may be rounded otherwise.
    assert same(along([fork(one, 1)], path, measure=MEASURE), train([one], STREAM, path, measure=MEASURE), 1)
    assert len(set(anew.fingerprints)) == 3


@pytest.mark.few(6)
@pytest.mark.parametrize("path", (MKL, TWIN), ids=str)
@pytest.mark.parametrize("values", OPTIMIZERS, ids=str)
@pytest.mark.parametrize("method", ["van", "ewc", "gem", "er", "prognn"])
def test_what_an_optimizer_remembers_is_handed_over(method, values, path):
    one = learner(method, **values)
    whole, again = train([one], STREAM, path), along([fork(one, 1), fork(one, 2, lr=0.03)], path)
    assert rows_equal(whole, 0, again, 0) and np.array_equal(whole.params[0], again.params[0])
    assert again.fingerprints[1] != whole.fingerprints[0]


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize("method", ["agem", "ewc", "er", "prognn"])
def test_residual_networks_have_their_averages(method, tmp_path, monkeypatch):
    monkeypatch.setattr(trainers.networks, "REDUCED", (8, 8, 16, 16))
    stream = SplitStream(made_images(classes=8, train=10, test=5, size=16), range(4), 2)
    network, path = Architecture("reduced_resnet18"), NumericPath(products="onednn")
    one = learner(method, lr=0.05, batch_size=6)
    whole = train([one], stream, path, network, store=tmp_path, keep="all")
    kept = train(forks_of(one)[:2], stream, path, network, store=tmp_path)
    anew = along(forks_of(one)[:2], path, stream, network)
    assert same(kept, anew, 2) and rows_equal(anew, 0, whole, 0)
    assert np.array_equal(anew.statistics[0], whole.statistics[0])


@pytest.mark.slow
def test_nothing_is_trained_twice_and_all_steps_are_reported():
    """Not even without a place to keep anything: of the last fork's origin to the earliest one's task."""
    one, counted = learner(), Counter()
    chosen = [*(fork(one, 0, epsilon=value) for value in (0.1, 0.5)), fork(one, 2, epsilon=0.5), one]
    chosen += [fork(fork(one, 0, epsilon=0.1), 1, epsilon=value) for value in (0.2, 0.9)]
    result = along(chosen, progress=counted.update)
    # Each task of each schedule, beginnings that are alike once.
    assert counted == Counter({0: STEPS, 1: 3 * STEPS, 2: 5 * STEPS, 3: 6 * STEPS})
    assert counted.total() + result.saved == result.steps.sum() == 6 * 4 * STEPS
    for row, each in enumerate(chosen):
        assert rows_equal(result, row, along([each]), 0)


@pytest.mark.parametrize(
    ("until", "trained"),
    [(None, [1, 1, 1]), (1, [0, 1, 1]), (2, [1, 1, 1]), (3, [1, 0, 0])],
    ids=["nothing", "the earliest", "one between", "the latest"],
)
@pytest.mark.parametrize("afters", [(0, 2), (2, 0)])
def test_what_is_kept_of_an_origin_is_used_as_far_as_it_goes(until, trained, afters, tmp_path):
    """In a folder, where the newest task is kept alone. trained: how often the origin's tasks are trained once more."""
    one, counted = learner("ewc"), Counter()
    chosen = [fork(one, after, lr=0.03) for after in afters]
    expected = along(chosen)
    if until is not None:
        train([one], STREAM, MKL, folder=tmp_path, until=until)
    result = along(chosen, folder=tmp_path, progress=counted.update)
    assert same(result, expected, 2)
    assert [counted[task] for task in range(4)] == [
        STEPS * (own + again) for own, again in zip([0, 1, 1, 2], [*trained, 0], strict=True)
    ]
    assert counted.total() == result.steps.sum() - result.saved


def test_an_origin_that_went_on_is_trained_again_and_keeps_its_later_task(tmp_path):
    one = learner("ewc")
    expected = along([fork(one, 0, lr=0.03)])
    train([one], STREAM, MKL, folder=tmp_path, until=3)
    assert [file.name.split("_")[1] for file in tmp_path.rglob("*.kept")] == ["2"]
    counted = Counter()
    assert same(along([fork(one, 0, lr=0.03)], folder=tmp_path, until=4, progress=counted.update), expected, 1)
    assert counted == Counter(dict.fromkeys(range(4), STEPS))
    assert sorted(file.name.split("_")[1] for file in tmp_path.rglob("*.kept")) == ["0", "2"]
    # Now both are there.
    counted.clear()
    assert same(along([fork(one, 0, lr=0.03)], folder=tmp_path, progress=counted.update), expected, 1)
    assert counted == Counter(dict.fromkeys(range(1, 4), STEPS))
    assert train([one], STREAM, MKL, folder=tmp_path).saved == 3 * STEPS


def test_what_it_trains_of_origins_is_kept_for_the_next(tmp_path):
    one = learner("ewc")
    first = along([fork(one, 1, lr=0.03)], store=tmp_path, keep="newest")
    assert first.saved == 0
    again = along([fork(one, 1, lr=0.02)], store=tmp_path, keep="newest")
    assert again.saved == 2 * STEPS and rows_equal(again, 0, along([fork(one, 1, lr=0.02)]), 0)


def test_a_fork_that_is_kept_itself_needs_no_origin(tmp_path):
    changed = fork(learner("ewc"), 0, lr=0.03)
    expected = along([fork(changed, 2, lr=0.02)])
    along([changed], folder=tmp_path / "one", until=3)
    for file in (tmp_path / "one").rglob("*_0_*.kept"):
        file.unlink()
    counted = Counter()
    result = along([fork(changed, 2, lr=0.02)], folder=tmp_path / "one", progress=counted.update)
    assert same(result, expected, 1) and counted == Counter({3: STEPS})


def test_on_another_machine_all_is_trained_anew(tmp_path, monkeypatch, told):
    one = learner()
    expected = train([one], STREAM, MKL, store=tmp_path, keep="all")
    monkeypatch.setattr(trainers.checkpoints, "machine", lambda path: ["another"])
    result = along([fork(one, 1)], store=tmp_path, keep="all")
    assert rows_equal(result, 0, expected, 0) and result.saved == 0
    assert len(told) == 1 and told[0].endswith(": runs start anew")


def test_a_place_that_fails_costs_time_alone(tmp_path, told):
    """What an origin was trained to is handed over in memory."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    one = learner("ewc")
    assert same(along([fork(one, 1, lr=0.03)], store=blocked), along([fork(one, 1, lr=0.03)]), 1)
    assert len(told) == 1


def test_a_fork_goes_on_after_it_was_killed_and_its_origin_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr("trainers.checkpoints.AT_MOST_EVERY", 0.0)
    one = learner("ewc")
    changed = fork(one, 0, lr=0.03)
    expected = along([changed])
    train([one], STREAM, MKL, store=tmp_path, until=1)
    train_until_kept(monkeypatch, 2, [changed], STREAM, MKL, store=tmp_path)
    for file in tmp_path.rglob("*_0_*.kept"):
        file.unlink()
    counted = Counter()
    assert same(along([changed], store=tmp_path, progress=counted.update), expected, 1)
    assert counted == Counter({3: STEPS})


def test_a_fork_that_was_trained_further_begins_with_its_origin_all_the_same(tmp_path):
    """Never with an untrained network, as if its values were those of all tasks."""
    one = learner("ewc")
    changed = fork(one, 0, lr=0.03)
    train([one], STREAM, MKL, store=tmp_path, keep="newest", until=1)
    expected = along([changed], until=2)
    train([changed], STREAM, MKL, store=tmp_path, keep="newest")
    assert same(train([changed], STREAM, MKL, store=tmp_path, keep="newest", until=2), expected, 1)


@pytest.mark.slow
def test_origins_that_do_not_fit_together_say_so():
    """What is trained last does not say it: these learners begin after different tasks, each alone."""
    first, second = learner("ewc", lr=0.02), learner("ewc", lr=0.03)
    chosen = [fork(first, 0, lr=0.01), fork(fork(second, 0, lr=0.05), 1, lr=0.01)]
    enough = bytes_of(Cohort((first,)), STREAM, SMALL, TWIN)
    assert enough < bytes_of(Cohort((first, second)), STREAM, SMALL, TWIN)
    halves, whole = along(chosen, TWIN, bytes_free=enough), along(chosen, TWIN)
    assert halves.note and not whole.note
    assert np.allclose(halves.accuracies, whole.accuracies, atol=0.051, equal_nan=True)
    assert not train([first], STREAM, TWIN, bytes_free=enough).note


@pytest.mark.parametrize("afters", [(1, 3), (3, 1)])
def test_it_begins_with_the_last_task_before_all_that_forks_need(afters, tmp_path):
    """Where every task but some is kept: a later one would leave the earlier of these out."""
    one, stream, counted = learner("ewc"), toy(range(5), examples=62), Counter()
    train([one], stream, MKL, store=tmp_path, keep="all")
    for task in (1, 3):
        (file,) = tmp_path.rglob(f"*_{task}_*.fork")
        file.unlink()
    chosen = [fork(one, after, lr=0.03) for after in afters]
    result = along(chosen, stream=stream, store=tmp_path, progress=counted.update)
    assert counted == Counter({1: STEPS, 2: 2 * STEPS, 3: 2 * STEPS, 4: 2 * STEPS})
    assert same(result, along(chosen, stream=stream), 2)


@pytest.mark.parametrize("method", ["ewc", "er"])
def test_a_cut_is_that_of_the_forks_alone(method, tmp_path):
    one, cut = learner(method), {"until": 3, "last_steps": 4}
    chosen = [fork(one, 1, lr=0.03), fork(one, 1)]
    result = along(chosen, store=tmp_path, keep="newest", **cut)
    assert result.steps.tolist() == [2 * STEPS + 4] * 2
    assert rows_equal(result, 1, train([one], STREAM, MKL, **cut), 0)
    assert same(along(chosen, **cut), result, 2)
    # What was kept is the origin's second task, and nothing of the task that was cut.
    assert [file.name.split("_")[1] for file in tmp_path.rglob("*.kept")] == ["1"]


@pytest.mark.parametrize(
    ("after", "options", "line"),
    [
        (3, {}, "a fork must come before the last of 4 tasks, got after=3"),
        (1, {"until": 2}, "a fork must come before the last of 2 tasks, got after=1"),
        (1, {"keep": "all"}, "keep 'all' needs a store"),
        (1, {"until": 5}, "until must lie in 1…4"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(after, options, line):
    with pytest.raises(ValueError, match=re.escape(line)):
        along([fork(learner(), after)], **options)


def test_steps_of_a_batch_size_that_changes_are_counted():
    one, counted = learner("van"), Counter()
    changed = fork(one, 1, batch_size=4)
    result = along([changed], progress=counted.update, measure=MEASURE)
    assert result.steps.tolist() == [sum(steps_of(changed, STREAM))] == [7 + 7 + 16 + 16]
    assert counted == {0: 7, 1: 7, 2: 16, 3: 16} and result.saved == 0
