"""What a step of a method takes beside other methods' steps: for the order of jobs and the time to go only."""

from trainers.cohort import TrainConfig

OVERHEAD = 20  # a step's fixed work, in examples: about what one of ten examples was measured to take besides them
PENALTY = 60  # whole gradients and the arrays of a penalty


def step_cost(method: str, config: TrainConfig, classes: int, tasks: int) -> float:
    """In examples that pass through the network, on average over so many tasks of so many classes."""
    stored = config.memory * classes
    drawn = config.memory_batch or stored * tasks / 2
    extra = {
        "van": 0.0,
        "ewc": PENALTY,
        "pi": PENALTY,
        "mas": PENALTY + config.batch_size,
        "rwalk": 1.5 * PENALTY,
        "gem": stored * (tasks - 1) / 2,
        "prognn": (OVERHEAD + config.batch_size) * (tasks - 1) / 4,
    }
    return OVERHEAD + config.batch_size + extra.get(method, drawn)
