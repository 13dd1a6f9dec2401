"""What docs/production.md says is so: its own lines are run, with other ports, folders and certificates."""

import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import httpx
import psutil
import pytest

from epsearch.service.access.tokens import COOKIE
from results.ledger.database import connect
from results.ledger.schema import TABLES_OF, VERSION
from tests.support import postgres
from tests.support.limits import HANGS
from tests.support.servers import free_port
from tests.support.service import STUDY, Process, until
from tests.support.trainings import log

pytestmark = pytest.mark.service

PAGE = (Path(__file__).parents[3] / "docs" / "production.md").read_text(encoding="utf-8")
LONG = STUDY | {"examples_per_task": 1000, "tasks": 5, "workers": 1, "repeats": 2}
"""Takes seconds on any machine, in many cohorts."""
MEASURED = ("seconds", "created", "cohort")
"""Columns of runs that differ between two trainings of the same members."""
PATH = os.pathsep.join(map(str, (os.environ.get("PATH", ""), "/usr/sbin", postgres.programs() or "")))
"""With the folders in which Debian has servers."""


def blocks(section, language=""):
    """The fenced blocks of a section of the page."""
    (text,) = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE)
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def block(section, has):
    """The lines for a shell of a section that have some text."""
    (found,) = (one for one in blocks(section) if has in one)
    return found


def replaced(text, others):
    """Text with other parts, each of which must be there."""
    for old, new in others.items():
        assert old in text, f"the page has no {old}: {text}"
        text = text.replace(old, str(new))
    return text


def needs(*programs):
    """Skips the test where a program is not installed; returns their paths."""
    paths = [shutil.which(program, path=PATH) for program in programs]
    if missing := [program for program, path in zip(programs, paths, strict=True) if path is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    return paths


class Machine:
    """A folder in place of a machine; its users are roles of PostgreSQL.

    host: folder of the sockets of a PostgreSQL server, whose superuser is `epsearch`; the page's role and database are
    `lab` there.
    """

    def __init__(self, folder, host=""):
        self.state, self._host = folder / "state", host
        self._places = {
            "/var/lib/epsearch": self.state,
            "/var/backups/epsearch": folder / "backups",
            "/var/cache/epsearch": folder / "cache",
            "/var/run/postgresql": host,
            "epsearch@/epsearch": "lab@/lab",
            "/opt/epsearch/bin/epsearch": f"{shlex.quote(sys.executable)} -m epsearch",
        }
        for made in (self.state, folder / "backups"):
            made.mkdir(parents=True)

    def adapted(self, line):
        """A line of the page for this machine."""
        for old, new in self._places.items():
            line = line.replace(old, str(new))
        return line

    def run(self, lines, day="", allowed=(0,)):
        """Runs lines of the page, but for those of systemctl; returns what they print. allowed: exit statuses."""
        printed = ""
        for line in lines.splitlines():
            if "systemctl" in line or line.startswith("day="):
                continue
            user, command = re.fullmatch(r"(?:sudo -u (\w+) )?(.*)", line).groups()
            if command.split()[0] in ("createuser", "createdb", "psql", "pg_dump", "pg_restore"):
                command = re.sub(r"(?<=[ =])epsearch(?= |$|_before)", "lab", command)
            role = {"postgres": "epsearch", "epsearch": "lab"}.get(user, "")
            environment = os.environ | {"PATH": PATH, "PGHOST": self._host, "PGUSER": role, "day": day}
            shell = ["bash", "-c", self.adapted(command)]
            done = subprocess.run(shell, cwd=self.state, env=environment, capture_output=True, text=True, timeout=HANGS)
            assert done.returncode in allowed, f"{shell[-1]}\n{done.stdout}{done.stderr}"
            printed += done.stdout
        return printed

    @property
    def storage(self):
        """URL of its ledger in PostgreSQL."""
        return self.adapted(block("PostgreSQL", "EPSEARCH_STORAGE=").strip().partition("=")[2])


@pytest.fixture
def serving():
    """A function that starts a service in a folder; whatever becomes of the test, nothing of it is left."""
    made = []

    def start(folder, *options, **environment):
        made.append(Process(folder, *options, environment=environment))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            end(one)


def end(service, number=signal.SIGTERM):
    """Ends a service, and waits until its studies have ended; by SIGKILL it kills them, too."""
    studies = psutil.Process(service.process.pid).children()
    service.end(number)
    if number == signal.SIGKILL:
        for study in studies:
            study.kill()
    until(lambda: not [one for one in studies if one.is_running() and one.status() != psutil.STATUS_ZOMBIE])


def rows(service, name):
    """What a service knows of a study's members, but for what is measured."""
    told = service.ask("GET", f"/api/v1/studies/{name}/runs")
    return sorted((sorted((k, str(v)) for k, v in one.items() if k not in MEASURED)) for one in told)


def finish(service, name):
    def finished():
        state = service.states()[name]
        assert state not in ("failed", "cancelled"), service.ask("GET", f"/api/v1/studies/{name}/standing")
        return state == "finished"

    until(finished)


def stored(service):
    return service.ask("GET", "/api/v1/ledger")["runs"]


@contextmanager
def started(command, folder, url, verify):
    """A proxy, once it answers at a URL; it ends with the block."""
    with (folder / "log").open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out, env=os.environ | {"HOME": str(folder)})
    try:

        def answers():
            said = (folder / "log").read_text(errors="replace")
            assert process.poll() is None, said
            try:
                return httpx.get(url, verify=verify()).json() == {"status": "ok"}
            except (httpx.TransportError, OSError):
                return False

        until(answers)
        yield
    finally:
        process.terminate()
        process.wait(HANGS)


