"""A GPU is checked before anything is trained on it, and what the check says goes with the results.

There is no GPU here: the CPU trains in its place, with graphs that are emulated, and has its faults planted.
"""

from dataclasses import replace

import pytest

from epsearch import doctor, gpu_check
from epsearch.failures.errors import TrainingFailed, UsageError
from epsearch.failures.lines import cohort_failure, failure
from epsearch.findings.facts import gpu_checks
from epsearch.gpu_check import checked_gpu, in_words
from epsearch.loop import jobs
from epsearch.loop.jobs import JobResult, execute
from epsearch.preparation import build
from epsearch.preparation.arithmetic import numeric_path
from epsearch.runners.local import local_slots
from epsearch.runners.registry import runner_of
from results.ledger.store import Store
from tests.support.drive import finish, make
from tests.support.emulated_graphs import emulated, stands_still
from tests.support.learners import SMALL, few
from tests.support.numeric_paths import TWIN
from tests.support.toy_streams import toy
from trainers import paths, population
from trainers.engines import self_check
from trainers.engines.batched import graphs
from trainers.engines.self_check import SelfCheckFailed
from trainers.methods import METHODS
from trainers.notes import redirect_notes
from trainers.numeric_path import NumericPath

GPU = NumericPath("cuda")
KIND = {"GPU": "emulated", "driver": "1", "torch": "2", "CUDA": "3", "cuDNN": "4"}


class Device:
    """What stands in for a GPU: the CPU in float32."""

    def __init__(self):
        self.checks, self.checked, self.trained = 0, emulated(), emulated()

    def check(self, learner, stream, architecture, path):
        self.checks += 1
        assert path.device != "cpu"
        return CHECK(learner, stream, architecture, TWIN, self.checked)

    def train_cohort(self, cohort, training, progress=None):
        here = replace(training, path=TWIN, folder=None)
        return population.train_rest(cohort, here, here.checkpoints(cohort), {}, progress, self.trained)


CHECK = self_check.check


@pytest.fixture
def device(tmp_path, monkeypatch):
    """The folder of what is kept is a new one."""
    found = Device()
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(graphs, "_refused", [])
    monkeypatch.setattr(gpu_check, "_of_this_process", {})
    monkeypatch.setattr(gpu_check, "gpu_kind", lambda device: KIND)
    monkeypatch.setattr(self_check, "check", found.check)
    monkeypatch.setattr(paths, "train_path", found.train_cohort)
    monkeypatch.setattr(jobs, "bytes_free", lambda *where: None)
    return found


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as opened:
        yield opened


def wrong(engine):
    """Its steps are a tenth too long."""
    update = engine._update
    engine._update = lambda learners, segment, g, *rest: update(learners, segment, g * 1.1, *rest)


def with_fault(*given):
    engine = emulated()(*given)
    wrong(engine)
    return engine


def proved(**values):
    with checked_gpu(few("agem", **values), toy(), SMALL, GPU) as outcome:
        return outcome


