"""Networks of users: what is found out before they are trained, and what is refused, each in one line."""

import random
import threading

import numpy as np
import pytest
import torch
from torch import nn

from epsearch.testing.toy import suit_stream
from tests.support.learners import engine_of, learner, train
from tests.support.made_images import made_images
from tests.support.own_networks import Recurrent, deciding, normalised, perceptron, untrained_module
from tests.support.torch_resnet import TorchResNet
from tests.support.toy_streams import toy
from trainers import Architecture, Cohort
from trainers.cohort import find_plugged, plug, unplug
from trainers.cost.flops import later_steps, run_flop
from trainers.cost.network_flops import work_of
from trainers.engines import fastest_for, make_engine, way_of
from trainers.footprint import bytes_at_work, bytes_of, bytes_of_one
from trainers.methods import METHODS
from trainers.networks import MLP, make_network
from trainers.networks.base import Batch
from trainers.networks.heads import Linear
from trainers.networks.own import making
from trainers.networks.own import network as own_module
from trainers.networks.own.trial import own_network
from trainers.networks.plain import state_dict
from trainers.networks.resnet import ResNet
from trainers.numeric_path import NumericPath
from trainers.plugins.calls import ForeignError
from trainers.plugins.source import Source
from trainers.population import Training, train_rest
from trainers.schedule import generator
from trainers.streams.images.split import SplitStream

IN_TURN, TOGETHER = NumericPath(products="onednn"), NumericPath()
PIXELS, IMAGES = 9, (3, 12, 12)
SMALL = {"epsilon": 0.3, "lr": 0.03, "batch_size": 4, "memory": 2, "memory_batch": 5}


@pytest.fixture(autouse=True)
def nothing_plugged():
    yield
    unplug("my:net")


def own(factory, inputs=PIXELS, outputs=4):
    plug("my:net", factory)
    return own_network(find_plugged("my:net"), inputs, outputs)


def split(**options):
    return SplitStream(made_images(classes=8, train=5, test=3, size=12), range(1, 4), 2, **options)


class TestNames:
    def test_a_plugged_name_is_a_network_until_it_is_not(self):
        plug("my:net", perceptron)
        assert Architecture("my:net").own and not Architecture("my:net").residual
        unplug("my:net")
        unplug("my:net")
        with pytest.raises(ValueError, match=r"^network must be one of mlp, .*, resnet18, got 'my:net'$"):
            Architecture("my:net")

    def test_the_nearest_name_is_told(self):
        plug("my:net", perceptron)
        with pytest.raises(ValueError, match=r"got 'my:nte'; did you mean 'my:net'\?$"):
            Architecture("my:nte")

    def test_names_of_ours_stay_ours(self):
        with pytest.raises(ValueError, match="network 'resnet18' is one of the package's own"):
            plug("resnet18", perceptron)

    def test_a_new_factory_replaces_the_old_one(self):
        first = own(lambda inputs, outputs: nn.Linear(inputs, outputs))
        second = own(perceptron)
        assert int(first.real.sum()) == 40 and int(second.real.sum()) == 24 * 10 + 16 * 25 + 4 * 17

    def test_what_is_not_plugged_in_this_process_is_said(self):
        """As in a worker that got an Architecture by pickle."""
        plug("my:net", perceptron)
        architecture = Architecture("my:net")
        unplug("my:net")
        with pytest.raises(ValueError, match="got 'my:net'"):
            make_network(architecture, toy())


class TestStart:
    """Random starts follow from the seed, and from nothing else."""

    def rows(self, net):
        return [net.init(generator(seed, "init")) for seed in (0, 0, 1)]

    @pytest.mark.parametrize("draw", [lambda n: torch.randn(n), lambda n: torch.tensor(np.random.rand(n)).float()])
    def test_they_depend_on_the_seed_alone(self, draw):
        def factory(inputs, outputs):
            module = nn.Linear(inputs, outputs)
            module.scale = nn.Parameter(draw(3) * random.random())
            return module

        net = own(factory)
        first = self.rows(net)
        for change in (lambda: torch.manual_seed(5), lambda: np.random.seed(5), lambda: random.seed(5)):
            change()
        for one, other in zip(first, self.rows(net), strict=True):
            assert np.array_equal(one, other)
        assert np.array_equal(first[0], first[1])
        scale = {float(net.layout.views(torch.from_numpy(row)[None])["scale"].sum()) for row in first}
        assert len(scale) == 2

    def test_the_generators_are_left_as_they_were(self):
        before = making.generators()
        net = own(lambda inputs, outputs: [random.random(), np.random.rand(), perceptron(inputs, outputs)][2])
        self.rows(net)
        assert making.generators() == before

    def test_threads_do_not_mix_their_draws(self):
        net = own(perceptron)
        expected = {seed: net.init(generator(seed, "init")) for seed in range(4)}
        wrong = []

        def work(seed):
            for _ in range(20):
                if not np.array_equal(net.init(generator(seed, "init")), expected[seed]):
                    wrong.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert not wrong

    def test_it_is_made_as_users_make_it(self):
        """In inference mode and without gradients, as training may be, parameters are ordinary ones."""

        def factory(inputs, outputs):
            module = nn.Linear(inputs, outputs)
            (module.weight.sum() * 2).backward()
            module.weight.grad = None
            return module

        net = own(factory)
        with torch.inference_mode():
            row = net.init(generator(0, "init"))
        assert np.array_equal(row, net.init(generator(0, "init")))


