"""Networks written down: an ordinary module of torch that loads one scores what is stored."""

import json
import shutil

import numpy as np
import pytest
import torch
from torch import nn

from epsearch.findings import listing
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from tests.support import ledgers
from tests.support.ledgers import NAME


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The out folder of a finished search, in the working directory."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(ledgers.finished(), tmp_path / "runs")


@pytest.mark.parametrize(("arguments", "phase"), [((), "eval"), (("--row", "baseline", "--stream", "cv"), "cv")])
def test_a_plain_sequential_scores_what_is_stored(epsearch, runs, arguments, phase):
    answer = epsearch("train", NAME, "--save", "model.pt", *arguments, "--json")
    assert answer.status == 0 and answer.json["same_as_stored"]
    with Store.read(f"sqlite:///{runs}/epsearch.sqlite") as store:
        stored = store.get([answer.json["key"]])[answer.json["key"]]
        assert stored.phase == phase
    assert answer.json["accuracies"] == stored.accuracies[-1].tolist()

    network = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    network.load_state_dict(torch.load("model.pt", weights_only=True))
    study = listing.load(NAME, LedgerUrl(f"sqlite:///{runs}/epsearch.sqlite"), runs).study
    stream = study.request(phase).open()
    scored = []
    for task in stream.tasks:
        inputs, labels = stream.test(stored.seed, task)
        with torch.no_grad():
            answers = network(torch.from_numpy(inputs).float() / stream.largest).argmax(dim=1)
        scored.append(float(np.mean(answers.numpy() == labels)))
    assert scored == stored.accuracies[-1].tolist()

    about = json.loads((runs.parent / "model.pt.json").read_text(encoding="utf-8"))
    assert (about["key"], about["seed"], about["stream"]) == (stored.key, stored.seed, phase)
    assert about["tasks"] == [*stream.tasks] and about["layers"]["0.weight"] == [256, 64]
    assert about["inputs"] == "bytes / 16" and about["accuracies"][-1] == stored.accuracies[-1].tolist()


def test_any_seed(epsearch, runs):
    answer = epsearch("train", NAME, "--save", "deep/model.pt", "--seed", "77")
    assert answer.status == 0 and "the ledger has no such run to compare with" in answer.out
    assert (runs.parent / "deep" / "model.pt").exists()
    before = ledgers.results(runs)
    assert epsearch("train", NAME, "--save", "deep/model.pt", "--quiet").status == 2  # no such option
    assert ledgers.results(runs) == before


@pytest.mark.slow
def test_a_run_that_diverges_has_no_network(epsearch, small_options):
    epsearch("run", *small_options, "--name", "wild", "--lr", "1000", "--quiet")
    answer = epsearch("train", "wild", "--save", "model.pt", "--row", "baseline")
    assert answer.status == 2 and "with seed 0 diverges: there is no network to save" in answer.err
