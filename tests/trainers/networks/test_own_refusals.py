"""Networks of users that cannot be trained: each refused in one line, before anything is."""

import math
import re

import numpy as np
import pytest
import torch
from torch import nn

from tests.support.learners import engine_of, learner, train
from tests.support.made_images import made_images
from tests.support.own_networks import Deciding, normalised, perceptron
from tests.support.toy_streams import toy
from trainers import Architecture
from trainers.cohort import find_plugged, plug, unplug
from trainers.cost.flops import run_flop
from trainers.footprint import bytes_of_one
from trainers.networks import NetworkError, make_network
from trainers.networks.own.trial import own_network
from trainers.numeric_path import NumericPath
from trainers.plugins.calls import ForeignError
from trainers.plugins.source import Source
from trainers.pool import smallest_batch
from trainers.streams.images.split import SplitStream

IN_TURN = NumericPath(products="onednn")
PIXELS = 9
SMALL = {"lr": 0.03, "batch_size": 4, "memory": 2, "memory_batch": 5}


@pytest.fixture(autouse=True)
def nothing_plugged():
    yield
    unplug("my:net")


def own(factory, inputs=PIXELS, outputs=4):
    plug("my:net", factory)
    return own_network(find_plugged("my:net"), inputs, outputs)


class TestRefusals:
    """Each in one line that names the network."""

    def refused(self, factory, line, inputs=PIXELS, error=NetworkError):
        with pytest.raises(error, match=f"^network my:net: ?{line}") as raised:
            own(factory, inputs)
        assert "\n" not in str(raised.value)

    def test_no_module(self):
        self.refused(lambda *_: 3, r"its factory\(9, 4\) must return a torch.nn.Module, got int$")

    def test_a_factory_that_fails(self):
        def factory(inputs, outputs):
            raise KeyError("width")

        self.refused(factory, r"its factory\(9, 4\) failed with KeyError: 'width'", error=ForeignError)

    def test_the_line_of_code_is_told(self):
        plug("my:net", Deciding, Source({}, {__file__: "test_own.py"}))
        with pytest.raises(ForeignError, match=r"its factory\(9, 4\) failed with TypeError"):
            own_network(find_plugged("my:net"), PIXELS, 4)

        def factory(inputs, outputs):
            raise RuntimeError("no")

        plug("my:net", factory, Source({}, {__file__: "test_own.py"}))
        with pytest.raises(ForeignError, match=r'no, at test_own.py:\d+: raise RuntimeError\("no"\)$'):
            own_network(find_plugged("my:net"), PIXELS, 4)

    def test_a_forward_pass_that_fails(self):
        plug("my:net", lambda inputs, outputs: nn.Linear(7, outputs))
        with pytest.raises(ForeignError, match=r"^network my:net failed on a batch \[4, 9\] with RuntimeError: .*mat1"):
            own_network(find_plugged("my:net"), PIXELS, 4)

    def test_a_module_that_ends_the_program(self):
        class Ends(nn.Linear):
            def forward(self, x):
                raise SystemExit(3)

        plug("my:net", lambda inputs, outputs: Ends(inputs, outputs))
        with pytest.raises(ForeignError, match="with SystemExit: 3"):
            own_network(find_plugged("my:net"), PIXELS, 4)

    def test_no_parameters(self):
        plug("my:net", lambda *_: nn.Flatten())
        with pytest.raises(NetworkError, match=r"^network my:net has no parameters to train$"):
            own_network(find_plugged("my:net"), PIXELS, 4)

    def test_tied_parameters(self):
        def factory(inputs, outputs):
            module = nn.Sequential(nn.Linear(inputs, inputs), nn.Linear(inputs, inputs), nn.Linear(inputs, outputs))
            module[1].weight = module[0].weight
            return module

        self.refused(factory, "parameter '1.weight' shares its memory with '0.weight'; every parameter needs its own$")

    def test_frozen_parameters(self):
        self.refused(
            lambda inputs, outputs: nn.Linear(inputs, outputs).requires_grad_(False),
            "parameter 'weight' does not require a gradient; register what is not trained as a buffer$",
        )

    @pytest.mark.parametrize("kind", [torch.float64, torch.float16, torch.complex64])
    def test_other_types(self, kind):
        name = str(kind).removeprefix("torch.")
        self.refused(
            lambda inputs, outputs: nn.Linear(inputs, outputs, dtype=kind),
            f"parameter 'weight' must be float32 on the CPU, from where it is moved; got {name} on cpu$",
        )

    def test_lazy_layers(self):
        self.refused(lambda _, outputs: nn.LazyLinear(outputs), "parameter 'weight' has no shape yet; lazy layers are")

    def test_empty_parameters(self):
        def factory(inputs, outputs):
            module = nn.Linear(inputs, outputs)
            module.none = nn.Parameter(torch.zeros(0, 3))
            return module

        self.refused(factory, r"parameter 'none' must have values, got shape \[0, 3\]$")

    @pytest.mark.parametrize(
        ("forward", "got"),
        [
            (lambda self, x: (nn.Linear.forward(self, x),), "tuple"),
            (lambda self, x: nn.Linear.forward(self, x)[:, :3], "float32 [4, 3]"),
            (lambda self, x: nn.Linear.forward(self, x)[0], "float32 [4]"),
            (lambda self, x: nn.Linear.forward(self, x).double(), "float64 [4, 4]"),
        ],
    )
    def test_no_logits(self, forward, got):
        kind = type("Kind", (nn.Linear,), {"forward": forward})
        plug("my:net", lambda inputs, outputs: kind(inputs, outputs))
        expected = "network my:net must return logits float32 [4, 4] for a batch [4, 9], got " + got
        with pytest.raises(NetworkError, match=f"^{re.escape(expected)}$"):
            own_network(find_plugged("my:net"), PIXELS, 4)

    @pytest.mark.parametrize("layer", [nn.Dropout(0.3), nn.Dropout(1e-9), nn.AlphaDropout(0.5), nn.RReLU()])
    def test_what_draws_in_training(self, layer):
        self.refused_randomness(lambda inputs, outputs: nn.Sequential(nn.Linear(inputs, outputs), layer), "training")

    def test_what_draws_in_inference(self):
        class Noise(nn.Linear):
            def forward(self, x):
                found = super().forward(x)
                return found if self.training else found + 0.1 * torch.randn_like(found)

        self.refused_randomness(Noise, "inference")

    def test_what_draws_by_numpy(self):
        class Noise(nn.Linear):
            def forward(self, x):
                return super().forward(x) * np.random.rand()

        self.refused_randomness(Noise, "training")

    def test_what_has_a_state_of_its_own(self):
        class Counts(nn.Linear):
            passes = 0

            def forward(self, x):
                self.passes += 1
                return super().forward(x) * self.passes

        self.refused_randomness(Counts, "training")

    def refused_randomness(self, factory, mode):
        line = f"gives another output for the same batch in {mode}; leave out dropout, noise and any state"
        plug("my:net", factory)
        with pytest.raises(NetworkError, match=f"^network my:net {line} beside its buffers$"):
            own_network(find_plugged("my:net"), PIXELS, 4)

    @pytest.mark.parametrize(("factor", "what"), [(math.nan, "NaN"), (math.inf, "infinite outputs")])
    def test_outputs_that_are_no_numbers(self, factor, what):
        class Scaled(nn.Linear):
            def forward(self, x):
                return super().forward(x).abs() * factor

        plug("my:net", Scaled)
        with pytest.raises(NetworkError, match=f"^network my:net gives {what} for images of this stream in training$"):
            own_network(find_plugged("my:net"), PIXELS, 4)

    def test_dropout_of_nothing_is_none(self):
        assert own(lambda inputs, outputs: nn.Sequential(nn.Linear(inputs, outputs), nn.Dropout(0.0))).together

    def test_the_same_module_again(self):
        module = perceptron(PIXELS, 4)
        self.refused(lambda *_: module, "its factory must make a new module at every call, got the same parameters")

    def test_another_module_every_time(self):
        widths = iter(range(3, 99))
        self.refused(
            lambda inputs, outputs: nn.Sequential(nn.Linear(inputs, n := next(widths)), nn.Linear(n, outputs)),
            "its factory makes other parameters or buffers at every call$",
        )

    def test_buffers_at_random(self):
        def factory(inputs, outputs):
            module = nn.Linear(inputs, outputs)
            module.register_buffer("noise", torch.randn(3))
            return module

        self.refused(factory, "buffer 'noise' starts at random; parameters alone may$")

    def test_integers_that_move(self):
        class Counts(nn.Linear):
            def __init__(self, *sizes):
                super().__init__(*sizes)
                self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

            def forward(self, x):
                self.seen += len(x)
                return super().forward(x)

        self.refused(Counts, "training changes buffer 'seen', which must be float32, got int64$")

    def test_batch_normalisation_that_counts(self):
        self.refused(
            lambda inputs, outputs: nn.Sequential(nn.BatchNorm1d(inputs, momentum=None), nn.Linear(inputs, outputs)),
            "0 has momentum None; batch normalisation needs a number$",
        )
        self.refused(lambda inputs, outputs: nn.BatchNorm1d(4, momentum=None), "it has momentum None; batch", inputs=4)

    def test_buffers_that_move_in_tests(self):
        class Moves(nn.Linear):
            def __init__(self, *sizes):
                super().__init__(*sizes)
                self.register_buffer("mean", torch.zeros(()))

            def forward(self, x):
                self.mean += 1
                return super().forward(x)

        self.refused(Moves, "buffer 'mean' changes in inference mode; training alone may move it$")

    def test_parameters_that_a_pass_changes(self):
        class Clips(nn.Linear):
            def forward(self, x):
                self.weight.data.clamp_(-0.01, 0.01)
                return super().forward(x)

        self.refused(Clips, "a forward pass changes parameter 'weight'$")

    def test_tests_that_depend_on_their_batch(self):
        self.refused(
            lambda inputs, outputs: nn.Sequential(
                nn.BatchNorm1d(inputs, track_running_stats=False), nn.Linear(inputs, outputs)
            ),
            "in inference an example's output depends on others of its batch; batch normalisation must track ",
        )

    def test_outputs_without_parameters(self):
        class Detached(nn.Linear):
            def forward(self, x):
                return super().forward(x).detach()

        plug("my:net", Detached)
        with pytest.raises(NetworkError, match=r"^network my:net: its outputs do not depend on its parameters$"):
            own_network(find_plugged("my:net"), PIXELS, 4)

    def test_joint_embeddings(self):
        plug("my:net", normalised)
        images = made_images(classes=8, train=5, test=3, size=12, attributes=4)
        stream = SplitStream(images, range(1, 4), 2, embedding=True)
        with pytest.raises(
            NetworkError, match=r"^network my:net: a joint embedding of attributes is for reduced_resnet"
        ):
            make_network(Architecture("my:net"), stream)

    def test_pretrained_weights(self):
        plug("my:net", normalised)
        with pytest.raises(ValueError, match="pretrained weights are for network resnet18, got network 'my:net'"):
            Architecture("my:net", pretrained="imagenet")

    def test_networks_that_grow(self):
        plug("my:net", perceptron)
        network, one = Architecture("my:net"), learner("prognn")
        line = "PROGNN grows networks of mlp, reduced_resnet18, resnet18 alone, got network 'my:net'$"
        for refusing in (
            lambda: train([one], toy(), IN_TURN, network),
            lambda: engine_of(one, toy(), IN_TURN, network),
            lambda: run_flop(one, toy(), network, True),
            lambda: bytes_of_one(one, toy(), network),
        ):
            with pytest.raises(ValueError, match=line):
                refusing()