def test_gradients_are_those_of_our_own_perceptron():
    """With the same parameters, in float64; a mini-batch and a reference batch, and the sensitivity."""
    net, ours = own(perceptron), MLP((PIXELS, 24, 16, 4))
    rows = torch.stack([torch.from_numpy(net.init(generator(seed, "init"))) for seed in range(3)]).double()
    same = torch.zeros(3, ours.row, dtype=torch.float64)
    carried = [*zip(("0", "2", "4"), ours.layers(same), ((9, 24), (24, 16), (16, 4)), strict=True)]

    def carry(views, layers, back):
        for name, (weight, bias), (k, n) in layers:
            for ours_, theirs in ((weight[:, :k, :n].mT, f"{name}.weight"), (bias[:, :n], f"{name}.bias")):
                views[theirs].copy_(ours_) if back else ours_.copy_(views[theirs])

    carry(net.layout.views(rows), carried, back=False)
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(1, 13, PIXELS, generator=rng, dtype=torch.float64)
    batch = Batch(x, torch.randint(0, 4, (1, 13), generator=rng), None)
    weight = torch.tensor([1 / 5] * 5 + [1 / 8] * 8, dtype=torch.float64)[None, :, None]
    everybody = x.expand(3, -1, -1), batch.labels.expand(3, -1)
    expected = [torch.zeros_like(same) for _ in range(3)]
    losses = ours.gradients(same, {}, Batch(*everybody, None), weight, (5, 8), expected[:2])
    ours.sensitivity(same, {}, everybody[0], None, expected[2])
    for some in (slice(3), slice(1)):  # together, and the module itself
        found = [torch.full_like(rows[some], 7) for _ in range(3)]
        taken = net.gradients(rows[some], {}, batch, weight, (5, 8), found[:2])
        net.sensitivity(rows[some], {}, x, None, found[2])
        assert torch.allclose(taken, losses[some], atol=1e-12)
        for one, other in zip(found, expected, strict=True):
            sorted_ = torch.zeros_like(one)
            layers = [(n, ours.layers(other[some])[i], s) for i, (n, _, s) in enumerate(carried)]
            carry(net.layout.views(sorted_), layers, back=True)
            assert torch.allclose(one, sorted_, atol=1e-12)
            assert not one[:, ~net.real].any()


@pytest.mark.parametrize(("factory", "inputs"), [(perceptron, PIXELS), (normalised, IMAGES)])
def test_members_with_different_examples_do_not_mix(factory, inputs):
    net = own(factory, inputs)
    params = torch.stack([torch.from_numpy(net.init(generator(seed, "init"))) for seed in range(2)])
    shape = (2, 6, inputs) if isinstance(inputs, int) else (2, 6, *inputs[1:], inputs[0])
    x, labels = torch.rand(shape), torch.randint(4, (2, 6))
    kept, into, weight = net.statistics(params), torch.empty_like(params), torch.full((2, 6, 1), 1 / 6)
    net.gradients(params, kept, Batch(x, labels, None), weight, (6,), [into])
    for row in (slice(0, 1), slice(1, 2)):
        fresh, alone = net.statistics(params[row]), torch.empty_like(params[row])
        net.gradients(params[row], fresh, Batch(x[row], labels[row], None), weight[row], (6,), [alone])
        assert torch.allclose(into[row], alone, atol=1e-5)
        for name, moved in fresh.items():
            assert torch.allclose(kept[name][row], moved, atol=1e-6)


class Averages(nn.Module):
    """Puts another buffer in the place of its own, instead of changing it."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.last = nn.Linear(inputs, outputs)
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("fixed", torch.arange(float(inputs)))

    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        return self.last(x - self.mean) + 0 * self.fixed.sum()


class Listed(nn.Module):
    """Reads its parameters from a list, where torch.func cannot put those of members."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs))
        self.all = [self.weight]

    def forward(self, x):
        return x @ self.all[0]


