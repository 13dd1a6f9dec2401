"""Optimizers: from a method's gradient, projected or penalised, to the step that the learning rate is a factor of.

Plain SGD steps along the gradient itself. The others are torch.optim.SGD with momentum (dampening 0) and
torch.optim.Adam (Kingma & Ba, 2015), both with L2 weight decay. What they remember is part of the learners' state,
so it goes on from task to task, and into checkpoints and forks; a column of a growing network has its own.
"""

from torch import Tensor

from trainers import numeric_path
from trainers.hyperparameters import Hyperparameters
from trainers.methods.penalty import State

BETA_MEAN, BETA_SQUARE, SMALLEST = 0.9, 0.999, 1e-8  # β1, β2 and ε of Adam's paper
VELOCITY, MEAN, SQUARE, COUNT = NAMES = tuple(f"optimizer.{name}" for name in ("velocity", "mean", "square", "count"))


def is_plain(values: Hyperparameters) -> bool:
    """Returns whether steps are along the gradient: neither Adam, nor momentum, nor weight decay."""
    return bool(values.optimizer == "sgd" and values.momentum == 0 and values.weight_decay == 0)


def start_state(params: Tensor, values: Hyperparameters) -> State:
    """Returns the arrays of untrained networks [M, D]: none, a velocity, or Adam's moments and steps taken [M, 1]."""
    names = (MEAN, SQUARE) if values.optimizer == "adam" else (VELOCITY,) if values.momentum else ()
    state = {name: params.new_zeros(params.shape) for name in names}
    if values.optimizer == "adam":
        # float64 counts on where float32 stops, at 2^24 steps.
        count = params.new_zeros((len(params), 1))
        state[COUNT] = count if params.device.type in numeric_path.WITHOUT_FLOAT64 else count.double()
    return state


def arrays(values: Hyperparameters) -> int:
    """Returns the number of the state's arrays of the parameters' size."""
    return 2 if values.optimizer == "adam" else int(values.momentum > 0)


def step_along(state: State, params: Tensor, gradient: Tensor, values: Hyperparameters) -> Tensor:
    """Returns s [M, D] of the step θ ← θ − lr·s, and remembers it in the state, in place.

    params [M, D]: θ before the step; gradient [M, D] is left as it is. Looks at no value of a tensor, so a graph can
    hold it.
    """
    if values.weight_decay:
        gradient = gradient.add(params, alpha=values.weight_decay)
    if values.optimizer == "adam":
        mean, square, count = state[MEAN], state[SQUARE], state[COUNT]
        count.add_(1)
        mean.mul_(BETA_MEAN).add_(gradient, alpha=1 - BETA_MEAN)
        square.mul_(BETA_SQUARE).addcmul_(gradient, gradient, value=1 - BETA_SQUARE)
        of_mean, of_square = ((1 - beta**count).to(gradient.dtype) for beta in (BETA_MEAN, BETA_SQUARE))
        return (mean / of_mean).div_((square / of_square).sqrt_().add_(SMALLEST))
    if values.momentum:
        # A copy: whoever has the step may change it, and must not change the velocity.
        return state[VELOCITY].mul_(values.momentum).add_(gradient).clone()
    return gradient
