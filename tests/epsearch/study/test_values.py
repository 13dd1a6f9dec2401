"""Values arrive as they are written, whoever writes them: a YAML file, the command line, Python."""

import json

import numpy as np
import pytest

from epsearch.failures.errors import UsageError
from epsearch.ledger.location import ledger_url
from epsearch.preparation.build import build, restore
from epsearch.study import file
from epsearch.study.kinds import Search
from epsearch.study.names import register_trainer
from tests.epsearch.test_cli import one_line

ANY = "mine:train"  # a trainer that declares nothing


@pytest.fixture(autouse=True)
def a_trainer_that_declares_nothing():
    register_trainer(ANY)


def written(tmp_path, text):
    path = tmp_path / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("name: no", "name", "no"),
        ("name: on", "name", "on"),
        ("name: 1.10", "name", "1.10"),
        ("name: 007", "name", "007"),
        ("name: 1_000", "name", "1_000"),
        ("name: 2001-01-02", "name", "2001-01-02"),
        ("seeds: 010", "seeds", tuple(range(10))),
        ("seeds: !!int 010", "seeds", tuple(range(10))),
        ("seeds: 0..2", "seeds", (0, 1, 2)),
        ("seeds: [3, 1]", "seeds", (3, 1)),
        ("lr: 1e-3", "lr", 0.001),
        ("race: True", "race", True),
        ("eval-seeds: ~", "eval_seeds", None),
        ("interval: [0, 5e-1]", "interval", (0.0, 0.5)),
    ],
)
def test_a_file_means_what_is_written_there(tmp_path, text, name, value):
    found = build(Search, {}, written(tmp_path, f"{text}\n")).value(name)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("lr: 0.1\nlr: 0.01", ["study.yaml, line 2: lr is given twice, first as lr in line 1"]),
        ("points: 5\ncv-tasks: 2\n\ncv_tasks: 3", ["line 4: cv_tasks is given twice, first as cv-tasks in line 2"]),
        ("settings:\n  ewc.lr: 1\n  ewc.lr: 2", ["line 3: ewc.lr is given twice"]),
        ("seeds: 1:4", ["seeds must be a count", "'1:4'"]),
        ("memory: 1:30", ["memory must be a whole number", "'1:30'"]),
        ("race: yes", ["race must be true or false, got 'yes'"]),
        ("points: 0x10", ["points must be a whole number", "'0x10'"]),
        ("lr: true", ["lr must be a number > 0, got True"]),
        ("interval: [false, true]", ["interval must be two numbers"]),
        ("seeds: [0, 1, 1]", ["seeds must differ from each other, got 1 more than once"]),
        ("seeds: 1_0", ["seeds must be a count", "'1_0'"]),
        ("lr: 1_0", ["lr must be a number > 0, got '1_0'"]),
        ("search: epsilon=0..0_1", ["with numbers, got '0_1'"]),
        ("seeds: true", ["seeds must be a count"]),
        ("seeds: 0,,1", ["seeds must be a count", "'0,,1'"]),
        ("<<: {lr: 0.1}", ["no option '<<'"]),
        ("? [lr]\n: 0.1", ["line 1: a key must be a word"]),
        ("lr: !!binary aGk=", ["is not YAML", "!binary"]),
    ],
)
def test_what_a_file_does_not_mean_is_refused(epsearch, tmp_path, text, parts):
    written(tmp_path, f"{text}\n")
    one_line(epsearch("run", "--config", "study.yaml", "--print-config"), *parts)


SET = "augment=False clip=None on=on n10=010 at=12:30 word=none tiny=1e-3"
VALUES = {"augment": False, "clip": None, "on": "on", "n10": 10, "at": "12:30", "word": "none", "tiny": 0.001}
YAML = "set: {augment: False, clip: null, on: on, n10: 010, at: 12:30, word: none, tiny: 1e-3}\n"


def test_values_that_nobody_declared_have_the_types_that_are_written(tmp_path):
    by_file = file.read(written(tmp_path, YAML))["set"]
    for given in (SET, SET.split(), by_file, VALUES):
        assert json.dumps(dict(Search.options()["set"].parse(given, ANY))) == json.dumps(VALUES)
    quoted = {"quoted": "True"}  # a word of YAML, JSON, Python
    assert dict(Search.options()["set"].parse(quoted, ANY)) == quoted


@pytest.mark.parametrize(
    "given",
    [
        "augment=true,False",
        {"augment": [True, False]},
        [{"augment": "True,false"}],
        {"augment": np.array([True, False])},
    ],
)
def test_choices_of_a_search_are_truth_values_also_when_they_are_read_back(given):
    option = Search.options()["search"]
    for _ in range(2):
        (one,) = option.parse(given, ANY).parameters
        assert [(type(choice), choice) for choice in one.choices] == [(bool, True), (bool, False)]
        given = json.loads(json.dumps(option.show(option.parse(given, ANY))))
    assert str(one) == "augment=True,False"


