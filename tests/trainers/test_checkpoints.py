"""First tasks that are shared, and runs that are killed and go on: neither changes a bit."""

import math
from collections import Counter

import numpy as np
import pytest

import trainers.checkpoints
import trainers.persistence.array_store
from tests.support.killing import Killed, train_until_kept
from tests.support.learners import IN_SEQUENCE, OPTIMIZERS, STRENGTHS, few, train
from tests.support.numeric_paths import COMPILED, MKL, on_every_path, on_paths_by_kind, rows_equal
from tests.support.toy_streams import toy
from trainers import Architecture
from trainers.forks import fork
from trainers.hyperparameters import OF_EVERY_METHOD, Hyperparameter
from trainers.methods import METHODS, rules


def learner(method, seed, rate=0.1, number=1):
    """Of any method; `number` sets ε and λ apart."""
    return few(method, seed, lr=rate, epsilon=0.2 * number, strength=STRENGTHS.get(method, 0) * number)


class TestSharedFirstTask:
    """Task 1 is trained once a seed, for all ε, and for all methods that begin with plain SGD."""

    learners = tuple(few("soft_agem", seed, epsilon=epsilon) for seed in (0, 1) for epsilon in (0.0, 0.4, 0.9))

    @pytest.mark.slow
    @on_every_path
    def test_it_changes_nothing(self, path, tmp_path):
        plain = train(self.learners, toy(), path)
        first = train(self.learners, toy(), path, folder=tmp_path)
        again = train(self.learners[::-1], toy(), path, folder=tmp_path)
        assert len(list(tmp_path.iterdir())) == 2  # one file a seed
        for row in range(6):
            assert rows_equal(plain, row, first, row) and rows_equal(plain, row, again, 5 - row)
        assert (plain.saved, first.saved, again.saved) == (4 * 6, 4 * 6, 6 * 6)  # 6 steps a task

    @pytest.mark.slow
    def test_methods_share_it(self, tmp_path):
        for method in (name for name, method in METHODS.items() if method.first_task_is_sgd):
            plain = train([few(method)], toy(), MKL)
            shared = train([few(method)], toy(), MKL, folder=tmp_path)
            assert rows_equal(plain, 0, shared, 0)
        assert len(list(tmp_path.iterdir())) == 1

    @pytest.mark.parametrize("per_learner", [False, True])
    def test_a_new_hyperparameter_of_every_method_tells_first_tasks_apart(self, per_learner, tmp_path, monkeypatch):
        warmup = Hyperparameter("warmup", "", default=0.0, low=0.0, high=1.0, per_learner=per_learner)
        for module in (trainers.checkpoints, rules):
            monkeypatch.setattr(module, "OF_EVERY_METHOD", (*OF_EVERY_METHOD, warmup))
        for value in (0.0, 0.5, 0.5):
            train([few("agem", warmup=value)], toy(), MKL, folder=tmp_path)
        assert len(list(tmp_path.iterdir())) == 2

    @pytest.mark.parametrize("values", OPTIMIZERS, ids=str)
    def test_it_has_what_the_optimizer_remembers(self, values, tmp_path):
        """Whose values, if any, tell it apart: plain SGD, then A-GEM and GEM with the same optimizer."""
        train([few("agem")], toy(), MKL, folder=tmp_path)
        for method in ("agem", "gem"):
            plain = train([few(method, **values)], toy(), MKL)
            shared = train([few(method, **values)], toy(), MKL, folder=tmp_path)
            assert rows_equal(plain, 0, shared, 0) and np.array_equal(plain.params[0], shared.params[0])
        assert shared.saved == 6 and len(list(tmp_path.iterdir())) == 2

    @pytest.mark.slow
    def test_those_that_begin_otherwise_keep_nothing(self, tmp_path):
        for method in (name for name, method in METHODS.items() if not method.first_task_is_sgd):
            train([learner(method, 0)], toy(), MKL, folder=tmp_path)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("method", IN_SEQUENCE)
    def test_learners_of_one_seed_and_rate_share_it_in_the_cohort(self, method):
        """Different λ, ε and learning rates beside one another; each is as if it were alone."""
        learners = [learner(method, 0, rate, number) for number, rate in enumerate([0.1, 0.1, 0.02])]
        together = train(learners, toy(), MKL)
        assert together.saved == 6
        for row, one in enumerate(learners):
            assert rows_equal(together, row, train([one], toy(), MKL), 0)

    @pytest.mark.parametrize(
        "other",
        [
            {"learners": [few("soft_agem", lr=0.2)]},
            {"architecture": Architecture(hidden=(16, 32))},
            {"learners": [few("soft_agem", batch_size=5)]},
            {"stream": toy(examples=50)},
            {"stream": toy(range(1, 4))},
            {"transfer": False},
            {"path": COMPILED[1]},
        ],
        ids=lambda other: next(iter(other)),
    )
    def test_another_first_task_is_another_file(self, other, tmp_path):
        given = {"learners": self.learners[:1], "stream": toy(), "path": MKL, "folder": tmp_path}
        train(**given)
        train(**(given | other))
        assert len(list(tmp_path.iterdir())) == 2

    def test_a_damaged_file_is_made_again(self, tmp_path, told):
        learners = self.learners[:1]
        plain = train(learners, toy(), MKL, folder=tmp_path)
        (file,) = tmp_path.iterdir()
        whole = file.read_bytes()
        for damaged in (b"", whole[:1000], b"x" * 100, whole[:-9] + b"?" + whole[-8:]):
            file.write_bytes(damaged)
            assert rows_equal(plain, 0, train(learners, toy(), MKL, folder=tmp_path), 0)
            assert told.pop().startswith(f"{file} ") and not told
            assert file.read_bytes() == whole

    def test_a_folder_that_cannot_be_written_stops_nothing(self, tmp_path):
        (tmp_path / "file").write_text("")
        plain = train([few("van")], toy(), MKL)
        shared = train([few("van")], toy(), MKL, folder=tmp_path / "file" / "x")
        assert rows_equal(plain, 0, shared, 0)

    def test_the_oldest_files_go_when_the_folder_is_full(self, tmp_path, monkeypatch):
        monkeypatch.setattr(trainers.persistence.array_store, "LARGEST_FOLDER", 8000)
        for seed in range(5):
            train([few("van", seed)], toy(), MKL, folder=tmp_path)
            assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 8000
        assert len(list(tmp_path.iterdir())) >= 1


