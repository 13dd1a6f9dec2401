"""Pretrained weights: where members start, and what is said of files that do not fit."""

import hashlib
import os
import zipfile

import numpy as np
import pytest
import torch

from tests.support.learners import learner, train
from tests.support.made_images import made_images
from trainers import Architecture
from trainers.networks import make_resnet, weights
from trainers.networks.weights import _LOADED, _drop_damaged, check, load, start_rows
from trainers.numeric_path import NumericPath
from trainers.streams import DataError
from trainers.streams.images.split import SplitStream

IN_TURN = NumericPath(products="onednn")


@pytest.fixture(autouse=True)
def small_networks(monkeypatch):
    for name in ("trainers.networks.STANDARD", "trainers.networks.weights.STANDARD"):
        monkeypatch.setattr(name, (8, 16, 24, 32))
    _LOADED.clear()
    check.cache_clear()


@pytest.fixture
def stream():
    return SplitStream(made_images(classes=4, train=4, test=2, size=64), range(2), 2)


STANDARD = Architecture("resnet18")


def written(path, net, seed=0, **changes):
    """A state dict as torchvision saves one, with moving averages and a classifier of its own."""
    row = torch.from_numpy(net.init(np.random.default_rng(seed)))[None]
    saved = {name: view[0].clone() for name, view in net.layout.views(row).items()}
    saved |= {"fc.weight": torch.zeros(1000, 32), "fc.bias": torch.zeros(1000)}
    saved |= {"bn1.running_mean": torch.ones(8), "bn1.num_batches_tracked": torch.tensor(5)}
    torch.save(saved | changes, path)
    return str(path)


def test_all_but_the_head_starts_from_the_file(stream, tmp_path):
    net = make_resnet(STANDARD, stream)
    path = written(tmp_path / "w.pth", net, seed=7)
    random = start_rows(net, (0, 1), stream.tasks, None)
    start = start_rows(net, (0, 1), stream.tasks, path)
    views, untrained, saved = net.layout.views(start), net.layout.views(random), torch.load(path)
    for name, view in views.items():
        if name.startswith("fc."):
            assert torch.equal(view, untrained[name])
        else:
            assert torch.equal(view[0], saved[name]) and torch.equal(view[1], saved[name])


@pytest.mark.slow
def test_other_weights_give_other_results_and_another_hash(stream, tmp_path):
    net = make_resnet(STANDARD, stream)
    paths = [written(tmp_path / f"{seed}.pth", net, seed) for seed in (1, 2)]
    assert len({check(path) for path in paths}) == 2
    started = [Architecture("resnet18", pretrained=path) for path in (*paths, None)]
    kept = tmp_path / "kept"
    prints = {train([learner("van")], stream, IN_TURN, one, folder=kept).fingerprints[0] for one in started}
    assert len(prints) == 3  # nor does one take the other's first task from the folder


@pytest.mark.slow
def test_first_tasks_of_one_network_are_not_taken_by_another(stream, tmp_path, monkeypatch):
    """Here both networks have the same stages, so that their rows would fit."""
    monkeypatch.setattr("trainers.networks.REDUCED", (8, 16, 24, 32))
    found = []
    for network in ("resnet18", "reduced_resnet18"):
        alone, kept = (
            train([learner("van")], stream, IN_TURN, Architecture(network), folder=folder)
            for folder in (None, tmp_path / "kept")
        )
        assert kept.saved == 0 and kept.fingerprints[0] == alone.fingerprints[0]
        found.append(kept.fingerprints[0])
    assert len(set(found)) == 2


def test_a_state_dict_within_a_checkpoint_is_found(stream, tmp_path):
    net = make_resnet(STANDARD, stream)
    path = written(tmp_path / "w.pth", net)
    torch.save({"state_dict": torch.load(path), "epoch": 3}, tmp_path / "c.pth")
    assert check(path) == check(str(tmp_path / "c.pth"))


