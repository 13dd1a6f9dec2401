"""The self-check on the CPU, as a device with emulated graphs: it passes as things are, and finds planted faults."""

import pytest
import torch

from tests.support.emulated_graphs import emulated, stands_still
from tests.support.learners import few
from tests.support.made_images import made_images
from tests.support.numeric_paths import TWIN
from tests.support.toy_streams import toy
from trainers import Architecture
from trainers.engines import make_engine
from trainers.engines.batched import engine, graphs
from trainers.engines.self_check import SelfCheckFailed, check, make_noise_tasks
from trainers.methods import METHODS, Losses, Subspaces
from trainers.methods.inner import sum_in_float64
from trainers.streams.images.split import SplitStream

SMALL = Architecture(hidden=(32, 32))
IN_BATCHES = [name for name in METHODS if name != "prognn"]
RECORDED = [name for name in IN_BATCHES if name != "gem"]
WITH_REFERENCE = [name for name, one in METHODS.items() if one.memory and not isinstance(one.rule, Losses)]


@pytest.fixture(autouse=True)
def no_graph_was_refused(monkeypatch):
    monkeypatch.setattr(graphs, "_refused", [])


def checked(method, engine_of=None):
    return check(few(method), toy(), SMALL, TWIN, engine_of or emulated())


def with_fault(plant):
    """Engines of which one part is not as it should be; those in float64, which are compared with, are."""

    def make(*given):
        engine = emulated()(*given)
        plant(engine)
        return engine

    return make


class Rounding:
    """A network whose gradients have 8 bits."""

    def __init__(self, net):
        self._net = net

    def __getattr__(self, name):
        return getattr(self._net, name)

    def gradients(self, *given):
        loss = self._net.gradients(*given)
        for gradient in given[-1]:
            gradient.copy_(gradient.bfloat16())
        return loss

    def pull_back(self, *given):
        self._net.pull_back(*given)
        given[-1].copy_(given[-1].bfloat16())


def rounded(made):
    made._net = Rounding(made._net)


def with_references(change):
    def plant(engine):
        update = engine._update

        def changed(learners, segment, g, references, found):
            return update(learners, segment, *(change(g, references) if references else (g, references)), found)

        engine._update = changed

    return plant


def exchanged(g, references):
    return references[0], [g, *references[1:]]


def lost(g, references):
    """One entry in fifty is zero."""
    for one in references:
        one[:, ::50] = 0
    return g, references


@pytest.mark.few(1)
@pytest.mark.parametrize("method", METHODS)
def test_it_passes_as_things_are(method):
    found = checked(method)
    assert found.graphs is (True if method in RECORDED else None)
    assert 0 < found.plain < 2e-5 and 0 <= found.projected < 2e-5
    projecting = METHODS[method].memory is not None and not isinstance(METHODS[method].rule, Losses)
    assert (found.projected > 0) == (projecting and method not in ("er", "mega1", "mega2"))


@pytest.mark.few(6)
@pytest.mark.parametrize("method", IN_BATCHES)
def test_gradients_of_8_bits_fail(method):
    with pytest.raises(SelfCheckFailed, match="move the parameters otherwise than float64 does"):
        checked(method, with_fault(rounded))


@pytest.mark.slow
def test_outputs_of_8_bits_fail_where_columns_grow():
    def plant(engine):
        affine = engine._affine

        def rough(below, weight, bias, out):
            affine(below, weight, bias, out)
            out.copy_(out.bfloat16())

        engine._affine = rough

    with pytest.raises(SelfCheckFailed):
        checked("prognn", with_fault(plant))


@pytest.mark.few(4)
@pytest.mark.parametrize("fault", [exchanged, lost])
@pytest.mark.parametrize("method", WITH_REFERENCE)
def test_wrong_references_fail(method, fault):
    with pytest.raises(SelfCheckFailed):
        checked(method, with_fault(with_references(fault)))


def test_stored_logits_that_are_lost_fail(monkeypatch):
    """One in four is 0 on the device; in float64, which begins each step with what is stored, none is."""
    stored = engine._Segment.stored_logits

    def some(segment, logits, *given):
        found = stored(segment, logits, *given)
        if logits.dtype == torch.float32:
            found[:, ::4] = 0
        return found

    monkeypatch.setattr(engine._Segment, "stored_logits", some)
    with pytest.raises(SelfCheckFailed):
        checked("der")


def test_spans_that_are_lost_fail(monkeypatch):
    """One direction in four is not projected on the device; in float64 all are."""
    project = Subspaces.project

    def some(rule, state, gradients):
        if gradients[0].dtype == torch.float32:
            state = {name: array.clone() for name, array in state.items()}
            for array in state.values():
                array[:, ::4] = 0
        project(rule, state, gradients)

    monkeypatch.setattr(Subspaces, "project", some)
    with pytest.raises(SelfCheckFailed):
        checked("gpm")


@pytest.mark.few(6)
@pytest.mark.parametrize("method", RECORDED)
def test_a_replay_that_stands_still_is_no_failure_of_the_code(method):
    found = checked(method, emulated(stands_still))
    assert found.graphs is False and str(found).startswith("nographs-")


def test_values_that_are_not_finite_fail():
    with pytest.raises(SelfCheckFailed, match="by inf of the step"):
        checked(
            "van",
            with_fault(lambda engine: setattr(engine, "_update", lambda *given: given[0].params.fill_(torch.nan))),
        )


class TestImages:
    architecture = Architecture("reduced_resnet18")

    @pytest.fixture(autouse=True)
    def inner_products_of_a_gpu(self, monkeypatch):
        """A CPU's are the largest error of a step, where there are many parameters."""
        monkeypatch.setattr(engine, "inner", sum_in_float64)

    def stream(self, attributes=None):
        made = made_images(train=8, test=4, size=16, attributes=attributes)
        return SplitStream(made, range(2), 2, embedding=attributes is not None)

    @pytest.mark.parametrize(
        ("method", "attributes"), [pytest.param("soft_agem", None, marks=pytest.mark.slow), ("er", 7)]
    )
    def test_it_passes_as_things_are(self, method, attributes):
        found = check(few(method), self.stream(attributes), self.architecture, TWIN, emulated())
        assert found.graphs is True and 0 < max(found.plain, found.projected) < 2e-4

    @pytest.mark.slow
    def test_exchanged_gradients_fail(self):
        with pytest.raises(SelfCheckFailed):
            engine_of = with_fault(with_references(exchanged))
            check(few("soft_agem"), self.stream(), self.architecture, TWIN, engine_of)

    @pytest.mark.slow
    def test_networks_that_grow(self):
        found = check(few("prognn"), self.stream(), self.architecture, TWIN, make_engine)
        assert found.graphs is None and 0 < found.plain < 2e-4


@pytest.mark.parametrize("method", ["soft_agem", "gem"])
def test_it_passes_where_pixels_have_few_levels(method):
    """As the digits, of 17: inputs beyond 1 would drive the network to where float32 has no gradient left."""
    assert check(few(method), toy(largest=16.0), SMALL, TWIN).projected < 2e-5


def test_its_tasks_have_inputs_and_head_of_the_study():
    pixels = make_noise_tasks(toy(), SMALL)
    assert (pixels.inputs, pixels.outputs) == (toy().inputs, toy().outputs)
    images = TestImages().stream(7)
    small = make_noise_tasks(images, Architecture("resnet18"))
    assert small.pixels.shape[1:] == (64, 64, 3) and small.attributes is not None
    assert make_noise_tasks(TestImages().stream(), Architecture("reduced_resnet18")).attributes is None
