"""What a stream of the user's own raises, wherever it does, is one line that names the place in it."""

import signal
import subprocess
import sys

import pytest

from epsearch.failures.errors import UsageError
from epsearch.loop.jobs import JobResult
from results.ledger.store import Store
from tests.epsearch.preparation.conftest import STREAM, TINY
from tests.epsearch.test_cli import one_line
from tests.support.drive import make
from trainers.plugins.calls import ForeignError
from trainers.plugins.source import SOURCE
from trainers.streams import StreamRequest

RAISE = {
    "sys.exit(0)": "SystemExit: 0",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "raise BaseException('two\\nlines')": "BaseException: two lines",
    "raise GeneratorExit": "GeneratorExit",
    "raise MemoryError('of mine')": "MemoryError: of mine",
    "return [][0]": "IndexError: list index out of range",
}


def failing(method, line):
    """The stream with a method of which the given line is the last one that runs."""
    signature = "self, *told" if method != "density" else "self"
    decorator = "    @property\n" if method == "density" else ""
    return STREAM.replace("    pass", f"{decorator}    def {method}({signature}):\n        {line}")


def numbered(text, line):
    """`file:number: line` of a line that occurs once."""
    (number,) = [number for number, one in enumerate(text.splitlines(), 1) if one.strip() == line]
    return f", at mine.py:{number}: {line}"


CHANGES = """
import numpy as np

def wider(some):
    return some._replace(inputs=np.tile(some.inputs, 2))

def narrower(some):
    return some._replace(inputs=some.inputs[:, 1:])

def larger(some):
    return some._replace(inputs=some.inputs.astype(int) + 300)

def moved(some, by):
    return some._replace(inputs=some.inputs + by)
"""
IMAGES = """
from tests.support.made_images import made_images
from trainers.streams.images.split import SplitStream

class Mine(SplitStream):
    def {method}(self, *told):
        return {said}

def factory(tasks, examples_per_task):
    return Mine(made_images(), tasks, 2, examples_per_task)
"""


def refusal(stream, method):
    """The line that a call of the method ends with."""
    told = {"train": lambda: (0, 0, stream.order(0, 0)), "room": lambda: (5 if hasattr(stream, "pixels") else 40,)}
    with pytest.raises(ForeignError) as raised:
        getattr(stream, method)(*told.get(method, lambda: (0, 0))())
    assert len(str(raised.value).splitlines()) == 1
    return str(raised.value)


