"""Container and cluster files, as far as they can be checked without an engine."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
DOCKER = ROOT / "docker"


@pytest.fixture(scope="module")
def stages():
    """Dockerfile stage -> its instructions, those of the stages it is built from first."""
    found, current = {}, None
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if match := re.fullmatch(r"FROM (\S+) AS (\S+)", line):
            found[match[2]] = current = list(found.get(match[1], []))
        elif line and not line.startswith("#"):
            current.append(line)
    return found


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_images_run_epsearch_as_an_ordinary_user(stages, target):
    lines = stages[target]
    users = [line.split()[1] for line in lines if line.startswith("USER")]
    assert users[-1] == "epsearch" and any("useradd" in line and "epsearch" in line for line in lines)
    assert lines.index("USER epsearch") > max(i for i, line in enumerate(lines) if "pip install" in line)
    assert 'ENTRYPOINT ["epsearch"]' in lines


def test_everything_that_is_copied_exists_and_passes_the_ignore_file(stages):
    copied = [word for line in stages["cpu"] if line.startswith("COPY") for word in line.split()[1:-1]]
    passed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {"epsearch", "trainers", "search_spaces", "results", "pyproject.toml"} <= set(copied)
    for name in copied:
        assert (ROOT / name).exists() and f"!{name}" in passed


def test_compose_builds_targets_that_exist_and_shares_folders(stages):
    compose = yaml.safe_load((DOCKER / "compose.yaml").read_text(encoding="utf-8"))
    services = compose["services"]
    assert {"head", "worker", "study"} == set(services)
    for service in services.values():
        assert service["build"]["target"] in stages
        assert (DOCKER / service["build"]["context"] / service["build"]["dockerfile"]).exists()
        assert {volume.split(":")[0] for volume in service["volumes"]} == set(compose["volumes"])
        assert service["environment"]["RAY_AUTH_MODE"] == "token"
    assert all("head" in services[name]["depends_on"] for name in ("worker", "study"))


def test_the_cluster_file_passes_rays_validator():
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = prepare_config(yaml.safe_load((DOCKER / "ray-cluster.yaml").read_text(encoding="utf-8")))
    validate_config(config)
    (kind,) = config["available_node_types"].values()
    assert kind["max_workers"] == len(config["provider"]["worker_ips"])
