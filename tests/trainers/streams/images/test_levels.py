"""Images of every depth are scaled by what their files say, turned as they say, or refused by name."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from tests.support import image_folders as made
from trainers.streams.base import DataError
from trainers.streams.images import sources
from trainers.streams.images.decode import decode
from trainers.streams.images.decoder import decode_image
from trainers.streams.images.inspection import inspect
from trainers.streams.images.sources.base import DamagedImage

GREY = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4 + 3  # 3…255


def of_bits(bits):
    """The levels of GREY with so many bits, 16 of which have the same 8 before."""
    return (GREY.astype(np.uint64) * ((1 << bits) - 1) // 255).astype(np.uint64)


def pnm(levels, largest, kind=b"P5"):
    return kind + f"\n8 8\n{largest}\n".encode() + levels.astype(">u2" if largest > 255 else "u1").tobytes()


def png(levels, colour):
    """A PNG of 16 bits; colour: its colour type."""

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in levels)
    head = struct.pack(">IIBBBBB", 8, 8, 16, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def tiff(content, bits, kind=1, white=1, **tags):
    """An uncompressed TIFF of 8 × 8 grey levels; kind: 1 without and 2 with a sign, 3 floating-point."""
    known = {256: 8, 257: 8, 258: bits, 259: 1, 262: white, 277: 1, 278: 8, 279: len(content), 339: kind}
    known |= {int(name[1:]): value for name, value in tags.items()}
    start = 8 + 2 + 12 * (len(known) + 1) + 4
    entries = b"".join(
        struct.pack("<HHII", tag, 4, 1, value)
        if value > 65535 or tag in (273, 279)
        else struct.pack("<HHIHH", tag, 3, 1, value, 0)
        for tag, value in sorted((known | {273: start}).items())
    )
    return b"II*\0" + struct.pack("<IH", 8, len(known) + 1) + entries + struct.pack("<I", 0) + content


def packed(levels):
    """Twelve bits a level, without gaps."""
    bits = (levels.reshape(-1, 1) >> np.arange(11, -1, -1, dtype=np.uint64)) & np.uint64(1)
    return np.packbits(bits.astype(np.uint8)).tobytes()


READ = {
    "PGM of 16 bits": pnm(of_bits(16), 65535),
    "PGM of 12 bits": pnm(of_bits(12), 4095),
    "PGM of 10 bits in words": b"P2\n8 8\n1023\n" + " ".join(map(str, of_bits(10).reshape(-1))).encode(),
    "PGM of 8 bits": pnm(GREY, 255),
    "PPM of 16 bits": pnm(np.stack([of_bits(16)] * 3, -1), 65535, b"P6"),
    "PPM of 12 bits": pnm(np.stack([of_bits(12)] * 3, -1), 4095, b"P6"),
    "PNG of 16 bits": png(of_bits(16), 0),
    "coloured PNG of 16 bits": png(np.stack([of_bits(16)] * 3, -1), 2),
    "PNG of 16 bits with transparency": png(np.stack([of_bits(16), of_bits(16) | 0xFFFF], -1), 4),
    "TIFF of 16 bits": tiff(of_bits(16).astype("<u2").tobytes(), 16),
    "TIFF of 12 packed bits": tiff(packed(of_bits(12)), 12),
    "TIFF of 12 bits in 16 that says so": tiff(of_bits(12).astype("<u2").tobytes(), 16, x281=4095),
    "TIFF of 32 bits": tiff(of_bits(32).astype("<u4").tobytes(), 32),
    "TIFF of 32 bits with a sign": tiff(of_bits(31).astype("<i4").tobytes(), 32, kind=2),
    "TIFF of 20 bits in 32 that says so": tiff(of_bits(20).astype("<u4").tobytes(), 32, x281=2**20 - 1),
    "TIFF of 8 bits in 32": tiff(GREY.astype("<i4").tobytes(), 32, kind=2),
    "TIFF of numbers in [0, 1]": tiff((GREY / 255).astype("<f4").tobytes(), 32, kind=3),
    "PFM of numbers in [0, 1]": b"Pf\n8 8\n-1.0\n" + (GREY[::-1] / 255).astype("<f4").tobytes(),
}


@pytest.mark.parametrize("name", READ)
def test_every_depth_gives_the_same_levels(name):
    pixels, kind = decode_image(READ[name], 8)
    difference = pixels.astype(int) - GREY[..., None]
    assert np.abs(difference).max() <= 1, name
    assert kind.endswith(" bits")


def numbers(low, high):
    return tiff(np.linspace(low, high, 64).astype("<f4").tobytes(), 32, kind=3)


REFUSED = {
    "numbers of 0…400": (numbers(0, 400), "its floating-point levels are 0…400, allowed is 0…1"),
    "negative numbers": (numbers(-0.5, 1), "its floating-point levels are -0.5…1, allowed is 0…1"),
    "no numbers": (numbers(0, np.nan), "its floating-point levels are nan…nan, allowed is 0…1"),
    "some bits of 32": (
        tiff(of_bits(12).astype("<u4").tobytes(), 32),
        "its levels end at 4,095, of which depth the file",
    ),
    "16 bits with a sign": (
        tiff(of_bits(15).astype("<i2").tobytes(), 16, kind=2),
        "its levels end at 32,767, of which",
    ),
    "below zero": (
        tiff((of_bits(15).astype("<i4") - 1000).astype("<i4").tobytes(), 32, kind=2),
        "negative levels, down to",
    ),
    "from white": (tiff(of_bits(16).astype("<u2").tobytes(), 16, white=0), "its 16 bits count from white"),
    "64 bits": (tiff(np.zeros(64).tobytes(), 64, kind=3), "it is a TIFF of a kind that Pillow does not read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_known_scale_is_refused_by_name(name):
    content, why = REFUSED[name]
    with pytest.raises(DamagedImage, match=why):
        decode_image(content, 8)


@pytest.fixture
def deep(tmp_path):
    """A function that makes class folders of PNGs of 16 bits with these levels."""

    def make(bright, dark=0):
        for at in range(12):
            for part, name in (("train", "ant"), ("test", "ant"), ("train", "bee"), ("test", "bee")):
                levels = np.random.default_rng(at).integers(0, bright if at >= dark else 5, (8, 8))
                made.put(tmp_path / "deep" / part / name / f"{at}.png", png(levels, 0))
        return sources.open_folder(tmp_path / "deep")

    return make


def test_twelve_bits_in_sixteen_are_refused_where_no_image_has_more(deep, cache):
    line = r"48 images \(I;16, 16 bits\) have no level above 4,095 of 65,535"
    with pytest.raises(DataError, match=line):
        decode(deep(4096), 8, cache)
    found = inspect(deep(4096), 8, cache)
    assert len(found.differences) == 1 and found.differences[0].startswith("48 images")
    assert not inspect(deep(65536, dark=6), 8, cache).differences  # dark images among others are what they are


def test_kinds_and_levels_are_counted(tmp_path, cache):
    root = made.folders(tmp_path / "images")
    made.put(root / "train/cup/grey.png", made.encoded(GREY))
    made.put(root / "train/cup/deep.png", READ["PNG of 16 bits"])
    made.put(root / "train/cup/sketch.png", made.encoded(GREY > 99))
    found = inspect(sources.open_folder(root), 32, cache)
    assert found.levels == [
        "1 1, 1 bits (0…255)",
        "1 I;16, 16 bits (3…255)",
        "1 L, 8 bits (3…255)",
        "18 RGB, 8 bits (0…255)",
    ]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_as_their_exif_says(orientation, kind):
    """The left half of what is to be seen is white; stored is what a camera had that was held otherwise."""
    seen = Image.fromarray(np.repeat(np.uint8([[255] * 8 + [0] * 8]), 16, axis=0)).convert("RGB")
    back = [None, 0, 3, 1, 5, 2, 6, 4][orientation - 1]  # of Pillow's transpositions, the inverse one
    stored = seen if back is None else seen.transpose(Image.Transpose(back))
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    stored.save(file, kind, exif=exif, **({"lossless": True} if kind == "WEBP" else {}))
    pixels = decode_image(file.getvalue(), 16)[0].astype(int)
    assert np.abs(pixels - np.asarray(seen)).max() < 10


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")  # as `chunks` does
def test_a_damaged_exif_costs_no_image():
    file = io.BytesIO()
    Image.fromarray(GREY).save(file, "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff", quality=95)
    assert np.abs(decode_image(file.getvalue(), 8)[0][..., 0].astype(int) - GREY).max() < 20
