"""Which files belong to a module from outside, and that their hashes follow what is in them and nothing else."""

import doctest
import os
import sys
import zipfile

import pytest

from trainers.plugins import calls, source
from trainers.plugins.source import SourceError, changed_files, digest, source_of


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes files {name: text} into a folder on sys.path."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])

    def write(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


def names(module):
    return list(source_of(module).hashes)


@pytest.mark.parametrize("module", [source, calls], ids=lambda module: module.__name__)
def test_the_examples_in_the_docstrings(module):
    found = doctest.testmod(module)
    assert found.attempted > 0 == found.failed


def test_of_a_file_it_is_the_file_whatever_lies_beside_it(write):
    write({"alone_a.py": "import numpy, sys\n", "beside_a.py": "", "notes.txt": "import beside_a"})
    assert names("alone_a") == ["alone_a.py"]


def test_imports_of_the_same_folder_belong_to_it_and_theirs(write):
    write(
        {
            "main_b.py": "import first_b.deep\ndef late():\n    from second_b import x\n",
            "first_b/__init__.py": "",
            "first_b/deep.py": "from . import deeper",
            "first_b/deeper.py": "from third_b import y as z",
            "second_b.py": "import main_b  # in a circle",
            "third_b.py": "",
            "fourth_b.py": "",
        }
    )
    assert names("main_b") == [
        *("first_b/__init__.py", "first_b/deep.py", "first_b/deeper.py", "main_b.py", "second_b.py", "third_b.py"),
    ]


def test_of_a_package_it_is_all_modules_and_what_they_import_beside_it(write):
    write(
        {
            "pack_c/__init__.py": "",
            "pack_c/streams.py": "from .sub import tools",
            "pack_c/sub/__init__.py": "",
            "pack_c/sub/tools.py": "from ..unused import nothing\nimport helper_c",
            "pack_c/unused.py": "",
            "pack_c/data.csv": "1,2",
            "pack_c/.#streams.py": "a lock",
            "pack_c/.hidden/x.py": "",
            "pack_c/__pycache__/streams.py": "",
            "helper_c.py": "",
        }
    )
    expected = [f"pack_c/{name}.py" for name in ("__init__", "streams", "sub/__init__", "sub/tools", "unused")]
    assert names("pack_c.streams") == names("pack_c") == ["helper_c.py", *expected]


def test_a_package_without_init_and_with_a_linked_part(write, tmp_path):
    write({"space_d/streams.py": "", "elsewhere/part.py": ""})
    os.symlink(tmp_path / "elsewhere", tmp_path / "space_d" / "linked")
    os.symlink(tmp_path / "space_d", tmp_path / "space_d" / "circle")
    os.symlink(tmp_path / "nowhere.py", tmp_path / "space_d" / "dangling.py")
    assert names("space_d.streams") == ["space_d/linked/part.py", "space_d/streams.py"]


def test_what_is_installed_beside_an_installed_module_is_not_its_own(write, monkeypatch, tmp_path):
    write({"site-packages/plugin_e.py": "import other_e", "site-packages/other_e.py": ""})
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site-packages")])
    assert names("plugin_e") == ["plugin_e.py"]


def test_the_package_itself_is_not_what_comes_from_outside(write, monkeypatch):
    """As in a clone: it lies beside the user's module. Modules in another folder of such a name cannot be imported."""
    root = write({"main_f.py": "import results.mine, trainers.schedule", "results/mine.py": "", "trainers/x.txt": ""})
    with pytest.raises(SourceError, match=r"^'results' is a package of epsearch, not .*results; give yours another"):
        names("main_f")
    monkeypatch.setattr(source, "HERE", root.resolve())
    assert names("main_f") == ["main_f.py"]


@pytest.mark.parametrize("name", source.OURS)
def test_a_file_or_package_of_the_users_with_the_name_of_a_package_of_ours(write, name):
    late = f"def late():\n    from {name}.mine import x"
    root = write({"main_k.py": late, f"{name}/notes.txt": "", f"{name}/a/b.npy": ""})
    assert names("main_k") == ["main_k.py"]  # a folder of other things hides nothing
    ours = (source.HERE / name / "__init__.py").read_text(encoding="utf-8")
    write({f"{name}/__init__.py": ours})
    assert f"{name}/__init__.py" in names("main_k")  # a clone
    write({f"{name}/__init__.py": "x = 1"})
    with pytest.raises(SourceError, match=f"^'{name}' is a package of epsearch, not {root / name}; "):
        names("main_k")
    for path in (root / name / "__init__.py", root / name / "notes.txt", root / name / "a" / "b.npy"):
        path.unlink()
    write({f"{name}.py": "x = 1"})
    with pytest.raises(SourceError, match=f"^'{name}' is a package of epsearch, not {root / name}.py; "):
        names("main_k")


def test_a_module_in_a_zip_is_the_zip(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "lab.zip", "w") as archive:
        archive.writestr("zipped_g/__init__.py", "")
        archive.writestr("zipped_g/streams.py", "")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "lab.zip")])
    found = source_of("zipped_g.streams")
    assert list(found.hashes) == ["lab.zip"]
    assert found.name(str(tmp_path / "lab.zip" / "zipped_g" / "streams.py")) == "lab.zip/zipped_g/streams.py"
    assert found.name(str(tmp_path / "lab.zipper")) is None


def test_a_compiled_module_is_hashed_without_its_source(write, tmp_path):
    import py_compile

    write({"built_h.py": "x = 1\n"})
    py_compile.compile(str(tmp_path / "built_h.py"), cfile=str(tmp_path / "built_h.pyc"))
    (tmp_path / "built_h.py").unlink()
    assert names("built_h") == ["built_h.pyc"]


@pytest.mark.parametrize("module", ["no_such_module_i", "sys", "builtins", "__main__x", ""])
def test_what_has_no_file_has_no_source(module):
    assert source_of(module).hashes == {}


def test_a_source_that_is_no_python_is_hashed_all_the_same(write):
    write({"odd_j.py": "import beside_j\nthis is no Python", "beside_j.py": "", "nul_j.py": "import x\0"})
    assert names("odd_j") == ["odd_j.py"] and names("nul_j") == ["nul_j.py"]


def test_a_source_that_cannot_be_read_is_named(write, monkeypatch):
    folder = write({"pack_k/__init__.py": "", "pack_k/secret.py": ""})
    original = source.Path.read_bytes

    def refuse(path):
        if path.name == "secret.py":
            raise PermissionError(13, "Permission denied")
        return original(path)

    monkeypatch.setattr(source.Path, "read_bytes", refuse)
    with pytest.raises(SourceError, match=r"^cannot read .*pack_k/secret\.py, .*: Permission denied$"):
        source_of("pack_k")
    assert folder.exists()


def test_hashes_follow_the_content_and_not_the_place(tmp_path, monkeypatch):
    found = []
    for folder, text in (("one", "x = 1\n"), ("two", "x = 1\n"), ("three", "x = 2\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same_l.py").write_text(text)
        with monkeypatch.context() as here:
            here.setattr(sys, "path", [*sys.path, str(tmp_path / folder)])
            found.append(source_of("same_l"))
    assert found[0] == found[1] != found[2] and found[0].paths != found[1].paths
    assert digest(found[0].hashes) == digest(found[1].hashes) != digest(found[2].hashes)
    assert changed_files(found[0].hashes, found[2].hashes) == ["same_l.py"] and not changed_files(
        found[0].hashes, found[1].hashes
    )
