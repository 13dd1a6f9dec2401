"""A Slurm of one's own on this machine: munged, slurmctld, and a slurmd for each node."""

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.support.limits import HANGS

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "srun", "scancel")
SYSTEM = "/usr/sbin:/sbin"
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL")
CONFIGURATION = """
ClusterName=tests
SlurmctldHost=localhost
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,bf_interval=2
ReturnToService=2
SlurmdTimeout={slurmd_timeout}
InactiveLimit=0
KillWait=5
MinJobAge=3600
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus}\n"


def missing():
    """Why there can be no Slurm here; "" where there can."""
    lacking = [name for name in PROGRAMS if _which(name) is None]
    return f"needs {', '.join(lacking)}: apt-get install slurmctld slurmd slurm-client munge" if lacking else ""


def _which(name):
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM}")


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Slurm:
    """Daemons of a folder with a short name; `environment` is for the commands of Slurm."""

    def __init__(self, folder, nodes, cpus, slurmd_timeout):
        self.folder, self.nodes, self._daemons = folder, [f"n{number}" for number in range(nodes)], {}
        (folder / "state").mkdir()
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        user = pwd.getpwuid(os.getuid()).pw_name
        text = CONFIGURATION.format(folder=folder, user=user, port=_free_port(), slurmd_timeout=slurmd_timeout)
        for name in self.nodes:
            text += NODE.format(name=name, host=socket.gethostname(), port=_free_port(), cpus=cpus)
        (folder / "slurm.conf").write_text(text)
        others = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH", "RAY_"))}
        self.environment = others | {"SLURM_CONF": str(folder / "slurm.conf"), "OMP_NUM_THREADS": "1"}

    def start(self, name):
        """Starts a daemon: munged, slurmctld, or the slurmd of a node."""
        place, conf = self.folder, self.folder / "slurm.conf"
        if name == "munged":
            own = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid"}
            own |= {"log-file": "munged.log", "seed-file": "munged.seed"}
            command = [
                _which(name),
                "--foreground",
                "--force",
                *(f"--{one}={place / file}" for one, file in own.items()),
            ]
        elif name == "slurmctld":
            command = [_which(name), "-D", "-f", conf]
        else:
            (place / f"spool-{name}").mkdir(exist_ok=True)
            command = [_which("slurmd"), "-D", "-f", conf, "-N", name]
        with open(place / f"{name}.out", "ab") as log:
            streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "env": self.environment}
            self._daemons[name] = subprocess.Popen([*map(str, command)], **streams)

    def kill(self, name):
        """Kills a daemon, which has no time for a last word; its jobs go on."""
        self._daemons[name].kill()
        self._daemons[name].wait(timeout=HANGS)

    def kill_node(self, name):
        """Kills the slurmd of the only node, and all that its jobs have started."""
        assert self.nodes == [name], "processes of several nodes cannot be told apart"
        self.kill(name)
        theirs = self.processes()
        for end in (psutil.Process.suspend, psutil.Process.kill):  # at once: none tells Slurm that another has ended
            for one in theirs:
                with suppress(psutil.NoSuchProcess):
                    end(one)

    def processes(self):
        """Processes of jobs, which know where this Slurm is, and the slurmstepd above them; not the daemons."""
        daemons, found = {daemon.pid for daemon in self._daemons.values()}, []
        for one in psutil.process_iter():
            with suppress(psutil.Error):
                if one.environ().get("SLURM_CONF") == self.environment["SLURM_CONF"] and one.pid not in daemons:
                    found += [one, *(above for above in one.parents() if above.name().startswith("slurmstepd"))]
        return found

    def command(self, *words, check=True, **options):
        """Returns the output of a command of Slurm."""
        done = subprocess.run(
            [_which(words[0]), *map(str, words[1:])],
            env=self.environment, capture_output=True, text=True, timeout=HANGS, **options,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stderr + self.logs()
        return done.stdout.strip()

    def job(self, number):
        """Returns the facts of a job, by Slurm's names of them."""
        text = self.command("scontrol", "--oneliner", "show", "job", number)
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def known(self, number):
        """As `job`, also while slurmctld does not answer, which is waited for; None for a job that it does not know."""
        command = ["scontrol", "--oneliner", "show", "jobs", "--all"]
        text = self.wait(lambda: self.command(*command, check=False))
        jobs = (dict(word.split("=", 1) for word in line.split() if "=" in word) for line in text.splitlines())
        return next((job for job in jobs if job.get("JobId") == str(number)), None)

    def wait(self, what, seconds=HANGS):
        """Waits until a function returns something true, and returns that."""
        until = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < until, self.logs()
            time.sleep(0.2)
        return found

    def requeued(self, number, times=1, before=lambda: None):
        """Waits until a job is back in the queue, and lets it begin soon: Slurm would wait for two minutes.

        Within the second of its last end, slurmd takes its credential for revoked. before: called before it begins.
        """
        self.wait(lambda: int(self.job(number)["Restarts"]) >= times and self.job(number)["JobState"] == "PENDING")
        self.wait(lambda: not self.processes())  # the end of the last run would be taken for that of the next
        before()
        self.wait(self.ready)
        self.command("scontrol", "update", f"JobId={number}", "StartTime=now+3seconds")

    def ended(self, number, seconds=HANGS):
        """Waits for the end of a job; returns what Slurm knows of it."""

        def over():
            found = self.job(number)
            return found if found["JobState"] in ENDED else None

        return self.wait(over, seconds)

    def logs(self):
        files = sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")])
        return "\n".join(f"{file.name}: {file.read_text(errors='replace')[-3000:]}" for file in files)

    def ready(self):
        """Returns whether all nodes are idle."""
        return self.command("sinfo", "--noheader", "--format=%D %t", check=False) == f"{len(self.nodes)} idle"

    def end(self):
        for daemon in reversed(self._daemons.values()):
            if daemon.poll() is None:
                daemon.terminate()
                try:
                    daemon.wait(timeout=30)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait(timeout=HANGS)


@contextmanager
def slurm(nodes=1, cpus=2, slurmd_timeout=60):
    """A Slurm with idle nodes; its jobs are cancelled at the end, and waited for."""
    folder = Path(tempfile.mkdtemp(prefix="eps-slurm-"))
    made = Slurm(folder, nodes, cpus, slurmd_timeout)
    try:
        for name in ("munged", "slurmctld", *made.nodes):
            made.start(name)
            if name == "munged":
                made.wait((folder / "munge.socket").exists)
        made.wait(made.ready)
        yield made
        made.command("scancel", "--me", check=False)
        made.wait(lambda: not made.command("squeue", "--noheader", check=False))
    finally:
        made.end()
        shutil.rmtree(folder, ignore_errors=True)
