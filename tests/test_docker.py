"""Images, compose file and manifests, as far as that goes without an engine; docker/try.py goes further."""

import copy
import json
import os
import re
import shlex
import stat
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import compose_spec
import jsonschema
import kubernetes_validate
import pytest
import ray.autoscaler
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from epsearch import cli
from epsearch.service import app
from epsearch.service.access import tokens
from epsearch.service.app import LAST_SECONDS
from epsearch.service.safety import PROBES
from epsearch.service.settings import check
from epsearch.service.work import scheduler

ROOT = Path(__file__).parent.parent
DOCKER = ROOT / "docker"
SHARED = ROOT.parent / "shared" / "schemas"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PINNED = dict(line.split("==") for line in PROJECT["tool"]["uv"]["constraint-dependencies"])
TARGETS = ("cpu", "cuda")


def studied(command, capsys, monkeypatch, tmp_path):
    """What epsearch makes of a command line, which is `epsearch run …`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [*command, "--print-config"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code in (0, None)
    return yaml.safe_load(capsys.readouterr().out)


def served(arguments, monkeypatch, tmp_path):
    """Settings that `epsearch serve` makes of its arguments, as far as it goes before it listens."""
    settings = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app, "serve", lambda own, notify: settings.append(own))
    monkeypatch.setattr(sys, "argv", ["epsearch", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code in (0, None)
    check(*settings)
    return settings[0]


def installed(name, extras, seen):
    """Adds {name: version} of a package and of all that it needs here, where it is installed."""
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return
    seen[canonicalize_name(name)] = package.version.partition("+")[0]
    for line in package.requires or ():
        needed = Requirement(line)
        wanted = any(needed.marker is None or needed.marker.evaluate({"extra": extra}) for extra in ("", *extras))
        if wanted and canonicalize_name(needed.name) not in seen:
            installed(needed.name, needed.extras, seen)


def changed(described, path, value):
    """A copy with another value at a path of keys; None leaves the key out."""
    described = copy.deepcopy(described)
    inner = described
    for key in path[:-1]:
        inner = inner[key]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return described


@pytest.fixture(scope="module")
def stages():
    """Stage -> its instructions, those of the stages it is built from first."""
    found, current = {}, None
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if match := re.fullmatch(r"FROM (\S+) AS (\S+)", line):
            found[match[2]] = current = list(found.get(match[1], []))
        elif line and not line.startswith("#"):
            current.append(line)
    return found


class TestDockerfile:
    @pytest.mark.parametrize("target", TARGETS)
    def test_images_run_epsearch_as_an_ordinary_user(self, stages, target):
        lines = stages[target]
        (user,) = (line.split()[1] for line in lines if line.startswith("USER"))
        made = rf"groupadd --gid {user} epsearch && useradd --create-home --uid {user} --gid {user} epsearch "
        assert re.search(made, "\n".join(lines)) and user.isdecimal() and user != "0"
        assert 'ENTRYPOINT ["epsearch"]' in lines
        assert f"COPY --from={target}-build /opt/epsearch /opt/epsearch" in lines
        assert not any("pip install" in line for line in lines)

    @pytest.mark.parametrize("target", TARGETS)
    def test_what_is_installed_has_the_pinned_versions(self, stages, target):
        lines = stages[f"{target}-build"]
        installs = [part for line in lines for part in re.split("&&|;", line) if "pip install" in part]
        assert len(installs) == {"cpu": 3, "cuda": 1}[target]
        assert all("--constraint constraints.txt" in install for install in installs)
        (written,) = (line for line in lines if line.endswith("> constraints.txt"))
        code = re.search(r'python3 (-c ".*") > ', written)[1]
        made = subprocess.run(
            [sys.executable, *shlex.split(code)], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert dict(line.split("==") for line in made.stdout.splitlines()) == PINNED
        assert {"torch", "torchvision", "ray"} <= PINNED.keys()

    def test_all_that_epsearch_needs_is_pinned_to_what_the_tests_ran_with(self):
        seen = {}
        installed("epsearch", ("postgres", "ray", "s3"), seen)
        installed("ray", ("default", "tune"), seen)
        del seen["epsearch"]
        assert len(seen) > 80 and {"fastapi", "uvicorn", "starlette", "pydantic", "aiohttp", "psycopg"} <= seen.keys()
        assert {name: PINNED.get(name) for name in seen} == seen

    def test_images_are_named_without_a_registry_and_so_are_packages(self, stages):
        text = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
        bases = set(re.findall(r"^FROM (\S+)", text, flags=re.MULTILINE)) - stages.keys()
        assert bases == {"python:3.11-slim"}
        for lines in stages.values():
            assert not any(re.search(r"://|index|trusted", line, re.IGNORECASE) for line in lines)

    def test_torch_without_cuda_is_the_default_of_the_cpu_image_alone(self, stages):
        assert "ARG TORCH_BACKEND=cpu" in stages["cpu-build"]
        assert not any("TORCH_BACKEND" in line for line in stages["cuda-build"])
        (install,) = (line for line in stages["cpu-build"] if "uv pip install" in line)
        # Of that index two packages alone, so that it can put nothing else into the image.
        command = shlex.split(re.search(r"uv (pip install .*?) &&", install)[1])
        assert {"--no-deps", "--constraint", "--torch-backend"} <= {*command}
        assert command[-3:] == ["$TORCH_BACKEND", "torch", "torchvision"]

    def test_everything_that_is_copied_exists_and_passes_the_ignore_file(self, stages):
        lines = [line for line in stages["cpu-build"] if line.startswith("COPY")]
        copied = [word for line in lines for word in line.split()[1:-1]]
        passed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        assert {*PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"], "pyproject.toml"} <= set(copied)
        for name in copied:
            assert (ROOT / name).exists() and f"!{name}" in passed


SECRETS = {"RAY_AUTH_TOKEN": "token"}
FILES = {"database-password": "p4ss-w0rd", "token": "twenty-letters-or-so"}
"""Secret -> what the test writes into its file."""


@pytest.fixture(scope="module")
def text():
    return (DOCKER / "compose.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def compose(text):
    """As Compose reads it: anchors resolved, variables put in."""
    values = re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: SECRETS[found[1]], text)
    return yaml.safe_load(values.replace("$$", "$"))


class TestCompose:
    def validate(self, compose):
        compose_spec.PyCompose.from_json(json.dumps(compose)).validate()

    def test_it_is_what_compose_reads(self, compose):
        self.validate(compose)

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("head", "no_such_key"), 1),
            (("head", "restart"), "sometimes"),
            (("head", "shm_size"), "lots"),
            (("head", "healthcheck", "interval"), "soon"),
            (("study", "depends_on", "head", "condition"), "service_well"),
            (("study", "deploy", "restart_policy", "condition"), "sometimes"),
            (("service", "read_only"), "mostly"),
            (("service", "cap_drop"), "ALL"),
            (("service", "security_opt"), "no-new-privileges"),
            (("service", "tmpfs"), {"/tmp": "1g"}),
        ],
    )
    def test_what_compose_would_refuse_is_refused_here(self, compose, path, value):
        with pytest.raises(ValueError, match=r".") as refused:
            self.validate(changed(compose, ("services", *path), value))
        assert refused.type is ValueError

    def test_no_secret_stands_in_it_and_none_has_a_default(self, text):
        assert set(re.findall(r"\$\{(\w+):\?", text)) == SECRETS.keys()
        assert len(re.findall(r"\$\{", text)) == len(re.findall(r"\$\{\w+:\?", text))
        assert {".env", "docker/secrets/"} <= {*(ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()}

    def test_secrets_are_files_that_the_page_makes_and_git_ignores(self, compose, text):
        assert compose["secrets"] == {name: {"file": f"./secrets/{name}"} for name in FILES}
        commands = [line.removeprefix("#").strip() for line in text.splitlines()]
        page = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8").splitlines()
        for line in commands[2 : commands.index("docker compose build head")]:
            assert line in page
        assert f"for name in {' '.join(FILES)}; do" in text and "mkdir -m 700 secrets" in commands

    def test_the_database_and_its_password_are_for_the_driver_alone(self, compose):
        services = compose["services"]
        assert {name: service["secrets"] for name, service in services.items() if "secrets" in service} == {
            "database": ["database-password"],
            "study": ["database-password"],
            "service": ["database-password", "token"],
        }
        assert services["database"]["environment"]["POSTGRES_PASSWORD_FILE"] == "/run/secrets/database-password"
        for service in services.values():
            assert not {"EPSEARCH_STORAGE", "EPSEARCH_TOKENS", "POSTGRES_PASSWORD"} & service["environment"].keys()

    @pytest.mark.parametrize("name", ["study", "service"])
    def test_secrets_are_in_the_environment_of_epsearch_and_not_of_ray(self, compose, tmp_path, name):
        """The entry point with stand-ins for both programs, which tell their environment and arguments."""
        own, secrets = compose["services"][name], tmp_path / "secrets"
        secrets.mkdir()
        for secret in own["secrets"]:
            (secrets / secret).write_text(f"{FILES[secret]}\n")
        for program in ("ray", "epsearch"):
            file = tmp_path / program
            file.write_text(
                f'#!/bin/sh\nenv > {tmp_path}/{program}.env\nprintf "%s\\n" "$@" > {tmp_path}/{program}.args\n'
            )
            file.chmod(0o755)
        shell, options, script, *rest = own["entrypoint"]
        command = [shell, options, script.replace("/run/secrets", str(secrets)), *rest, *own["command"]]
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        subprocess.run(command, env=environment, check=True)
        ray, ours = ((tmp_path / f"{program}.env").read_text() for program in ("ray", "epsearch"))
        assert not any(value in ray for value in FILES.values())
        assert f"EPSEARCH_STORAGE=postgresql://epsearch:{FILES['database-password']}@database/epsearch\n" in ours
        assert (f"EPSEARCH_TOKENS=admin:write:{FILES['token']}\n" in ours) == (name == "service")
        assert (tmp_path / "epsearch.args").read_text().splitlines() == own["command"]
        (secrets / "database-password").unlink()
        (tmp_path / "epsearch.args").unlink()
        assert subprocess.run(command, env=environment, capture_output=True).returncode
        assert not (tmp_path / "epsearch.args").exists(), "nothing starts without its secrets"

    def test_the_service_may_do_no_more_than_it_must(self, compose):
        service = compose["services"]["service"]
        user = re.search(r"^USER (\d+)$", (DOCKER / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
        assert service["user"] == f"{user}:{user}" and service["read_only"] is True
        assert service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"]
        assert not {"cap_add", "privileged", "pid", "ipc", "devices"} & service.keys()
        assert re.fullmatch(r"\d+g", service["mem_limit"]) and service["pids_limit"] > 0 and service["cpus"] > 0
        written = {place.partition(":")[0]: place.partition(":")[2] for place in service["tmpfs"]}
        assert written.keys() == {"/tmp", "/home/epsearch"} and all("size=" in how for how in written.values())
        assert f"uid={user},gid={user}" in written["/home/epsearch"]
        assert [volume.split(":")[1] for volume in service["volumes"]] == ["/results", "/data"]
        assert service["restart"] == "unless-stopped" and service["healthcheck"]["test"][-1].endswith(":8470/ready")

    def test_no_container_of_our_image_has_capabilities(self, compose):
        for name, service in compose["services"].items():
            if name != "database":
                assert service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"]

    def test_nothing_is_published_and_every_node_has_the_token(self, compose):
        for name, service in compose["services"].items():
            # Of all ports that of the service alone, to this machine alone; its pages ask for a token.
            assert service.get("ports", []) == (["127.0.0.1:8470:8470"] if name == "service" else [])
            assert "network_mode" not in service
            if name != "database":
                assert service["environment"]["RAY_AUTH_MODE"] == service["environment"]["RAY_AUTH_TOKEN"] == "token"

    def test_services_build_and_use_images_that_exist(self, compose):
        built = {}
        for service in compose["services"].values():
            if build := service.get("build"):
                assert (DOCKER / build["context"] / build["dockerfile"]).samefile(DOCKER / "Dockerfile")
                built[service["image"]] = build["target"]
        assert built == {f"epsearch:{target}": target for target in TARGETS}
        assert {service["image"] for service in compose["services"].values()} == {*built, "postgres:17"}

    def test_the_service_can_start(self, compose, monkeypatch, tmp_path):
        """With its own command and environment, as far as it goes before it listens."""
        monkeypatch.setenv("EPSEARCH_STORAGE", "postgresql://epsearch:password@database/epsearch")
        monkeypatch.setenv("EPSEARCH_TOKENS", f"admin:write:{FILES['token']}")
        settings = served(compose["services"]["service"]["command"], monkeypatch, tmp_path)
        assert settings.log_format == "json"
        assert settings.address == "head:6379" and "service" in settings.hosts and settings.port == 8470
        assert [token.name for token in settings.tokens.valid] == ["admin"]

    def test_who_waits_for_a_service_waits_for_its_health(self, compose):
        services = compose["services"]
        for service in services.values():
            for name, how in service.get("depends_on", {}).items():
                assert how["condition"] == "service_healthy" and services[name]["healthcheck"]["test"][0] == "CMD"
        named = {volume.split(":")[0] for service in services.values() for volume in service.get("volumes", ())}
        assert named == compose["volumes"].keys()

    def test_workers_read_no_folder_of_the_driver(self, compose):
        assert all("volumes" not in compose["services"][name] for name in ("head", "worker", "cuda-worker"))

    def test_the_study_can_be_restarted(self, compose, capsys, monkeypatch, tmp_path):
        study = compose["services"]["study"]
        assert study["deploy"]["restart_policy"]["condition"] == "on-failure" and "--wait" in study["command"]
        described = studied(["epsearch", *study["command"]], capsys, monkeypatch, tmp_path)
        assert described["address"] == "head:6379" and described["name"] == "digits"


@pytest.fixture(scope="module")
def cluster():
    return yaml.safe_load((DOCKER / "ray-cluster.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def schema():
    return json.loads((Path(ray.autoscaler.__file__).parent / "ray-schema.json").read_text(encoding="utf-8"))


class TestRayUp:
    def test_it_fits_rays_schema_and_passes_rays_validator(self, cluster, schema):
        from ray.autoscaler._private.util import prepare_config, validate_config

        jsonschema.validate(cluster, schema)
        config = prepare_config(cluster)
        validate_config(config)
        (kind,) = config["available_node_types"].values()
        assert kind["min_workers"] == kind["max_workers"] == len(cluster["provider"]["worker_ips"])

    def test_what_ray_would_refuse_is_refused_here(self, cluster, schema):
        for path, value in ((("min_workers",), 2), (("docker", "no_such_key"), 1), (("provider", "type"), None)):
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(changed(cluster, path, value), schema)

    def test_secrets_come_from_files_of_the_machines(self, cluster):
        docker = cluster["docker"]
        assert "--env-file=/etc/epsearch/ray.env" in docker["run_options"]
        assert "--env-file=/etc/epsearch/ledger.env" in docker["head_run_options"]
        assert not re.search(r"TOKEN|PASSWORD|STORAGE|://", str(cluster))
        assert any("--num-cpus=0" in command for command in cluster["head_start_ray_commands"])


MANIFESTS = sorted([*(DOCKER / "kuberay").glob("*.yaml"), *(DOCKER / "kubernetes").glob("*.yaml")])


@cache
def ray_schema(kind):
    """Of KubeRay's RayJob or RayCluster, trimmed: pod templates are left open."""
    path = SHARED / f"{kind}.schema.json"
    if not path.exists():
        pytest.skip(f"KubeRay's schema of a {kind} is on no package index, and {path} is not there")
    return json.loads(path.read_text(encoding="utf-8"))


