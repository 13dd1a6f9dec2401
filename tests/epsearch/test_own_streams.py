"""A stream of the user's own: what it is made of is part of its results, and whatever it raises is one line."""

import signal
import subprocess
import sys

import pytest

from epsearch.errors import UsageError
from epsearch.jobs import JobResult
from epsearch.preparation import open_evaluation
from epsearch.records import content, content_key
from results.store import Store
from tests.epsearch.test_cli import one_line
from tests.epsearch.trainers import make
from trainers import foreign
from trainers.foreign import ForeignError
from trainers.streams import StreamRequest
from trainers.streams.own import SOURCE

SIZES = "--tasks 4 --cv-tasks 2 --seeds 1 --examples-per-task 40 --memory 2 --memory-batch 8"
PLACE = "--runner local --device cpu --numeric-path cpu-float32-mkl"
COMMON = ["--dataset", "mine:factory", *SIZES.split(), *PLACE.split()]
TINY = [*COMMON, "--points", "3", "--repeats", "1", "--certify", "0"]
STREAM = """
import signal, sys, threading
from trainers.streams.digits import load
from trainers.streams.permuted import PermutedStream

class Mine(PermutedStream):
    pass

def factory(tasks, examples_per_task):
    return Mine(load(), tasks, examples_per_task)
"""


