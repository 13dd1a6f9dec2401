"""What a trainer declares, and what is said of one that cannot be had."""

import json
import os
import py_compile
import subprocess
import sys

import numpy as np
import pytest

from trainers.foreign.declaration import Declaration, read_declaration
from trainers.hyperparameters import LARGEST, Hyperparameter
from trainers.plugins.calls import ForeignError
from trainers.plugins.source import source_of

TRAIN = "def train(values, stream, seed, report): pass\n"
METHOD = "    def train(self, values, stream, seed, report): pass\n"


@pytest.fixture
def declares(tmp_path, write):
    """declares(text, attribute): the declaration of the module's attribute."""
    return lambda text, attribute="train", **more: read_declaration(f"{write(text)}:{attribute}", tmp_path, **more)


@pytest.mark.slow
def test_of_a_function_there_is_its_source_alone(declares, tmp_path, write, monkeypatch):
    write("FACTOR = 2\n", "beside")
    made = declares("import beside\n" + TRAIN)
    monkeypatch.syspath_prepend(tmp_path)
    assert made == Declaration(requires={}, source=source_of("mine").hashes)
    assert list(made.source) == ["beside.py", "mine.py"] and made.parameters is None
    assert "mine" not in sys.modules


WHOLE = f"""
class Mine:
    parameters = {{
        "lr": {{"default": 0.1, "low": 0, "closed": False, "label": "η", "help": "Learning rate."}},
        "memory": {{"default": 10, "low": 1, "high": 500, "whole": True, "search_low": 2}},
        "kind": {{"default": "a", "choices": ["a", "b"]}},
        "shift": -1.5,
        "free": {{}},
    }}
    baseline = {{"lr": 0.01, "kind": "b"}}
    version = "2.1"
    deterministic = False
    requires = ["numpy"]
{METHOD}
    def save(self, path): pass
    def load(self, path): pass
"""


@pytest.mark.slow
def test_a_class_declares_what_it_wants(declares):
    made = declares(WHOLE, "Mine")
    assert made.parameters == (
        Hyperparameter("lr", "Learning rate.", 0.1, 0, closed=False, label="η"),
        Hyperparameter("memory", "", 10, 1, 500, whole=True, search_low=2),
        Hyperparameter("kind", "", "a", -LARGEST, choices=("a", "b")),
        Hyperparameter("shift", "", -1.5, -LARGEST),
        Hyperparameter("free", "", None, -LARGEST),
    )
    assert made.baseline == {"lr": 0.01, "kind": "b"} and made.version == "2.1"
    assert made.resumable and not made.deterministic and made.requires == {"numpy": np.__version__}
    assert Declaration.of(json.loads(json.dumps(made.facts()))) == made


@pytest.mark.slow
def test_a_class_need_declare_nothing(declares):
    made = declares(f"class Mine:\n{METHOD}", "Mine")
    assert made == Declaration(requires={}, source=made.source) and made.source


def mine(**attributes):
    lines = "".join(f"    {name} = {value}\n" for name, value in attributes.items())
    return f"class train:\n{lines}{METHOD}"


