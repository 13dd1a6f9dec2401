"""Checks the folder or URL of checkpoints, before anything is trained."""

from uuid import uuid4

from epsearch.failures.errors import UsageError
from epsearch.study.description import Study
from trainers.persistence.places import place, reason
from trainers.persistence.runs import works

SECONDS = 60.0  # time limit of each answer, as a machine may be busy

MARK = "epsearch"  # of a temporary file


def check_checkpoints(study: Study) -> None:
    """Writes, reads and removes a file in the place of checkpoints. Raises UsageError if that fails."""
    if study.checkpoints is None:
        return  # a cache, without which everything works
    name = f"check/{uuid4().hex}"
    checkpoints = place(study.checkpoints, SECONDS)
    try:
        checkpoints.write(name, MARK, memoryview(b"here"))
        checkpoints.contents(name, MARK)
        checkpoints.remove([name])
    except OSError as error:
        raise UsageError(
            f"checkpoints {study.checkpoints} cannot be written and read: {reason(error)}; "
            "give a folder or a URL that every worker can reach"
        ) from error
    works(checkpoints)
