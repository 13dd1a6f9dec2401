"""Strategies of Avalanche by name: found, declared from their signatures, keyed with versions and networks, trained."""

from importlib.util import find_spec

import pytest

from epsearch.loop.content import run_key
from epsearch.loop.jobs import Run
from epsearch.session.session import open_store, train
from tests.epsearch.plugins.test_trainers import OPTIONS, SEARCH
from tests.epsearch.test_cli import one_line
from tests.support.avalanche_stand_in import stand_in
from trainers.foreign.declaration import read_declaration
from trainers.hyperparameters import LARGEST, Hyperparameter
from trainers.plugins.calls import ForeignError

AGEM = ["--trainer", "avalanche:AGEM", "--search", "lr=log:0.01..1"]
SET = "patterns_per_exp=5 train_mb_size=10"
NETWORK = """
from torch import nn


def net(inputs, outputs):
    return nn.Linear(inputs, outputs)


def none(inputs, outputs):
    return "a word"
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The folder in which the program runs; a library below it that processes of trainers find first."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "library"))
    stand_in(tmp_path / "library")
    (tmp_path / "nets.py").write_text(NETWORK, encoding="utf-8")
    return tmp_path


@pytest.fixture
def study(here):
    """A function that builds a study of AGEM, or of another one."""
    from epsearch.preparation.build import build
    from epsearch.study.kinds import Search

    def make(which="AGEM", **options):
        return build(Search, SEARCH | {"trainer": f"avalanche:{which}", "set": SET, "out": here / "runs"} | options)

    return make


def parameters(name, folder):
    return {one.name: one for one in read_declaration(f"avalanche:{name}", folder).parameters}


@pytest.mark.slow
def test_its_hyperparameters_are_those_of_the_signature(here):
    found = parameters("AGEM", here)
    own = ["patterns_per_exp", "sample_size", "train_mb_size", "train_epochs"]
    assert list(found) == [*own, "model", "optimizer", "lr", "momentum", "shuffle"]
    assert found["patterns_per_exp"] == Hyperparameter("patterns_per_exp", "", None, 0, 10**9, whole=True)
    assert found["sample_size"].default == 64 and found["train_mb_size"].low == 1
    assert found["model"].choices == ("mlp", "simple_mlp") and found["model"].network


@pytest.mark.slow
def test_what_may_be_none_a_truth_or_a_word(here):
    found = parameters("EWC", here)
    assert found["ewc_lambda"].default is None and not found["ewc_lambda"].whole
    assert found["ewc_lambda"].high == LARGEST and found["alpha"].low == -1
    assert found["mode"].choices == ("separate", "online")
    assert found["keep_importance_data"].choices == ("False", "True")
    assert found["decay_factor"].default == 0 == found["decay_factor"].low and not found["decay_factor"].whole


@pytest.mark.slow
def test_its_versions_and_our_module_belong_to_it(here):
    found = read_declaration("avalanche:AGEM", here)
    assert list(found.source) == ["avalanche.py"] and found.requires["avalanche-lib"] == "0.6.0"
    assert set(found.requires) == {"avalanche-lib", "torch"} and found.deterministic


WRONG = {
    "AGEMM": "Avalanche has no strategy 'AGEMM'; did you mean 'AGEM'?",
    "zzz": "Avalanche has no strategy 'zzz'; it has AGEM, CWRStar, Diverging, EWC",
    "CWRStar": "strategy CWRStar of Avalanche needs cwr_layer_name, which no number or word can be",
    "ICaRL": "Avalanche has no strategy 'ICaRL'",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_strategy_that_cannot_be_is_one_line(name, here):
    with pytest.raises(ForeignError) as caught:
        read_declaration(f"avalanche:{name}", here)
    assert WRONG[name] in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("avalanche") is not None, reason="it is installed here")
def test_without_it_there_is_a_hint(here, monkeypatch):
    monkeypatch.delenv("PYTHONPATH")
    with pytest.raises(ForeignError, match=r"^Avalanche cannot be imported, .*; pip install 'epsearch\[avalanche\]'$"):
        read_declaration("avalanche:AGEM", here)


OPTIONS_WRONG = {
    ("sample_siz=3",): "no hyperparameter 'sample_siz'; known: patterns_per_exp,",
    ("patterns_per_exp=-1",): "patterns_per_exp must be >= 0, got -1",
    ("patterns_per_exp=5", "optimizer=sdg"): "no optimizer 'sdg'; known: sgd, adam; did you mean 'sgd'?",
    ("patterns_per_exp=5", "model=simple_mpl"): "did you mean 'simple_mlp'?",
    ("patterns_per_exp=5", "model=nowhere:net"): "network 'nowhere:net': there is no module 'nowhere'",
    ("sample_size=3",): "avalanche:AGEM has no default of patterns_per_exp: give --set patterns_per_exp=VALUE, or",
}


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize("values", OPTIONS_WRONG, ids=" ".join)
def test_a_value_that_cannot_be_is_one_line(values, epsearch):
    one_line(epsearch("run", *OPTIONS, *AGEM, "--set", *values, "--quiet"), OPTIONS_WRONG[values])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("nets:none", "network nets:none must return a torch.nn.Module, got a str"),
        ("nets:nett", "network nets:nett failed with AttributeError: module 'nets' has no attribute 'nett'"),
    ],
)
def test_what_makes_no_network_is_one_line(name, line, epsearch):
    one_line(epsearch("run", *OPTIONS, *AGEM, "--set", *SET.split(), f"model={name}", "--quiet"), line)


@pytest.mark.slow
def test_it_is_searched_certified_and_keyed(study, tmp_path):
    loop, effort = train(study())
    assert effort.trained == 6 + 2
    (certificate,) = loop.certificates.values()
    assert certificate.within(0.0), "Python's generator is seeded, too"
    assert max(record.accuracies[-1, -1] for record in loop.records.values()) > 0.3
    with open_store(study().storage) as store:
        assert {content["method"] for content, _ in store.contents("cv")} == {"avalanche:AGEM"}
    assert train(study(name="two", certify=0))[1].trained == 0
    stand_in(tmp_path / "library", "0.6.1")
    (tmp_path / "library" / "avalanche_lib-0.6.0.dist-info").rename(
        tmp_path / "library" / "avalanche_lib-0.6.1.dist-info"
    )
    from epsearch.preparation import trainers

    trainers._declaration.cache_clear()
    assert train(study(name="three", certify=0))[1].reused == 0


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_network_of_ones_own_belongs_to_the_results(study, here):
    own = {"set": f"{SET} model=nets:net", "certify": 0}
    loop, _ = train(study(name="own", **own))
    assert set(loop.images["plugins"]) == {"avalanche:AGEM", "nets:net"}
    assert list(loop.images["plugins"]["nets:net"]) == ["nets.py"]
    assert train(study(name="again", **own))[1].trained == 0
    (here / "nets.py").write_text(NETWORK + "# edited\n", encoding="utf-8")
    assert train(study(name="edited", **own))[1].reused == 0


@pytest.mark.slow
def test_networks_can_be_searched_and_belong_to_the_keys_of_those_that_have_them(study):
    made = study(search="model=mlp,nets:net,simple_mlp lr=0.1", strategy="grid", certify=0)
    assert made.plugins() == {"avalanche:AGEM": "trainer", "nets:net": "network"}
    own, ours = (Run("cv", made.learner((network, 0.1), 0)) for network in ("nets:net", "mlp"))
    trainer = {"avalanche:AGEM": {"agem.py": "1"}}
    before, after = ({"plugins": trainer | {"nets:net": {"nets.py": part}}} for part in ("1", "2"))
    assert run_key(made, before, own) != run_key(made, after, own)
    assert run_key(made, before, ours) == run_key(made, after, ours) == run_key(made, {"plugins": trainer}, ours)


@pytest.mark.slow
def test_a_network_that_changes_meanwhile_is_refused(study, here, monkeypatch):
    from epsearch.preparation import data

    def parts(name):
        return {"nets.py": "0" * 16}

    monkeypatch.setitem(data.IN_PROCESSES, "network", parts)
    with pytest.raises(Exception, match=r"nets\.py of network 'nets:net' "):
        train(study(set=f"{SET} model=nets:net"))


@pytest.mark.slow
def test_parameters_that_are_no_numbers_any_more_are_a_divergence(study):
    loop, _ = train(study("Diverging", certify=0))
    assert {record.status for record in loop.records.values()} == {"diverged"}


@pytest.mark.exhaustive
@pytest.mark.slow
def test_arguments_reach_the_constructor(study):
    loop, _ = train(
        study("EWC", set="ewc_lambda=2 mode=online decay_factor=0.5 keep_importance_data=True shuffle=True", certify=0)
    )
    assert loop.done
