"""What a trainer that behaves is given, and what is measured of it."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from textwrap import dedent

import numpy as np
import pytest

from tests.support.shaped import CIFAR, CUB
from tests.support.toy_streams import digits, toy
from tests.trainers.foreign.conftest import SOFTMAX
from trainers.foreign.measuring import SELF_REPORTED
from trainers.operating_system import AUTOGROUP
from trainers.plugins.calls import ForeignError
from trainers.streams.images.split import ReoccurringStream, SplitStream

LR = {"lr": 0.2}


class Beside:
    """The stream as a trainer sees it, made here, and a report that tests with the stream's own labels."""

    def __init__(self, stream, seed):
        self.stream, self.seed, self.tasks = stream, seed, range(len(stream.tasks))
        self.shape, self.outputs = (stream.inputs,), stream.outputs
        self.after, self.initial, self.within = {}, {}, {}

    def train(self, task):
        number = self.stream.tasks[task]
        inputs, labels = self.stream.train(self.seed, number, self.stream.order(self.seed, number))
        return (inputs / self.stream.largest).astype(np.float32), labels

    def accuracy(self, predict, task):
        inputs, labels = self.stream.test(self.seed, self.stream.tasks[task])
        return np.mean(predict((inputs / self.stream.largest).astype(np.float32), task) == labels)

    def report(self, task, predict, batches=None):
        if batches is not None:
            self.within[task + 1, batches] = self.accuracy(predict, task + 1)
        elif task == -1:
            self.initial = {one: self.accuracy(predict, one) for one in self.tasks}
        else:
            self.after |= {(task, one): self.accuracy(predict, one) for one in self.tasks[: task + 2]}


@pytest.fixture(scope="module")
def beside():
    """The same training here, three tasks from number 4 on, seed 1."""
    names = {}
    exec(dedent(SOFTMAX), names)
    beside = Beside(digits(range(4, 7), examples=800), 1)
    names["train"](LR, beside, 1, beside.report)
    return beside


@pytest.mark.slow
def test_accuracies_are_those_of_its_predictions_on_the_stream(trained, beside):
    result = trained(SOFTMAX, LR, stream=beside.stream)
    expected = np.full((3, 3), np.nan)
    for place, one in beside.after.items():
        expected[place] = one
    assert np.array_equal(result.accuracies[0], expected, equal_nan=True)
    assert np.diag(expected).min() > 0.6  # it learns
    assert list(result.initial[0]) == list(beside.initial.values())
    within = np.array([[beside.within[task, b] for b in range(1, 11)] for task in range(3)])
    assert np.array_equal(result.within[0, :, 1:], within)
    assert list(result.within[0, :, 0]) == [beside.initial[0], expected[0, 1], expected[1, 2]]
    assert np.isnan(result.violations).all() and result.steps == 0 and result.params[0] is None
    assert result.diverged_task == -1 and result.note == ""


@pytest.mark.slow
def test_without_transfer_nothing_of_it_is_measured_and_the_rest_is_the_same(trained, beside):
    full = trained(SOFTMAX, LR, stream=beside.stream)
    result = trained(SOFTMAX, LR, stream=beside.stream, transfer=False)
    assert np.isnan(result.initial).all() and np.isnan(result.within).all()
    assert np.array_equal(result.accuracies[0], np.where(np.tri(3) > 0, full.accuracies[0], np.nan), equal_nan=True)


@pytest.mark.slow
def test_what_a_trainer_does_not_report_is_nan(trained):
    result = trained("""
        def train(values, stream, seed, report):
            for task in stream.tasks:
                report(task, lambda inputs, task: [0] * len(inputs))
    """)
    assert np.isnan(result.initial).all() and np.isnan(result.within[0, :, 1:]).all()
    assert list(np.isnan(result.accuracies[0]).ravel()) == [False, False, True, *[False] * 6]