@pytest.mark.parametrize(
    ("factory", "inputs", "apart", "normalises", "least", "moving"),
    [
        (perceptron, PIXELS, "", False, 1, []),
        (normalised, IMAGES, "", True, 1, ["1.running_mean", "1.running_var", "4.running_mean", "4.running_var"]),
        (deciding, PIXELS, "vmap: It looks like you're calling .item() on a Tensor", False, 1, []),
        (
            lambda inputs, outputs: Recurrent(outputs),
            PIXELS,
            "Batching rule not implemented for aten::gru",
            False,
            1,
            [],
        ),
        (Listed, PIXELS, "its losses, gradients, sensitivities, outputs would be others", False, 1, []),
        (Averages, PIXELS, "", True, 1, ["mean"]),
        (
            lambda inputs, outputs: nn.Sequential(nn.Linear(inputs, 8), nn.BatchNorm1d(8), nn.Linear(8, outputs)),
            PIXELS,
            "",
            True,
            2,
            ["1.running_mean", "1.running_var"],
        ),
    ],
    ids=["plain", "normalised", "deciding", "recurrent", "listed", "averages", "two at least"],
)
def test_what_is_found_out(factory, inputs, apart, normalises, least, moving):
    net = own(factory, inputs)
    facts = net.facts
    assert facts.unbatchable.startswith(apart) and bool(facts.unbatchable) == bool(apart) == (not net.together)
    assert "\n" not in facts.unbatchable
    assert (net.normalises, net.least) == (normalises, least)
    assert [name for name, _ in facts.moving.shapes] == moving


def test_what_torch_func_does_one_by_one_itself_is_left_to_members_in_turn(recwarn):
    """It would warn of it at every step; the warning is not passed on, and seen every time."""

    class Bounded(nn.Linear):
        def forward(self, x):
            return torch.renorm(super().forward(x), 2, 0, 0.5)

    for _ in range(2):
        assert own(Bounded).facts.unbatchable.endswith("not yet implemented the batching rule for aten::renorm")
    assert not recwarn.list


def test_each_shape_is_found_out_once(monkeypatch):
    made = []
    plug("my:net", lambda inputs, outputs: made.append(1) or perceptron(inputs, outputs))
    for _ in range(3):
        make_network(Architecture("my:net"), toy())
    first = len(made)
    make_network(Architecture("my:net"), toy(pixels=10))
    assert first > 0 and len(made) == 2 * first


@pytest.mark.parametrize("path", [IN_TURN, TOGETHER], ids=str)
def test_buffers_that_are_replaced_move_as_those_that_change(path):
    stream, one = toy(examples=20), learner("agem", **SMALL)
    plug("my:net", Averages)
    result = train([one, learner("agem", **SMALL | {"lr": 0.01})], stream, path, Architecture("my:net"))
    averages = [row[:PIXELS] for row in result.statistics]
    assert np.allclose(averages[0], averages[1], atol=1e-6)  # of the same images
    assert 0.2 < averages[0].mean() < 0.9