@pytest.fixture(autouse=True)
def mine(tmp_path, monkeypatch):
    """Writes a module beside the study; what this test imports is forgotten behind it."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(foreign, "_IMPORTED", {})
    before = set(sys.modules)

    def write(text=STREAM, name="mine.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    yield write
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


CHANGED = STREAM.replace(
    "    pass",
    "    def train(self, *told):\n        found = super().train(*told)\n        "
    "return found._replace(labels=found.labels[::-1].copy())",
)


class TestSource:
    def test_a_study_whose_source_changed_is_shown_and_reported_but_not_gone_on_with(self, mine, epsearch):
        mine()
        first = epsearch("run", *TINY, "--name", "one", "--json")
        assert first.status == 0 and first.json["effort"]["trained"] > 0, first.err
        mine(CHANGED)
        one_line(epsearch("run", *TINY, "--name", "one"), "mine.py", "'one'", "--name one-2")
        one_line(epsearch("run", *TINY, "--name", "one", "--points", "4", "--extend"), "mine.py", "--name one-2")
        one_line(epsearch("plan", *TINY, "--name", "one"), "mine.py", "--name one-2")
        for command in (("list",), ("show", "one"), ("report", "one")):
            answer = epsearch(*command, "--json")
            assert answer.status == 0, answer.err
        assert answer.json["chosen"] == first.json["chosen"] and answer.json["evaluation"] == first.json["evaluation"]

        second = epsearch("run", *TINY, "--name", "one-2", "--json")
        assert second.json["effort"]["reused"] == 0 and second.json["effort"]["trained"] > 0
        assert second.json["evaluation"] != first.json["evaluation"]  # what trained is what is there now
        one_line(epsearch("run", *TINY, "--name", "one"), "mine.py", "--name one-3")

        mine()
        again = epsearch("run", *TINY, "--name", "one", "--json")
        assert again.json["effort"]["trained"] == 0 and again.json["evaluation"] == first.json["evaluation"]

    def test_shown_and_reported_even_where_the_source_is_gone(self, mine, epsearch, tmp_path):
        mine()
        assert epsearch("run", *TINY, "--name", "one").status == 0
        (tmp_path / "mine.py").unlink()
        sys.modules.pop("mine")
        for command in (("list",), ("show", "one"), ("report", "one")):
            assert epsearch(*command).status == 0
        one_line(epsearch("run", *TINY, "--name", "one"), "cannot import 'mine'")

    @pytest.mark.parametrize(
        ("dataset", "importing", "file"),
        [
            ("mine:factory", {"mine.py": "import shades_x\n"}, "shades_x.py"),
            ("mine:factory", {"mine.py": "from shades_x.deep import tone\n"}, "shades_x/deep.py"),
            ("lab_x.mine:factory", {"lab_x/mine.py": "from .sub import tone\n"}, "lab_x/sub/tone.py"),
        ],
        ids=["module", "package", "relative"],
    )
    def test_what_it_imports_belongs_to_it(self, dataset, importing, file, mine, epsearch):
        """Of a package whatever lies in it, imported or not."""
        (name, line), *_ = importing.items()
        mine(line + STREAM, name)
        mine("tone = 1\n", file)
        options = [dataset if option == "mine:factory" else option for option in TINY]
        assert epsearch("run", *options, "--name", "one").status == 0
        mine("tone = 1  # but otherwise\n", file)
        one_line(epsearch("run", *options, "--name", "one"), f"made with another {file};")

    def test_comparisons_and_memory_studies_are_refused_as_well(self, mine, epsearch):
        mine()
        options = [*COMMON, "--methods", "agem"]
        assert epsearch("compare", *options, "--name", "one").status == 0
        mine(CHANGED)
        one_line(epsearch("compare", *options, "--name", "one"), "mine.py", "--name one-2")

    def test_only_what_comes_from_outside_has_its_source_in_the_key(self, mine, small_study, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        mine()
        keys = []
        for dataset in ("mine:factory", "permuted_digits"):
            study = small_study(dataset=dataset)
            described = open_evaluation(study)[0].describe()
            with Store.open(f"sqlite:///{tmp_path}/empty.sqlite") as store:
                trainee = make(study, store).some()[0]
            found = content(study, described, trainee)
            keys.append(found)
            assert (SOURCE in found["stream"]) == (SOURCE in described) == (dataset == "mine:factory")
        own, ours = keys
        without = {name: value for name, value in own["stream"].items() if name != SOURCE}
        assert content_key({**own, "stream": without}) == content_key(ours) != content_key(own)
        assert len(own["stream"][SOURCE]) == 16  # one hash, however many files there are

    def test_a_worker_that_finds_another_source_does_not_train(self, mine, small_study, tmp_path, monkeypatch):
        """It imports the module when its first job comes, which may be long after the run has begun."""
        monkeypatch.chdir(tmp_path)
        mine()
        study = small_study(dataset="mine:factory")
        with Store.open(f"sqlite:///{tmp_path}/empty.sqlite") as store:
            job = make(study, store).ask()[0]
        assert job.stream.source == open_evaluation(study)[0].describe()[SOURCE]
        mine(CHANGED)
        job.stream.open()  # in this process the code is as it was
        foreign._IMPORTED.clear()
        del sys.modules["mine"]
        with pytest.raises(ForeignError, match=r"^mine\.py of dataset 'mine:factory' changed after the run had begun"):
            job.stream.open()

    def test_a_source_that_changes_while_it_is_imported(self, mine, tmp_path):
        mine("from pathlib import Path\nPath(__file__).write_text('x = 1')\n" + STREAM)
        with pytest.raises(
            ForeignError, match=r"^mine\.py of .* changed while it was imported; run the command again$"
        ):
            StreamRequest("mine:factory", tmp_path, range(3), 40, beside=tmp_path).open()


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
    @pytest.mark.parametrize("method", ["size", "describe", "density", "contents"])
    def test_while_the_run_is_prepared(self, method, command, mine, epsearch):
        line = "sys.exit(0)"
        mine(failing(method, line))
        options = [option for option in TINY if option not in ("--numeric-path", "cpu-float32-mkl")]
        name = method if method == "density" else f"{method}()"
        place = numbered(failing(method, line), line)
        one_line(epsearch(command, *options), f"{name} of mine:factory failed with SystemExit: 0{place}")

    @pytest.mark.parametrize("line", RAISE)
    @pytest.mark.parametrize("method", ["train", "test", "order", "room"])
    def test_in_a_thread_that_trains(self, method, line, mine, epsearch):
        if method != "train" and line not in ("sys.exit(0)", "raise KeyboardInterrupt"):
            pytest.skip("one method stands for all")
        text = failing(method, f"{line}")
        mine(text)
        answer = epsearch("run", *TINY, "--quiet")
        one_line(answer, f"{method}() of mine:factory failed with {RAISE[line]}{numbered(text, line)}")

    def test_on_a_worker_of_ray(self, mine, small_study, tmp_path, monkeypatch):
        """The worker's side and the driver's, without a Ray between them."""
        pytest.importorskip("ray.tune")
        from epsearch.runners import trainable, trials

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
                loop.tell([trials._result(trials.Attempt(job, reports[-1]))])
            assert str(raised.value) == f"train() of mine:factory failed with SystemExit: 0{line}"
            assert not loop.done and store.count() == 0

    @pytest.mark.slow
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

    def test_trouble_with_the_data_is_said_as_the_stream_says_it(self, mine, epsearch):
        mine(
            STREAM.replace("    return Mine", "    from trainers.streams import DataError\n    raise DataError('none')")
        )
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
        before = signal.getsignal(signal.SIGINT)
        mine(failing("size", line))
        answer = epsearch("run", *TINY)
        assert (
            answer.status == 130 and answer.err.startswith("epsearch: stopped;") and len(answer.err.splitlines()) == 1
        )
        assert signal.getsignal(signal.SIGINT) is before

    def test_what_a_job_brings_back_is_the_users_to_mend_where_it_says_so(self, small_study, tmp_path):
        with Store.open(f"sqlite:///{tmp_path}/empty.sqlite") as store:
            loop = make(small_study(), store)
            with pytest.raises(UsageError, match=r"^of mine$"):
                loop.tell([JobResult(loop.ask()[0].number, None, error="of mine", foreign=True)])
