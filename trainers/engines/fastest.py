"""The fastest numeric path of this machine for what is to be trained."""

from typing import cast

from trainers.cohort import Architecture
from trainers.engines.choice import fastest_path
from trainers.engines.image_choice import fastest_image_path
from trainers.numeric_path import NumericPath
from trainers.streams.base import ImageStream, PixelStream, TaskStream


def fastest_for(stream: TaskStream, architecture: Architecture) -> NumericPath:
    """For a stream and what is trained on it."""
    if architecture.network == "mlp":
        pixels = cast(PixelStream, stream)
        return fastest_path(pixels.inputs, architecture.hidden[0], pixels.density)
    return fastest_image_path(architecture.network, cast(ImageStream, stream).pixels.shape[1])