class TestEstimates:
    def test_flop_are_those_that_are_known(self):
        stream, ours = toy(pixels=20, classes=16), Architecture(hidden=(24, 16))
        plug("my:net", perceptron)
        for method in ("van", "agem", "mas", "gem"):
            one = learner(method)
            found, known = (run_flop(one, stream, what, True) for what in (Architecture("my:net"), ours))
            assert found == known
            assert later_steps(one, stream, Architecture("my:net"), True) == later_steps(one, stream, ours, True)

    @pytest.mark.slow
    def test_flop_of_convolutions(self):
        net = own(lambda inputs, outputs: TorchResNet((4, 6, 8, 10), False, outputs), (3, 16, 16), 6)
        known = work_of(ResNet((4, 6, 8, 10), False, Linear(6, random_bias=True)), 16)
        assert work_of(net) == pytest.approx(known, rel=1e-6)

    def test_what_torch_cannot_count_is_not_free(self):
        forward, backward, *_ = own(lambda inputs, outputs: Recurrent(outputs)).facts.flop
        assert forward > 0 and backward > 0

    @pytest.mark.slow
    def test_memory_is_near_what_was_measured(self):
        """256 images of 32 pixels took 557 MiB in a step of this network of torch's modules."""
        images = SplitStream(made_images(classes=8, train=100, size=32), range(1, 4), 2)
        plug("my:net", lambda inputs, outputs: TorchResNet((20, 40, 80, 160), False, outputs))
        network, agem = Architecture("my:net"), learner("agem", memory=100, memory_batch=256)
        assert 0.8 * 557 < bytes_at_work(agem, images, network, 1) / 2**20 < 1.3 * 557
        # Ours was measured, too: the same network.
        ours = bytes_of_one(agem, images, Architecture("reduced_resnet18"))
        assert bytes_of_one(agem, images, network) == pytest.approx(ours, rel=0.01)

    @pytest.mark.parametrize(("factory", "grows"), [(normalised, True), (deciding, False)])
    def test_a_cohort_takes_the_activations_of_those_at_work(self, factory, grows):
        plug("my:net", factory)
        network, learners = Architecture("my:net"), [learner("agem", seed, **SMALL) for seed in range(3)]
        alone, many = (Cohort(tuple(learners[:count])) for count in (1, 3))
        one = bytes_of_one(learners[0], split(), network)
        for path, more in ((IN_TURN, False), (TOGETHER, grows)):
            between = bytes_of(many, split(), network, path) - bytes_of(alone, split(), network, path)
            assert between == 2 * one if not more else between > 2 * one

    @pytest.mark.slow
    def test_cohorts_are_cut_in_halves(self, monkeypatch):
        """Never more than two members' passes fit; what torch raises of that is no fault of the module's."""
        plug("my:net", perceptron)
        learners = [learner("soft_agem", **SMALL | {"epsilon": k / 10}) for k in range(5)]
        network, sizes, original = Architecture("my:net"), set(), own_module.vmap
        whole = train(learners, toy(), TOGETHER, network)

        def limited(function, in_dims):
            def run(leaves, moving, x):
                if len(leaves["0.bias"]) > 2:
                    raise RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes.")
                sizes.add(len(leaves["0.bias"]))
                return original(function, in_dims)(leaves, moving, x)

            return run

        monkeypatch.setattr(own_module, "vmap", limited)
        found = train(learners, toy(), TOGETHER, network)
        assert found.note.endswith("which do not fit: they are trained in halves") and sizes == {2}
        assert np.allclose(found.accuracies, whole.accuracies, atol=0.051, equal_nan=True)


class TestEngine:
    def test_the_path_is_the_one_that_keeps_members_the_same(self):
        plug("my:net", perceptron)
        assert fastest_for(toy(), Architecture("my:net")).one_by_one

    def test_the_way_is_told(self):
        plug("my:net", perceptron)
        network = Architecture("my:net")
        assert way_of(network, toy(), TOGETHER) == "members together, batched by torch.func"
        assert way_of(network, toy(), NumericPath("cuda")) == "members together, batched by torch.func"
        assert way_of(network, toy(), IN_TURN).startswith("members in turn, so that each is the same in any cohort")
        plug("my:net", deciding)
        for path in (IN_TURN, TOGETHER):
            assert way_of(network, toy(), path).startswith("members in turn, as torch.func cannot batch them: vmap: ")
        assert way_of(Architecture(), toy(), IN_TURN) == ""

    def test_nothing_is_told_where_nothing_is_other_than_asked(self, told):
        for factory, path in ((perceptron, TOGETHER), (perceptron, IN_TURN), (deciding, IN_TURN)):
            plug("my:net", factory)
            engine_of(learner("van"), toy(), path, Architecture("my:net"))
        assert not told
        engine_of(learner("van"), toy(), TOGETHER, Architecture("my:net"))
        assert len(told) == 1

    def test_members_that_cannot_be_batched_take_turns(self):
        for factory, turns in ((perceptron, 1), (deciding, 3)):
            plug("my:net", factory)
            engine = engine_of(learner("van"), toy(), TOGETHER, Architecture("my:net"))
            learners = type("Some", (), {"params": torch.zeros(3, 5)})
            assert len(engine._turns(learners)) == turns and not engine.recordable

    @pytest.mark.slow
    def test_seeds_are_trained_one_after_another(self, monkeypatch):
        """On a GPU too, where our perceptron's are trained together: as if this CPU were one."""
        monkeypatch.setattr(NumericPath, "one_seed_at_a_time", False)
        cohort, opened = Cohort(tuple(learner("van", seed, **SMALL) for seed in (0, 1))), []

        def opening(cohort, seeds, *rest):
            opened.append(seeds)
            return make_engine(cohort, seeds, *rest)

        plug("my:net", normalised)
        for network, stream, expected in (
            (Architecture(hidden=(8,)), toy(), [(0, 1)]),
            (Architecture("my:net"), split(), [(0,), (1,)]),
        ):
            opened.clear()
            training = Training(stream, network, TOGETHER)
            train_rest(cohort, training, training.checkpoints(cohort), {}, engine_of=opening)
            assert opened == expected

    @pytest.mark.slow
    def test_unused_parameters_are_none(self):
        """They stay where they are, together and in turn."""

        def factory(inputs, outputs):
            module = nn.Linear(inputs, outputs)
            module.spare = nn.Parameter(torch.ones(3))
            return module

        plug("my:net", factory)
        assert make_network(Architecture("my:net"), toy()).together
        for path in (IN_TURN, TOGETHER):
            result = train(
                [learner("agem", **SMALL | {"lr": r}) for r in (0.1, 0.2)], toy(), path, Architecture("my:net")
            )
            net = make_network(Architecture("my:net"), toy())
            for row in result.params:
                assert (net.layout.views(torch.from_numpy(row)[None])["spare"] == 1).all()

    @pytest.mark.parametrize("error", [RuntimeError("no three"), SystemExit("no three")])
    def test_an_error_in_training_is_the_modules(self, error):
        armed = []
        plug("my:net", lambda inputs, outputs: Three(inputs, outputs, armed, error))
        network, one = Architecture("my:net"), learner("van", batch_size=4)
        make_network(network, toy(examples=19))
        armed.append(True)
        with pytest.raises(
            ForeignError, match=rf"^network my:net failed on a batch \[3, 9\] with {type(error).__name__}: no three$"
        ):
            train([one], toy(examples=19), IN_TURN, network)


