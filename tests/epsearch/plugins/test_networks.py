"""Networks of somebody else's, by module:attribute: on pixels and on images, keyed, certified and told of."""

from pathlib import Path

import pytest

from epsearch.findings.facts import facts
from epsearch.session.session import open_store, train
from tests.epsearch.test_cli import one_line
from tests.support.image_folders import every_layout

NETS = """
import torch
from torch import nn

def small(inputs, outputs):
    if isinstance(inputs, int):
        return nn.Sequential(nn.Linear(inputs, 12), nn.ReLU(), nn.Linear(12, outputs))
    features = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return nn.Sequential(*features, nn.Linear(4, outputs))

class Branch(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.layer = nn.Linear(inputs, outputs)

    def forward(self, x):
        found = self.layer(x)
        return found * 2 if found.sum() > 1e9 else found

def drop(inputs, outputs):
    return nn.Sequential(nn.Dropout(), nn.Linear(inputs, outputs))

def wrong(inputs, outputs):
    return nn.Linear(inputs + 1, outputs)

def fails(inputs, outputs):
    raise KeyError("lost")
"""
SEARCH = {"repeats": 1, "points": 3, "certify": 1, "name": "one", "numeric_path": None}


@pytest.fixture(autouse=True)
def nets(tmp_path, monkeypatch):
    """A function that writes the user's module, as it is or changed."""
    monkeypatch.chdir(tmp_path)

    def write(text=NETS):
        (tmp_path / "nets.py").write_text(text, encoding="utf-8")

    write()
    return write


def keys(study):
    with open_store(study.storage) as store:
        return [content["stream"] for content, _ in store.contents("cv")]


@pytest.mark.slow
def test_its_members_are_keyed_and_bit_identical_alone(nets, small_study):
    study = small_study(**SEARCH, network="nets:small")
    loop, _ = train(study)
    assert str(loop.study.numeric_path) == "cpu-float32-onednn"
    (certificate,) = loop.certificates.values()
    assert certificate.within(0.0)
    assert {one["network"] for one in keys(study)} == {"nets:small"}
    (parts,) = {one["network_parts"] for one in keys(study)}
    assert facts(loop, None)["network"].startswith("members in turn, so that each is the same in any cohort")
    assert "nets.py" in facts(loop, None)["code of nets:small"]
    nets(NETS + "# edited\n")
    with pytest.raises(Exception, match=r"made with another nets\.py"):
        train(small_study(**SEARCH, network="nets:small"))
    again = small_study(**SEARCH | {"name": "two"}, network="nets:small")
    assert train(again)[1].reused == 0 and {one["network_parts"] for one in keys(again)} > {parts}


@pytest.mark.slow
def test_what_cannot_be_batched_is_told(small_study):
    loop, _ = train(small_study(**SEARCH | {"certify": 0}, network="nets:Branch"))
    assert "torch.func cannot batch them" in facts(loop, None)["network"]


@pytest.mark.slow
def test_on_images(tmp_path, epsearch):
    every_layout(tmp_path)
    told = ["run", "--dataset", "folder:mine", "--network", "nets:small", "--runner", "local", "--device", "cpu"]
    sizes = (
        "--tasks 3 --cv-tasks 2 --classes-per-task 2 --seeds 1 --repeats 1 --points 3 --memory 1 --batch-size 2 --json"
    )
    shown = epsearch(*told, *sizes.split(), "--out", tmp_path / "runs")
    assert shown.status == 0, shown.err
    assert shown.json["config"]["network"] == "nets:small"
    assert "nets:small" in Path(shown.json["report"]).read_text(encoding="utf-8")


WRONG = {
    ("--network", "nets:drop"): "another output for the same batch in training; leave out dropout",
    ("--network", "nets:wrong"): "network nets:wrong failed on a batch",
    ("--network", "nets:fails"): "KeyError: 'lost'",
    ("--network", "nets:smal"): "did you mean 'small'?",
    ("--network", "mpl"): "no network 'mpl'; known: mlp, reduced_resnet18, resnet18; did you mean 'mlp'?",
    ("--network", "nets:small", "--method", "prognn", "--search", "lr=0.1..1"): "PROGNN grows networks of",
}


@pytest.mark.parametrize("options", WRONG, ids=" ".join)
def test_what_cannot_be_is_one_line(options, epsearch, small_options, tmp_path):
    path = small_options.index("--numeric-path")
    one_line(epsearch("run", *small_options[:path], *small_options[path + 2 :], *options, "--quiet"), WRONG[options])
    assert not (tmp_path / "runs").exists()


def test_it_has_no_path_of_the_compiled_engine(epsearch, small_options):
    one_line(
        epsearch("run", *small_options, "--network", "nets:small", "--quiet"), "numeric-path must be", "nets:small"
    )
