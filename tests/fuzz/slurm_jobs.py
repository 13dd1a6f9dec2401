"""Chaos on a Slurm: studies as jobs, whose slurmd, slurmctld, node and processes are killed at random moments.

A study is submitted, killed a few times, and submitted again where its job does not go on by itself. A life is one run
of a job: from its start until Slurm puts it back into the queue, or it ends. Judged as by `chaos`.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.fuzz import remains
from tests.fuzz.chaos import Campaign
from tests.fuzz.victim import Command, Life, Victim
from tests.support.slurm import ENDED, Slurm, slurm
from tests.support.trainings import log

NODE_SECONDS = 10  # SlurmdTimeout: after them a node without its slurmd is lost
AWAY = {"slurmctld": (1.0, 10.0), "slurmd": (2.0, 2.0 * NODE_SECONDS), "node": (2.0, 2.0 * NODE_SECONDS)}
"""Longest seconds until what was killed is started again: before others miss it, or after."""
EPOCHS = ("--epochs", "5")  # so that a daemon is back before the training is over
QUEUE_SECONDS = 100.0  # in which processes of the last run may end; after 120 Slurm itself starts the next one
LOOK_SECONDS = 0.5  # between two questions to slurmctld
SLURM_LOG = re.compile(r"fuzzed-\d+\.log")
LABEL = f"export {log.LIFE}=$(date +%s%N); echo ${log.LIFE} >> lives"


class JobRun:
    """A run of a job, as a process: its driver's number, its state once it is over."""

    def __init__(self, cluster: Slurm, number: str, restarts: int):
        self._cluster, self.number, self._restarts = cluster, number, restarts
        self._looked, self._status = 0.0, None

    def poll(self) -> int | str | None:
        """0 for a job that is done, a state for another end, "REQUEUED", "LOST" where Slurm forgot it, or None."""
        if self._status is None and time.monotonic() - self._looked > LOOK_SECONDS:
            self._looked = time.monotonic()
            # A job that is completing has nothing left that could be killed.
            facts = self._cluster.wait(lambda: self._facts)[0]
            if facts is None:
                self._status = "LOST"
            elif facts["JobState"] in ENDED:
                self._status = 0 if facts["JobState"] == "COMPLETED" else facts["JobState"]
            elif int(facts["Restarts"]) > self._restarts:
                self._status = "REQUEUED"
        return self._status

    @property
    def _facts(self) -> list[dict[str, str] | None]:
        """Returns the fields of the job, as Slurm has them; none while it is completing."""
        facts = self._cluster.known(self.number)
        return [] if facts is not None and facts["JobState"] == "COMPLETING" else [facts]

    def wait(self) -> int | str:
        while (status := self.poll()) is None:
            time.sleep(LOOK_SECONDS)
        return status

    @property
    def pid(self) -> int | None:
        """The driver: the child of the job's script."""
        for one in self._cluster.processes():
            words = one.cmdline() if one.is_running() else []
            if "--json" in words and one.parent() is not None and "slurm_script" in " ".join(one.parent().cmdline()):
                return one.pid
        return None