class Three(nn.Linear):
    """Fails on batches of three, once it is armed: after all that is tried."""

    def __init__(self, inputs, outputs, armed, error):
        super().__init__(inputs, outputs)
        self.armed, self.error = armed, error

    def forward(self, x):
        if self.armed and len(x) == 3:
            raise self.error
        return super().forward(x)


class TestKept:
    """First tasks, which learners of a machine share."""

    @pytest.mark.slow
    def test_another_source_is_another_network(self, tmp_path):
        plug("my:net", perceptron)
        learners, network = [learner("agem", **SMALL)], Architecture("my:net")
        for number, content in enumerate(("01", "23", "01"), start=1):
            plug("my:net", perceptron, Source({"my.py": content}))
            train(learners, toy(), IN_TURN, network, folder=tmp_path)
            assert len(list(tmp_path.iterdir())) == min(number, 2)


class TestStateDict:
    def trained(self, factory, stream, method="agem"):
        plug("my:net", factory)
        network = Architecture("my:net")
        result = train([learner(method, **SMALL)], stream, IN_TURN, network)
        params = torch.from_numpy(result.params[0])
        averages = None if result.statistics[0] is None else torch.from_numpy(result.statistics[0])
        return network, params, averages

    @pytest.mark.parametrize(("factory", "kind"), [(perceptron, toy), (normalised, split), (Averages, toy)])
    def test_it_loads_into_the_users_module(self, factory, kind):
        stream = kind()
        network, params, averages = self.trained(factory, stream)
        found = state_dict(network, stream, False, params, averages)
        net = make_network(network, stream)
        module = factory(net.facts.inputs, net.facts.outputs)
        assert list(found) == list(module.state_dict())
        module.load_state_dict(found)
        x = torch.rand(1, 5, *((PIXELS,) if kind is toy else (12, 12, 3)))
        expected = net.logits(params[None], {} if averages is None else {"statistics": averages[None]}, x)[0]
        module.eval()
        torch.testing.assert_close(module(x[0] if kind is toy else x[0].permute(0, 3, 1, 2)).detach(), expected)
        if averages is not None:
            start = untrained_module(0, stream, network).state_dict()
            assert not all(torch.equal(found[name], start[name]) for name, _ in net.facts.moving.shapes)

    def test_what_a_module_saves_besides_is_there(self):
        class Extra(nn.Linear):
            def get_extra_state(self):
                return {"made": "here"}

            def set_extra_state(self, state):
                self.made = state["made"]

        network, params, _ = self.trained(Extra, toy())
        module = Extra(PIXELS, 4)
        module.load_state_dict(state_dict(network, toy(), False, params, None))
        assert module.made == "here"


REFUSED = {"prognn": "PROGNN grows networks of", "gpm": "GPM trains networks mlp alone, got network 'my:net'$"}


def test_every_method_is_trained_or_refused():
    plug("my:net", perceptron)
    for method in METHODS:
        stream, cohort = suit_stream(METHODS[method], toy()), Cohort((learner(method),))
        if method in REFUSED:
            with pytest.raises(ValueError, match=REFUSED[method]):
                make_engine(cohort, (0,), stream, Architecture("my:net"), IN_TURN)
        else:
            assert make_engine(cohort, (0,), stream, Architecture("my:net"), IN_TURN).start().shape
