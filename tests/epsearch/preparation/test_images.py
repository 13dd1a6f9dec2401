"""Streams of images from files to reports: every command, every published layout, one's own data, and bad input."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from epsearch.failures.errors import UsageError
from epsearch.preparation import images
from epsearch.preparation.build import build
from epsearch.preparation.data import prepare
from epsearch.study.kinds import Search
from search_spaces.published.definition import definitions, load_definition
from tests.epsearch.test_cli import one_line
from tests.support import image_folders as made
from tests.support.events import Recorded
from tests.support.limits import HANGS
from trainers.engines import image_choice
from trainers.networks.heads import Linear
from trainers.networks.resnet import ResNet
from trainers.streams import streams
from trainers.streams.images import registry

WIDTHS = (8, 16, 24, 32)
SHORT = "--tasks 4 --cv-tasks 2 --classes-per-task 2 --seeds 1 --memory 2 --memory-batch 6 --runner local --device cpu"
TINY = [*SHORT.split(), *["--network", "reduced_resnet18", "--image-size", "16"]]
SEARCH = [*TINY, *["--points", "3", "--repeats", "1", "--certify", "1"]]


@pytest.fixture(autouse=True)
def small_networks(monkeypatch):
    for name in ("REDUCED", "STANDARD"):
        for module in ("networks", "engines.image_choice"):
            monkeypatch.setattr(f"trainers.{module}.{name}", WIDTHS)
    monkeypatch.setattr("trainers.networks.weights.STANDARD", WIDTHS)


@pytest.fixture(autouse=True)
def taken(monkeypatch):
    """What each way to train residual networks is said to take, in seconds: the same, unless a test changes it."""
    seconds = {"in turn": 1.0, "together": 1.0}

    def measure(ways, turns):
        for work in ways.values():
            work()
        return {name: seconds[name] for name in ways}

    monkeypatch.setattr(image_choice, "seconds", measure)
    return seconds


@pytest.mark.slow
@pytest.mark.parametrize(("together", "path"), [(0.8, "cpu-float32-torch"), (0.95, "cpu-float32-onednn")])
def test_members_are_trained_together_where_that_is_clearly_faster_only(taken, together, path):
    taken["together"] = together
    assert str(image_choice.fastest_image_path.__wrapped__("reduced_resnet18", 16)) == path


@pytest.fixture
def data(tmp_path):
    return made.every_layout(tmp_path / "data")


@pytest.mark.slow
@pytest.mark.parametrize(
    "dataset",
    [
        "split_cub",
        "split_awa_je",
        pytest.param("split_cub_je", marks=pytest.mark.slow),
        pytest.param("split_awa", marks=pytest.mark.slow),
    ],
)
def test_a_search_on_the_published_layouts(dataset, data, epsearch, tmp_path):
    answer = epsearch("run", "--dataset", dataset, "--data-dir", data, *SEARCH, "--name", "one", "--json")
    assert answer.status == 0, answer.err
    found = answer.json
    assert found["dataset"] == dataset and 0 <= found["evaluation"][0]["A_T_mean"] <= 100
    assert "<html" in (tmp_path / "runs" / "one" / "report.html").read_text(encoding="utf-8")
    again = epsearch("run", "--dataset", dataset, "--data-dir", data, *SEARCH, "--name", "one", "--json")
    assert again.json["effort"]["trained"] == 0


@pytest.mark.slow
def test_what_is_said_before_a_run(data, epsearch):
    answer = epsearch("run", "--dataset", "split_cub", "--data-dir", data, *SEARCH)
    assert "one member takes about 0.0034 GiB" in answer.err and "GiB are free" in answer.err
    assert "1 of 1" in answer.err and "evaluation" in answer.err


@pytest.mark.slow
def test_every_method_is_compared_and_the_memory_studied(data, epsearch):
    folder = f"folder:{data / 'mine'}"
    compared = epsearch("compare", "--dataset", folder, *TINY, "--batch-size", "5", "--json")
    assert compared.status == 0, compared.err
    assert {row["method"] for row in compared.json["rows"]} >= {"van", "ewc", "gem", "er", "soft_agem", "prognn"}
    sized = epsearch("memory", "--dataset", folder, *_without(TINY, "--memory"), "--sizes", "1,2", "--json")
    assert sized.status == 0, sized.err
    assert len(sized.json["rows"]) == 6
    searched = epsearch("run", "--dataset", folder, *SEARCH, "--json").json
    assert searched["effort"]["reused"] == 1  # A-GEM on the evaluation stream, with two examples a class


@pytest.mark.slow
def test_pretrained_weights_are_part_of_a_result(data, epsearch, tmp_path):
    net = ResNet(WIDTHS, True, Linear(5, random_bias=False))
    rows = torch.rand(1, net.row, generator=torch.Generator().manual_seed(0)) - 0.5
    torch.save({name: view[0].clone() for name, view in net.layout.views(rows).items()}, tmp_path / "w.pth")
    large = [
        *SHORT.split(),
        *["--network", "resnet18", "--image-size", "64", "--points", "3", "--repeats", "1", "--certify", "0"],
    ]
    told = ("run", "--dataset", "split_cub", "--data-dir", data, *large, "--json")
    one = epsearch(*told, "--pretrained", tmp_path / "w.pth").json
    other = epsearch(*told, "--pretrained", "none").json
    assert one["effort"]["trained"] > 0 and other["effort"]["reused"] == 0
    torch.save({**torch.load(tmp_path / "w.pth"), "bn1.weight": torch.zeros(3)}, tmp_path / "bad.pth")
    one_line(epsearch(*told, "--pretrained", tmp_path / "bad.pth"), "bn1.weight is 3, allowed 8")
    torch.save({"conv1.weight": torch.zeros(1)}, tmp_path / "other.pth")
    one_line(epsearch(*told, "--pretrained", tmp_path / "other.pth"), "not those of a ResNet-18 of torchvision")
    one_line(epsearch(*told, "--pretrained", tmp_path / "none.pth"), "no file of weights at")
    (tmp_path / "text.pth").write_text("no weights")
    one_line(epsearch(*told, "--pretrained", tmp_path / "text.pth"), "cannot read weights from")


@pytest.mark.slow
def test_the_imagenet_weights_are_said_to_be_missing(data, epsearch, monkeypatch):
    """What torchvision raises without a network, in one line, before anything is trained."""
    from urllib.error import URLError

    from torchvision.models import ResNet18_Weights

    def offline(self, *told, **more):
        raise URLError("no route to host")

    monkeypatch.setattr(ResNet18_Weights, "get_state_dict", offline)
    answer = epsearch("run", "--dataset", "split_cub", "--data-dir", data, *SHORT.split(), "--image-size", "64")
    one_line(answer, "ImageNet weights cannot be downloaded", "--pretrained PATH", "--pretrained none")


MINE = """
from pathlib import Path
from trainers.streams import open_stream