class TestResume:
    """A run that is killed after some task goes on from there."""

    @pytest.fixture(autouse=True)
    def after_every_task(self, monkeypatch):
        monkeypatch.setattr(trainers.checkpoints, "AT_MOST_EVERY", 0.0)

    def kill(self, monkeypatch, learners, path, folder, after):
        """Trains until the checkpoint of a seed's task `after` is written, and no further."""
        train_until_kept(monkeypatch, after, learners, toy(range(4)), path, folder=folder)

    @pytest.mark.slow
    @pytest.mark.few(24)
    @on_paths_by_kind
    @pytest.mark.parametrize("values", OPTIMIZERS, ids=str)
    @pytest.mark.parametrize("method", ["van", "ewc", "gem", "soft_agem", "er", "prognn"])
    def test_optimizers_go_on_bit_for_bit(self, method, values, path, tmp_path, monkeypatch):
        learners = [few(method, 0, **values), few(method, 1, **values)]
        whole = train(learners, toy(range(4)), path)
        for after in (0, 2):
            self.kill(monkeypatch, learners, path, tmp_path, after)
            again = train(learners, toy(range(4)), path, folder=tmp_path)
            assert all(rows_equal(whole, row, again, row) for row in range(2)) and again.saved >= 6 * (after + 1)

    @pytest.mark.slow
    @pytest.mark.few(22)
    @on_paths_by_kind
    @pytest.mark.parametrize("method", IN_SEQUENCE)
    def test_every_method_goes_on_bit_for_bit(self, method, path, tmp_path, monkeypatch):
        learners = [learner(method, 0, number=1), learner(method, 0, number=2), learner(method, 1)]
        whole = train(learners, toy(range(4)), path)
        for after in (1, 2):
            self.kill(monkeypatch, learners, path, tmp_path, after)
            counted = Counter()
            resumed = train(learners, toy(range(4)), path, progress=counted.update, folder=tmp_path)
            for row in range(3):
                assert rows_equal(whole, row, resumed, row)
            killed = 2 if path.one_seed_at_a_time else 3
            assert counted.total() <= 3 * 24 - killed * 6 * (after + 1)  # at least what was kept is not trained again
            assert counted.total() + resumed.saved == 3 * 24

    def test_in_another_cohort_too(self, tmp_path, monkeypatch):
        """Learners are kept one by one: those that are lost, those that got further and new ones fit together."""
        first, second, third = (learner("ewc", 0, number=k) for k in (1, 2, 3))
        whole = train([first, second, third], toy(range(4)), MKL)
        self.kill(monkeypatch, [first], MKL, tmp_path, 1)
        self.kill(monkeypatch, [second], MKL, tmp_path, 2)
        resumed = train([first, second, third], toy(range(4)), MKL, folder=tmp_path)
        for row in range(3):
            assert rows_equal(whole, row, resumed, row)
        assert resumed.saved == 2 * 6 + 3 * 6

    def test_seeds_that_are_done_are_not_trained_again(self, tmp_path, monkeypatch):
        """A cohort is stored as a whole: while another seed still trains, the one that has ended is kept, too."""
        learners = [learner("ewc", 0), learner("ewc", 1)]
        whole = train(learners, toy(range(4)), MKL)
        original = trainers.checkpoints.Checkpoints.save

        def save(self, trained, task, learners, result):
            original(self, trained, task, learners, result)
            if trained[0].seed == 1 and task == 1:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(trainers.checkpoints.Checkpoints, "save", save)
            with pytest.raises(Killed):
                train(learners, toy(range(4)), MKL, folder=tmp_path)
        counted = Counter()
        resumed = train(learners, toy(range(4)), MKL, progress=counted.update, folder=tmp_path)
        assert counted.total() == 2 * 6  # the other seed's last two tasks
        assert all(rows_equal(whole, row, resumed, row) for row in range(2))
        assert not list(tmp_path.iterdir())

    def test_a_checkpoint_of_another_run_is_not_taken(self, tmp_path, monkeypatch):
        self.kill(monkeypatch, [few("soft_agem")], MKL, tmp_path, 2)
        other = [few("soft_agem", memory=2)]
        plain = train(other, toy(range(4)), MKL)
        assert rows_equal(plain, 0, train(other, toy(range(4)), MKL, folder=tmp_path), 0)

    def test_a_damaged_checkpoint_is_not_taken(self, tmp_path, monkeypatch, told):
        learners = [learner("soft_agem", 0)]
        whole = train(learners, toy(range(4)), MKL)
        self.kill(monkeypatch, learners, MKL, tmp_path, 2)
        for file in (path for path in tmp_path.rglob("*") if path.is_file()):
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 1
            file.write_bytes(content)
        again = train(learners, toy(range(4)), MKL, folder=tmp_path)
        assert rows_equal(whole, 0, again, 0) and again.saved == 0
        assert len(told) == 2  # the checkpoint, and the first task

    def test_nothing_is_left_of_a_run_that_ended(self, tmp_path):
        learners = [learner("ewc", 0)]
        train(learners, toy(range(4)), MKL, folder=tmp_path)
        assert not list(tmp_path.iterdir())

    def test_short_runs_are_not_kept(self, tmp_path, monkeypatch):
        monkeypatch.setattr(trainers.checkpoints, "AT_MOST_EVERY", math.inf)
        learners = [learner("ewc", 0)]
        self.kill(monkeypatch, learners, MKL, tmp_path, 2)
        assert not list(tmp_path.iterdir())