class Job(Command):
    """The study as a job: a start submits it, or lets a job that waits in the queue begin soon."""

    def __init__(self, folder: Path, runner: str, cluster: Slurm):
        super().__init__(folder, runner)
        self._cluster, self._run = cluster, None
        self._read = 0  # letters of the logs before this life

    @property
    def arguments(self):
        return [*super().arguments, *EPOCHS]

    @property
    def labels(self) -> list[str]:
        """Of the lives so far, as the log of trainings has them."""
        file = self.folder / "lives"
        return file.read_text().split() if file.exists() else []

    @property
    def whole_log(self) -> str:
        files = sorted(self.folder.glob("fuzzed-*.log"), key=lambda one: int(one.stem.partition("-")[2]))
        return "".join(file.read_text(errors="replace") for file in files)

    @property
    def err(self) -> str:
        return self.whole_log[self._read :]

    def trainings(self):
        label = self.labels[-1] if self.labels else ""
        return [one for one in log.read(self.log) if one.life == label]

    def start(self) -> JobRun:
        self.life += 1
        self.folder.mkdir(exist_ok=True), self.disk.mkdir(exist_ok=True), self.temporary.mkdir(exist_ok=True)
        self._read = len(self.whole_log)
        if self._run is None or self._run.poll() != "REQUEUED":
            number, restarts = self._submitted(), 0
        else:
            number, restarts = self._run.number, self._begun_again()
        self._run = JobRun(self._cluster, number, restarts)
        return self._run

    def _submitted(self) -> str:
        self._cluster.wait(self._cluster.ready)
        job = ["slurm", "--time", "2h", "--cpus", "2", "--setup", LABEL, "--submit", *self.arguments]
        done = subprocess.run(
            [sys.executable, "-m", "epsearch", *job],
            cwd=self.folder, env=self._cluster.environment | self.environment, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        number = re.findall(r"^Submitted batch job (\d+): ", done.stdout)[0]
        self._begins(number, 0)
        return number

    def _begun_again(self) -> int:
        """Shortens the two minutes for which Slurm lets a requeued job wait; how often it was requeued."""
        number = self._run.number
        self._cluster.wait(self._cluster.ready)
        facts = self._cluster.known(number)
        if facts is None or facts["JobState"] in ENDED:
            return 0 if facts is None else int(facts["Restarts"])
        if facts["JobState"] == "PENDING":
            self._cluster.command("scontrol", "update", f"JobId={number}", "StartTime=now+3seconds", check=False)
        self._begins(number, int(facts["Restarts"]))
        return int(facts["Restarts"])

    def _begins(self, number: str, restarts: int) -> None:
        """Waits until a job begins to run, or is over."""

        def begun():
            facts = self._cluster.known(number)
            return facts is None or facts["JobState"] in (*ENDED, "RUNNING") or int(facts["Restarts"]) > restarts

        self._cluster.wait(begun)

    def keep_answer(self) -> None:
        """Writes what the last run has printed to a file of its own."""
        answer = self.err[self.err.rindex("\n{\n") if "\n{\n" in self.err else self.err.index("{\n") :]
        (self.folder / "out").write_text(answer[: answer.index("\n}\n") + 3])


class JobVictim(Victim):
    """A study on a Slurm, whose daemons are killed, too."""

    def __init__(self, command: Job, dice, key, cluster: Slurm):
        super().__init__(command, dice, key, None)
        self._cluster = cluster

    def live(self, kills: int) -> Life:
        life = super().live(kills)
        until = time.monotonic() + QUEUE_SECONDS
        while self._cluster.processes() and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
        life.stored = self.command.stored()  # also by the driver of a run that Slurm has given up
        life.number = self.command.labels[-1] if self.command.labels else "none"
        if life.status == 0:
            self.command.keep_answer()
        return life

    def _abandon(self, life: Life) -> None:
        self._cluster.command("scancel", "--me", check=False)

    def _unexpected(self, life: Life) -> str:
        targets = {kill["target"] for kill in life.kills}
        causes = {
            0: {""},
            "FAILED": {"driver", "node", "raylet", "gcs_server", "agent"},
            "NODE_FAIL": {"node", "slurmd"},
            "REQUEUED": {"node", "slurmd", "slurmctld"},
            "LOST": {"slurmctld"},
        }.get(life.status, set())
        if (targets | {""}) & causes and "Traceback" not in self.command.err:
            return ""
        return f"life {life.number}, status {life.status}, {life.kills}: {self.command.err[-1500:]}"

    def _targets(self, life: Life) -> dict[str, list[int]]:
        pid = life.process.pid
        processes = {} if pid is None else self._processes_below(pid) | {"node": []}
        return processes | {"slurmctld": [], "slurmd": []}

    def _strike(self, target: str, victims: list[int]) -> None:
        if target not in AWAY:
            super()._strike(target, victims)
            return
        daemon = target if target == "slurmctld" else self._cluster.nodes[0]
        (self._cluster.kill_node if target == "node" else self._cluster.kill)(daemon)
        time.sleep(self._dice.uniform(0, self._dice.choice(AWAY[target])))
        self._cluster.start(daemon)


class JobCampaign(Campaign):
    """Studies on one Slurm, until there were so many kills."""

    def __init__(self, log: Path, runner: str, kills: int, seed: int = 1):
        super().__init__(log, runner, kills, ["sqlite"], seed)

    @contextmanager
    def _surroundings(self) -> Iterator[None]:
        self._folder = Path(tempfile.mkdtemp(prefix="c-"))
        with ExitStack() as stack:
            stack.callback(self._tidy)
            self._cluster = stack.enter_context(slurm(cpus=2, slurmd_timeout=NODE_SECONDS))
            yield

    def _victim(self, name: str, database: str, dice) -> Victim:
        return JobVictim(Job(self._folder / name, self.runner, self._cluster), dice, self._key, self._cluster)

    def _left(self, command: Job, expected: set[str], before: set[str]) -> list[str]:
        """Not among shared memory, which other programs of this machine have, too."""
        jobs = [f"{one.pid} {one.name()}" for one in self._cluster.processes()]
        files = [one for one in remains.files(command) - expected if not SLURM_LOG.fullmatch(one)]
        return [*files, *remains.processes(command), *jobs]
