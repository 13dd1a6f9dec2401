"""A study's YAML file: what is too much, or no file of options, is one line and status 2."""

import pytest

from epsearch.study import file
from tests.epsearch.test_cli import one_line

LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("seeds: " + "[" * 5000 + "]" * 5000, ["nested more than 20 deep"]),
        ("seeds: " + "{a: " * 5000 + "1" + "}" * 5000, ["nested more than 20 deep"]),
        ("seeds: &seeds [0, *seeds]", ["an anchor that contains itself, 'seeds'"]),
        ("settings: &all {ewc.lr: *all}", ["an anchor that contains itself, 'all'"]),
        (LAUGHS + "seeds: *a29", ["more than 20,000 values, aliases written out"]),
        ("name: " + "a" * 4000, ["a value of 4,000 characters, allowed are 3,500"]),
        ("repeats: 3\n" * 100_000, ["at most 1 MiB"]),
        ("repeats: 2001-99-99", ["repeats must be a whole number >= 1, got '2001-99-99'"]),
        ("repeats: !!bool maybe", ["is not YAML", "maybe"]),
        ("repeats: !!timestamp soon", ["is not YAML"]),
        ("repeats: *unknown", ["is not YAML", "undefined alias"]),
        ("repeats: \0", ["is not YAML"]),
        ("repeats: [0x" + "f" * 3498 + "]", ["repeats must be"]),
        ("lr: 0x" + "f" * 3498, ["lr must be a number > 0"]),
        ("interval: [0, 0x" + "f" * 3000 + "]", ["interval must be two numbers"]),
        ("seeds: [null]", ["seeds must be a count"]),
        ("seeds: [[1]]", ["seeds must be a count"]),
        ("seeds: [.inf]", ["seeds must be a count"]),
        ("seeds: [1.5]", ["seeds must be a count"]),
        ('out: "a\\0b"', ["out must be a path"]),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_what_is_too_much_or_no_option(epsearch, tmp_path, text, parts):
    (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
    one_line(epsearch("run", "--config", "study.yaml", "--print-config"), *parts)


def test_aliases_that_stay_small_are_read(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text("seeds: &some [0, 1]\neval-seeds: *some\n", encoding="utf-8")
    assert file.read(path) == {"seeds": ["0", "1"], "eval_seeds": ["0", "1"]}


def test_every_value_counts_as_often_as_it_stands_there(tmp_path, monkeypatch):
    """The file, its 2 keys, the list of 2 and once more that list: 1 + 2 + 3 + 3."""
    path = tmp_path / "study.yaml"
    path.write_text("seeds: &some [0, 1]\neval-seeds: *some\n", encoding="utf-8")
    monkeypatch.setattr(file, "MOST_VALUES", 9)
    assert file.read(path)
    monkeypatch.setattr(file, "MOST_VALUES", 8)
    with pytest.raises(file.UsageError, match="more than 8 values"):
        file.read(path)
