"""torch's switches of float32 arithmetic: whatever a module has set, an engine computes as its path is named."""

import pytest
import torch

from tests.support.learners import engine_of, learner, untrained
from tests.support.toy_streams import toy
from trainers.engines import pixel_choice, precision
from trainers.engines.precision import PrecisionError, set_precision
from trainers.numeric_path import NumericPath

PATHS = {
    "compiled": ("van", NumericPath(products="mkl")),
    "tensors": ("van", NumericPath()),
    "columns": ("prognn", NumericPath()),
}


@pytest.fixture(autouse=True)
def switches_are_put_back():
    backends = torch.backends
    yield
    backends.fp32_precision = "none"
    set_precision(NumericPath())


def spoil():
    """What a user's module may do, by the new switches and by the old ones."""
    torch.backends.fp32_precision = "tf32"
    torch.backends.cudnn.conv.fp32_precision = torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.set_float32_matmul_precision("medium")
    assert torch.backends.mkldnn.matmul.fp32_precision == "bf16"
    assert torch.backends.cudnn.conv.fp32_precision == "tf32"


def seen():
    backends = torch.backends
    parts = (
        backends.cuda.matmul,
        backends.cudnn.conv,
        backends.cudnn.rnn,
        backends.mkldnn.matmul,
        backends.mkldnn.conv,
    )
    return [part.fp32_precision for part in parts]


@pytest.mark.parametrize("kind", PATHS)
def test_before_every_stretch_of_training_and_testing(kind):
    method, path = PATHS[kind]
    one = learner(method)
    engine = engine_of(one, toy(range(2)), path)
    with torch.no_grad():
        learners = untrained(engine, [one])
        engine.load_task(0)
        for work in (lambda: engine.train(learners, 0, 1), lambda: engine.accuracy(learners, 0)):
            spoil()
            work()
            assert seen() == ["ieee"] * 5
            assert torch.get_float32_matmul_precision() == "highest"


def test_tf32_is_the_gpus_alone():
    spoil()
    set_precision(NumericPath("cuda", "tf32"))
    assert seen() == ["tf32", "tf32", "tf32", "ieee", "ieee"]
    set_precision(NumericPath("cuda", "float32"))
    assert seen() == ["ieee"] * 5
    # The older switches agree: torch refuses to multiply where they do not.
    assert not torch.backends.cuda.matmul.allow_tf32 and not torch.backends.cudnn.allow_tf32


def test_a_switch_that_does_not_hold_is_refused(monkeypatch):
    class Stuck:
        fp32_precision = property(lambda self: "bf16", lambda self, value: None)

    monkeypatch.setattr(precision, "_switches", lambda path: [("torch.backends.mkldnn.matmul", Stuck(), "ieee")])
    with pytest.raises(
        PrecisionError, match=r"cpu-float32-torch asks for 'ieee' in torch.backends.mkldnn.matmul.*'bf16'"
    ):
        set_precision(NumericPath())


def test_paths_are_measured_in_full_precision():
    spoil()
    pixel_choice.seconds({"nothing": lambda: None}, turns=1)
    assert seen() == ["ieee"] * 5
