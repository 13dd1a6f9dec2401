"""Cohorts that do not fit into memory, and the estimate of what they take."""

import pytest
import torch

from tests.support.learners import SMALL, engine_of, few, learner, train
from tests.support.made_images import made_images
from tests.support.numeric_paths import MKL, rows_equal
from tests.support.toy_streams import toy
from trainers import Architecture, Cohort
from trainers.capacity import split_to_fit
from trainers.engines.compiled import engine
from trainers.footprint import bytes_at_work, bytes_of, bytes_of_one, bytes_of_seed, check_images
from trainers.free_memory import free_bytes
from trainers.methods import METHODS
from trainers.numeric_path import NumericPath
from trainers.population import Training, train_cohort
from trainers.streams.images.split import SplitStream

LEARNERS = [few("soft_agem", epsilon=epsilon) for epsilon in (0.0, 0.2, 0.4, 0.6, 0.8)]
WAYS = ("", "-lazy", "-sparse")


def test_a_cohort_that_runs_out_of_memory_is_trained_in_halves(monkeypatch):
    """Never more than two learners at a time fit; the results are those of the whole cohort."""
    whole = train(LEARNERS, toy(), MKL)
    original, sizes = engine.CompiledEngine.train, set()

    def limited(self, learners, first, last):
        if len(learners.params) > 2:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes.")
        sizes.add(len(learners.params))
        original(self, learners, first, last)

    monkeypatch.setattr(engine.CompiledEngine, "train", limited)
    found = train(LEARNERS, toy(), MKL)
    assert sizes == {1, 2}
    assert found.note.endswith("which do not fit: they are trained in halves") and whole.note == ""
    for row in range(5):
        assert rows_equal(found, row, whole, row)


def test_a_cohort_larger_than_the_room_is_not_tried_whole():
    groups, tried = [(-1, [0, 1, 2, 3]), (0, [4])], []

    def train(done, rows):
        tried.append((done, rows))
        return rows

    found = list(split_to_fit(groups, train, lambda rows: 10 * len(rows), 25))
    assert tried == [(-1, [0, 1]), (-1, [2, 3]), (0, [4])]
    assert [rows for rows, _, _ in found] == [[0, 1], [2, 3], [4]]
    assert found[0][2].startswith("4 members need about 0.0 GiB")


def test_one_member_that_does_not_fit_is_an_error_in_one_line():
    def train(done, rows):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with pytest.raises(MemoryError, match=r"^one member needs about 2\.0 GiB, which do not fit; a smaller .*") as error:
        list(split_to_fit([(-1, [0, 1])], train, lambda rows: 2**31, None))
    assert "\n" not in str(error.value)


def test_other_errors_are_not_taken_for_it():
    def train(done, rows):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="shapes"):
        list(split_to_fit([(-1, [0, 1])], train, len, None))


@pytest.mark.parametrize("method", [name for name, one in METHODS.items() if not one.for_perceptrons])
def test_estimates_grow_with_what_is_trained(method):
    images = SplitStream(made_images(classes=8, size=32), range(1, 4), 2)
    network = Architecture("reduced_resnet18")
    row = 4 * 1_094_280  # bytes of the reduced ResNet-18 with 8 outputs
    learners = [learner(method, seed, memory=2, memory_batch=5) for seed in range(3)]
    one = bytes_of_one(learners[0], images, network)
    stored = 4 * 2 * 3 * images.classes * 8 * (method in ("der", "derpp"))  # 8 logits of each example
    assert one >= row + stored and (one >= 2 * row) == (method in ("ewc", "pi", "mas", "rwalk", "si", "prognn", "lwf"))
    path = NumericPath(products="onednn")
    alone, many = (Cohort(tuple(learners[:count])) for count in (1, 3))
    assert bytes_of(many, images, network, path) - bytes_of(alone, images, network, path) == 2 * one
    assert bytes_of(many, images, network, NumericPath()) > bytes_of(many, images, network, path)


