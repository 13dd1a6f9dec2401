"""Rules whose step leaves the span of what a layer has had as inputs in earlier tasks as it is.

A layer is a matrix W [inputs + 1, outputs], its bias the last row: the weights of an input that is always 1. Its
gradient is a sum of inputs times outputs' gradients. What is left of it, (I − P) ∇W, changes nothing of what W makes of
the inputs in the span that P projects on. The state has P of every layer, which grows when a task ends.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from trainers import numeric_path
from trainers.hyperparameters import MOST, Hyperparameter, Hyperparameters
from trainers.scenarios import TASK

if TYPE_CHECKING:
    from torch import Tensor as Tensor
else:
    Tensor = Any  # methods are declared without torch, which takes seconds to load

SPAN = "span"
"""Names in a learner's state are span.0, span.1, …: P of each layer, [M, inputs + 1, inputs + 1 and padding]."""
ALIGNED = 16  # float32 values in 64 bytes, so that rows of every member begin alike and are rounded alike
ROUNDING = 2.0**-19  # of the inputs' norm: a direction that is shorter is float32's rounding of those known

REPRESENTATIONS = Hyperparameter(
    "representations",
    "Examples of a task whose inputs of all layers GPM looks at when it ends.",
    default=300,
    low=1,
    high=MOST,
    whole=True,
)


class Subspaces(NamedTuple):
    """A rule that projects the gradient of each layer of a perceptron off the span of earlier tasks' inputs."""

    threshold: Callable[[Hyperparameters, int, int], float]
    """threshold(values of one learner, layer, task), both counted from 0: the share of the energy ‖inputs‖² that the
    span is to have of the inputs that the layer has at the end of the task.
    """

    def start(self, params: Tensor, lengths: Sequence[int]) -> dict[str, Tensor]:
        """Returns the state of untrained networks [M, D], whose spans are empty; lengths: as `lengths_of` has them."""
        return {
            f"{SPAN}.{layer}": params.new_zeros(len(params), length, wide(length))
            for layer, length in enumerate(lengths)
        }

    def project(self, state: dict[str, Tensor], gradients: Sequence[Tensor]) -> None:
        """Takes off what lies in the span, in place, of the gradients [M, inputs + 1, outputs] of all layers."""
        for projection, gradient in zip(_spans(state), gradients, strict=False):
            gradient.sub_(projection @ gradient)

    def end_task(self, state: dict[str, Tensor], inputs: Sequence[Tensor], values: Hyperparameters, task: int) -> None:
        """Grows the spans of one learner, state [1, …], in place, by the inputs [n, inputs + 1] of every layer."""
        for layer, (projection, layer_inputs) in enumerate(zip(_spans(state), inputs, strict=False)):
            projection.copy_(grow(projection[0], layer_inputs, self.threshold(values, layer, task))[None])


def lengths_of(sizes: Sequence[int], scenario: str) -> list[int]:
    """Returns for each projected layer the length of its inputs, with the 1 of its bias.

    sizes: (inputs, hidden…, outputs) of a perceptron. Task-incrementally all but the last layer: outputs of earlier
    tasks have no gradient.

    >>> lengths_of((784, 100, 100, 10), "domain"), lengths_of((784, 100, 100, 10), "task")
    ([785, 101, 101], [785, 101])
    """
    return [size + 1 for size in sizes[: len(sizes) - 1 - (scenario == TASK)]]


def wide(length: int) -> int:
    """Returns the length of a stored row, with padding.

    >>> wide(101)
    112
    """
    return -(-length // ALIGNED) * ALIGNED


def grow(projection: Tensor, inputs: Tensor, threshold: float) -> Tensor:
    """Returns the projection [k, k], in float64, with directions of inputs [n, k] added (GPM's equations 8 and 9).

    As few as have, together with what it projects on, a share >= threshold of ‖inputs‖²: the first left singular
    vectors of what is left of the inputs. Inputs that are not finite, of a learner that has diverged, add none.
    """
    import torch

    if projection.device.type in numeric_path.WITHOUT_FLOAT64:
        projection, inputs = projection.cpu(), inputs.cpu()
    before, columns = projection.double(), inputs.double().mT
    if not bool(columns.isfinite().all()):
        return before
    left, sizes, _ = torch.linalg.svd(columns - before @ columns, full_matrices=False)
    total, energy = columns.square().sum(), sizes.square()
    # By the projection and all directions before each; not below 0 by rounding, where the threshold may be 0.
    covered = (1 - energy.flip(0).cumsum(0).flip(0) / total).clamp_(min=0)
    basis: Tensor = left[:, (covered < threshold) & (sizes > ROUNDING * total.sqrt())]
    return before + basis @ basis.mT


def _spans(state: dict[str, Tensor]) -> list[Tensor]:
    """Returns the projections [M, k, k] of all layers, without padding."""
    return [array[:, :, : array.shape[1]] for name, array in state.items() if name.startswith(f"{SPAN}.")]
