"""Commands of docs/clusters.md for engines and clusters that are not here: all that they name exists."""

import os
import re
import shlex
import sys

import pytest
import yaml
from ray.scripts.scripts import cli as ray_commands
from typer.main import get_command

from epsearch import cli
from tests.support.sizes import ROOT

DOCKER = ROOT / "docker"
PAGE = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
PLAIN = ("cd", "echo", "mkdir", "for", "export", "printf", "sed")
"""Programs of every shell."""
HEAD_SERVICE = "-head-svc"
"""The end of the name of the service that KubeRay makes for the head of a cluster."""


def lines():
    """Commands of the page, without comments and variables of their environment."""
    blocks = re.findall(r"^```\n(.*?)^```$", PAGE, re.S | re.M)
    whole = "".join(blocks).replace("\\\n", " ").splitlines()
    plain = [re.sub(r"\s+#.*|\s*&$", "", line).strip() for line in whole]
    return [re.sub(r"^(?:[A-Z_]+=(?:\"[^\"]*\"|\S+)\s+)+(?=\S)", "", line) for line in plain if line]


def of(program):
    return pytest.mark.parametrize("line", [line for line in lines() if line.startswith(f"{program} ")])


@pytest.fixture(scope="module")
def compose():
    text = re.sub(r"\$\{(\w+):\?[^}]*\}", r"\1", (DOCKER / "compose.yaml").read_text(encoding="utf-8"))
    return yaml.safe_load(text.replace("$$", "$"))


@pytest.fixture(scope="module")
def described():
    """(kind, name) of everything in the manifests, in small letters, and of what KubeRay makes of it."""
    files = [*(DOCKER / "kuberay").glob("*.yaml"), *(DOCKER / "kubernetes").glob("*.yaml")]
    found = [one for path in files for one in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    names = {(one["kind"].lower(), one["metadata"]["name"]) for one in found}
    return names | {("service", name + HEAD_SERVICE) for kind, name in names if kind == "raycluster"}


def runs(arguments, monkeypatch, tmp_path):
    """`epsearch …` with all but what trains or serves: an option or a value that is wrong ends it with 2."""
    monkeypatch.chdir(tmp_path)
    command = get_command(cli.app).commands.get(arguments[0])
    assert command is not None, arguments
    if arguments[0] in ("run", "slurm"):
        for file in (word for word in arguments if word.endswith(".yaml")):
            (tmp_path / file).write_text(f"name: {file}\n", encoding="utf-8")
        script = [word for word in arguments if word not in (">", "job.sh", "--submit")]
        words = [*arguments, "--print-config", "--device", "cpu"] if arguments[0] == "run" else script
        monkeypatch.setattr(sys, "argv", ["epsearch", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code in (0, None), arguments
    else:
        flags = {flag for parameter in command.params for flag in parameter.opts}
        assert {word for word in arguments if word.startswith("--")} <= flags, arguments


def test_every_command_is_looked_at():
    programs = {line.split()[0] for line in lines() if "=" not in line.split()[0]}
    assert programs == {*PLAIN, "docker", "kubectl", "ray", "epsearch", "pip", "sbatch"}


@of("docker")
def test_commands_of_docker(line, compose, monkeypatch, tmp_path):
    for part in line.split(" && "):
        words = shlex.split(part.partition(" | ")[0])
        if words[1] == "compose":
            services, known = compose["services"], {*compose["services"]}
            at = next(place for place, word in enumerate(words) if word in ("build", "up", "run", "down"))
            profiles = {profile for one in services.values() for profile in one.get("profiles", ())}
            assert {words[i + 1] for i, word in enumerate(words) if word == "--profile"} <= profiles
            assert {words[i + 1].partition("=")[0] for i, word in enumerate(words) if word == "--scale"} <= known
            names = [word for word in words[at + 1 :] if not word.startswith("-")]
            if words[at] in ("build", "run"):
                assert names[0] in known
            if words[at] == "run":
                arguments = [word for word in words[words.index(names[0]) + 1 :] if word not in ("--device", "cuda")]
                runs(arguments, monkeypatch, tmp_path)
        elif words[1] == "build":
            file = ROOT / words[words.index("-f") + 1]
            stage = words[words.index("--target") + 1]
            assert re.search(rf"^FROM \S+ AS {stage}$", file.read_text(encoding="utf-8"), re.M)
        else:
            assert words[1] in ("run", "push")
            image = next((word for word in words if word.startswith("epsearch:")), "")
            assert words[1] == "push" or image in ("epsearch:cpu", "epsearch:cuda")
            if words[-1] == "doctor":
                runs(["doctor"], monkeypatch, tmp_path)


@of("kubectl")
def test_commands_of_kubernetes(line, described):
    words = [word for word in shlex.split(line) if word != "--watch"]
    verb, rest = words[1], [word for word in words[2:] if not word.startswith("-")]
    if verb == "apply":
        assert (ROOT / rest[0]).is_file()
    elif verb == "create" and rest[0] == "namespace":
        assert ("namespace", rest[1]) in described
    elif verb == "create":
        manifests = "".join(path.read_text(encoding="utf-8") for path in DOCKER.rglob("*.yaml"))
        assert rest[0] == "secret" and re.search(rf"(?:name|secretName): {rest[2]}$", manifests, re.M), line
    elif verb in ("rollout", "port-forward"):
        kind, _, name = next(word for word in rest if "/" in word).partition("/")
        assert (kind, name) in described
    elif verb in ("get", "delete") and rest[0] == "rayjob":
        assert ("rayjob", rest[1]) in described
    elif verb == "logs":
        assert ("rayjob", line.partition("job-name=")[2]) in described
    else:
        assert (verb, rest[0]) == ("get", "secret")  # KubeRay names it as the cluster
        assert ("raycluster", rest[1]) in described


@of("ray")
def test_commands_of_ray(line, monkeypatch, tmp_path):
    words = shlex.split(line)
    command = ray_commands.commands[words[1]]
    rest = words[2:]
    if hasattr(command, "commands"):
        command, rest = command.commands[rest[0]], rest[1:]
    own = rest[: rest.index("--")] if "--" in rest else rest
    flags = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.partition("=")[0] for word in own if word.startswith("--")} <= flags, line
    for word in own:
        assert not word.startswith("docker/") or (ROOT / word).is_file()
    inside = rest[rest.index("--") + 1 :] if "--" in rest else shlex.split(rest[-1]) if " " in rest[-1] else []
    if inside:
        assert inside[0] == "epsearch"
        runs([word if os.sep not in word else str(tmp_path) for word in inside[1:]], monkeypatch, tmp_path)


@of("epsearch")
def test_commands_of_epsearch(line, monkeypatch, tmp_path):
    runs(shlex.split(line)[1:], monkeypatch, tmp_path)
