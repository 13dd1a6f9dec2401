"""Whole runs of progressive residual networks, of narrow columns."""

from collections import Counter

import numpy as np
import pytest
import torch

import trainers.checkpoints
import trainers.networks
from tests.support.killing import train_until_kept
from tests.support.learners import engine_of, learner, train, untrained
from tests.support.made_images import made_images
from tests.support.numeric_paths import rows_equal
from trainers import Architecture
from trainers.forks import fork
from trainers.numeric_path import NumericPath
from trainers.schedule import generator
from trainers.streams.images.split import ReoccurringStream, SplitStream

REDUCED = Architecture("reduced_resnet18")
LONGER = {"lr": 0.05, "batch_size": 5}  # with `longer_stream`, enough to learn
PATH = NumericPath(products="onednn")


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setattr(trainers.networks, "REDUCED", (8, 8, 16, 16))
    with torch.no_grad():
        yield


def split_stream(tasks=range(3)):
    return SplitStream(made_images(classes=2 * tasks.stop, train=10, test=5, size=16), tasks, 2)


def longer_stream():
    return SplitStream(made_images(classes=6, train=60, test=5, size=8), range(3), 2)


def one(seed=0, **values):
    return learner("prognn", seed, **{"lr": 0.05, "batch_size": 6} | values)


def made_engine(stream=None, method="prognn", batch_size=6, architecture=REDUCED, path=PATH):
    return engine_of(learner(method, batch_size=batch_size), stream or split_stream(), path, architecture)


def learners(engine, rates=(0.05,)):
    return untrained(engine, [one(lr=rate) for rate in rates])


def take(engine, members, task):
    engine.load_task(task)
    engine.train(members, 0, engine.steps)


def trained(learners, stream, **options):
    return train(learners, stream, PATH, REDUCED, **options)


def test_the_first_task_is_plain_sgd():
    """The stream need not start with task 0."""
    stream = split_stream(range(1, 4))
    engine, plain = made_engine(stream), made_engine(stream, "van")
    found, expected = learners(engine), learners(plain)
    net = engine._net
    assert torch.equal(net.backbone(found.params, 0), expected.params)
    for each, some in ((engine, found), (plain, expected)):
        take(each, some, 0)
    assert torch.allclose(net.backbone(found.params, 0), expected.params, atol=1e-6, rtol=0)
    averages = found.state["statistics"][:, net.statistics_slice(0)]
    assert torch.allclose(averages, expected.state["statistics"], atol=1e-6, rtol=0)
    for task in range(2):
        rng = generator(0, "column", stream.tasks[task + 1])
        assert np.array_equal(net.backbone(found.params, task + 1)[0].numpy(), net.net.init(rng))


@pytest.mark.slow
def test_finished_columns_never_change():
    """Every bit of parameters and moving averages, hence accuracy, which a fresh engine finds as well."""
    engine = made_engine(longer_stream(), batch_size=5)
    members, net = learners(engine, (LONGER["lr"],)), engine._net
    finished = []
    for task in range(3):
        take(engine, members, task)
        params, averages = (
            members.params[:, net.slice(task)],
            members.state["statistics"][:, net.statistics_slice(task)],
        )
        finished.append((task, params.clone(), averages.clone(), engine.accuracy(members, task)))
        fresh = made_engine(longer_stream(), batch_size=5)
        for earlier, params, averages, share in finished:
            assert torch.equal(members.params[:, net.slice(earlier)], params)
            assert torch.equal(members.state["statistics"][:, net.statistics_slice(earlier)], averages)
            assert engine.accuracy(members, earlier) == fresh.accuracy(members, earlier) == share
    assert all(params.isfinite().all() for _, params, *_ in finished)
    # On some processors one of the tasks stays at chance, 0.5.
    assert np.mean([share for *_, share in finished]) > 0.6
    members.params[:, net.slice(1)] = 0.0  # what is known is known of these parameters only
    assert engine.accuracy(members, 1) == 0.5 and engine.accuracy(members, 0) == finished[0][3]


@pytest.mark.slow
def test_a_whole_run_forgets_nothing():
    result = trained([one(seed, **LONGER) for seed in (0, 1)], longer_stream())
    for task in range(3):
        own = result.accuracies[:, task:, task]
        assert (own == own[:, :1]).all()
    assert result.accuracies[:, 2].mean() > 0.8 and (result.diverged_task == -1).all()
    # What a step is does not depend on how many are asked for at a time.
    plain = trained([one(**LONGER)], longer_stream(), transfer=False)
    assert plain.fingerprints[0] == result.fingerprints[0]


