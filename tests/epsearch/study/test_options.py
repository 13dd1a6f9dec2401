"""Options, YAML files and what identifies a study."""

from dataclasses import fields

import pytest
import yaml

import epsearch
from epsearch.failures.errors import UsageError
from epsearch.preparation.build import build, restore
from epsearch.study.kinds import KINDS, Search
from epsearch.study.option import BASIC, GROUPS, LEVELS, RACE, SHORT, TRAINER
from search_spaces.published.definition import load_definition


def test_defaults_are_the_definition():
    study = build(Search, {})
    definition = load_definition("permuted_digits")
    assert study.dataset == "permuted_digits" and study.method == "soft_agem"
    assert (study.repeats, study.points, study.seeds) == (4, 11, (0, 1, 2, 3, 4, 5))
    assert (study.cv_tasks, study.tasks) == (3, 20)
    assert [study.value(name) for name in ("memory", "memory_batch", "batch_size")] == [25, 40, 10]
    assert study.value("lr") == definition.learning_rate and study.interval == (0.0, 1.0)
    assert study.examples_per_task is None and study.score_on == "cv" and study.runner == "auto"
    assert study.device in ("cpu", "cuda") and str(study.storage).startswith("sqlite:///")


def test_a_folder_of_that_name_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "birds").mkdir()
    with pytest.raises(UsageError, match=r"^no dataset 'birds'; the images of the folder birds are folder:birds$"):
        build(Search, {"dataset": "birds"})


def test_what_acts_may_be_given_and_usual_values_may_be_repeated():
    assert build(Search, {"epsilon": 0.3, "search": "lr=log:0.01..0.1"}).value("epsilon") == 0.3
    assert build(Search, {"epsilon": build(Search, {}).value("epsilon")}).name == build(Search, {}).name


def test_every_option_is_a_field_and_the_other_way_round():
    for kind in KINDS.values():
        assert set(kind.options()) == {*(one.name for one in fields(kind)), *kind.takes()} - {"hyperparameters"}
        assert all(name == one.name for name, one in kind.options().items())


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_option_has_a_group_a_level_and_a_sentence(kind):
    for name, one in kind.options().items():
        assert one.group in GROUPS and one.level in LEVELS and one.help.endswith("."), name
        assert "[default" not in one.help, name  # forms and docs have that apart
    basic = {name for name, one in kind.options().items() if one.level == BASIC}
    assert 8 <= len(basic) <= 13 and {"dataset", "seeds", "name", "data_dir", "workers"} <= basic


@pytest.mark.parametrize(
    ("given", "seeds"),
    [("5", (0, 1, 2, 3, 4)), (3, (0, 1, 2)), ("0,1,7", (0, 1, 7)), ("2..4", (2, 3, 4)), ([4, 2], (4, 2)), ("3,", (3,))],
)
def test_seeds_are_a_count_a_list_or_a_range(given, seeds):
    assert build(Search, {"seeds": given}).seeds == seeds


@pytest.mark.parametrize("name", ["permuted_mnist", "permuted-mnist", "perm-mnist", "Perm_MNIST"])
def test_dataset_names_may_be_written_in_many_ways(name):
    assert build(Search, {"dataset": name}).dataset == "permuted_mnist"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "permuted_mnits"}, "no dataset 'permuted_mnits'; known: .*; did you mean 'permuted_mnist'?"),
        ({"epsilon": 0.3}, "epsilon 0.3 changes nothing: it is searched, and compared with 0; leave it out"),
        ({"strength": 3}, "strength 3.0 changes nothing: soft_agem does not have it; leave it out"),
        ({"method": "soft_gem"}, "no method 'soft_gem'; known: .*; did you mean 'soft_agem'?"),
        (
            {"method": "agem"},
            "method 'agem' has no ε; name what --search is to try: memory, memory_batch, lr, batch_size",
        ),
        ({"interval": ("0", "1.5")}, "interval must satisfy 0 <= low < high <= 1, got 0 1.5"),
        ({"interval": (0.5, 0.2)}, "interval must satisfy 0 <= low < high <= 1, got 0.5 0.2"),
        ({"interval": "0"}, "interval must be two numbers LOW HIGH, got '0'"),
        ({"interval": ("0", "--quiet")}, "interval must be two numbers LOW HIGH, got '0 --quiet'"),
        ({"protocol": "first-0"}, "protocol first-k must have a whole K in 1…9999, got 'first-0'"),
        ({"protocol": "250-percent"}, "protocol k-percent must have a K above 0, and up to 100, got '250-percent'"),
        ({"search": "eps=0..1"}, "did you mean 'epsilon'?"),
        ({"points": 2}, "points must be >= 3, got 2"),
        ({"points": "many"}, "points must be a whole number >= 1, got 'many'"),
        ({"repeats": 0}, "repeats must be >= 1, got 0"),
        ({"repeats": 2.5}, "repeats must be a whole number >= 1, got 2.5"),
        ({"cv_tasks": 20}, "cv-tasks must be < tasks, .* got 20 and 20"),
        ({"examples_per_task": 5}, "examples-per-task must be >= batch-size, got 5 and 10"),
        ({"memory": 0}, "memory must be >= 1 for soft_agem, .* got 0"),
        ({"memory": -1}, "memory must be >= 0, got -1"),
        ({"memory_batch": 0}, "memory-batch must be >= 1, got 0"),
        ({"memory_batch": "some"}, "memory-batch must be a whole number >= 1, got 'some'; or all"),
        ({"lr": "-0.1"}, "lr must be a number > 0, got '-0.1'"),
        ({"lr": "nan"}, "lr must be a number > 0, got 'nan'"),
        ({"seeds": "0,0"}, "seeds must differ from each other, got 0 more than once"),
        ({"seeds": "0"}, "seeds must be"),
        ({"seeds": "4..2"}, "seeds must be"),
        ({"score_on": "test"}, "no score-on 'test'; known: cv, eval"),
        ({"device": "gpu"}, "no device 'gpu'; known: auto, cpu, cuda, mps"),
        ({"precision": "tf32", "device": "cpu"}, "precision tf32 is arithmetic of NVIDIA GPUs; with device cpu only"),
        ({"precision": "half"}, "no precision 'half'; known: float32, tf32"),
        ({"numeric_path": "cpu-mkl"}, "no numeric path 'cpu-mkl'; one is cpu-float32-mkl-sparse"),
        ({"certify": -1}, "certify must be >= 0, got -1"),
        ({"runner": "ray"}, "no runner 'ray'; known: auto, tune, local"),
        ({"address": "ray://head:10001"}, "address cannot be 'ray://head:10001': .* `ray job submit --address"),
        ({"address": "head"}, "address must be local, auto or HOST:PORT, got 'head'"),
        ({"address": "head:70000"}, "address must be local, auto or HOST:PORT, got 'head:70000'"),
        ({"address": ":6379"}, "address must be local, auto or HOST:PORT, got ':6379'"),
        ({"task_timeout": 0}, "task-timeout must be >= 1, got 0"),
        ({"trigger": "zer"}, "no trigger 'zer'; known: zero, epsilon; did you mean 'zero'?"),
        ({"name": "n" * 101}, "name must have at most 100 characters, got 101: 'nnn"),
        ({"name": "a/b"}, "name must consist of letters, digits, '.', '_' and '-', got 'a/b'"),
    ],
)
def test_bad_values_are_refused_in_one_line(options, message):
    with pytest.raises(UsageError, match=message.replace("?", r"\?")) as error:
        build(Search, options)
    assert "\n" not in str(error.value)