def test_the_hash_is_of_the_backbone_alone(stream, tmp_path):
    net = make_resnet(STANDARD, stream)
    path = written(tmp_path / "w.pth", net)
    other = written(tmp_path / "o.pth", net, **{"fc.weight": torch.ones(2, 32), "bn1.running_mean": torch.zeros(8)})
    assert check(path) == check(other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"conv1.weight": torch.zeros(8, 3, 3, 3)}, r"conv1.weight is 8×3×3×3, allowed 8×3×7×7"),
        ({"layer5.0.conv1.weight": torch.zeros(1)}, r"not those of a ResNet-18 of torchvision: they also have layer5"),
        (
            {"conv1.weight": torch.full((8, 3, 7, 7), torch.nan)},
            r"finite floating-point numbers; conv1.weight has others",
        ),
        ({"conv1.weight": torch.zeros(8, 3, 7, 7, dtype=torch.int64)}, r"finite floating-point numbers; conv1.weight"),
        ({"conv1.weight": "text"}, r"must hold a state dict, names with tensors; got a dict"),
    ],
)
def test_what_does_not_fit_is_one_line(changes, message, stream, tmp_path):
    net = make_resnet(STANDARD, stream)
    with pytest.raises(DataError, match=message) as error:
        check(written(tmp_path / "w.pth", net, **changes))
    assert "\n" not in str(error.value)


def test_files_that_hold_no_weights_are_one_line(tmp_path, monkeypatch):
    def refused(path, match):
        with pytest.raises(DataError, match=match) as error:
            check(str(path))
        assert "\n" not in str(error.value) and str(path) in str(error.value)

    (tmp_path / "device.pth").symlink_to(os.devnull)
    refused(tmp_path / "device.pth", "it is a device, no regular file")
    refused(tmp_path, "it is a folder, no regular file")
    refused(tmp_path / "none.pth", "no file of weights at")
    (tmp_path / "large.pth").touch()
    os.truncate(tmp_path / "large.pth", 2**31 + 1)
    refused(tmp_path / "large.pth", "it has 2,147,483,649 bytes, at most 2,147,483,648 are read")
    torch.save({"conv1.weight": os.system}, tmp_path / "code.pth")
    refused(tmp_path / "code.pth", r"it is damaged, or holds more than tensors by their names; torch\.save")
    (tmp_path / "text.pth").write_text("no weights")
    refused(tmp_path / "text.pth", "it is damaged, or holds more than tensors")


def test_a_file_of_weights_that_unpacks_to_more_than_fits(tmp_path, monkeypatch):
    """torch would unpack it all."""
    monkeypatch.setattr(weights, "LARGEST", 2**20)
    torch.save({"fc.bias": torch.zeros(2**20)}, tmp_path / "plain.pth")
    with (
        zipfile.ZipFile(tmp_path / "plain.pth") as plain,
        zipfile.ZipFile(tmp_path / "packed.pth", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for member in plain.namelist():
            packed.writestr(member, plain.read(member))
    assert (tmp_path / "packed.pth").stat().st_size < 2**20
    with pytest.raises(DataError, match=r"packed\.pth: it has 4,\d{3},\d{3} bytes, at most 1,048,576 are read"):
        check(str(tmp_path / "packed.pth"))


def test_damaged_downloads_are_downloaded_again(tmp_path, monkeypatch, told):
    from torchvision.models import ResNet18_Weights

    path = tmp_path / "checkpoints" / ResNet18_Weights.IMAGENET1K_V1.url.rsplit("/", 1)[-1]
    path.parent.mkdir()
    path.write_bytes(b"whose hash is another than its name says")
    monkeypatch.setattr("torch.hub.get_dir", lambda: str(tmp_path))
    downloads = []
    monkeypatch.setattr(ResNet18_Weights, "get_state_dict", lambda *a, **b: downloads.append(path.exists()) or {})
    assert load("imagenet") == {} and downloads == [False]
    assert told == [f"{path} is damaged: the weights are downloaded again"]


def test_whole_downloads_stay(tmp_path, told):
    content = b"weights"
    path = tmp_path / f"resnet18-{hashlib.sha256(content).hexdigest()[:8]}.pth"
    path.write_bytes(content)
    _drop_damaged(path)
    _drop_damaged(tmp_path / "resnet18-f37072fd.pth")  # not there yet
    assert path.read_bytes() == content and not told


def test_weights_are_for_the_standard_network_only():
    with pytest.raises(ValueError, match="pretrained weights are for network resnet18, got network 'reduced_resnet18'"):
        Architecture("reduced_resnet18", pretrained="imagenet")
