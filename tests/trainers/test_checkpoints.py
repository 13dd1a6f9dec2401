"""First tasks that are shared, and runs that are killed and go on: neither changes a bit."""

import math

import pytest

import trainers.checkpoints
import trainers.kept.array_store
from tests.support.killing import Killed, train_until_kept
from tests.support.numeric_paths import COMPILED, MKL, SMALL, on_every_path, rows_equal
from tests.support.plain_run import STRENGTHS
from tests.support.toy_streams import toy
from trainers import Cohort, Member, TrainConfig
from trainers.methods import METHODS
from trainers.population import train_cohort


def member(method, seed, rate=None, number=1):
    """A member of any method; `number` sets ε and λ apart."""
    strength = STRENGTHS[method] * number if method in STRENGTHS else None
    return Member(0.2 * number, seed, rate, strength)


class TestSharedFirstTask:
    """Task 1 is trained once a seed, for all ε, and for all methods that begin with plain SGD."""

    members = tuple(Member(epsilon, seed) for seed in (0, 1) for epsilon in (0.0, 0.4, 0.9))

    @on_every_path
    def test_it_changes_nothing(self, path, tmp_path):
        plain = train_cohort(Cohort("soft_agem", self.members), toy(), SMALL, path)
        first = train_cohort(Cohort("soft_agem", self.members), toy(), SMALL, path, folder=tmp_path)
        again = train_cohort(Cohort("soft_agem", self.members[::-1]), toy(), SMALL, path, folder=tmp_path)
        assert len(list(tmp_path.iterdir())) == 2  # one file a seed
        for row in range(6):
            assert rows_equal(plain, row, first, row) and rows_equal(plain, row, again, 5 - row)
        assert (plain.saved, first.saved, again.saved) == (4 * 6, 4 * 6, 6 * 6)  # 6 steps a task

    def test_methods_share_it(self, tmp_path):
        for method in (name for name, method in METHODS.items() if method.first_task_is_sgd):
            plain = train_cohort(Cohort(method, self.members[:1]), toy(), SMALL, MKL)
            shared = train_cohort(Cohort(method, self.members[:1]), toy(), SMALL, MKL, folder=tmp_path)
            assert rows_equal(plain, 0, shared, 0)
        assert len(list(tmp_path.iterdir())) == 1

    def test_those_that_begin_otherwise_keep_nothing(self, tmp_path):
        for method in (name for name, method in METHODS.items() if not method.first_task_is_sgd):
            train_cohort(Cohort(method, (member(method, 0),)), toy(), SMALL, MKL, folder=tmp_path)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("method", METHODS)
    def test_members_of_one_seed_and_rate_share_it_in_the_cohort(self, method):
        """Different λ, ε and learning rates beside one another; each is as if it were alone."""
        members = tuple(member(method, seed, rate, k) for k, (seed, rate) in enumerate([(0, 0.1), (0, 0.1), (0, 0.02)]))
        together = train_cohort(Cohort(method, members), toy(), SMALL, MKL)
        assert together.saved == 6
        for row, one in enumerate(members):
            assert rows_equal(together, row, train_cohort(Cohort(method, (one,)), toy(), SMALL, MKL), 0)

    @pytest.mark.parametrize(
        "other",
        [
            {"config": TrainConfig(memory=3, memory_batch=8, hidden=(16, 16), learning_rate=0.2)},
            {"config": TrainConfig(memory=3, memory_batch=8, hidden=(16, 32))},
            {"config": TrainConfig(memory=3, memory_batch=8, hidden=(16, 16), batch_size=5)},
            {"stream": toy(examples=50)},
            {"stream": toy(range(1, 4))},
            {"transfer": False},
            {"path": COMPILED[1]},
        ],
        ids=lambda other: next(iter(other)),
    )
    def test_another_first_task_is_another_file(self, other, tmp_path):
        given = {"stream": toy(), "config": SMALL, "path": MKL, "folder": tmp_path}
        train_cohort(Cohort("soft_agem", self.members[:1]), **given)
        train_cohort(Cohort("soft_agem", self.members[:1]), **(given | other))
        assert len(list(tmp_path.iterdir())) == 2

    def test_a_damaged_file_is_made_again(self, tmp_path, told):
        cohort = Cohort("soft_agem", self.members[:1])
        plain = train_cohort(cohort, toy(), SMALL, MKL, folder=tmp_path)
        (file,) = tmp_path.iterdir()
        whole = file.read_bytes()
        for damaged in (b"", whole[:1000], b"x" * 100, whole[:-9] + b"?" + whole[-8:]):
            file.write_bytes(damaged)
            assert rows_equal(plain, 0, train_cohort(cohort, toy(), SMALL, MKL, folder=tmp_path), 0)
            assert told.pop() == f"{file} cannot be used, it is damaged: what it kept is trained again" and not told
            assert file.read_bytes() == whole

    def test_a_folder_that_cannot_be_written_stops_nothing(self, tmp_path):
        (tmp_path / "file").write_text("")
        plain = train_cohort(Cohort("van", self.members[:1]), toy(), SMALL, MKL)
        shared = train_cohort(Cohort("van", self.members[:1]), toy(), SMALL, MKL, folder=tmp_path / "file" / "x")
        assert rows_equal(plain, 0, shared, 0)

    def test_the_oldest_files_go_when_the_folder_is_full(self, tmp_path, monkeypatch):
        monkeypatch.setattr(trainers.kept.array_store, "LARGEST_FOLDER", 8000)
        for seed in range(5):
            train_cohort(Cohort("van", (Member(0.0, seed),)), toy(), SMALL, MKL, folder=tmp_path)
            assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 8000
        assert len(list(tmp_path.iterdir())) >= 1