def factory(tasks, examples_per_task):
    return open_stream("permuted_digits", Path("."), tasks, examples_per_task)
"""
OWN = (
    "--dataset mine:factory --tasks 3 --cv-tasks 2 --points 3 --repeats 1 --seeds 1 --examples-per-task 60 --device cpu"
)


@pytest.mark.slow
def test_ones_own_stream_runs(tmp_path, epsearch):
    """From a module beside the study."""
    (tmp_path / "mine.py").write_text(MINE)
    answer = epsearch("run", *OWN.split(), "--runner", "local", "--json")
    assert answer.status == 0, answer.err
    assert answer.json["dataset"] == "mine:factory" and answer.json["effort"]["trained"] > 0


@pytest.mark.exhaustive
@pytest.mark.cluster
def test_ones_own_stream_runs_on_workers(tmp_path):
    """The workers of Ray find the module, too."""
    (tmp_path / "mine.py").write_text(MINE)
    code = "import sys; from epsearch.cli import main; sys.argv[1:1] = ['run', '--workers', '1']; main()"
    command = [sys.executable, "-c", code, *OWN.split(), "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["dataset"] == "mine:factory"


@pytest.mark.slow
def test_one_task_of_a_folder_is_enough_for_a_learning_rate_but_not_for_epsilon(data, epsearch):
    one = ["--dataset", f"folder:{data / 'mine'}", *SEARCH, "--cv-tasks", "1"]
    one_line(epsearch("run", *one), "cv-tasks must be >= 2 to search epsilon, got 1: without an earlier task")
    assert epsearch("plan", *one, "--search", "lr=0.01..0.1", "--json").json["ahead"]["now"] == 3


def test_every_published_stream_has_a_definition():
    assert set(streams()) == set(definitions())
    for name in definitions():
        assert registry.has_images(name) == (load_definition(name).image_size is not None)


def test_what_only_a_users_stream_can_get_wrong(tmp_path, epsearch):
    """Small images, and a joint embedding beside PROGNN, are seen when the stream is made."""
    (tmp_path / "small_images.py").write_text(
        "from tests.support.made_images import made_images\n"
        "from trainers.streams.images.split import SplitStream\n"
        "def small(tasks, examples):\n"
        "    return SplitStream(made_images(classes=40, size=8), tasks, 2, examples)\n"
        "def joint(tasks, examples):\n"
        "    return SplitStream(made_images(classes=40, size=16, attributes=3), tasks, 2, examples, embedding=True)\n"
    )
    (tmp_path / "broken_module.py").write_text("this is no Python\n")
    told = ("--network", "reduced_resnet18", "--batch-size", "5")
    one_line(epsearch("run", "--dataset", "small_images:small", *told), "images must be >= 16 pixels wide", "got 8")
    one_line(
        epsearch("compare", "--dataset", "small_images:joint", *told), "'prognn' has no form with a joint embedding"
    )
    one_line(
        epsearch("run", "--dataset", "small_images:small"), "network must be reduced_resnet18 or resnet18", "'mlp'"
    )
    one_line(epsearch("run", "--dataset", "broken_module:factory"), "cannot import 'broken_module'", "SyntaxError")


def test_datasets_are_prepared_and_checked_for_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "cache"))
    made.awa(tmp_path / "awa2")
    root = made.folders(tmp_path / "own")
    events = Recorded()
    awa = images.prepare("split_awa", tmp_path, 20, False, events)
    assert awa.counts == {"train": 56, "test": 12, "unused": 12} and awa.size == 20
    assert awa.cache_bytes == 80 * 20 * 20 * 3 and awa.where == str(tmp_path / "awa2") and awa.decoded == 80
    assert events.images[-1] == (80, 80)
    assert images.prepare("split_awa", tmp_path, 20, False).decoded == 0
    own = images.prepare(f"folder:{root}", tmp_path, None, False)
    assert own.size == 32 and own.counts == {"train": 12, "test": 6}
    assert images.check(f"folder:{root}", tmp_path).differences == []
    with pytest.raises(UsageError, match=r"'mnist' has no images to decode; allowed: .*folder:PATH"):
        images.prepare("mnist", tmp_path, None, False)


def test_a_python_session_trains_on_the_files_as_they_are_now(data, epsearch, tmp_path, monkeypatch):
    """The second study begins in the process of the first, which has the images and the weights in memory."""
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "cache"))
    net, found = ResNet(WIDTHS, True, Linear(2, random_bias=False)), []
    for seed in (0, 1):
        rows = torch.from_numpy(net.init(np.random.default_rng(seed)))[None]
        torch.save({name: view[0].clone() for name, view in net.layout.views(rows).items()}, tmp_path / "weights.pt")
        (data / "mine" / "train" / "bat" / "0.png").write_bytes(made.encoded(made.noise(7 + seed, 20, 20)))
        study = build(
            Search,
            {"dataset": f"folder:{data / 'mine'}", "tasks": 4, "cv_tasks": 2, "classes_per_task": 2, "seeds": 1}
            | {
                "memory": 2,
                "memory_batch": 6,
                "image_size": 64,
                "network": "resnet18",
                "pretrained": str(tmp_path / "weights.pt"),
            },
        )
        found.append(prepare(study, Recorded()).images)
    assert all(found[0][name] != found[1][name] for name in ("pretrained", "images")), found


class TestDatasets:
    @pytest.mark.slow
    def test_prepare_and_check(self, data, epsearch):
        told = ("split_cub_je", "--data-dir", data)
        found = epsearch("datasets", "prepare", *told, "--image-size", "16", "--json").json
        assert found["counts"] == {"train": 48, "test": 16} and found["cache_bytes"] == 64 * 16 * 16 * 3
        checked = epsearch("datasets", "check", *told)
        assert checked.status == 1 and "5,994 in the published dataset" in checked.out
        assert "312 of each class" in checked.out

    def test_own_folders_are_sound(self, data, epsearch):
        answer = epsearch("datasets", "check", f"folder:{data / 'mine'}", "--json")
        assert answer.status == 0 and answer.json["counts"] == {"train": 48, "test": 16}

    @pytest.mark.slow
    def test_corrupt_images_are_named_refused_or_left_out(self, data, epsearch):
        (data / "mine" / "train" / "bat" / "0.png").write_bytes(b"no picture")
        folder = f"folder:{data / 'mine'}"
        answer = epsearch("datasets", "check", folder)
        assert answer.status == 1 and "1: train/bat/0.png" in answer.out
        one_line(epsearch("run", "--dataset", folder, *SEARCH), "1 of 64 images cannot be decoded: train/bat/0.png")
        one_line(epsearch("datasets", "prepare", folder), "train/bat/0.png")
        few = {"tasks": 4, "cv_tasks": 2, "classes_per_task": 2, "memory": 2, "image_size": 16}
        with pytest.raises(UsageError, match="1 of 64 images cannot be decoded"):
            images.decode_for(build(Search, few | {"dataset": folder}), Recorded())
        assert epsearch("run", "--dataset", folder, *SEARCH, "--skip-corrupt", "--quiet").status == 0

    def test_what_has_no_images(self, epsearch):
        one_line(epsearch("datasets", "check", "permuted_digits"), "has no images to decode", "split_cifar")
        one_line(epsearch("datasets", "prepare", "split_cab"), "no dataset 'split_cab'", "did you mean")


@pytest.mark.parametrize(
    ("dataset", "parts"),
    [
        ("no_such_module:factory", ["cannot import 'no_such_module'"]),
        ("yaml:no_such", ["module 'yaml' has no 'no_such'"]),
        ("yaml:safe_load", ["yaml:safe_load", "failed with TypeError"]),
        ("builtins:max", ["failed with"]),
        ("builtins:slice", ["made a slice, which lacks tasks", "inputs+largest+density or pixels+mean"]),
    ],
)
def test_modules_that_make_no_stream(dataset, parts, epsearch):
    one_line(epsearch("run", "--dataset", dataset), *parts)


def _without(options, name):
    at = options.index(name)
    return [*options[:at], *options[at + 2 :]]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--dataset", "folder:nowhere"], ["nowhere"]),
        (["--dataset", "folder:"], ["dataset must be a name, folder:PATH or module:factory"]),
        (["--dataset", "folder:/"], ["no class folders in /"]),
        (["--dataset", "split_cub", "--data-dir", "nowhere"], ["no CUB-200-2011 under", "nowhere", "CUB_200_2011"]),
        (
            ["--dataset", "FOLDER", "--tasks", "9"],
            ["9 tasks of 2 classes each need 18 classes, the images have 8; --tasks 4 would do"],
        ),
        (["--dataset", "FOLDER", "--network", "mlp"], ["network must be reduced_resnet18 or resnet18", "'mlp'"]),
        (["--dataset", "FOLDER", "--image-size", "8"], ["image-size must be >= 16", "8"]),
        (["--dataset", "FOLDER", "--pretrained", "imagenet"], ["pretrained weights are for network resnet18"]),
        (["--dataset", "FOLDER", "--examples-per-task", "13"], ["examples-per-task must lie in 1…12", "13"]),
        (["--dataset", "FOLDER", "--batch-size", "13"], ["batch-size must be <= the 12"]),
        (["--dataset", "FOLDER", "--numeric-path", "cpu-float32-mkl"], ["numeric-path must be cpu-float32-onednn or"]),
        (["--dataset", "permuted_digits"], ["classes-per-task is for streams of images"]),
    ],
    ids=str,
)
def test_bad_input_is_one_line(options, parts, data, epsearch):
    told = [f"folder:{data / 'mine'}" if part == "FOLDER" else part for part in options]
    one_line(epsearch("run", *SEARCH, *told), *parts)


def test_images_that_are_not_there_are_told_before_weights_are_downloaded(epsearch, tmp_path, monkeypatch):
    monkeypatch.setattr("trainers.networks.weights.check", lambda name: pytest.fail("that is 45 MB for nothing"))
    answer = epsearch("run", "--dataset", "split_cub", "--data-dir", tmp_path / "nowhere", "--device", "cpu")
    one_line(answer, "no CUB-200-2011 under", "nowhere")