class TestSmallBatches:
    """Of one example batch normalisation has no variance: that is said before anything is trained."""

    def factory(self, inputs, outputs):
        return nn.Sequential(nn.Linear(inputs, 8), nn.BatchNorm1d(8), nn.Linear(8, outputs))

    @pytest.mark.parametrize("changes", [{"batch_size": 1}, {"batch_size": 3}, {"memory_batch": 1}])
    def test_they_are_refused(self, changes):
        plug("my:net", self.factory)
        one = learner("agem", **SMALL | changes)
        line = "network my:net takes batches of 2 or more examples in training, .* has 1; choose another batch-size"
        with pytest.raises(ValueError, match=line):
            engine_of(one, toy(examples=22), IN_TURN, Architecture("my:net"))

    def test_others_are_trained(self):
        plug("my:net", self.factory)
        one = learner("agem", **SMALL)
        assert train([one], toy(examples=22), IN_TURN, Architecture("my:net")).diverged_task[0] == -1

    @pytest.mark.parametrize(
        ("method", "changes", "together", "expected"),
        [
            ("van", {"batch_size": 4}, False, 2),
            ("van", {"batch_size": 50}, False, 22),
            ("agem", {"memory_batch": 1}, False, 1),
            ("agem", {"memory_batch": 1}, True, 2),
            ("agem", {"memory": 0}, False, 2),
            ("agem", {"memory_batch": None}, False, 2),
            ("gem", {"batch_size": 11, "memory": 1}, False, 4),
            ("er", {"batch_size": 11, "memory_batch": 3}, False, 3),
            ("er", {"batch_size": 1, "memory_batch": 3}, True, 1),
        ],
    )
    def test_the_smallest_is_found(self, method, changes, together, expected):
        one, stream = learner(method, **SMALL | changes), toy(examples=22)
        assert smallest_batch(stream, 0, one.declared, one.hyperparameters, together) == expected