WRONG = {
    "no such module": ("import nothing_of_that_name", r"^cannot import 'mine' of trainer 'mine:train': ModuleNotFound"),
    "syntax": ("def train(:", r"^cannot import 'mine' of trainer 'mine:train': SyntaxError: .*, at mine\.py:1: def"),
    "exit": ("import sys\nsys.exit(0)", r"^cannot import 'mine' .*SystemExit: 0, at mine\.py:2: sys\.exit\(0\)"),
    "sudden exit": ("print('bye')\nimport os\nos._exit(5)", r"^trainer .* status 5 while it was imported; .*: bye$"),
    "misspelt": (
        "def trian(values, stream, seed, report): pass",
        r"^module 'mine' has no 'train'; did you mean 'trian",
    ),
    "other names": ("def fit(): pass\nx = 1", r"^module 'mine' has no 'train'; it has fit$"),
    "nothing": ("", r"^module 'mine' has no 'train'; it has nothing that can be called$"),
    "a number": ("train = 3", r"^trainer 'mine:train' is a int; it must be a function or a class with train$"),
    "no method": ("class train: pass", r"^trainer 'mine:train' has no method train; it must be a function or a class"),
    "three arguments": (
        "def train(a, b, c): pass",
        r"must take \(values, stream, seed, report\), it takes \(a, b, c",
    ),
    "needs a name": ("def train(a, b, c, d, *, e): pass", r"it takes \(a, b, c, d, \*, e\): missing a required"),
    "no method of four": ("class train:\n    def train(self, a): pass", r"it takes \(a\): too many positional"),
    "a generator": ("def train(a, b, c, d): yield", r"^trainer 'mine:train' must be a plain function, got a generator"),
    "needs arguments": (
        f"class train:\n    def __init__(self, x): pass\n{METHOD}",
        r"without arguments: TypeError",
    ),
    "requires": (mine(requires="['no-such-thing']"), r"requires 'no-such-thing', which is not installed; pip install"),
    "requires a word": (mine(requires="'numpy'"), r"^requires of trainer .* must be a list of distributions, got 'num"),
    "requires a number": (mine(requires="3"), r"^trainer 'mine:train' declares what cannot be read: TypeError"),
    "version": (mine(version="2"), r"^version of trainer 'mine:train' must be a str, got 2$"),
    "deterministic": (mine(deterministic="1"), r"^deterministic of trainer 'mine:train' must be a bool, got 1$"),
    "parameters": (mine(parameters="['lr']"), r"^parameters of trainer .* must map names to defaults.*got \['lr'\]$"),
    "name": (mine(parameters="{'l r': 1}"), r"^parameters of trainer 'mine:train' must map names to defaults"),
    "field": (mine(parameters="{'lr': {'defualt': 1}}"), r"has no field 'defualt'; did you mean 'default'\?$"),
    "strange field": (
        mine(parameters="{'lr': {'per_learner': 1}}"),
        r"has no field 'per_learner'; known: default",
    ),
    "default below": (mine(parameters="{'lr': {'default': -1, 'low': 0}}"), r"must be >= 0, got the default -1$"),
    "default NaN": (mine(parameters="{'lr': float('nan')}"), r"^parameter 'lr' of .* got the default nan$"),
    "default None": (mine(parameters="{'lr': True}"), r"^default of parameter 'lr' .* a number or a word, got True$"),
    "default array": (mine(parameters="{'lr': [1]}"), r"^default of parameter 'lr' .* a number or a word, got \[1\]$"),
    "word": (mine(parameters="{'lr': 'big'}"), r"has the word 'big' as default: say which words there may be, as"),
    "no choice": (
        mine(parameters="{'k': {'choices': []}}"),
        r"^choices of parameter 'k' .* list of words, got \(\)$",
    ),
    "number as choice": (mine(parameters="{'k': {'choices': [1]}}"), r"^choices of parameter 'k' .* got \(1,\)$"),
    "choices": (
        mine(parameters="{'k': {'choices': 'ab'}}"),
        r"^choices of parameter 'k' .* list of words, got 'ab'$",
    ),
    "low": (mine(parameters="{'k': {'low': 'a'}}"), r"^low of parameter 'k' of trainer .* must be a number, got 'a'$"),
    "empty": (mine(parameters="{'k': {'low': 2, 'high': 1}}"), r"can have no value: low 2 is above high 1$"),
    "whole": (mine(parameters="{'k': {'whole': 1}}"), r"^whole of parameter 'k' of .* must be True or False, got 1$"),
    "baseline": (
        mine(baseline="[1]"),
        r"^baseline of trainer .* must map names to numbers or words, got \[1\]$",
    ),
    "baseline name": (
        mine(parameters="{'lr': 1}", baseline="{'l': 1}"),
        r"'l', which is no parameter; did you mean 'l",
    ),
    "baseline value": (
        mine(parameters="{'lr': {'low': 0}}", baseline="{'lr': -1}"),
        r"^lr in the baseline of trainer 'mine:train' must be >= 0, got -1$",
    ),
    "foreign repr": (
        "class Odd:\n    def __repr__(self): 1 / 0\n" + mine(parameters="Odd()"),
        r"^parameters of trainer .* must map names to defaults.*; got <Odd instance at",
    ),
    "property": (
        f"class train:\n    @property\n    def version(self): 1 / 0\n{METHOD}",
        r"^trainer 'mine:train' failed with ZeroDivisionError: division by zero, at mine\.py:3",
    ),
}


