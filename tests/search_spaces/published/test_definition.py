import subprocess
import sys
from importlib import resources

import pytest

from search_spaces import Interval, UnknownDataset, definitions, load_definition
from search_spaces.interval import Grid
from search_spaces.published.definition import learning_rate_grid, parse_definition, strength_grids
from search_spaces.published.fields import read_yaml

# points, reported ε, classes, learning rate, memory, memory batch (ε-SOFT-GEM and A-GEM)
SETTINGS = {
    "permuted_digits": (11, None, 10, 0.03, 25, 40),
    "permuted_mnist": (11, 0.07185, 10, 0.1, 25, 256),
    "rotated_digits": (11, None, 10, 0.03, 25, 40),
    "rotated_mnist": (11, None, 10, 0.1, 25, 256),
    "split_digits": (11, None, 2, 0.03, 25, 40),
    "split_mnist": (11, None, 2, 0.1, 50, 256),
    "split_cifar": (7, 0.5, 5, 0.03, 13, 256),
    "split_cifar10": (7, None, 2, 0.03, 50, 256),
    "split_cub": (7, None, 10, 0.1, 5, 128),
    "split_cub_je": (7, None, 10, 0.1, 5, 128),
    "split_awa": (7, None, 5, 0.1, 20, 128),
    "split_awa_je": (7, None, 5, 0.1, 20, 128),
}

# A-GEM, appendix G: learning rate / λ, in the order of the columns below; "-" = not in the table.
COLUMNS = ("permuted_mnist", "split_cifar", "split_cub", "split_cub_je", "split_awa", "split_awa_je")
APPENDIX_G = """
van         0.03     0.01      0.03      0.03      0.001     0.003
ewc         0.03/10  0.03/10   0.03/1    0.03/10   0.003/100 0.003/100
pi          0.1/0.1  0.01/0.1  0.03/0.1  0.03/0.1  0.003/1   0.003/10
mas         0.1/0.1  0.03/0.1  0.03/0.1  0.03/0.1  0.003/1   0.001/0.1
rwalk       0.1/1    0.03/1    0.03/1    0.03/1    0.003/10  0.003/10
prognn      0.1      0.03      0.01      -         0.03      -
agem        0.1      0.03      0.03      0.03      0.01      0.003
"""


def yaml_text(name):
    return (resources.files("search_spaces.published") / "definitions" / f"{name}.yaml").read_text("utf-8")


def test_every_dataset_is_defined():
    assert definitions() == tuple(sorted(SETTINGS))


@pytest.mark.parametrize("name", SETTINGS)
def test_the_settings_of_the_papers(name):
    one = load_definition(name)
    found = (one.points, one.reported_epsilon, one.classes, one.learning_rate, one.memory, one.memory_batch)
    assert found == SETTINGS[name]
    # No paper prints those of the digits.
    sizes = (4, 6) if name.endswith("_digits") else (5, 5)
    assert (one.interval, one.repeats, one.seeds) == (Interval(0.0, 1.0), *sizes)
    tasks = (
        (5, None) if name in ("split_digits", "split_mnist", "split_cifar10") else (20, 3)
    )  # two of ten classes each
    assert (one.tasks, one.cv_tasks, one.batch_size) == (*tasks, 10)
    assert (one.name, bool(one.title)) == (name, True)


def test_the_reported_epsilons_lie_on_grids_of_their_search():
    assert load_definition("split_cifar").reported_epsilon in Grid.over(Interval(0, 1), 7).coordinates
    assert load_definition("permuted_mnist").reported_epsilon in Grid.over(Interval(0.0678, 0.0759), 11).coordinates


@pytest.mark.parametrize("line", APPENDIX_G.strip().splitlines(), ids=lambda line: line.split()[0])
def test_learning_rates_and_strengths_of_appendix_g(line):
    method, *cells = line.split()
    for dataset, cell in zip(COLUMNS, cells, strict=True):
        definition = load_definition(dataset)
        if cell == "-":
            assert method not in definition.methods
            continue
        rate, _, strength = cell.partition("/")
        found = definition.method(method)
        assert (found["learning_rate"], found.get("strength")) == (float(rate), float(strength) if strength else None)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_new_methods_and_replay_have_the_rate_of_the_dataset(name):
    definition = load_definition(name)
    for method in ("soft_agem", "a_agem", "er"):
        assert definition.method(method)["learning_rate"] == definition.learning_rate


# Mammoth, utils/best_args.py: α of DER, α and β of DER++, for the memory that is nearest in size.
BEST_ARGS = {
    "permuted_mnist": (0.5, 0.5, 1),
    "rotated_mnist": (0.5, 0.5, 0.5),
    "split_mnist": (1, 1, 0.5),
    "split_cifar": (0.3, 0.1, 0.5),
    "split_cifar10": (0.3, 0.2, 0.5),
}


def test_the_weights_of_dark_experience_replay():
    for name in SETTINGS:
        dark, more = (load_definition(name).method(method) for method in ("der", "derpp"))
        weights = (dark.get("alpha"), more.get("alpha"), more.get("beta"))
        assert weights == BEST_ARGS.get(name.replace("digits", "mnist"), (None, None, None))
        assert dark["learning_rate"] == more["learning_rate"]


def test_learning_without_forgetting_has_the_rate_of_plain_sgd():
    for name in SETTINGS:
        assert load_definition(name).method("lwf") == load_definition(name).method("van")