@pytest.mark.slow
def test_the_same_values_and_seed_have_the_same_fingerprint_and_others_another(trained):
    stream, drawn = (
        digits(range(1), examples=100),
        """
        import random
        import numpy as np
        def train(values, stream, seed, report):
            weights = np.random.randn(stream.shape[0], 10) * values["scale"] + random.random()
            report(0, lambda inputs, task: (inputs @ weights).argmax(1))
    """,
    )
    first = [str(trained(drawn, {"scale": 1.0}, stream=stream, seed=seed).fingerprints[0]) for seed in (1, 1, 2)]
    assert first[0] == first[1] != first[2] and len(first[0]) == 16


@pytest.mark.slow
def test_the_generators_are_seeded_for_each_task_and_tests_do_not_move_them(trained, tmp_path):
    """Torch, too, though `train` imports it late; whatever `predict` draws."""
    text = f"""
        import random
        import numpy as np
        def train(values, stream, seed, report):
            import torch
            for task in stream.tasks:
                with open({str(tmp_path / "drawn")!r}, "a") as file:
                    file.write(f"{{random.random()}} {{np.random.rand()}} {{torch.rand(1).item()}}\\n")
                def predict(inputs, task):
                    return np.random.randint(0, 10, len(inputs)) + 0 * int(torch.rand(1).item() + random.random())
                report(task - 1, predict, batches=3)
                with open({str(tmp_path / "drawn")!r}, "a") as file:
                    file.write(f"{{random.random()}} {{np.random.rand()}} {{torch.rand(1).item()}}\\n")
                report(task, predict)
    """
    lines = []
    for transfer in (True, False):
        trained(text, transfer=transfer, stream=digits(range(2), examples=20))
        lines.append((tmp_path / "drawn").read_text().splitlines())
        (tmp_path / "drawn").unlink()
    assert lines[0] == lines[1]
    assert len({number for line in lines[0] for number in line.split()}) == 12


LOOKS = """
    import json, os
    import numpy as np
    def train(values, stream, seed, report):
        facts = {"values": values, "seed": seed, "tasks": list(stream.tasks), "length": len(stream)}
        facts |= {"classes": stream.classes, "outputs": stream.outputs, "shape": list(stream.shape)}
        facts["labels"] = [[int(one) for one in stream.labels(k)] for k in stream.tasks]
        facts["threads"], facts["gpu"] = os.environ["OMP_NUM_THREADS"], os.environ.get("CUDA_VISIBLE_DEVICES")
        facts["secrets"] = [name for name in os.environ if name.startswith("EPSEARCH_")]
        shown = {}
        for k in stream.tasks:
            inputs, labels = stream.train(k)
            shown[f"inputs_{k}"], shown[f"labels_{k}"] = inputs, labels
            tests = {}
            def predict(inputs, task):
                tests.setdefault(task, []).append(inputs.copy())
                inputs[:] = 0  # it is the trainer's own
                return np.zeros(len(inputs), int) + stream.labels(task)[0]
            report(k, predict)
            report_k = {f"test_{k}_{task}": np.concatenate(parts) for task, parts in tests.items()}
            shown |= report_k
        again = stream.train(0)
        shown["again"] = again[0]
        np.savez(values["file"], **shown)
        with open(values["file"] + ".json", "w") as file:
            json.dump(facts, file)
"""


def looked(trained, tmp_path, stream, **more):
    import json

    file = str(tmp_path / "shown.npz")
    result = trained(LOOKS, {"file": file, "lr": 0.1, "memory": 10}, stream=stream, **more)
    with open(f"{file}.json") as facts, np.load(file) as shown:
        return result, json.load(facts), dict(shown)