def test_cuda_is_refused_where_there_is_none(monkeypatch):
    monkeypatch.setattr("epsearch.preparation.build.cuda_present", lambda: False)
    with pytest.raises(UsageError, match="device is 'cuda', but torch finds no CUDA GPU here; allowed here: cpu, auto"):
        build(Search, {"device": "cuda"})
    assert build(Search, {"device": "auto"}).device == "cpu"


def test_yaml_round_trip(tmp_path):
    study = build(Search, {"seeds": "1,2", "memory_batch": "all", "examples_per_task": 100, "interval": (0.1, 0.4)})
    path = tmp_path / "study.yaml"
    path.write_text(study.to_yaml(), encoding="utf-8")
    assert build(Search, {}, path) == study
    lacking = {name for name, one in Search.options().items() if one.part in (TRAINER, RACE, SHORT)}
    assert set(yaml.safe_load(study.to_yaml())) == set(Search.options()) - lacking


def test_the_command_line_wins_over_the_file(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text("points: 5\nrepeats: 2\nexamples-per-task: 100\n", encoding="utf-8")
    study = build(Search, {"points": "7"}, path)
    assert (study.points, study.repeats, study.examples_per_task) == (7, 2, 100)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pionts: 5\n", "no option 'pionts'; known: .*; did you mean 'points'"),
        ("points: [5\n", "is not YAML"),
        ("- points\n", "must hold `option: value` lines, got a list"),
        ("points: 2\n", "points must be >= 3, got 2"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "study.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message) as error:
        build(Search, {}, path)
    assert "\n" not in str(error.value)


def test_a_missing_or_empty_file(tmp_path):
    with pytest.raises(UsageError, match="cannot read the config file"):
        build(Search, {}, tmp_path / "none.yaml")
    (tmp_path / "empty.yaml").touch()
    assert build(Search, {}, tmp_path / "empty.yaml") == build(Search, {})


def test_the_name_follows_from_what_identifies_the_study(tmp_path):
    first = build(Search, {})
    assert first.name.startswith("permuted_digits-")
    assert build(Search, {"runner": "local", "out": tmp_path, "workers": 3}).name == first.name
    for change in ({"repeats": 3}, {"seeds": 4}, {"lr": 0.2}, {"score_on": "eval"}, {"trigger": "epsilon"}):
        assert build(Search, change).name != first.name
    assert build(Search, {"interval": ("0", "1")}).name == first.name


def test_a_stored_study_comes_back(tmp_path):
    study = build(Search, {"memory_batch": "all", "name": "mine", "out": tmp_path, "seeds": "1,5"})
    again = restore({"study": study.identity(), "numeric_path": None}, study.name, study.out, study.storage)
    assert again.identity() == study.identity() and again.name == "mine"


def test_streams_of_the_two_phases_are_disjoint():
    study = build(Search, {})
    assert list(study.stream_tasks("cv")) == [0, 1, 2]
    assert list(study.stream_tasks("eval")) == list(range(3, 20))


@pytest.mark.parametrize(
    "odd", [["narrowing"], {"a": 1}, [], {}, [[]], "", "ε", 1e308, float("nan"), True, b"", object()]
)
def test_no_value_of_a_file_is_a_fault_of_the_program(odd):
    for name, option in Search.options().items():
        try:
            option.parse(odd)
        except UsageError as error:
            assert "\n" not in str(error), name


@pytest.mark.parametrize("wrong", ["mine", None, {"dataset": "permuted_digits"}, Search])
def test_a_session_trains_studies_alone(wrong):
    with pytest.raises(UsageError, match=r"^run takes a study, Search or .*ProtocolStudy, got "):
        epsearch.run(wrong)