def test_spans_are_counted():
    """As they are stored: of 9 pixels and two layers of 16 units, each with a 1, in rows of 16 or 32 floats."""
    of_toy = Architecture(hidden=(16, 16))
    plain, more = (bytes_of_one(learner(method), toy(), of_toy) for method in ("van", "gpm"))
    (state,) = (engine_of(learner("gpm"), toy(), MKL, of_toy).state(torch.zeros(1, plain // 4)),)
    assert more - plain == 4 * (10 * 16 + 2 * 17 * 32) == sum(array.nbytes for array in state.values())


def test_lists_of_pixels_are_counted():
    """Six bytes a pixel that is not zero, beside all that can be trained on and in the place of the tests."""
    one = learner("agem", memory=4, memory_batch=8)
    plain, lazy, sparse = (bytes_of_seed(one, toy(), NumericPath.parse(f"cpu-float32-mkl{more}")) for more in WAYS)
    tests = len(toy().tasks) * sum(part.nbytes for part in toy().test(0, toy().tasks[0]))
    trained = (4 * toy().classes * (len(toy().tasks) - 1) + toy().size(0, toy().tasks[0])) * (toy().room(1).nbytes + 8)
    lists = 6 * toy().density
    assert lazy == sparse == pytest.approx(plain + trained * lists + tests * (lists - 1), abs=2)
    grows = learner("prognn")  # in tensors, whatever the path
    assert len({bytes_of_seed(grows, toy(), NumericPath.parse(f"cpu-float32-mkl{more}")) for more in WAYS}) == 1


def test_the_estimate_of_a_step_is_near_what_was_measured():
    """256 images of CIFAR took 613 MiB in a step of the reduced network; 16 of 224 pixels, in the other, 556 MiB."""
    cifar = SplitStream(made_images(classes=8, train=100, size=32), range(1, 4), 2)
    agem = learner("agem", memory=100, memory_batch=256)
    assert 500 < bytes_at_work(agem, cifar, Architecture("reduced_resnet18"), 1) / 2**20 < 800
    large = SplitStream(made_images(classes=8, train=2, test=1, size=224), range(1, 4), 2)
    assert 450 < bytes_at_work(learner("van", batch_size=16), large, Architecture("resnet18"), 1) / 2**20 < 750


def test_a_containers_limit_counts_without_what_its_files_take(tmp_path, monkeypatch):
    """Of 1,000 MB 900 are in use, 500 of them for files, which are given back when memory is needed."""
    million = 10**6
    (tmp_path / "memory.max").write_text(f"{1000 * million}\n")
    (tmp_path / "memory.current").write_text(f"{900 * million}\n")
    (tmp_path / "memory.stat").write_text(f"anon 1\ninactive_file {300 * million}\nactive_file {200 * million}\n")
    monkeypatch.setattr("trainers.operating_system.CGROUP", tmp_path)
    assert free_bytes(NumericPath()) == int(0.9 * 600 * million)
    (tmp_path / "memory.max").write_text("max\n")
    assert free_bytes(NumericPath()) > 600 * million  # no limit but the machine's


@pytest.mark.parametrize("method", METHODS)
def test_a_memory_larger_than_the_data_is_as_large_as_these(method):
    """No more is set aside, and none of the results is another one."""
    tasks = toy().tasks
    largest = learner(method, memory=toy().size(0, tasks[0]), memory_batch=None)
    beyond = learner(method, memory=10**9, memory_batch=10**9)
    needed, enough = (bytes_of(Cohort((one,)), toy(), SMALL, MKL) for one in (beyond, largest))
    assert needed == enough
    found, whole = (train([one], toy(), MKL) for one in (beyond, largest))
    assert rows_equal(found, 0, whole, 0)


@pytest.mark.parametrize(("change", "hidden"), [({"memory": 64}, 16), ({}, 256), ({"memory_batch": None}, 16)])
def test_the_error_names_what_a_learner_needs(change, hidden, monkeypatch):
    """Its memory with the schedule of the reference batches, and its layers: all that it takes is in the estimate."""

    def fails(*what):
        raise MemoryError

    small, large = (learner("soft_agem", **{"memory": 8, "memory_batch": 4} | some) for some in ({}, change))
    network = Architecture(hidden=(hidden, hidden))
    larger = bytes_of(Cohort((large,)), toy(), network, MKL)
    assert larger > bytes_of(Cohort((small,)), toy(), SMALL, MKL)
    monkeypatch.setattr(engine.CompiledEngine, "train", fails)
    monkeypatch.setattr("trainers.capacity.GIB", 1000)
    with pytest.raises(MemoryError, match=rf"one member needs about {larger / 1000:.1f} GiB, .* a smaller memory, "):
        train([large], toy(), MKL, network)


def test_free_memory_is_known_here():
    assert 2**20 < free_bytes(NumericPath()) < 2**50


class TestGpu:
    """What a GPU needs besides: none is there."""

    gpu, architecture = NumericPath("cuda"), Architecture("reduced_resnet18")
    images = SplitStream(made_images(classes=8, size=32), range(1, 4), 2)

    @pytest.mark.parametrize("method", ["agem", "ewc", "gem", "prognn"])
    def test_graphs_are_counted_where_there_are_some(self, method):
        """Copies of what a step changes, to compare with; the memory of a recorded step beside that of a plain one."""
        cohort = Cohort((learner(method, memory=2, memory_batch=5),))
        plain, on_gpu = (bytes_of(cohort, self.images, self.architecture, path) for path in (NumericPath(), self.gpu))
        one, work = (
            act(cohort.learners[0], self.images, self.architecture, *rest)
            for act, *rest in ((bytes_of_one,), (bytes_at_work, 1))
        )
        beside = 0 if method in ("gem", "prognn") else 2 * one + work
        assert on_gpu == plain + self.images.pixels.nbytes + beside

    def test_images_that_do_not_fit_are_told_as_such(self, monkeypatch):
        monkeypatch.setattr("trainers.footprint.GIB", 1000)
        needed = self.images.pixels.nbytes
        check_images(self.images, self.gpu, needed)
        check_images(self.images, NumericPath(), needed - 1)
        with pytest.raises(MemoryError, match=rf"the images need {needed / 1000:.1f} GiB of the GPU, .* image-size"):
            check_images(self.images, self.gpu, needed - 1)
        training = Training(self.images, self.architecture, self.gpu, bytes_free=needed - 1)
        with pytest.raises(MemoryError, match="the images need"):
            train_cohort(Cohort((learner("van"),)), training)

    def test_images_that_are_there_are_not_counted_again(self, monkeypatch):
        pixels = self.images.pixels
        monkeypatch.setattr("trainers.engines.feed._on_device", {(id(pixels), "cuda"): (pixels, None)})
        check_images(self.images, self.gpu, 0)