@pytest.mark.slow
def test_pixels_are_those_that_our_own_methods_see(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("EPSEARCH_STORAGE", "postgresql://user:secret@host/db")
    stream = toy(range(2, 4), examples=50)
    _, facts, shown = looked(trained, tmp_path, stream, threads=2)
    assert facts["values"] == {"file": str(tmp_path / "shown.npz"), "lr": 0.1, "memory": 10}
    assert (facts["seed"], facts["tasks"], facts["length"], facts["shape"]) == (1, [0, 1], 2, [9])
    assert facts["classes"] == facts["outputs"] == 4 and facts["labels"] == [[0, 1, 2, 3]] * 2
    assert (facts["threads"], facts["gpu"], facts["secrets"]) == ("2", "", [])
    for k, number in enumerate(stream.tasks):
        inputs, labels = stream.train(1, number, stream.order(1, number))
        assert np.array_equal(shown[f"inputs_{k}"], inputs.astype(np.float32) / np.float32(255))
        assert np.array_equal(shown[f"labels_{k}"], labels)
        tests = stream.test(1, number).inputs.astype(np.float32) / np.float32(255)
        assert all(np.array_equal(shown[f"test_{after}_{k}"], tests) for after in range(max(k - 1, 0), 2))
    assert np.array_equal(shown["again"], shown["inputs_0"]) and shown["inputs_0"].dtype == np.float32


@pytest.mark.slow
def test_images_are_those_that_our_own_methods_see_with_channels_first(trained, tmp_path, monkeypatch):
    """In parts, of which none has all images, and the last is short."""
    monkeypatch.setattr("trainers.foreign.inputs.PART", 4 * 4 * 4 * 3 * 2)
    stream = SplitStream(CIFAR, range(3, 5), 5, None)
    result, facts, shown = looked(trained, tmp_path, stream)
    heads = stream.heads(1)
    assert facts["shape"] == [3, 4, 4] and facts["outputs"] == 100
    assert facts["labels"] == [list(np.flatnonzero(heads == number)) for number in stream.tasks]
    for k, number in enumerate(stream.tasks):
        positions, labels = stream.train(1, number, stream.order(1, number))
        seen = np.float32(stream.pixels[positions]) / np.float32(255) - stream.mean
        assert np.array_equal(shown[f"inputs_{k}"], seen.transpose(0, 3, 1, 2))
        assert np.array_equal(shown[f"labels_{k}"], labels)
        positions, labels = stream.test(1, number)
        seen = np.float32(stream.pixels[positions]) / np.float32(255) - stream.mean
        assert all(np.array_equal(shown[f"test_{after}_{k}"], seen.transpose(0, 3, 1, 2)) for after in (0, 1))
        assert result.accuracies[0, 1, k] == np.mean(labels == np.flatnonzero(heads == number)[0])


@pytest.mark.slow
def test_test_inputs_that_are_too_many_to_keep_come_again(trained, tmp_path, monkeypatch):
    monkeypatch.setattr("trainers.foreign.inputs.PART", 100)
    text = LOOKS.replace(
        "import json, os",
        "import json, os\n    from trainers.foreign.inside import stream_api\n    stream_api.CACHED = 50",
    )
    stream = toy(range(2), examples=50)
    file = str(tmp_path / "shown.npz")
    trained(text, {"file": file}, stream=stream)
    with np.load(file) as shown:
        tests = stream.test(1, 0).inputs.astype(np.float32) / np.float32(255)
        assert np.array_equal(shown["test_0_0"], tests) and np.array_equal(shown["test_1_0"], tests)


@pytest.mark.slow
def test_classes_count_alike_where_the_stream_is_balanced(trained, tmp_path):
    from tests.support.shaped import AWA

    stream = ReoccurringStream(AWA, range(2), 5, None)
    assert stream.balanced
    result, facts, _ = looked(trained, tmp_path, stream)
    for k in range(2):
        assert len(set(stream.test(1, k).labels)) == 5
        assert result.accuracies[0, 1, k] == pytest.approx(1 / 5)  # one class of five is always named
        assert result.accuracies[0, 1, k] != np.mean(stream.test(1, k).labels == facts["labels"][k][0])


@pytest.mark.slow
def test_numbers_of_its_own_are_taken_and_said_to_be_its_own(trained):
    result = trained("""
        def train(values, stream, seed, report):
            report(-1, accuracies=[0.1, 0.2, 0.3])
            report(-1, accuracies=[0.15], batches=1)
            report(0, accuracies=[0.5])
            report(1, accuracies=[0.25, 0.75, 0.125])
            report(2, accuracies=[0, 1, 0.5])
    """)
    expected = [[0.5, np.nan, np.nan], [0.25, 0.75, 0.125], [0, 1, 0.5]]
    assert np.array_equal(result.accuracies[0], expected, equal_nan=True)
    assert list(result.initial[0]) == [0.1, 0.2, 0.3]
    assert list(result.within[0, :, 0])[::2] == [0.1, 0.125] and result.within[0, 0, 1] == 0.15
    assert SELF_REPORTED in result.note and result.fingerprints[0]


@pytest.mark.slow
def test_progress_counts_tasks_and_what_it_raises_ends_the_run(trained):
    counts = []
    trained(SOFTMAX, LR, progress=counts.append)
    assert sum(counts) == 3 and set(counts) <= {0, 1}

    def stop(tasks):
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match=r"^stopped$"):
        trained("import time\ndef train(values, stream, seed, report):\n    time.sleep(3600)\n", progress=stop)


