"""What programs read of the command line: one JSON document whatever plug-ins print, a width whatever COLUMNS says."""

import json
import os
import subprocess
import sys

import pytest

from tests.epsearch.test_cli import one_line
from tests.support.limits import HANGS

NOISY = """
import os

print("imported")
os.write(1, b"from compiled code\\n")
os.system("echo from a child")


def last(accuracies):
    print("measured")
    return float(accuracies[-1].mean())
"""
SHORT = "--points 3 --repeats 1 --seeds 1 --tasks 3 --cv-tasks 2 --examples-per-task 60 --certify 0 --runner local"


def process(tmp_path, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "epsearch", *arguments],
        cwd=tmp_path,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )


@pytest.mark.slow
def test_json_is_one_document_whatever_plug_ins_print(tmp_path):
    (tmp_path / "noisy.py").write_text(NOISY, encoding="utf-8")
    done = process(tmp_path, "run", *SHORT.split(), "--objective", "noisy:last", "--name", "one", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["name"] == "one"
    for line in ("imported", "from compiled code", "from a child", "measured"):
        assert line in done.stderr.splitlines()
    assert json.loads(process(tmp_path, "show", "one", "--json").stdout)["name"] == "one"


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("columns", ["0", "00", "1", "7", "-5", "x", ""])
def test_tables_have_letters_whatever_columns_says(tmp_path, columns):
    done = process(tmp_path, "datasets", COLUMNS=columns, LINES="0")
    assert done.returncode == 0 and "permuted_digits" in done.stdout and "Permuted Digits" in done.stdout


def test_compare_says_what_certifies_its_members(epsearch):
    one_line(epsearch("compare", "--certify", "1"), "No such option: --certify", "`epsearch verify NAME`")
    one_line(epsearch("memory", "--certify=2"), "`epsearch verify NAME`")
