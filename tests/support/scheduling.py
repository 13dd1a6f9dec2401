"""Which tests a process runs: whole files, whose fixtures are made once; and all files with a Ray are one process's.

Several Rays at a time are too much for a small machine. No mark can say so: `--dist=loadgroup` does not
see them under pytest 9.2 (pytest-xdist's issue 1386).
"""

from functools import cache
from pathlib import Path


def by_file(config, log):
    """The scheduler of pytest-xdist."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "ray" if with_ray(config, config.rootpath / file) else file

    return ByFile(config, log)


def with_ray(config, file: Path) -> bool:
    """Whether a file has tests that join the shared Ray, or start one and are selected."""
    words = ["ray_address"] if "not cluster" in config.option.markexpr else ["ray_address", "mark.cluster"]
    return any(word in _text(file) for word in words)


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")
