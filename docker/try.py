"""Builds both images and runs a study on what compose.yaml describes, without a container engine or a registry.

    apt-get install buildah mmdebstrap iproute2 uidmap
    uv run python docker/try.py --folder /var/tmp/epsearch-try

As root, on Debian or Ubuntu. The base images, which a registry would have, are made of Debian's packages under the
same names, with this machine's CA certificates. Each container gets a network address, process numbers and
a hostname of its own; nothing of it can be reached from outside, nor reaches out. Services run with the commands, the
environment, the volumes and the health checks that compose.yaml gives them. STORAGE_DRIVER=overlay needs less disk than
buildah's vfs, where the folder's file system can do it.
"""

import argparse
import json
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PACKAGES = {
    "localhost/python:3.11-slim": "ca-certificates,python3,python3-pip,python3-venv",
    "localhost/postgres:17": "ca-certificates,postgresql",
}
# What the entry point of the registry's PostgreSQL does with the variables that compose.yaml sets.
POSTGRES = r"""
set -e
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
if ! [ -s "$PGDATA/PG_VERSION" ]; then
    initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth-host=scram-sha-256 \
        --encoding=UTF8 --locale=C.UTF-8 >/dev/null
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    echo "CREATE DATABASE $POSTGRES_DB" | postgres --single postgres >/dev/null
fi
exec postgres -c listen_addresses='*' -c unix_socket_directories=/tmp
"""


def call(*command: str | Path, **options: Any) -> str:
    """Runs a command and returns what it printed; ends the script in one line when it fails."""
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, **options)
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nstatus {done.returncode}: {' '.join(map(str, command))}")
    return done.stdout.strip()