def test_a_method_for_perceptrons_has_values_where_these_are_trained():
    for name in SETTINGS:
        one = load_definition(name)
        assert ("gpm" in one.methods) == (one.network == "mlp")
        assert "gpm" not in one.methods or one.method("gpm") == {"learning_rate": 0.01}


def test_a_method_for_classes_has_values_where_classes_are_split():
    for name in SETTINGS:
        one = load_definition(name)
        assert ("er_ace" in one.methods) == ("class" in one.scenarios)
        assert "er_ace" not in one.methods or one.method("er_ace") == one.method("er")


@pytest.mark.parametrize("name", SETTINGS)
def test_the_values_of_appendix_g_are_on_its_grids(name):
    strengths = strength_grids()
    for method, values in load_definition(name).methods.items():
        assert values["learning_rate"] in learning_rate_grid()
        assert "strength" not in values or values["strength"] in strengths[method]
        assert ("strength" in values) == (method in strengths)


def test_digits_are_trained_like_mnist_but_for_the_rate_of_the_methods_with_its_own():
    digits, mnist = load_definition("permuted_digits"), load_definition("permuted_mnist")
    differing = {method for method, values in digits.methods.items() if values != mnist.methods[method]}
    assert digits.methods.keys() == mnist.methods.keys()
    assert differing == {"gem", "agem", "soft_agem", "a_agem", "er", "der", "derpp"}
    assert {digits.method(name)["learning_rate"] for name in differing} == {digits.learning_rate}
    assert digits.fisher_every == mnist.fisher_every == 10


def test_the_fisher_estimate_is_renewed_within_every_task():
    shortest = {"split_cub": 30, "split_cub_je": 30, "split_cifar": 250}
    assert all(load_definition(name).fisher_every < steps for name, steps in shortest.items())


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("perm-mnist", "permuted_mnist"),
        ("perm_mnist", "permuted_mnist"),
        ("permuted-mnist", "permuted_mnist"),
        (" Permuted-MNIST ", "permuted_mnist"),
        ("mnist", "permuted_mnist"),
        ("seq-cifar100", "split_cifar"),
        ("split-cifar100", "split_cifar"),
        ("split-cub", "split_cub"),
        ("split-cub-je", "split_cub_je"),
        ("AWA-JE", "split_awa_je"),
        ("digits", "permuted_digits"),
    ],
)
def test_aliases(alias, name):
    assert load_definition(alias).name == name


def test_no_alias_means_two_datasets():
    spellings = [alias for name in definitions() for alias in (name, *load_definition(name).aliases)]
    assert len(spellings) == len(set(spellings))


@pytest.mark.parametrize(
    ("name", "near"),
    [("permuted_mnits", "permuted_mnist"), ("seq-cifar11", "split_cifar10"), ("split-awa-j", "split_awa_je")],
)
def test_a_misspelt_name_is_answered_in_one_line(name, near):
    with pytest.raises(UnknownDataset) as error:
        load_definition(name)
    assert str(error.value) == f"no dataset {name!r}; known: {', '.join(sorted(SETTINGS))}; did you mean {near!r}?"


def test_a_name_like_no_other_is_answered_without_a_guess():
    with pytest.raises(ValueError) as error:
        load_definition("xyz")
    assert str(error.value) == f"no dataset 'xyz'; known: {', '.join(sorted(SETTINGS))}"


def test_a_method_without_settings_is_an_error():
    with pytest.raises(ValueError, match="no settings for method 'prognn' on split_awa_je; known: van, ewc, "):
        load_definition("split_awa_je").method("prognn")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("points: 11", "points: 0", "new: points must be a whole number >= 1, got 0"),
        ("points: 11", "points: yes", "new: points must be a whole number >= 1, got True"),
        ("points: 11", "point: 11", "new: unknown fields point; did you mean 'points'?"),
        ("points: 11", "points: 11\nsize: 3", "new: unknown fields size"),
        ("interval: [0, 1]", "interval: [1, 0]", "interval low must be < high, got 1.0 and 0.0"),
        ("interval: [0, 1]", "interval: [0]", "new: interval must be [low, high], got [0.0]"),
        ("{learning_rate: 0.03}", "0.03", "new: methods: van must be a mapping, got 0.03"),
        ("reported_epsilon: 0.07185", "reported_epsilon: x", "new: reported_epsilon must be a number, got 'x'"),
        ("title: Permuted MNIST", "title: [", "new: must be YAML"),
        ("title: Permuted MNIST", "title: One\ntitle: Two", "new: must be YAML, got line 3 repeats title"),
    ],
)
def test_a_malformed_definition_is_an_error_that_names_the_field(old, new, message):
    text = yaml_text("permuted_mnist")
    assert old in text
    with pytest.raises(ValueError) as error:
        parse_definition("new", text.replace(old, new))
    assert str(error.value).startswith(message)


def test_aliases_of_aliases_are_read_once():
    levels = (f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30))
    content = read_yaml("new", "\n".join(["a0: &a0 [x]", *levels]))
    assert len(content["a29"]) == 10 and content["a29"][0] is content["a28"]


@pytest.mark.parametrize("name", [*SETTINGS, "grids"])
def test_every_definition_names_its_sources(name):
    comments = " ".join(line for line in yaml_text(name).splitlines() if "#" in line)
    assert "A-GEM" in comments or "permuted_mnist.yaml" in comments


def test_importing_reads_no_definition_and_loads_neither_ray_nor_torch():
    code = (
        "import sys, search_spaces, search_spaces.published.definition as d;"
        "print(d._all.cache_info().currsize, [m for m in ('ray', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0 []\n"