@pytest.mark.slow
def test_a_learner_is_bit_identical_alone_and_together():
    chosen = [one(seed, lr=rate) for seed in (0, 1) for rate in (0.05, 0.01, 0.2)]
    together = trained(chosen, split_stream())
    assert len(set(together.fingerprints)) == 6
    for row, each in enumerate(chosen):
        assert rows_equal(together, row, trained([each], split_stream()), 0)


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("after", [1, 2])
def test_a_killed_run_goes_on_bit_for_bit(after, tmp_path, monkeypatch):
    monkeypatch.setattr(trainers.checkpoints, "AT_MOST_EVERY", 0.0)
    stream, chosen = split_stream(range(4)), [one(), one(lr=0.01)]
    whole = trained(chosen, stream)
    train_until_kept(monkeypatch, after, chosen, stream, PATH, REDUCED, folder=tmp_path)
    counted = Counter()
    resumed = trained(chosen, stream, progress=counted.update, folder=tmp_path)
    assert all(rows_equal(whole, row, resumed, row) for row in range(2))
    assert counted.total() == 2 * 4 * (3 - after)  # 4 steps a task


@pytest.mark.slow
def test_a_fork_goes_on_with_another_rate_in_later_columns_alone(tmp_path):
    stream, before = split_stream(range(4)), one()
    whole = trained([before, one(lr=0.01)], stream, store=tmp_path, keep="all")
    same, other = (
        trained([fork(before, 1, lr=lr)], stream, store=tmp_path) for lr in (before.hyperparameters.lr, 0.01)
    )
    assert rows_equal(whole, 0, same, 0)
    assert np.array_equal(whole.accuracies[0, :2], other.accuracies[0, :2], equal_nan=True)
    assert other.fingerprints[0] not in whole.fingerprints


@pytest.mark.slow
def test_the_first_bad_step_is_marked_and_nobody_else_disturbed():
    engine = made_engine()
    alone, pair = learners(engine), learners(engine, (0.05, 0.05))
    for some in (alone, pair):
        take(engine, some, 0)
    engine.load_task(1)
    for some in (alone, pair):
        engine.train(some, 0, 2)
        if some is pair:
            pair.params[1, engine._net.slice(1)] = float("nan")
        engine.train(some, 2, engine.steps)
    assert alone.first_bad.tolist() == [-1] and pair.first_bad.tolist() == [-1, 2]
    assert torch.equal(pair.params[0], alone.params[0])
    assert torch.equal(pair.state["statistics"][0], alone.state["statistics"][0])


def test_accuracy_is_the_mean_over_classes_where_the_stream_says_so():
    """With one class's outputs on top, the accuracy is ½, however many images it has; and also over parts of a test."""
    images = made_images(classes=4, train=12, test=[9, 1, 9, 1], size=16)
    for kind, expected in ((ReoccurringStream, 0.5), (SplitStream, 0.9)):
        engine = made_engine(kind(images, range(2), 2))
        members = learners(engine)
        engine._net.views(members.params, 0)["fc.bias"][0, 0] = 1e6
        engine._feed.test_rows = 3
        engine.load_task(0)
        assert engine.accuracy(members, 0) == pytest.approx([expected])


def test_every_column_starts_from_pretrained_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(trainers.networks, "STANDARD", (8, 8, 16, 16))
    architecture = Architecture("resnet18", pretrained=str(tmp_path / "weights.pt"))
    engine = made_engine(architecture=architecture)
    single = engine._net.net
    row = torch.from_numpy(single.init(generator(9, "elsewhere")))[None]
    weights = {name: view[0].clone() for name, view in single.layout.views(row).items()}
    torch.save(weights, architecture.pretrained)
    params = engine.start()
    heads = []
    for number in range(3):
        views = single.layout.views(engine._net.backbone(params, number))
        assert all(torch.equal(views[name][0], value) for name, value in weights.items() if not name.startswith("fc."))
        heads.append(views["fc.weight"][0])
    assert not any(torch.equal(head, weights["fc.weight"]) for head in heads) and not torch.equal(*heads[:2])


def test_a_joint_embedding_is_refused():
    stream = SplitStream(made_images(classes=4, attributes=5), range(2), 2, embedding=True)
    with pytest.raises(ValueError, match="prognn has no form with a joint embedding"):
        made_engine(stream)