class TestResume:
    """A run that is killed after some task goes on from there."""

    @pytest.fixture(autouse=True)
    def after_every_task(self, monkeypatch):
        monkeypatch.setattr(trainers.checkpoints, "AT_MOST_EVERY", 0.0)

    def kill(self, monkeypatch, cohort, path, folder, after):
        """Trains until the checkpoint of a seed's task `after` is written, and no further."""
        train_until_kept(monkeypatch, after, cohort, toy(range(4)), SMALL, path, folder=folder)

    @on_every_path
    @pytest.mark.parametrize("method", METHODS)
    def test_every_method_goes_on_bit_for_bit(self, method, path, tmp_path, monkeypatch):
        cohort = Cohort(method, (member(method, 0, number=1), member(method, 0, number=2), member(method, 1)))
        whole = train_cohort(cohort, toy(range(4)), SMALL, path)
        for after in (1, 2):
            self.kill(monkeypatch, cohort, path, tmp_path, after)
            counted = []
            resumed = train_cohort(cohort, toy(range(4)), SMALL, path, counted.append, folder=tmp_path)
            for row in range(3):
                assert rows_equal(whole, row, resumed, row)
            killed = 2 if path.one_seed_at_a_time else 3
            assert sum(counted) <= 3 * 24 - killed * 6 * (after + 1)  # at least what was kept is not trained again
            assert sum(counted) + resumed.saved == 3 * 24

    def test_in_another_cohort_too(self, tmp_path, monkeypatch):
        """Members are kept one by one: those that are lost, those that got further and new ones fit together."""
        first, second, third = (member("ewc", 0, number=k) for k in (1, 2, 3))
        whole = train_cohort(Cohort("ewc", (first, second, third)), toy(range(4)), SMALL, MKL)
        self.kill(monkeypatch, Cohort("ewc", (first,)), MKL, tmp_path, 1)
        self.kill(monkeypatch, Cohort("ewc", (second,)), MKL, tmp_path, 2)
        resumed = train_cohort(Cohort("ewc", (first, second, third)), toy(range(4)), SMALL, MKL, folder=tmp_path)
        for row in range(3):
            assert rows_equal(whole, row, resumed, row)
        assert resumed.saved == 2 * 6 + 3 * 6

    def test_seeds_that_are_done_are_not_trained_again(self, tmp_path, monkeypatch):
        """A cohort is stored as a whole: while another seed still trains, the one that has ended is kept, too."""
        cohort = Cohort("ewc", (member("ewc", 0), member("ewc", 1)))
        whole = train_cohort(cohort, toy(range(4)), SMALL, MKL)
        original = trainers.checkpoints.Checkpoints.save

        def save(self, members, task, learners, result):
            original(self, members, task, learners, result)
            if members[0].seed == 1:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(trainers.checkpoints.Checkpoints, "save", save)
            with pytest.raises(Killed):
                train_cohort(cohort, toy(range(4)), SMALL, MKL, folder=tmp_path)
        counted = []
        resumed = train_cohort(cohort, toy(range(4)), SMALL, MKL, counted.append, folder=tmp_path)
        assert sum(counted) == 2 * 6  # the other seed's last two tasks
        assert all(rows_equal(whole, row, resumed, row) for row in range(2))
        assert not list(tmp_path.iterdir())

    def test_a_checkpoint_of_another_run_is_not_taken(self, tmp_path, monkeypatch):
        cohort = Cohort("soft_agem", (member("soft_agem", 0),))
        self.kill(monkeypatch, cohort, MKL, tmp_path, 2)
        other = TrainConfig(memory=2, memory_batch=8, hidden=(16, 16))
        plain = train_cohort(cohort, toy(range(4)), other, MKL)
        assert rows_equal(plain, 0, train_cohort(cohort, toy(range(4)), other, MKL, folder=tmp_path), 0)

    def test_a_damaged_checkpoint_is_not_taken(self, tmp_path, monkeypatch, told):
        cohort = Cohort("soft_agem", (member("soft_agem", 0),))
        whole = train_cohort(cohort, toy(range(4)), SMALL, MKL)
        self.kill(monkeypatch, cohort, MKL, tmp_path, 2)
        for file in tmp_path.iterdir():
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 1
            file.write_bytes(content)
        again = train_cohort(cohort, toy(range(4)), SMALL, MKL, folder=tmp_path)
        assert rows_equal(whole, 0, again, 0) and again.saved == 0
        assert len(told) == 2  # the checkpoint, and the first task

    def test_nothing_is_left_of_a_run_that_ended(self, tmp_path):
        cohort = Cohort("ewc", (member("ewc", 0),))
        train_cohort(cohort, toy(range(4)), SMALL, MKL, folder=tmp_path)
        assert not list(tmp_path.iterdir())

    def test_short_runs_are_not_kept(self, tmp_path, monkeypatch):
        monkeypatch.setattr(trainers.checkpoints, "AT_MOST_EVERY", math.inf)
        cohort = Cohort("ewc", (member("ewc", 0),))
        self.kill(monkeypatch, cohort, MKL, tmp_path, 2)
        assert not list(tmp_path.iterdir())
