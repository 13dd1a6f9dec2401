"""Converts image levels of any mode and depth to 8 bits.

They are scaled by the depth that the file declares, else refused by name.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainers.streams.images.sources.base import DamagedImage

DEEP = 16  # bits of a level that have 12 or fewer in some files
SHALLOW = 15  # of 255: the brightest level of DEEP bits of which only the lower 12 are used
BITS, PHOTOMETRIC, LARGEST, FORMAT = 258, 262, 281, 339  # tags of TIFF
FROM_WHITE, UNSIGNED = 0, 1  # their values
ORIENTATION = 0x0112  # tag of EXIF
WITH_EXIF = {"exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp"}  # of an image's info
TRANSPOSITIONS = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}  # its values -> PIL.Image.Transpose, which they call for


class Levels(NamedTuple):
    """Levels of some images of one kind."""

    kind: str
    """Mode and depth in the file, like "RGB, 8 bits"."""
    images: int
    """Their number."""
    low: int
    """The darkest level, in 0…255."""
    high: int
    """The brightest level, in 0…255."""

    def __str__(self) -> str:
        """Returns the levels as people read them.

        >>> print(Levels("L, 8 bits", 1200, 0, 254))
        1,200 L, 8 bits (0…254)
        """
        return f"{self.images:,} {self.kind} ({self.low}…{self.high})"


def merge(parts: Iterable[Levels]) -> tuple[Levels, ...]:
    """Returns the levels by kind, sorted by kind.

    >>> merge([Levels("L, 8 bits", 2, 3, 9), Levels("L, 8 bits", 1, 0, 4)])
    (Levels(kind='L, 8 bits', images=3, low=0, high=9),)
    """
    kinds: dict[str, Levels] = {}
    for part in parts:
        other = kinds.get(part.kind, part._replace(images=0))
        kinds[part.kind] = Levels(
            part.kind, part.images + other.images, min(part.low, other.low), max(part.high, other.high)
        )
    return tuple(kinds[kind] for kind in sorted(kinds))


def unclear(levels: Iterable[Levels]) -> str:
    """Returns the reason why the depth of images is unknown; "" where it is known.

    One dark image says nothing; where no image of 16 bits is brighter than 12 bits, these may be all that there is.
    """
    dark = [part for part in levels if part.kind.endswith(f", {DEEP} bits") and part.high <= SHALLOW]
    return "; ".join(
        f"{part.images:,} images ({part.kind}) have no level above 4,095 of 65,535, and the files do not say whether "
        "they have fewer bits; write them with 8"
        for part in dark
    )


def orientation(image: Any) -> int:
    """Returns the orientation of a loaded image by EXIF, in 1…8; 1 where it is missing or damaged."""
    if not WITH_EXIF & image.info.keys():  # nor a TIFF, which Pillow turns as it loads it
        return 1
    try:
        return int(image.getexif().get(ORIENTATION, 1))
    except Exception:  # noqa: BLE001  # whatever Pillow stumbles over there, the pixels are whole
        return 1


def turn(image: Any, to: int) -> Any:
    """Returns the image upright; to: its `orientation`, where 1 and numbers without a meaning leave it as it is."""
    return image.transpose(TRANSPOSITIONS[to]) if to in TRANSPOSITIONS else image


def depth(image: Any) -> int:
    """Returns the bits of a level in the file of an image that is open and not loaded yet."""
    if tags := getattr(image, "tag_v2", None):
        return int(max(tags.get(BITS, (1,))))
    for _, _, _, arguments in image.tile or ():
        for argument in arguments if isinstance(arguments, tuple) else (arguments,):
            if isinstance(argument, int) and image.format == "PPM" and argument > 1:  # the file's largest level
                return 8 if argument <= 255 else DEEP
            if isinstance(argument, str) and (match := re.search(r";(16)", argument)):
                return int(match[1])
    return 1 if image.mode == "1" else DEEP if image.mode.startswith("I") else 8


def eight_bits(image: Any, bits: int) -> NDArray[np.uint8] | None:
    """Returns levels [H, W] of 8 bits, of a loaded image that has deeper ones of one colour; None of any other.

    bits: its `depth`. Raises DamagedImage where the scale is unknown.
    """
    if image.mode == "F":
        levels = _of_floats(np.asarray(image))
    elif image.mode == "I" and not hasattr(image, "tag_v2"):  # PNM, which Pillow scales from the file's own to 16 bits
        levels = np.asarray(image) >> (DEEP - 8)
    elif image.mode.startswith("I"):
        levels = _of_integers(np.asarray(image), bits, getattr(image, "tag_v2", {}))
    else:
        return None
    if getattr(image, "tag_v2", {}).get(PHOTOMETRIC) == FROM_WHITE:
        raise DamagedImage(f"its {bits} bits count from white, which is not read")
    return levels.astype(np.uint8)


def _of_floats(levels: NDArray[Any]) -> NDArray[Any]:
    """Returns numbers in [0, 1] as 0…255. Raises DamagedImage for others."""
    low, high = levels.min(), levels.max()
    if not (low >= 0 and high <= 1):  # nor a NaN
        raise DamagedImage(f"its floating-point levels are {low:g}…{high:g}, allowed is 0…1")
    scaled: NDArray[Any] = np.floor(levels * 255 + 0.5)
    return scaled


def _of_integers(levels: NDArray[Any], bits: int, tags: Mapping[int, Any]) -> NDArray[Any]:
    """Returns whole numbers of a file with so many bits as 0…255.

    Raises DamagedImage where they may be of any depth.
    """
    signed = tags.get(FORMAT, (UNSIGNED,))[0] != UNSIGNED
    if bits == 32 and not signed:
        levels = levels.view(np.uint32)  # Pillow has signed numbers alone
    low, high = int(levels.min()), int(levels.max())
    if low < 0:
        raise DamagedImage(f"it has negative levels, down to {low:,}")
    said = tags.get(LARGEST, (0,))
    said, full = int(max(said) if isinstance(said, tuple) else said), bits - signed
    if said > 255 and said & (said + 1) == 0 and high <= said:  # 2**bits − 1; others are what happens to occur
        full = said.bit_length()
    elif high <= 255 and (bits > DEEP or signed):
        full = 8
    elif (bits > DEEP and high < 2 ** (full - 8)) or (bits <= DEEP and signed):
        raise DamagedImage(
            f"its levels end at {high:,}, of which depth the file does not say; write it with 8 or 16 bits"
        )
    scaled: NDArray[Any] = levels >> (full - 8)
    return scaled