class TestProving:
    @pytest.mark.slow
    def test_once_for_all_that_is_alike(self, device, monkeypatch):
        first = proved()
        assert first.startswith("graphs-") and first == proved(lr=0.7) and device.checks == 1
        monkeypatch.setattr(gpu_check, "gpu_kind", lambda device: KIND | {"driver": "2"})
        assert proved() == first and device.checks == 2
        with checked_gpu(few("agem"), toy(pixels=16), SMALL, GPU), checked_gpu(few("van"), toy(), SMALL, GPU):
            assert device.checks == 4
        with checked_gpu(few("agem"), toy(), SMALL, GPU, {"net:make": {"net.py": "00"}}):
            assert device.checks == 5

    def test_a_cpu_needs_none(self, device):
        with checked_gpu(few("agem"), toy(), SMALL, TWIN) as outcome:
            assert outcome == "" and device.checks == 0

    @pytest.mark.slow
    def test_graphs_alone_that_disagree_are_not_used_and_one_line_says_so(self, device):
        told, device.checked = [], emulated(stands_still)
        with redirect_notes(told.append):
            assert proved().startswith("nographs-") and proved().startswith("nographs-")
        assert device.checks == 1 and graphs._refused
        assert told == [
            "steps are taken without CUDA graphs: the self-check found that they take other steps on this GPU than the "
            "code they are recorded from"
        ]

    @pytest.mark.slow
    def test_without_graphs_for_another_reason_nothing_is_said_of_them_nor_kept(self, device):
        """As where memory had no room for those of another method, or theirs disagreed."""
        told = []
        with redirect_notes(told.append):
            graphs.refuse("no room")
            assert proved().startswith("steps-") and proved().startswith("steps-") and device.checks == 1
        assert told == ["steps are taken without CUDA graphs: no room"]
        graphs._refused.clear()  # another process
        gpu_check._of_this_process.clear()
        assert proved().startswith("graphs-") and device.checks == 2 and proved().startswith("graphs-")
        assert device.checks == 2

    @pytest.mark.slow
    def test_steps_that_disagree_are_not_kept(self, device):
        device.checked = with_fault
        for checks in (1, 2):
            with pytest.raises(SelfCheckFailed, match="self-check of agem on mlp failed"):
                proved()
            assert device.checks == checks

    @pytest.mark.slow
    def test_a_graph_that_disagrees_later_is_remembered(self, device):
        with pytest.raises(graphs.GraphMismatch), checked_gpu(few("agem"), toy(), SMALL, GPU):
            raise graphs.GraphMismatch("other steps")
        assert proved().startswith("nographs-") and device.checks == 1


class TestStudies:
    def study(self, small_study):
        return replace(small_study(), device="cuda", numeric_path="cuda-float32")

    @pytest.mark.slow
    def test_what_it_says_stands_with_every_run_and_in_the_report(self, small_study, store, device):
        loop = make(self.study(small_study), store)
        finish(loop)
        runs = store.all_runs()
        assert runs and {one.self_check.partition("-")[0] for one in runs} == {"graphs"}
        assert len({one.machine for one in runs}) == 1 and len(runs[0].machine) == 8
        said = gpu_checks(loop)
        assert list(said) == ["self-check of the GPU"]
        assert "CUDA graphs take the same steps bit for bit" in said["self-check of the GPU"]
        key, one = next(iter(loop.records.items()))
        loop.records[key] = replace(one, cohort="0123.89abcdef.nographs-4e-06")
        assert gpu_checks(loop)["GPUs, with versions of torch"].startswith("2, which may round differently")

    @pytest.mark.slow
    def test_steps_that_disagree_stop_it_and_nothing_is_stored(self, small_study, store, device):
        device.checked = with_fault
        loop = make(self.study(small_study), store)
        job, *_ = loop.ask()
        with pytest.raises(SelfCheckFailed) as raised:
            execute(job)
        failed = cohort_failure(raised.value)
        assert failed["stops"] and not failed["traceback"] and failure(raised.value)[1] == 1
        with pytest.raises(TrainingFailed, match=r"the self-check of .* failed") as stopped:
            loop.tell([JobResult(job.number, None, **failed)])
        assert failure(stopped.value)[1] == 1 and not store.all_runs()

    @pytest.mark.slow
    def test_a_graph_that_disagrees_in_training_fails_its_cohort_alone(self, small_study, store, device):
        device.trained = emulated(stands_still)
        loop = make(self.study(small_study), store)
        job, *_ = loop.ask()
        with pytest.raises(graphs.GraphMismatch) as raised:
            execute(job)
        failed = cohort_failure(raised.value)
        assert not failed["stops"] and not failed["traceback"] and not store.all_runs()
        result = execute(job)  # goes on without graphs
        assert result.self_check.startswith("nographs-")

    @pytest.mark.slow
    def test_the_ledger_takes_no_run_without_it(self, small_study, store, device):
        loop = make(self.study(small_study), store)
        job, *_ = loop.ask()
        result = execute(job)
        with pytest.raises(ValueError, match="a run on a GPU is stored with what its self-check says, got none"):
            loop.tell([replace(result, self_check="")])
        assert not store.all_runs()

    @pytest.mark.slow
    def test_runs_of_before_are_read(self, small_study, store, device):
        loop = make(self.study(small_study), store)
        finish(loop)
        old = replace(store.all_runs()[0], cohort="0123.89abcdef")
        assert old.self_check == "" and old.machine == "89abcdef" and old.on_gpu
        assert in_words(old.self_check) == "trained before there was a self-check"


