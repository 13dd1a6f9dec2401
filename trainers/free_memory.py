"""The free memory of a device. Imports torch for GPUs alone."""

from trainers.numeric_path import NumericPath
from trainers.operating_system import available_memory

SAFE = 0.9  # the share of free memory that is taken


def free_bytes(path: NumericPath) -> int | None:
    """Returns the bytes that are free for a cohort on the path's device; None where the system does not tell."""
    if path.device == "cpu":
        free = available_memory()
        return None if free is None else int(SAFE * free)
    import torch

    if path.device == "mps":
        return int(SAFE * (torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()))
    cached = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()  # by torch, for this process
    return int(SAFE * (torch.cuda.mem_get_info()[0] + cached))