@pytest.mark.slow
def test_the_source_and_the_versions_must_be_those_it_began_with(trained):
    with pytest.raises(ForeignError, match=r"^mine\.py of trainer 'mine:train' "):
        trained(SOFTMAX, LR, source={"mine.py": "0" * 16})
    with pytest.raises(ForeignError, match=r"requires numpy, of which this run began with 0.1, and here is"):
        trained(SOFTMAX, LR, versions={"numpy": "0.1"})
    assert trained(SOFTMAX, LR, versions={"numpy": np.__version__}).fingerprints[0]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["report(k, diverged=True)", "report(k, accuracies=[float('nan')] * (k + 1))"])
def test_what_diverges_is_a_result(trained, text):
    result = trained(f"""
        def train(values, stream, seed, report):
            report(0, lambda inputs, task: [0] * len(inputs))
            k = 1
            {text}
            while True:
                pass
    """)
    assert result.diverged_task == 1 and result.diverged_step == 0
    assert np.isfinite(result.accuracies[0, 0, :2]).all() and np.isnan(result.accuracies[0, 1:]).all()


@pytest.mark.slow
def test_an_error_of_floating_point_is_divergence(trained):
    result = trained("""
        import numpy as np
        def train(values, stream, seed, report):
            with np.errstate(all="raise"):
                np.float32(1e30) * np.float32(1e30)
    """)
    assert result.diverged_task == 0 and np.isnan(result.accuracies).all()


@pytest.mark.slow
def test_a_class_is_made_and_its_method_called(trained):
    result = trained(
        """
        class Mine:
            def __init__(self):
                self.label = 3
            def train(self, values, stream, seed, report):
                for task in stream.tasks:
                    report(task, lambda inputs, task: [self.label] * len(inputs))
        """,
        attribute="Mine",
    )
    assert np.isfinite(result.accuracies[0, 2]).all()


@pytest.mark.slow
def test_one_set_of_images_has_uneven_tasks(trained, tmp_path):
    stream = SplitStream(CUB, range(2), 10, None)
    result, _, shown = looked(trained, tmp_path, stream)
    assert len(shown["labels_0"]) == stream.size(1, 0) and np.isfinite(result.accuracies[0, 1]).all()


@pytest.mark.slow
@pytest.mark.skipif(not AUTOGROUP.exists(), reason="this kernel has no groups of sessions")
@pytest.mark.parametrize("copied", [False, True])
def test_its_session_has_the_nice_value_of_the_thread_that_trains(trained, copied, tmp_path):
    text = f"""
        import os
        import numpy as np

        def train(values, stream, seed, report):
            nice = open("/proc/self/autogroup").read().split()[-1]
            open({str(tmp_path / "nice")!r}, "w").write(f"{{os.nice(0)}} {{nice}}")
            for task in (-1, *stream.tasks):
                report(task, lambda inputs, task: np.zeros(len(inputs), int))
    """

    def nicely():
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 3)
        return trained(text)

    with ThreadPoolExecutor(1) as threads:  # whose nice value goes with the thread
        threads.submit(nicely).result()
    assert (tmp_path / "nice").read_text() == "3 3"
