"""Mutated study files through `run --config FILE --print-config`: every one is read, or refused in one line."""

import os
import random
import subprocess
import sys

import pytest
import yaml

from epsearch import cli
from epsearch.preparation.build import build
from epsearch.study.kinds import Search

pytestmark = pytest.mark.fuzz

SHARE = float(os.environ.get("EPSEARCH_FUZZ_SHARE", "1"))
FILES, PROCESSES = max(10, int(5000 * SHARE)), max(2, int(100 * SHARE))  # of all kinds, and of each kind
PYTHON_SAYS = "Traceback"

WORDS = """null true yes ~ .inf -.inf .nan -0.0 1e400 0x7fffffffffffffffffff 99999999999999999999 1_000 010 2001-99-99
12:30:45 [] {} [[]] [null] '[/red]' ':cat:' ~root ~nobody-there/x folder: folder:~x a:b:c -1 0 3.7 1,2,,3 0.. ..4 5..0
a..b log:0..1 epsilon=0..1 lr= = % @ é ε 𝛆 all none a/b ../x . ''"""
VALUES = [
    *WORDS.split(),
    *("!!bool x", "!!timestamp x", "!!int abc", "!!binary é", "!!set {a, b}", "!!omap [a: 1]", "!!null x"),
    *("!!python/object:os.system x", "{a: {b: c}}", "[1, [2]]", "lr=log:0.1..1 memory=1,2", "[0.1, true]"),
    *(r'"\0"', r'"\x1b[31m"', r'"\ud800"', r'"a\nb"', "sqlite:///x", "postgresql://me:secret@nowhere/db"),
]


def original():
    """A study's file as `--print-config` writes it."""
    return build(Search, {"runner": "local", "device": "cpu", "name": "fuzzed"}).to_yaml()


def bytes_changed(text, random):
    data = bytearray(text.encode())
    for _ in range(random.randint(1, 8)):
        data[random.randrange(len(data))] = random.randrange(256)
    return bytes(data)


def bytes_moved(text, random):
    data = text.encode()
    a, b, c = sorted(random.randrange(len(data)) for _ in range(3))
    return random.choice([data[:a] + data[b:], data[:b] + data[a:], data[:a] + data[b:c] + data[a:b] + data[c:]])


def value_changed(text, random):
    options = text.splitlines()
    for _ in range(random.randint(1, 3)):
        number = random.randrange(len(options))
        options[number] = f"{options[number].partition(':')[0]}: {random.choice(VALUES)}"
    return "\n".join(options).encode()


def value_of_another(text, random):
    options = yaml.safe_load(text)
    a, b = random.sample(sorted(options), 2)
    return yaml.safe_dump(options | {a: options[b]}, allow_unicode=True).encode()


def structure_changed(text, random):
    key = random.choice([line.partition(":")[0] for line in text.splitlines()])
    deep, wide = random.choice([2, 19, 20, 21, 3000]), random.choice([2, 9, 40])
    laughs = "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * wide)}]\n" for n in range(1, deep % 25))
    return random.choice(
        [
            f"{key}: {'[' * deep}{']' * deep}\n",
            f"{key}: {'{a: ' * deep}1{'}' * deep}\n",
            f"{key}: &a [*a]\n",
            f"{key}: &a {{b: *a}}\n",
            f"x0: &x0 [1]\n{laughs}{key}: *x0\n",
            f"{key}: &a 1\n{random.choice(['seeds', 'name', 'lr'])}: *a\n",
            f"<<: {{{key}: 1}}\n",
            f"? [{key}]\n: 1\n",
            f"{key}: 1\n---\n{key}: 2\n",
            f"- {key}\n",
            f"{key}\n",
            f"{key}: {'9' * random.choice([19, 400, 5000])}\n",
            f"{key}: 0x{'f' * random.choice([17, 400, 3400])}\n",
            f"{key}: 1e{'9' * random.choice([3, 400])}\n",
            f"{key}: {'a' * random.choice([256, 5000])}\n",
        ]
    ).encode()


KINDS = (bytes_changed, bytes_moved, value_changed, value_of_another, structure_changed)


def files(count, seed):
    """(kind, content), of each kind alike many."""
    dice, text = random.Random(seed), original()
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        yield kind.__name__, kind(text, dice)


def wrong(status, out, err):
    """What is wrong with an answer; None where nothing is."""
    if status not in (0, 2) or PYTHON_SAYS in err:
        return f"status {status}"
    if status == 2 and (out or not err.startswith("epsearch: ") or err.strip().count("\n")):
        return "not one line"
    return None


def test_in_one_process(figures, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    file, counts, found = tmp_path / "study.yaml", {0: 0, 2: 0}, []
    monkeypatch.setattr("sys.argv", ["epsearch", "run", "--config", str(file), "--print-config"])
    for kind, content in files(FILES, seed=1):
        file.write_bytes(content)
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        status = stop.value.code
        counts[status] = counts.get(status, 0) + 1
        if problem := wrong(status, out, err):
            found.append((kind, problem, err[:300], content[:2000]))
    figures("study files", tried=FILES, read=counts[0], refused=counts[2], wrong=len(found))
    assert not found, found[:5]
    assert min(counts.values()) > 0


def test_as_processes(figures, tmp_path):
    count, found = PROCESSES * len(KINDS), []
    for kind, content in files(count, seed=2):
        (tmp_path / "study.yaml").write_bytes(content)
        command = [sys.executable, "-m", "epsearch", "run", "--config", "study.yaml", "--print-config"]
        done = subprocess.run(command, capture_output=True, cwd=tmp_path)
        out, err = done.stdout.decode(), done.stderr.decode()
        if problem := wrong(done.returncode, out, err):
            found.append((kind, problem, err[:300], content[:2000]))
    figures("study files, each in a process", tried=count, wrong=len(found))
    assert not found, found[:5]