@pytest.mark.slow
@pytest.mark.few(12)
@pytest.mark.parametrize(("text", "line"), WRONG.values(), ids=WRONG)
def test_one_line_says_what_is_wrong(declares, text, line):
    with pytest.raises(ForeignError, match=line) as error:
        declares(text)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("reference", ["mine", "mine:", ":train", "mine:a.b", "a/b:c", "mine:train:x", ".m:train", ""])
def test_a_reference_is_module_and_attribute(tmp_path, reference):
    with pytest.raises(ForeignError, match=r"must be module:attribute, as my_package\.mine:train$"):
        read_declaration(reference, tmp_path)


def test_an_import_that_takes_too_long_is_ended(declares):
    with pytest.raises(ForeignError, match=r"^trainer 'mine:train' took longer than 0\.1 s, while it was imported"):
        declares("import time\ntime.sleep(600)", seconds=0.1)


@pytest.mark.slow
def test_another_source_than_expected_is_refused(declares):
    made = declares(TRAIN)
    assert declares(TRAIN, expected=made.source) == made
    with pytest.raises(ForeignError, match=r"^mine\.py of trainer 'mine:train' changed after the run had begun"):
        declares(TRAIN + "\n", expected=made.source)


@pytest.mark.slow
def test_it_is_found_beside_and_where_python_finds_it(tmp_path, write, monkeypatch):
    name = write(TRAIN)
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(ForeignError, match=r"No module named 'mine'"):
        read_declaration(f"{name}:train", tmp_path / "elsewhere")
    monkeypatch.syspath_prepend(tmp_path)
    assert read_declaration(f"{name}:train", tmp_path / "elsewhere").source


@pytest.mark.slow
def test_bytecode_is_of_libraries_alone(declares, tmp_path, write):
    """A file of the user's that changes twice in a second would be run as it was before; torch takes seconds."""
    library, time = tmp_path / "site-packages", 1e9
    library.mkdir()
    (library / "large.py").write_text("VALUE = 3\n", encoding="utf-8")
    text = f"import sys; sys.path.append({str(library)!r})\nimport beside, large\n{TRAIN}train = beside.kind\n"
    for kind in ("class kind:\n    version = '1'\n", "class kind:\n    version = '2'\n"):
        file = tmp_path / f"{write(kind + METHOD, 'beside')}.py"
        os.utime(file, (time, time))
        made = declares(text)
        assert made.version == kind.split("'")[1]
        py_compile.compile(file)  # as the user's own Python does
    assert [one.name.partition(".")[0] for one in library.glob("__pycache__/*.pyc")] == ["large"]
    assert [one.name.partition(".")[0] for one in tmp_path.glob("__pycache__/*.pyc")] == ["beside"]


@pytest.mark.slow
def test_a_module_of_the_current_folder_hides_none_of_pythons(tmp_path, write, monkeypatch):
    write("raise SystemExit", "json")
    monkeypatch.chdir(tmp_path)
    assert read_declaration(f"{write(TRAIN)}:train", tmp_path).source


@pytest.mark.slow
def test_asking_is_light():
    """Neither hundreds of workers nor the study itself import torch, for the memory that a trainer may take either."""
    code = "import sys, trainers.foreign.running; from epsearch.loop.jobs import NumericPath, bytes_free; "
    code += "bytes_free(NumericPath(), 1); print([name for name in ('torch', 'sklearn') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