def test_words_of_an_older_ledger_stay_words(tmp_path):
    study = {"dataset": "permuted_digits", "trainer": ANY, "search": ["augment=True,False", "lr=0.1..1"]}
    stored = {"study": study | {"set": {"clip": "None"}, "strategy": "random"}, "numeric_path": "cpu-float32-mkl"}
    found = restore(stored, "old", tmp_path, ledger_url(tmp_path, None))
    assert found.search.parameters[0].choices == ("True", "False") and dict(found.set) == {"clip": "None"}
    assert found.identity()["search"] == study["search"]


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("search", "opt=sgd,adam,", "choices of opt must be values with commas between, .*; one is empty"),
        ("search", "opt=,", "choices of opt must be values with commas between"),
        ("search", {"opt": ["sgd", ""]}, "choices of opt must be values with commas between"),
        ("search", "clip=None,1", "search cannot try null as clip"),
        ("search", "a=1,True", "choices of a must differ"),
        ("search", {"opt": [["sgd"]]}, r"opt must be a number, a word, true, false or null, got \['sgd'\]"),
        ("set", "opt=sgd,", "opt must be a number or a word, got 'sgd,', which has an empty part"),
        ("set", "opt=", "opt must be a number or a word, got ''"),
        ("set", {"hidden": [64, 64]}, r"hidden must be a number, a word, true, false or null, got \[64, 64\]"),
        ("set", {"when": {"a": 1}}, "when must be a number, a word"),
        *(
            (one, f"{name}=1,2", f"^'{name}' is a column")
            for name in ("A_T", "F_T", "BWT", "a_1")
            for one in ("search", "set")
        ),
        ("search", "LCA_10_std=1,2", "^'LCA_10_std' is a column of every table of runs"),
    ],
)
def test_what_is_no_value_is_refused(name, given, message):
    with pytest.raises(UsageError, match=message):
        Search.options()[name].parse(given, ANY)


@pytest.mark.parametrize(
    ("given", "seeds"),
    [
        (range(3), (0, 1, 2)),
        (range(1, 8, 3), (1, 4, 7)),
        (np.arange(3), (0, 1, 2)),
        ((4, 2), (4, 2)),
        (np.int64(3), (0, 1, 2)),
        ([np.uint8(7), 1], (7, 1)),
        (np.array(2), (0, 1)),
    ],
)
def test_seeds_of_python(given, seeds):
    found = build(Search, {"seeds": given}).seeds
    assert found == seeds and all(type(one) is int for one in found)


@pytest.mark.parametrize(
    "given",
    [range(0), range(10**30), np.array([0.5, 1]), np.eye(2, dtype=int), {1, 2}, iter([1]), np.nan, [True], b"3"],
)
def test_what_python_cannot_mean_as_seeds_is_one_line(given):
    with pytest.raises(UsageError, match="seeds must be") as error:
        build(Search, {"seeds": given})
    assert "\n" not in str(error.value)


def test_other_values_of_numpy():
    given = {"points": np.int32(5), "lr": np.float32(0.5), "interval": np.array([0, 0.5]), "race": np.bool_(True)}
    study = build(Search, given)
    assert [study.value(name) for name in given] == [5, 0.5, (0.0, 0.5), True]


WORDS = {"trainer": ANY, "search": "opt=sgd,adam", "strategy": "grid", "repeats": 1, "device": "cpu"}


@pytest.fixture
def declared(monkeypatch):
    """No process is asked what the trainer declares."""
    monkeypatch.setattr("epsearch.preparation.option_values.declare", lambda reference: None)
    monkeypatch.setattr("epsearch.preparation.build.of_trainer", lambda values, parsed: {"method": ANY})


@pytest.mark.parametrize("strategy", ["grid", "random", "qmc", "tpe"])
def test_a_round_of_words_may_be_as_small_as_their_number(declared, tmp_path, strategy):
    assert build(Search, WORDS | {"points": 2, "strategy": strategy}).points == 2
    path = written(tmp_path, json.dumps(WORDS | {"points": 2, "strategy": strategy}))
    assert build(Search, {}, path).points == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"points": 2, "search": "opt=sgd,adam lr=0.1..1"}, "points must be >= 3, got 2"),
        ({"points": 1}, "strategy grid must have room for 2 points"),
        ({"points": 0}, "points must be >= 1, got 0"),
        ({"add_metrics": "own:opt"}, "metric 'own:opt' has the name of a hyperparameter"),
    ],
)
def test_rounds_that_cannot_be(declared, given, message):
    with pytest.raises(UsageError, match=message):
        build(Search, WORDS | given)