class Buildah:
    """buildah with all that it stores in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tmp").mkdir(exist_ok=True)  # where containers that are killed leave something
        here = ("env", f"TMPDIR={folder / 'tmp'}", "buildah")
        self.command = (*here, "--root", str(folder / "store"), "--runroot", str(folder / "run"))
        os.environ.setdefault("STORAGE_DRIVER", "vfs")
        os.environ["BUILDAH_ISOLATION"] = "chroot"

    def __call__(self, *arguments: str | Path) -> str:
        """Runs one of its commands and returns what it printed."""
        return call(*self.command, *arguments)

    def has(self, image: str) -> bool:
        """Whether there is an image of this name."""
        return subprocess.run([*self.command, "inspect", "--type=image", image], capture_output=True).returncode == 0

    def config(self, image: str) -> dict[str, Any]:
        """Its entry point, command, environment and user."""
        return dict(json.loads(self("inspect", "--type=image", image))["OCIv1"]["config"])

    def base(self, image: str) -> None:
        """Makes what a registry has under the name of `image`, of Debian's packages."""
        tar = self.folder / "base.tar"
        call("mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES[image]}", "bookworm", tar)
        made = self("from", "scratch")
        self("add", "--quiet", made, tar, "/")
        tar.unlink()
        self("copy", "--quiet", made, CERTIFICATES, CERTIFICATES)
        if "postgres" in image:
            data = "/var/lib/postgresql/data"
            self("run", "--network=host", made, "--", "install", "-d", "-o", "postgres", "-m", "700", data)
            entry = json.dumps(["/bin/sh", "-c", POSTGRES])
            self("config", "--user=postgres", f"--env=PGDATA={data}", f"--entrypoint={entry}", made)
        else:
            for variable in ("PIP_CERT", "SSL_CERT_FILE"):
                self("config", f"--env={variable}={CERTIFICATES}", made)
        self("commit", "--quiet", "--rm", made, image)

    def build(self, target: str, arguments: Sequence[str]) -> None:
        """Builds a target of the Dockerfile as its first lines say, with a log, and prints seconds and size."""
        log, began = self.folder / f"build-{target}.log", time.monotonic()
        command = ("build", "--pull-never", "--network=host", f"--target={target}", f"--tag=epsearch:{target}")
        command += (f"--file={HERE / 'Dockerfile'}",)
        with log.open("w") as output:
            print(f"{target}: building, log in {log}", flush=True)
            done = subprocess.run(
                [*self.command, *command, *arguments, str(HERE.parent)],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        if done.returncode:
            raise SystemExit(f"{log.read_text()[-3000:]}\n{target}: cannot be built")
        size = self("images", "--format={{.Size}}", f"localhost/epsearch:{target}").split("\n")[0]
        print(f"{target}: {size}, built in {time.monotonic() - began:.0f} s", flush=True)


class Compose:
    """The services of compose.yaml, each container in a network and process namespace of its own."""

    def __init__(self, buildah: Buildah, stack: ExitStack) -> None:
        self.buildah, self.stack, self.folder = buildah, stack, buildah.folder
        ray_token = secrets.token_hex(32)
        text = re.sub(r"\$\{RAY_AUTH_TOKEN[^}]*\}", ray_token, (HERE / "compose.yaml").read_text())
        described = yaml.safe_load(text.replace("$$", "$"))
        self.services = described["services"]
        self.secrets = {name: secrets.token_hex(32) for name in described["secrets"]}
        (self.folder / "secrets").mkdir(mode=0o700, exist_ok=True)
        for name, secret in self.secrets.items():
            (self.folder / "secrets" / name).write_text(f"{secret}\n")
        self.hosts = self.folder / "hosts"
        self.hosts.write_text("127.0.0.1 localhost\n")
        self.switch = f"epsearch-{os.getpid()}"
        self._namespace(self.switch)
        call("ip", "-n", self.switch, "link", "add", "bridge", "type", "bridge")
        call("ip", "-n", self.switch, "link", "set", "bridge", "up")
        self.containers = 0

    def _namespace(self, name: str) -> None:
        call("ip", "netns", "add", name)
        self.stack.callback(call, "ip", "netns", "del", name)

    def forget(self, service: str) -> None:
        """Takes a service's name out of everybody's hosts file: its next container has another address."""
        lines = [line for line in self.hosts.read_text().splitlines() if not line.endswith(f" {service}")]
        self.hosts.write_text("\n".join([*lines, ""]))

    def prepare(self, service: str, image: str = "") -> "Container":
        """A container that does not run yet, with an address, and the service's name in everybody's hosts file."""
        self.containers += 1
        number = self.containers
        namespace = f"{self.switch}-{number}"
        self._namespace(namespace)
        peer = ("peer", "name", "eth0", "netns", namespace)
        call("ip", "-n", self.switch, "link", "add", f"port{number}", "type", "veth", *peer)
        call("ip", "-n", self.switch, "link", "set", f"port{number}", "master", "bridge", "up")
        call("ip", "-n", namespace, "link", "set", "lo", "up")
        call("ip", "-n", namespace, "address", "add", f"10.213.0.{number}/24", "dev", "eth0")
        call("ip", "-n", namespace, "link", "set", "eth0", "up")
        with self.hosts.open("a") as file:
            file.write(f"10.213.0.{number} {service}\n")
        made = self.buildah("from", "--pull-never", image or self.services[service]["image"])
        self.stack.callback(self.buildah, "rm", made)
        return Container(self, service, made, namespace)

    def start(self, service: str) -> "Container":
        """A container that runs, once it is healthy by its own health check."""
        container = self.prepare(service)
        container.run()
        container.wait_until_healthy()
        return container


class Container:
    """One container of a service."""

    def __init__(self, compose: Compose, service: str, name: str, namespace: str) -> None:
        self.compose, self.service, self.name, self.namespace = compose, service, name, namespace
        self.described = compose.services[service]
        self.image = compose.buildah.config(compose.buildah("inspect", "--format={{.FromImage}}", name))
        self.log = compose.folder / f"{namespace.removeprefix(compose.switch)[1:]}-{service}.log"

    def _command(self, command: Sequence[str]) -> list[str]:
        words = ["ip", "netns", "exec", self.namespace]
        words += ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *self.compose.buildah.command]
        words += ["run", "--network=host", "--no-hosts", f"--hostname={self.service}"]
        words += [f"--volume={self.compose.hosts}:/etc/hosts:ro"]
        words += [f"--env={name}={value}" for name, value in self.described["environment"].items()]
        for volume in self.described.get("volumes", ()):
            name, place = volume.split(":")
            words.append(f"--volume={self._volume(name, place)}:{place}")
        for secret in self.described.get("secrets", ()):
            words.append(f"--volume={self.compose.folder / 'secrets' / secret}:/run/secrets/{secret}:ro")
        return [*words, self.name, "--", *command]

    def _volume(self, name: str, place: str) -> Path:
        """The folder of a named volume; a new one has the owner of the image's folder, as an engine has it."""
        folder = self.compose.folder / "volumes" / name
        if not folder.exists():
            folder.mkdir(parents=True)
            owner = Path(self.compose.buildah("mount", self.name) + place).stat()
            os.chown(folder, owner.st_uid, owner.st_gid)
        return folder

    def run(self, command: Sequence[str] = ()) -> None:
        """Starts the service's command, or another for its entry point."""
        entry = self.described.get("entrypoint")
        words = [*(entry or self.image["Entrypoint"])]
        words += command or self.described.get("command", () if entry else self.image.get("Cmd", ()))
        print(f"{self.service}: {' '.join(map(str.strip, words[-5:]))[:100]}", flush=True)
        with self.log.open("a") as output:
            self.process = subprocess.Popen(self._command(words), stdout=output, stderr=subprocess.STDOUT)
        self.compose.stack.callback(self.kill)

    def _exec(self, command: Sequence[str], limit: float) -> int:
        """The status of a command beside the one that runs, as `docker exec` has it: 1 while nothing runs yet."""
        process, root = self.process.pid, "/"
        while root == "/":  # ip, unshare and buildah come before the first process of the container
            threads = Path(f"/proc/{process}/task").glob("*/children")
            children = " ".join(thread.read_text() for thread in threads).split()
            if not children:
                return 1
            process = int(children[0])
            root = os.readlink(f"/proc/{process}/root")
        own = [*self.image["Env"], *(f"{name}={value}" for name, value in self.described["environment"].items())]
        user = Path(f"/proc/{process}").stat().st_uid
        words = ["nsenter", f"--target={process}", "--mount", "--net", "--pid", "--root", "--wd"]
        words += [f"--setuid={user}", f"--setgid={user}", "env", "--ignore-environment", *own, *command]
        return subprocess.run(words, capture_output=True, timeout=limit).returncode

    def kill(self) -> None:
        """Ends all processes of the container at once, as the loss of its machine would."""
        self.process.kill()
        self.process.wait()

    def wait(self) -> None:
        """Waits for the end of the command, and ends the script when its status is not 0."""
        began = time.monotonic()
        if status := self.process.wait():
            raise SystemExit(f"{self.log.read_text()[-3000:]}\n{self.service}: status {status}")
        print(f"{self.service}: ended after {time.monotonic() - began:.0f} s", flush=True)

    def wait_for(self, text: str) -> None:
        """Waits until the command has printed something; ends the script when it ends before."""
        while text not in self.log.read_text():
            if self.process.poll() is not None:
                raise SystemExit(f"{self.log.read_text()[-3000:]}\n{self.service}: ended before it printed {text!r}")
            time.sleep(0.5)

    def wait_until_healthy(self) -> None:
        """Asks as often as the health check says; ends the script when the container does not become healthy."""
        check, began = self.described["healthcheck"], time.monotonic()
        limit = float(check["timeout"].removesuffix("s"))
        for _ in range(check["retries"]):
            try:
                healthy = self._exec(check["test"][1:], limit) == 0
            except subprocess.TimeoutExpired:
                continue
            if healthy:
                print(f"{self.service}: healthy after {time.monotonic() - began:.0f} s", flush=True)
                return
            if self.process.poll() is not None:
                break
            time.sleep(float(check["interval"].removesuffix("s")))
        raise SystemExit(f"{self.log.read_text()[-3000:]}\n{self.service}: not healthy")