def manifest(name):
    (path,) = (path for path in MANIFESTS if path.name == name)
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def spec_of_cluster(described):
    return described["spec"].get("rayClusterSpec", described["spec"])


def groups(described):
    spec = spec_of_cluster(described)
    return [spec["headGroupSpec"], *spec["workerGroupSpecs"]]


def validate(described):
    """Against the schemas of Kubernetes and KubeRay; raises jsonschema.ValidationError."""
    strictly = {"desired_version": kubernetes_validate.latest_version(), "strict": True}
    if described["apiVersion"] != "ray.io/v1":
        kubernetes_validate.validate(described, **strictly)
        return
    jsonschema.validate(described, ray_schema(described["kind"]))
    for group in groups(described):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "any"}, **group["template"]}
        kubernetes_validate.validate(pod, **strictly)


ON_KUBERAY = pytest.mark.parametrize("name", ["ray-job.yaml", "ray-cluster.yaml"])
HEAD = ("headGroupSpec", "template", "spec", "containers", 0)


class TestKubernetes:
    @pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
    def test_manifests_fit_their_schemas(self, path):
        described = manifest(path.name)
        assert described
        for one in described:
            validate(one)

    def test_there_is_one_of_each(self):
        kinds = [one["kind"] for path in MANIFESTS for one in manifest(path.name)]
        of_the_service = ["Deployment", "Ingress", "Namespace", "NetworkPolicy", "PersistentVolumeClaim", "Service"]
        assert sorted(kinds) == sorted([*of_the_service, "RayCluster", "RayJob", "Service", "StatefulSet"])

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("headGroupSpec", "rayStartParams", "num-cpus"), 0),
            (("authOptions", "mode"), "password"),
            (("workerGroupSpecs", 0, "groupName"), None),
            (("no_such_key",), 1),
            ((*HEAD, "image"), 1),
            ((*HEAD, "no_such_key"), 1),
            ((*HEAD, "env", 0, "valueFrom", "secretKeyRef", "key"), None),
        ],
    )
    def test_what_the_schemas_forbid_is_refused_here(self, path, value):
        (job,) = manifest("ray-job.yaml")
        with pytest.raises(jsonschema.ValidationError):
            validate(changed(job, ("spec", "rayClusterSpec", *path), value))

    @ON_KUBERAY
    def test_clusters_are_those_that_the_images_are_for(self, name):
        (described,) = manifest(name)
        spec = spec_of_cluster(described)
        assert spec["rayVersion"] == PINNED["ray"]
        assert spec["authOptions"] == {"mode": "token"}
        assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
        user = re.search(r"^USER (\d+)$", (DOCKER / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
        for group in groups(described):
            pod = group["template"]["spec"]
            assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == int(user)
            (container,) = pod["containers"]
            gpus = "nvidia.com/gpu" in container["resources"]["limits"]
            assert container["image"] == ("epsearch:cuda" if gpus else "epsearch:cpu")

    @ON_KUBERAY
    def test_the_ledgers_url_comes_from_a_secret_and_to_the_head_alone(self, name):
        (described,) = manifest(name)
        head, *workers = (group["template"]["spec"]["containers"][0] for group in groups(described))
        (variable,) = head["env"]
        assert variable["name"] == "EPSEARCH_STORAGE"
        secret = variable["valueFrom"]["secretKeyRef"]["name"]
        assert not any("EPSEARCH" in str(worker) for worker in workers)
        assert "--storage" not in described["spec"].get("entrypoint", "")
        assert "://" not in str(described)
        (_, database) = manifest("database.yaml")
        (container,) = database["spec"]["template"]["spec"]["containers"]
        assert {one["valueFrom"]["secretKeyRef"]["name"] for one in container["env"] if "valueFrom" in one} == {secret}
        # KubeRay keeps the token in a Secret that it names after the cluster.
        assert secret != described["metadata"]["name"]

    def test_a_job_that_failed_is_tried_again_and_goes_on(self, capsys, monkeypatch, tmp_path):
        (job,) = manifest("ray-job.yaml")
        spec = job["spec"]
        assert spec["backoffLimit"] > 0 and spec["shutdownAfterJobFinishes"]
        command = shlex.split(spec["entrypoint"])
        assert "--wait" in command
        described = studied(command, capsys, monkeypatch, tmp_path)
        assert described["address"] == "auto"
        (group,) = spec["rayClusterSpec"]["workerGroupSpecs"]
        cores = int(group["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"])
        assert described["workers"] == cores * group["maxReplicas"]
        assert group["minReplicas"] > 0  # a cluster without a core is refused


# The Pod Security Standard *restricted*, with what it takes over from *baseline*.
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
SYSCTLS = {
    *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start"),
    *("net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports"),
    *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"),
    *("net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
}
SELINUX = {None, "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
APPARMOR, SECCOMP = {None, "RuntimeDefault", "Localhost"}, {"RuntimeDefault", "Localhost"}


def containers(pod):
    return [one for kind in ("initContainers", "containers", "ephemeralContainers") for one in pod.get(kind, ())]


def contexts(pod):
    """The security contexts of the pod and of its containers."""
    return [pod.get("securityContext", {}), *(one.get("securityContext", {}) for one in containers(pod))]


def effective(pod, name):
    """The value of a setting for each container: its own, or else the pod's."""
    of_pod, *own = contexts(pod)
    return [one.get(name, of_pod.get(name)) for one in own]


def handlers(pod):
    """The requests and sockets of all probes and hooks."""
    hooks = [
        one.get(kind, {}) for one in containers(pod) for kind in ("startupProbe", "readinessProbe", "livenessProbe")
    ]
    hooks += [hook for one in containers(pod) for hook in one.get("lifecycle", {}).values()]
    return [hook[kind] for hook in hooks for kind in ("httpGet", "tcpSocket") if kind in hook]


def capabilities(pod, what):
    return [set(one.get("securityContext", {}).get("capabilities", {}).get(what, ())) for one in containers(pod)]


RULES = {
    "no process of a Windows host": lambda pod: (
        not any(one.get("windowsOptions", {}).get("hostProcess") for one in contexts(pod))
    ),
    "no namespace of the host": lambda pod: not any(pod.get(name) for name in ("hostNetwork", "hostPID", "hostIPC")),
    "no privileged container": lambda pod: not any(one.get("privileged") for one in contexts(pod)),
    "all capabilities are dropped": lambda pod: all("ALL" in one for one in capabilities(pod, "drop")),
    "none is added but that of low ports": lambda pod: all(
        one <= {"NET_BIND_SERVICE"} for one in capabilities(pod, "add")
    ),
    "volumes of these types alone": lambda pod: all({*one} - {"name"} <= VOLUMES for one in pod.get("volumes", ())),
    "no port of the host": lambda pod: (
        not any(port.get("hostPort") for one in containers(pod) for port in one.get("ports", ()))
    ),
    "no probe of another host": lambda pod: not any(one.get("host") for one in handlers(pod)),
    "AppArmor": lambda pod: all(one.get("appArmorProfile", {}).get("type") in APPARMOR for one in contexts(pod)),
    "SELinux": lambda pod: all(
        one.get("seLinuxOptions", {}).get("type") in SELINUX
        and not {"user", "role"} & {name for name, value in one.get("seLinuxOptions", {}).items() if value}
        for one in contexts(pod)
    ),
    "the default mount of /proc": lambda pod: all(one.get("procMount") in (None, "Default") for one in contexts(pod)),
    "safe sysctls": lambda pod: {one["name"] for one in contexts(pod)[0].get("sysctls", ())} <= SYSCTLS,
    "no more rights than the parent": lambda pod: all(
        one.get("securityContext", {}).get("allowPrivilegeEscalation") is False for one in containers(pod)
    ),
    "not as root": lambda pod: all(one is True for one in effective(pod, "runAsNonRoot")),
    "no user 0": lambda pod: not any(one.get("runAsUser") == 0 for one in contexts(pod)),
    "seccomp": lambda pod: all((one or {}).get("type") in SECCOMP for one in effective(pod, "seccompProfile")),
}
MAIN, FIRST, OF_POD = ("containers", 0), ("initContainers", 0), ("securityContext",)
VIOLATIONS = [
    ("no process of a Windows host", (*OF_POD, "windowsOptions"), {"hostProcess": True}),
    ("no namespace of the host", ("hostNetwork",), True),
    ("no namespace of the host", ("hostPID",), True),
    ("no privileged container", (*MAIN, "securityContext", "privileged"), True),
    ("all capabilities are dropped", (*MAIN, "securityContext", "capabilities"), None),
    ("all capabilities are dropped", (*FIRST, "securityContext", "capabilities", "drop"), ["NET_RAW"]),
    ("none is added but that of low ports", (*MAIN, "securityContext", "capabilities", "add"), ["SYS_PTRACE"]),
    ("volumes of these types alone", ("volumes", 0), {"name": "work", "hostPath": {"path": "/"}}),
    ("no port of the host", (*MAIN, "ports", 0, "hostPort"), 80),
    ("no probe of another host", (*MAIN, "livenessProbe", "httpGet", "host"), "10.0.0.1"),
    ("AppArmor", (*MAIN, "securityContext", "appArmorProfile"), {"type": "Unconfined"}),
    ("SELinux", (*OF_POD, "seLinuxOptions"), {"type": "spc_t"}),
    ("SELinux", (*OF_POD, "seLinuxOptions"), {"user": "root"}),
    ("the default mount of /proc", (*MAIN, "securityContext", "procMount"), "Unmasked"),
    ("safe sysctls", (*OF_POD, "sysctls"), [{"name": "kernel.msgmax", "value": "1"}]),
    ("no more rights than the parent", (*FIRST, "securityContext", "allowPrivilegeEscalation"), None),
    ("not as root", (*OF_POD, "runAsNonRoot"), None),
    ("not as root", (*MAIN, "securityContext", "runAsNonRoot"), False),
    ("no user 0", (*FIRST, "securityContext", "runAsUser"), 0),
    ("seccomp", (*OF_POD, "seccompProfile"), None),
    ("seccomp", (*MAIN, "securityContext", "seccompProfile"), {"type": "Unconfined"}),
]


@pytest.fixture(scope="module")
def service():
    """Kind -> the service's manifest of it."""
    return {one["kind"]: one for one in manifest("service.yaml")}


@pytest.fixture(scope="module")
def pod(service):
    return service["Deployment"]["spec"]["template"]["spec"]


class TestServiceOnKubernetes:
    @pytest.mark.parametrize("rule", RULES)
    def test_the_pod_keeps_each_rule_of_the_restricted_standard(self, pod, rule):
        assert RULES[rule](pod)

    @pytest.mark.parametrize(("rule", "path", "value"), VIOLATIONS, ids=[f"{one[0]}: {one[2]}" for one in VIOLATIONS])
    def test_what_breaks_a_rule_is_seen(self, service, pod, rule, path, value):
        wrong = changed(pod, path, value)
        assert {name for name, kept in RULES.items() if not kept(wrong)} == {rule}
        whole = changed(service["Deployment"], ("spec", "template", "spec"), wrong)
        kubernetes_validate.validate(whole, desired_version=kubernetes_validate.latest_version(), strict=True)

    def test_every_rule_has_a_violation(self):
        assert {one[0] for one in VIOLATIONS} == RULES.keys()

    def test_the_namespace_admits_nothing_else(self, service):
        labels = service["Namespace"]["metadata"]["labels"]
        for mode in ("enforce", "audit", "warn"):
            assert labels[f"pod-security.kubernetes.io/{mode}"] == "restricted"
        own = service["Namespace"]["metadata"]["name"]
        assert all(one["metadata"]["namespace"] == own for kind, one in service.items() if kind != "Namespace")

    def test_more_than_the_standard_asks_for(self, pod):
        user = int(re.search(r"USER (\d+)$", (DOCKER / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)[1])
        assert {pod["securityContext"][name] for name in ("runAsUser", "runAsGroup", "fsGroup")} == {user}
        assert pod["automountServiceAccountToken"] is pod["enableServiceLinks"] is False
        assert pod["shareProcessNamespace"] is True, "processes of a private Ray that have ended are nobody's children"
        for container in containers(pod):
            assert container["image"] == "epsearch:cpu"
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
            assert "memory" in container["resources"]["limits"]
        (main,) = pod["containers"]
        assert main["resources"]["limits"].keys() == {"cpu", "memory", "ephemeral-storage"}

    def test_all_that_is_written_is_a_volume(self, pod):
        (main,) = pod["containers"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in main["volumeMounts"]}
        kept = {place for place, volume in mounts.items() if "persistentVolumeClaim" in volume}
        assert kept == {"/results", "/data", "/tokens"}
        assert {place for place, volume in mounts.items() if "emptyDir" in volume} == {
            "/tmp",
            "/home/epsearch",
            "/dev/shm",
        }
        assert all("sizeLimit" in volume["emptyDir"] for volume in volumes.values() if "emptyDir" in volume)
        paths = [mount["subPath"] for mount in main["volumeMounts"] if mount["name"] == "work"]
        assert len({*paths}) == len(paths)

    def test_one_pod_at_a_time_writes_to_the_file_and_has_time_to_end(self, service, pod):
        spec = service["Deployment"]["spec"]
        assert spec["replicas"] == 1 and spec["strategy"] == {"type": "Recreate"}
        assert pod["terminationGracePeriodSeconds"] >= 5 * (LAST_SECONDS + scheduler.LAST_SECONDS)
        assert service["PersistentVolumeClaim"]["metadata"]["name"] in str(pod["volumes"])

    def test_probes_ask_what_answers_to_every_host_name(self, pod):
        (main,) = pod["containers"]
        asked = {kind: main[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")}
        assert {kind: probe["path"] for kind, probe in asked.items()} == {
            **{"startup": "/health", "readiness": "/ready", "liveness": "/health"},
        }
        assert {probe["path"] for probe in asked.values()} == {*PROBES}
        assert all(probe["port"] == "http" and "httpHeaders" not in probe for probe in asked.values())

    def test_the_service_can_start(self, service, pod, monkeypatch, tmp_path):
        """With the arguments and the tokens that the pod has."""
        (main,), (first,) = pod["containers"], pod["initContainers"]
        secret = tokens.make("ann", tokens.ADMIN, tmp_path / "own.txt")
        (tmp_path / "secret.txt").write_bytes((tmp_path / "own.txt").read_bytes())
        (tmp_path / "secret.txt").chmod(0o440)  # as a pod with fsGroup sees it
        *install, source, target = first["command"]
        places = {"/run/secrets/epsearch/tokens.txt": tmp_path / "secret.txt", "/tokens/tokens.txt": tmp_path / "copy"}
        for _ in range(2):  # a pod that is started again finds the copy
            subprocess.run([*install, places[source], places[target]], check=True)
        assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600
        arguments = [re.sub(f"=({'|'.join(places)})$", lambda one: f"={places[one[1]]}", one) for one in main["args"]]
        settings = served(arguments, monkeypatch, tmp_path)
        assert settings.tokens.of_secret(secret).name == "ann"
        assert settings.log_format == "json" and str(settings.out) == "/results/runs"
        assert settings.port == main["ports"][0]["containerPort"] and settings.host == "0.0.0.0"

    def test_the_ingress_leads_to_the_url_that_the_service_knows(self, service, pod):
        (rule,) = service["Ingress"]["spec"]["rules"]
        (path,) = rule["http"]["paths"]
        assert f"--url=https://{rule['host']}{path['path']}" in pod["containers"][0]["args"]
        assert service["Ingress"]["spec"]["tls"][0]["hosts"] == [rule["host"]] and path["pathType"] == "Prefix"
        target = path["backend"]["service"]
        (port,) = service["Service"]["spec"]["ports"]
        assert target == {"name": service["Service"]["metadata"]["name"], "port": {"name": port["name"]}}
        assert port["targetPort"] == pod["containers"][0]["ports"][0]["name"]

    def test_everything_selects_the_pod(self, service):
        labels = service["Deployment"]["spec"]["template"]["metadata"]["labels"]
        assert service["Deployment"]["spec"]["selector"]["matchLabels"] == labels
        assert service["Service"]["spec"]["selector"] == labels
        assert service["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels

    def test_traffic_is_what_the_policy_names(self, service):
        policy = service["NetworkPolicy"]["spec"]
        assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
        assert all(rule["from"] and rule["ports"] == [{"port": "http"}] for rule in policy["ingress"])
        assert all(rule["to"] and rule["ports"] for rule in policy["egress"])

    def test_secrets_are_made_by_the_command_of_the_page(self, service, pod):
        (secret,) = (volume["secret"] for volume in pod["volumes"] if "secret" in volume)
        page = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
        made = f"kubectl create secret generic {secret['secretName']} --namespace epsearch --from-file=tokens.txt"
        assert made in page and "Secret" not in service