class TestWhatItRaises:
    @pytest.mark.parametrize("line", [line for line in RAISE if not line.startswith("return")])
    def test_at_import(self, line, mine, epsearch):
        text = STREAM.replace("def factory", f"{line}\n\ndef factory")
        mine(text)
        expected = ("cannot import 'mine' of dataset 'mine:factory': ", RAISE[line] + numbered(text, line))
        one_line(epsearch("run", *TINY), *expected)

    @pytest.mark.parametrize("line", RAISE)
    def test_in_the_factory(self, line, mine, epsearch):
        text = STREAM.replace("    return Mine", f"    {line}\n    return Mine")
        mine(text)
        one_line(epsearch("run", *TINY), "mine:factory(range(", f"failed with {RAISE[line]}{numbered(text, line)}")

    @pytest.mark.parametrize("command", ["run", "plan"])
    @pytest.mark.parametrize("method", ["size", "describe", "density"])
    def test_while_the_run_is_prepared(self, method, command, mine, epsearch):
        line = "sys.exit(0)"
        mine(failing(method, line))
        options = [option for option in TINY if option not in ("--numeric-path", "cpu-float32-mkl")]
        name = method if method == "density" else f"{method}()"
        place = numbered(failing(method, line), line)
        one_line(epsearch(command, *options), f"{name} of mine:factory failed with SystemExit: 0{place}")

    @pytest.mark.parametrize(
        ("method", "line"),
        [*(("train", line) for line in RAISE), *((method, "sys.exit(0)") for method in ("test", "order", "room"))],
    )
    def test_in_a_thread_that_trains(self, method, line, mine, epsearch):
        text = failing(method, line)
        mine(text)
        answer = epsearch("run", *TINY, "--quiet")
        one_line(answer, f"{method}() of mine:factory failed with {RAISE[line]}{numbered(text, line)}")

    def test_on_a_worker_of_ray(self, mine, small_study, tmp_path, monkeypatch):
        """The worker's side and the driver's, without a Ray between them."""
        pytest.importorskip("ray.tune")
        from epsearch.runners.on_ray import trainable, trials

        monkeypatch.chdir(tmp_path)
        mine(failing("train", "sys.exit(0)"))
        reports = []
        monkeypatch.setattr(trainable.tune, "report", reports.append)
        with Store.open(f"sqlite:///{tmp_path}/empty.sqlite") as store:
            loop = make(small_study(dataset="mine:factory"), store)
            job = loop.ask()[0]
            trainable.train({"job": job})
            line = numbered(failing("train", "sys.exit(0)"), "sys.exit(0)")
            with pytest.raises(UsageError) as raised:
                loop.tell([trials._result_of(job, reports[-1])])
            assert str(raised.value) == f"train() of mine:factory failed with SystemExit: 0{line}"
            assert not loop.done and len(store.all_runs()) == 0

    @pytest.mark.cluster
    def test_on_a_real_worker_of_ray(self, mine, tmp_path):
        mine(STREAM.replace("    pass", "    def train(self, *told):\n        sys.exit(0)"))
        code = "import sys; from epsearch.cli import main; sys.argv[1:1] = ['run', '--workers', '1']; main()"
        options = [option for option in TINY if option not in ("--runner", "local")]
        done = subprocess.run([sys.executable, "-c", code, *options], cwd=tmp_path, capture_output=True, text=True)
        line = done.stderr.strip().splitlines()[-1]
        assert done.returncode == 2 and line.startswith(
            "epsearch: train() of mine:factory failed with SystemExit: 0, at"
        )

    def test_the_last_own_line_is_named_not_that_of_a_library(self, mine, epsearch):
        mine(failing("size", "return json.loads('{')").replace("import signal", "import json, signal"))
        one_line(epsearch("run", *TINY), "JSONDecodeError", ", at mine.py:8: return json.loads('{')")

    def test_a_syntax_error_is_named_where_it_is(self, mine, epsearch):
        mine("import shades_y\n" + STREAM)
        mine("x = 1\nthis is no Python\n", "shades_y.py")
        one_line(epsearch("run", *TINY), "SyntaxError: invalid syntax, at shades_y.py:2: this is no Python")

    def test_an_error_without_a_message_of_its_own_and_one_that_is_too_long(self, mine, epsearch):
        odd = "class Odd(BaseException):\n    def __str__(self):\n        sys.exit(0)\n\nclass Mine"
        mine(failing("size", "raise Odd").replace("class Mine", odd))
        one_line(epsearch("run", *TINY), "Odd, which has no message, at mine.py:12: raise Odd")
        mine(failing("size", "raise ValueError('x' * 10**6)"))
        answer = epsearch("run", *TINY)
        one_line(answer, "ValueError: xxx", "…, at mine.py:8: raise")
        assert len(answer.err) < 1000

    def test_a_bug_in_a_property_is_not_a_missing_one(self, mine, epsearch):
        mine(failing("density", "return self._nothing"))
        one_line(epsearch("run", *TINY), "density of mine:factory failed with AttributeError", "_nothing", "mine.py:9:")

    @pytest.mark.parametrize(
        "said", ["None", "{'kind': 'x'}", "{'examples_per_task': 'many'}", "{1: {2}}", "{**super().describe(), KEY: 1}"]
    )
    def test_a_description_that_cannot_be_kept(self, said, mine, epsearch):
        mine(failing("describe", f"return {said.replace('KEY', repr(SOURCE))}"))
        one_line(epsearch("run", *TINY), "describe() of mine:factory must return a dict", "examples_per_task", "got ")

    @pytest.mark.parametrize(
        ("method", "said"),
        [
            ("size", "None"),
            ("size", "0"),
            ("order", "[0, 1]"),
            ("order", "super().order(*told) / 2"),
            ("train", "None"),
            ("train", "super().train(*told)._replace(labels=super().train(*told).labels + 10)"),
            ("train", "super().train(*told)._replace(labels=super().train(*told).labels[1:])"),
            ("test", "super().test(*told)._replace(labels=super().test(*told).labels - 1)"),
            ("test", "super().test(*told)._replace(labels=super().test(*told).labels * 0.5)"),
        ],
    )
    def test_what_nothing_could_be_trained_on(self, method, said, mine, epsearch):
        """Labels beyond the network's outputs would be read beyond an array."""
        mine(failing(method, f"return {said}"))
        one_line(epsearch("run", *TINY, "--quiet"), f"{method}() of mine:factory must return", "got ")

    @pytest.mark.parametrize(
        ("method", "said", "allowed", "got"),
        [
            ("train", "super().train(*told[:2], told[2][:1])", "inputs [40, 64] of uint8", "inputs uint8 [1, 64]"),
            ("train", "super().train(*told[:2], told[2][:-1])", "a row for each position of the order", "[39, 64]"),
            ("train", "tuple(super().train(*told))", "Examples", "got (array"),
            ("test", "wider(super().test(*told))", "inputs [n, 64] of uint8", "inputs uint8 [355, 128]"),
            ("test", "narrower(super().test(*told))", "inputs [n, 64] of uint8", "inputs uint8 [355, 63]"),
            ("test", "larger(super().test(*told))", "inputs [n, 64] of uint8", "inputs int64 [355, 64] from 300"),
            ("room", "super().room(*told)[:, 1:]", "[40, 64] of uint8", "got uint8 [40, 63]"),
            ("room", "super().room(*told).astype('int8')", "[40, 64] of uint8", "got int8 [40, 64]"),
            ("order", "super().order(*told)[1:]", "[40] of positions", "got int64 [39]"),
        ],
    )
    def test_pixels_that_fit_no_other_part_of_the_stream(self, method, said, allowed, got, mine, tmp_path):
        """Compiled code would read beyond an array, and NumPy would show one example in the place of all."""
        mine(failing(method, f"return {said}") + CHANGES)
        stream = StreamRequest("mine:factory", tmp_path, range(3), 40, beside=tmp_path).open()
        assert refusal(stream, method).startswith(f"{method}() of mine:factory must return ")
        assert allowed in refusal(stream, method).partition("got")[0] and got in refusal(stream, method)

    @pytest.mark.parametrize(
        ("method", "said", "got"),
        [
            ("train", "moved(super().train(*told), 1000)", " to 10"),
            ("train", "super().train(*told[:2], told[2][:1])", "inputs int64 [1] from"),
            ("test", "moved(super().test(*told), -1000)", "inputs int64 [6] from -"),
            ("test", "moved(super().test(*told), 0.5)", "inputs float64 [6]"),
            ("test", "moved(super().test(*told), np.zeros((6, 1), int))", "inputs int64 [6, 6]"),
            ("room", "super().room(*told).astype('uint8')[1:]", "got uint8 [4]"),
            ("room", "super().room(*told).astype('float32')", "got float32 [5]"),
        ],
    )
    def test_positions_that_are_none_of_the_images(self, method, said, got, mine, tmp_path):
        mine(IMAGES.format(method=method, said=said) + CHANGES)
        stream = StreamRequest("mine:factory", tmp_path, range(3), 5, beside=tmp_path).open()
        line = refusal(stream, method)
        assert line.startswith(f"{method}() of mine:factory must return ") and got in line
        assert "of integers in 0…71" in line  # 8 classes with 6 images to train on and 3 to test on

    @pytest.mark.slow
    @pytest.mark.parametrize("missing", ["return getattr(self._inner, name)", "raise AttributeError(name)"])
    def test_one_that_delegates_lacks_what_it_lacks(self, missing, mine, epsearch):
        known = "if hasattr(type(self._inner), name) or name in vars(self._inner): return getattr(self._inner, name)"
        own = f"""    def __init__(self, *told):
        self._inner = PermutedStream(*told)

    def __getattr__(self, name):
        {known}
        {missing}
"""
        mine(STREAM.replace("class Mine(PermutedStream)", "class Mine").replace("    pass\n", own))
        answer = epsearch("run", *TINY, "--quiet", "--numeric-path", "cpu-float32-torch")
        assert answer.status == 0, answer.err

    def test_trouble_with_the_data_is_said_as_the_stream_says_it(self, mine, epsearch):
        raising = "    from trainers.streams import DataError\n    raise DataError('none')\n    return Mine"
        mine(STREAM.replace("    return Mine", raising))
        one_line(epsearch("run", *TINY), "epsearch: none")

    @pytest.mark.parametrize(
        "line",
        [
            "signal.raise_signal(signal.SIGINT)",
            "exec('try: signal.raise_signal(2)\\nexcept KeyboardInterrupt: sys.exit(0)')",
        ],
        ids=["plain", "made an exit of"],
    )
    def test_ctrl_c_is_still_the_users(self, line, mine, epsearch):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore Ctrl-C
        try:
            mine(failing("size", line))
            answer = epsearch("run", *TINY)
            assert answer.status == 130 and "mine:factory" not in answer.err and len(answer.err.splitlines()) <= 1
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        finally:
            signal.signal(signal.SIGINT, before)

    def test_what_a_job_brings_back_is_the_users_to_mend_where_it_says_so(self, small_study, tmp_path):
        with Store.open(f"sqlite:///{tmp_path}/empty.sqlite") as store:
            loop = make(small_study(), store)
            with pytest.raises(UsageError, match=r"^of mine$"):
                loop.tell([JobResult(loop.ask()[0].number, None, error="of mine", foreign=True)])