def trusting(file):
    context = ssl.create_default_context()
    context.load_verify_locations(file)
    return context


@contextmanager
def nginx(folder, public, service):
    """nginx with the block of the page; yields the file of the certificate to trust."""
    program, openssl = needs("nginx", "openssl")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    request = f"{openssl} req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    request += f" -subj /CN=lab.example -addext subjectAltName=DNS:lab.example -keyout {key} -out {certificate}"
    subprocess.run(shlex.split(request), check=True, capture_output=True)
    (server,) = blocks("nginx", "nginx")
    server = replaced(
        server,
        {
            "listen 443 ssl": f"listen 127.0.0.1:{public.port} ssl",
            "/etc/ssl/certs/lab.example.pem": certificate,
            "/etc/ssl/private/lab.example.key": key,
            "http://127.0.0.1:8470": service,
        },
    )
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""  # others may not look into the folder of a test
    (folder / "nginx.conf").write_text(
        f"{user} daemon off; pid {folder}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {temporary}\n{server} }}\n"
    )
    command = [program, "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
    with started(command, folder, f"{public}/health", lambda: trusting(certificate)):
        yield certificate


@contextmanager
def caddy(folder, public, service):
    """Caddy with the block of the page, and certificates of its own making."""
    (program,) = needs("caddy")
    (site,) = blocks("Caddy", "caddyfile")
    site = replaced(site, {"lab.example {": f"lab.example:{public.port} {{\n\ttls internal", "127.0.0.1:8470": service})
    own = f"admin off\n\tskip_install_trust\n\tauto_https disable_redirects\n\tstorage file_system {folder}/kept"
    (folder / "Caddyfile").write_text(f"{{\n\t{own}\n\tdefault_bind 127.0.0.1\n}}\n{site}")
    root = folder / "kept" / "pki" / "authorities" / "local" / "root.crt"
    command = [program, "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    with started(command, folder, f"{public}/health", lambda: trusting(root)):
        yield root


@pytest.mark.parametrize("proxy", [nginx, caddy], ids=["nginx", "caddy"])
def test_a_proxy_signs_in_submits_and_streams(tmp_path, serving, proxy, epsearch, monkeypatch):
    needs("nginx" if proxy is nginx else "caddy")
    here = partial(socket.getaddrinfo, "127.0.0.1")
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *more, **options: here(*more, **options))
    public = httpx.URL(f"https://lab.example:{free_port()}/epsearch")
    machine = Machine(tmp_path / "machine")
    secrets = machine.run(block("A machine for thirty people", "token ann")).split()
    line = block("A machine for thirty people", "epsearch serve")
    options = shlex.split(replaced(line, {"https://lab.example/epsearch": public}))[2:]
    options[options.index("tokens.txt")] = str(machine.state / "tokens.txt")
    service = serving(tmp_path / "service", *options)
    (tmp_path / "proxy").mkdir()
    with proxy(tmp_path / "proxy", public, service.url) as trusted:
        with httpx.Client(verify=trusting(trusted), timeout=HANGS, headers={"Accept": "text/html"}) as browser:
            path = browser.get(f"{public}").headers["location"]
            assert httpx.URL(f"{public}").join(path) == f"{public}/"
            page = browser.get(f"{public}/studies?state=running")
            place = f"{public.path}/sign-in?next=%2Fstudies%3Fstate%3Drunning"
            assert page.status_code == 303 and page.headers["location"] == place
            assert page.headers["strict-transport-security"]
            form = {"token": secrets[0], "next": "/help"}
            origin = {"Origin": f"https://lab.example:{public.port}"}
            foreign = browser.post(f"{public}/sign-in", data=form, headers={"Origin": "https://evil.example"})
            assert foreign.status_code == 403
            signed = browser.post(f"{public}/sign-in", data=form, headers=origin)
            assert signed.status_code == 303 and signed.headers["location"] == f"{public.path}/help"
            cookie = signed.headers["set-cookie"]
            assert cookie.startswith(COOKIE) and "Secure" in cookie and f"Path={public.path}" in cookie
            assert browser.get(f"{public}/help").status_code == 200
            studies = f"{public}/api/v1/studies"
            assert browser.post(studies, content=b"x" * (2**20 + 1), headers=origin).status_code == 413
            sent = browser.post(studies, json=STUDY | {"name": "of-ann"}, headers=origin)
            assert sent.status_code == 201 and sent.json()["submitter"] == "ann", sent.text
            assert httpx.URL(f"{public}/").join(sent.headers["location"]) == f"{studies}/of-ann"
            types = set()
            with browser.stream("GET", f"{studies}/of-ann/events?after=0") as stream:
                for text in stream.iter_lines():  # it never ends by itself: a proxy that waits for its end hangs here
                    types |= {text} if text.startswith("event:") else set()
                    if len(types) > 2:
                        break
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        monkeypatch.setenv("EPSEARCH_TOKEN", secrets[1])
        listed = epsearch("list", "--server", public, "--json")
        assert listed.status == 0 and [one["name"] for one in listed.json] == ["of-ann"], listed.err


def test_the_unit_is_as_systemd_wants_it(tmp_path):
    (program,) = needs("systemd-analyze")
    (unit,) = blocks("systemd", "ini")
    command = re.search(r"^ExecStart=(\S+) (.*?[^\\])$", unit, flags=re.DOTALL | re.MULTILINE)
    served = block("A machine for thirty people", "epsearch serve")
    assert shlex.split(command[2].replace("\\\n", " ")) == shlex.split(served)[1:]
    file = tmp_path / "epsearch.service"
    file.write_text(replaced(unit, {command[1]: sys.executable}))
    done = subprocess.run([program, "verify", str(file)], capture_output=True, text=True)
    assert done.returncode == 0 and "epsearch.service" not in done.stderr, done.stderr
    for part, wrong in (("KillMode=process", "KillMode=all"), (command[1], tmp_path / "nothing")):
        file.write_text(replaced(unit, {command[1]: sys.executable} | {part: wrong}))
        done = subprocess.run([program, "verify", str(file)], capture_output=True, text=True)
        assert "epsearch.service" in done.stderr, "what is wrong is seen"


@contextmanager
def database(kind):
    """The folder of sockets of a PostgreSQL server that has the role and the database of the page; empty for SQLite."""
    if kind == "sqlite":
        yield ""
        return
    programs = postgres.programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres.server(programs) as url:
        yield url.partition("host=")[2]


KINDS = pytest.mark.parametrize("kind", ["sqlite", "postgresql"])


def made(tmp_path, kind, host):
    """(machine, variables of its service)."""
    machine = Machine(tmp_path / "machine", host)
    if kind == "sqlite":
        return machine, {}
    needs("createuser", "createdb", "psql", "pg_dump", "pg_restore")
    machine.run(block("PostgreSQL", "createuser"))
    return machine, {"EPSEARCH_STORAGE": machine.storage}


@KINDS
def test_a_backup_of_a_running_service_is_restored_and_its_study_goes_on(tmp_path, serving, kind):
    needs("tar", *(["sqlite3"] if kind == "sqlite" else []))
    with database(kind) as host:
        machine, variables = made(tmp_path, kind, host)
        (machine.state / "tokens.txt").write_text("# of nobody\n")
        service = serving(machine.state, **variables)
        for number in count(1):
            name, day, before = f"study-{number}", f"2026-01-{number:02}", stored(service)
            service.ask("POST", "/api/v1/studies", LONG | {"name": name, "lr": 0.05 + 0.001 * number})
            until(lambda before=before: stored(service) > before + 3)
            machine.run(block("Backup", "VACUUM" if kind == "sqlite" else "pg_dump"), day)
            if service.states()[name] == "running":  # else it was faster than the backup
                break
        machine.run(block("Backup", "tar "), day, allowed=(0, 1))
        finish(service, name)
        undisturbed = rows(service, name)
        end(service)
        for lost in ("runs", "tokens.txt"):
            shutil.move(machine.state / lost, tmp_path / f"lost-{lost}")
        lines = block("Restore", "cp " if kind == "sqlite" else "pg_restore")
        if kind == "postgresql":
            lines += next(line for line in block("Restore", "cp ").splitlines() if " tar " in line)
        machine.run(lines, day)
        assert (machine.state / "tokens.txt").exists() and (machine.state / "runs" / name / "service.log").exists()
        service = serving(machine.state, **variables, **log.environment(tmp_path / "trainings"))
        finish(service, name)
        assert rows(service, name) == undisturbed
        assert 0 < len(log.begun(log.read(tmp_path / "trainings"))) <= len(undisturbed) - 3


def make_first(storage):
    """Makes a ledger one of schema version 1; returns the number of its runs."""
    engine = connect(storage)
    new = {table.name for table in TABLES_OF[VERSION]} - {table.name for table in TABLES_OF[1]}
    assert new
    with engine.begin() as connection:
        for name in sorted(new):
            connection.exec_driver_sql(f"DROP TABLE {name}")
        connection.exec_driver_sql("UPDATE epsearch_schema SET version = 1")
        runs = connection.exec_driver_sql("SELECT COUNT(*) FROM epsearch_runs").scalar_one()
    engine.dispose()
    return runs


@KINDS
def test_studies_of_an_older_ledger_that_run_and_wait_go_on_after_an_upgrade(tmp_path, serving, kind):
    with database(kind) as host:
        machine, variables = made(tmp_path, kind, host)
        service = serving(machine.state, **variables)
        for number, name in enumerate(("running", "waiting")):
            service.ask("POST", "/api/v1/studies", LONG | {"name": name, "lr": 0.05 + 0.001 * number})
        until(lambda: stored(service) > 3)
        end(service, signal.SIGKILL)
        before = make_first(variables.get("EPSEARCH_STORAGE", f"sqlite:///{machine.state}/runs/epsearch.sqlite"))
        variables |= log.environment(tmp_path / "trainings")
        service = serving(machine.state, **variables)
        if kind == "postgresql":
            service.process.wait(HANGS)
            assert service.process.returncode == 2 and "`epsearch db upgrade`" in service.said
            machine.run(block("Upgrade", "db upgrade"))
            service = serving(machine.state, **variables)
        for name in ("running", "waiting"):
            finish(service, name)
        assert before + len(log.begun(log.read(tmp_path / "trainings"))) == stored(service), "none was trained again"
        if kind == "sqlite":
            assert f"the ledger had schema version 1 and was brought up to {VERSION}" in service.said
            assert (machine.state / "runs" / "epsearch.sqlite.v1").exists()


def test_a_running_service_is_cleaned(tmp_path, serving):
    machine = Machine(tmp_path / "machine")
    service = serving(machine.state)
    service.ask("POST", "/api/v1/studies", STUDY | {"name": "first"})
    until(lambda: stored(service) > 3)
    machine.run(replaced(block("Retention", "clean"), {"90d": "1s"}))
    finish(service, "first")
