"""What a plug-in trainer prints: in a log of a bounded size, which errors name."""

import shutil

import pytest

from tests.trainers.foreign.conftest import SOFTMAX
from trainers.foreign import output_log
from trainers.plugins.calls import ForeignError

PRINTS = """
    import os, sys

    def train(values, stream, seed, report):
        print("on standard output")
        print("on standard error", file=sys.stderr)
        os.system("echo from a program")
        for task in stream.tasks:
            if values:
                raise KeyError("lacking")
            report(task, lambda inputs, task: [0] * len(inputs))
"""


@pytest.fixture
def log(tmp_path):
    return tmp_path / "member.log"


@pytest.mark.slow
def test_all_that_is_printed_is_appended(trained, log):
    log.write_text("before\n")
    trained(PRINTS, log=log)
    lines = ["before", "on standard output", "on standard error", "from a program"]
    assert log.read_text().splitlines() == lines
    trained(PRINTS, log=log)
    assert log.read_text().splitlines() == [*lines, *lines[1:]]


@pytest.mark.slow
def test_an_error_names_the_log_which_has_its_traceback(trained, log):
    with pytest.raises(ForeignError, match=r"failed in task 0 with KeyError: 'lacking'.*; its output: .*member\.log$"):
        trained(PRINTS, {"fails": True}, log=log)
    assert "Traceback (most recent call last)" in log.read_text() and "KeyError: 'lacking'" in log.read_text()
    with pytest.raises(ForeignError) as error:
        trained(PRINTS, {"fails": True})
    assert "its output" not in str(error.value)


@pytest.mark.slow
def test_one_that_prints_nothing_has_no_log(trained, log):
    trained(SOFTMAX, {"lr": 0.2}, log=log)
    with pytest.raises(ForeignError) as error:
        trained("def train(values, stream, seed, report): pass", log=log)
    assert "its output" not in str(error.value) and not log.exists()


@pytest.mark.slow
def test_a_log_that_cannot_be_written_changes_nothing(trained, tmp_path):
    """As where the folder of a study is deleted while it is trained."""
    gone = tmp_path / "gone"
    with pytest.raises(ForeignError) as error:
        trained(PRINTS, {"fails": True}, log=gone / "member.log")
    assert "its output" not in str(error.value) and not gone.exists()
    assert trained(PRINTS, log=gone / "member.log").accuracies.shape == (1, 3, 3)


def test_the_end_is_kept(log, monkeypatch):
    monkeypatch.setattr(output_log, "MOST", 1000)
    monkeypatch.setattr(output_log, "SLACK", 100)
    for number in range(1000):
        assert output_log.append(log, b"line %d\n" % number)
        assert log.stat().st_size <= 1100 + 10
    output_log.cut(log)
    lines = log.read_text().splitlines()
    assert lines[-1] == "line 999" and len(lines) > 100 and all(line.startswith("line ") for line in lines)
    assert log.stat().st_size <= 1000 and [*log.parent.iterdir()] == [log]
    assert output_log.append(log, b"x" * 5000) and log.stat().st_size <= 2000
    shutil.rmtree(log.parent)
    assert not output_log.append(log, b"more\n")


@pytest.mark.slow
def test_a_long_output_is_cut(trained, log):
    prints = PRINTS.replace('"on standard output"', '"\\n".join(["x" * 99] * 40_000)')
    trained(prints, log=log)
    assert log.stat().st_size <= output_log.MOST and log.read_text().endswith("from a program\n")