@pytest.mark.slow
def test_doctor_says_what_it_finds(device, tmp_path, monkeypatch):
    for slow in ("_ray", "_arithmetic", "_torchvision"):
        monkeypatch.setattr(doctor, slow, lambda: "")

    def said():
        return [one for one in doctor.diagnose(tmp_path, tmp_path) if one["subject"] == "GPU self-check"]

    monkeypatch.setattr(doctor, "gpu", lambda: None)
    assert said() == []
    monkeypatch.setattr(doctor, "gpu", lambda: "emulated")
    monkeypatch.setattr(doctor, "_free_memory", lambda: "")
    (well,) = said()
    assert well["ok"] and f"steps of {len(METHODS)} methods agree with float64" in well["detail"]
    device.checked = with_fault
    (fault,) = said()
    assert fault["ok"] is False and "the self-check of van on mlp failed" in fault["detail"]
    assert fault["detail"].endswith("; no study can use this GPU")  # of several one that is left out


class TestSeveral:
    @pytest.mark.slow
    def test_doctor_asks_a_process_for_each(self, monkeypatch):
        """Processes that find no GPU here."""
        monkeypatch.setattr(doctor, "visible_gpus", lambda: ["0", "MIG-b"])
        rows = doctor._gpus()
        assert [(row["subject"], row["ok"]) for row in rows] == [("GPU 0", None), ("GPU MIG-b", None)]

    def test_one_whose_process_ends_is_a_fault(self, monkeypatch):
        monkeypatch.setattr(doctor, "visible_gpus", lambda: ["0", "1"])
        monkeypatch.setattr(doctor.sys, "executable", "false")
        assert {row["detail"] for row in doctor._gpus()} == {"cannot be used (status 1); studies leave it out"}


class TestApples:
    """A GPU of Apple's: by request alone, behind the same check."""

    @pytest.fixture
    def there(self, monkeypatch):
        monkeypatch.setattr(build, "mps_present", lambda: True)

    def test_without_one_it_is_refused(self, small_study):
        with pytest.raises(UsageError, match="device is 'mps', but torch finds no GPU of Apple here"):
            small_study(device="mps", numeric_path=None)

    def test_it_is_taken_by_request_alone(self, small_study, there):
        assert small_study(device="auto").device == "cpu"
        study = small_study(device="mps", numeric_path=None, runner="auto")
        assert study.device == "mps" and numeric_path(study, None) == "mps-float32"
        for workers in (None, 2):
            assert runner_of(replace(study, workers=workers)).name == "local"
        assert local_slots(study) == 1

    @pytest.mark.parametrize("options", [{"runner": "tune"}, {"address": "head:6379", "runner": "auto"}], ids=str)
    def test_ray_has_none(self, small_study, there, options):
        with pytest.raises(UsageError, match="device mps is for threads of this machine"):
            small_study(device="mps", numeric_path=None, **options)

    def test_its_precision_is_float32(self, small_study):
        assert str(NumericPath.parse("mps-float32")) == "mps-float32"
        with pytest.raises(ValueError, match="no numeric path 'mps-tf32'"):
            NumericPath.parse("mps-tf32")

    @pytest.mark.slow
    def test_what_its_check_says_stands_with_every_run(self, small_study, store, device):
        loop = make(replace(small_study(), device="mps", numeric_path="mps-float32"), store)
        finish(loop)
        assert device.checks and all(one.on_gpu and one.self_check for one in store.all_runs())

    @pytest.mark.slow
    def test_steps_that_disagree_stop_the_study(self, small_study, store, device):
        device.checked = with_fault
        job, *_ = make(replace(small_study(), device="mps", numeric_path="mps-float32"), store).ask()
        with pytest.raises(SelfCheckFailed, match="failed: steps move the parameters otherwise than float64"):
            execute(job)