def study(buildah: Buildah, options: Sequence[str]) -> None:
    """PostgreSQL, head and two workers; a study that is killed once and started again; its report from the ledger."""
    with ExitStack() as stack:
        compose = Compose(buildah, stack)
        compose.start("database")
        compose.start("head")
        for _ in range(compose.services["worker"]["deploy"]["replicas"]):
            compose.start("worker")
        command = [*compose.services["study"]["command"], *options]
        first = compose.prepare("study")
        first.run(command)
        first.wait_for("best ε")  # said when the first results are stored
        first.kill()
        print("study: killed", flush=True)
        second = compose.prepare("study")
        second.run(command)
        second.wait()
        print(second.log.read_text())
        # Neither volumes nor Ray: all that a report needs is in the database.
        entry, volumes = compose.services["study"].pop("entrypoint"), compose.services["study"].pop("volumes")
        assert entry and volumes
        storage = f"postgresql://epsearch:{compose.secrets['database-password']}@database/epsearch"
        compose.services["study"]["environment"] = {"EPSEARCH_STORAGE": storage}
        report = compose.prepare("study")
        report.run(["report", command[command.index("--name") + 1]])
        report.wait()
        print(report.log.read_text())
        by_http(compose, options)


def by_http(compose: Compose, options: Sequence[str]) -> None:
    """The service; a study that another container submits and follows; the service is killed meanwhile, and goes on."""
    client = {"EPSEARCH_SERVER": "http://service:8470", "EPSEARCH_TOKEN": compose.secrets["token"]}
    compose.services["study"]["environment"] = client
    first = compose.start("service")
    submitted = compose.prepare("study")
    submitted.run(["run", "--name", "by-http", *options])
    submitted.wait_for("best ε")
    first.kill()
    print("service: killed", flush=True)
    submitted.process.wait()  # it says that the service does not answer
    print(submitted.log.read_text())
    compose.forget("service")
    compose.start("service")
    followed = compose.prepare("study")
    followed.run(["watch", "by-http"])
    followed.wait()
    print(followed.log.read_text())


def main() -> None:
    """Builds, then runs."""
    parser = argparse.ArgumentParser(description="Builds both images and runs a study, head, workers and database.")
    parser.add_argument("--folder", type=Path, required=True, help="for images, volumes and logs")
    parser.add_argument("--targets", nargs="*", default=["cpu", "cuda"], help="built; none: as they were built before")
    parser.add_argument("--torch-backend", help="instead of the Dockerfile's; empty for the package index")
    parser.add_argument("--options", default="--repeats 3 --points 7 --seeds 3", help="of the study")
    parser.add_argument("--clean", action="store_true", help="remove the folder at the end")
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / "volumes", ignore_errors=True)
    for log in folder.glob("*-*.log"):
        log.unlink()
    buildah = Buildah(folder)
    for image in PACKAGES:
        if not buildah.has(image):
            print(f"{image}: made of Debian's packages", flush=True)
            buildah.base(image)
    backend = [] if arguments.torch_backend is None else [f"--build-arg=TORCH_BACKEND={arguments.torch_backend}"]
    for target in arguments.targets:
        buildah.build(target, backend if target == "cpu" else [])
    study(buildah, arguments.options.split())
    if arguments.clean:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