class TestUntil:
    """A training that ends before its stream does, and goes on later."""

    @pytest.mark.few(21)
    @on_paths_by_kind
    @pytest.mark.parametrize("method", IN_SEQUENCE)
    def test_it_goes_on_bit_for_bit(self, method, path, tmp_path):
        learners = [learner(method, 0), learner(method, 1, number=2)]
        whole = train(learners, toy(), path)
        for until in (1, 2):
            part = train(learners, toy(), path, folder=tmp_path, until=until)
            assert np.isnan(part.accuracies[:, until:]).all() and not np.isnan(part.accuracies[:, until - 1, 0]).any()
            np.testing.assert_array_equal(part.accuracies[:, :until], whole.accuracies[:, :until])
            assert part.saved == 6 * 2 * (until - 1) and part.steps.tolist() == [6 * until] * 2
        again = train(learners, toy(), path, folder=tmp_path)
        assert again.saved == 6 * 2 * 2, "tasks 1 and 2 of 3"
        for row in range(2):
            assert rows_equal(whole, row, again, row) and np.array_equal(whole.params[row], again.params[row])

    def test_a_later_task_is_not_taken_for_an_earlier_one(self, tmp_path):
        first = train([few("agem")], toy(), MKL, folder=tmp_path / "one", until=1)
        train([few("agem")], toy(), MKL, folder=tmp_path / "two", until=2)
        again = train([few("agem")], toy(), MKL, folder=tmp_path / "two", until=1)
        assert rows_equal(first, 0, again, 0)

    def test_without_a_folder_it_is_part_of_the_whole_run(self):
        whole, part = train([few("er")], toy(), MKL), train([few("er")], toy(), MKL, until=2)
        np.testing.assert_array_equal(part.accuracies[0, :2], whole.accuracies[0, :2])
        assert part.fingerprints[0] != whole.fingerprints[0]

    @pytest.mark.parametrize("until", [0, 4])
    def test_wrong_numbers_are_refused(self, until):
        with pytest.raises(ValueError, match=f"until must lie in 1…3, the tasks of the stream, got {until}"):
            train([few("agem")], toy(), MKL, until=until)

    def test_tasks_shown_together_have_no_parts(self):
        with pytest.raises(ValueError, match=r"i\.i\.d\. shows tasks together: until must be None, got 2"):
            train([few("iid")], toy(), MKL, until=2)

    def test_a_fork_behind_the_end_is_refused(self, tmp_path):
        late = fork(few("agem"), 1, lr=0.05)
        with pytest.raises(ValueError, match="a fork must come before the last of 2 tasks, got after=1"):
            train([late], toy(), MKL, store=tmp_path, keep="all", until=2)
