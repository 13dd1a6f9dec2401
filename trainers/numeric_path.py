"""The numeric path: the arithmetic behind a result.

Part of its identity, as rounding differs between paths.
"""

from dataclasses import dataclass

PRODUCTS = ("mkl", "onednn", "torch")
PRECISIONS = ("float32", "tf32")
WITHOUT_FLOAT64 = {"mps"}  # devices
LISTABLE = 2**16  # pixels of an image, and units of a layer, whose numbers fit into lists


@dataclass(frozen=True)
class NumericPath:
    """device "cpu", "cuda" or "mps" (Apple's GPU); precision of products; and on a CPU whose, and what they skip.

    products: "mkl" or "onednn" for the compiled engine; "torch" for the engine of tensors, which GPUs use.
    sparse: whether the compiled engine's first layer leaves out zero pixels.
    lazy: whether it makes only what a step needs: leaves out zero pixels and units that a ReLU has shut in all layers,
    and g_ref where the method's rule does without. No matrix products are left then, whatever `products` says. Other
    engines take these as if it were not there.
    subtracted: whether the cross-entropy's gradient at the label is p − 1 in float32, as in published results, and not
    the sum of the other probabilities. Never chosen by a measurement: see docs/methods.md.
    """

    device: str = "cpu"
    precision: str = "float32"
    products: str = "torch"
    sparse: bool = False
    lazy: bool = False
    subtracted: bool = False

    @classmethod
    def parse(cls, text: str) -> "NumericPath":
        """Returns the path of a name, as `str` writes it. Raises ValueError for any other text."""
        plain = text.removesuffix("-subtracted")
        device, _, rest = plain.partition("-")
        precision, _, rest = rest.partition("-")
        products, _, left_out = rest.partition("-")
        kind = {part: left_out == part and products != "torch" for part in ("sparse", "lazy")}
        path = cls(device, precision, products or "torch", **kind, subtracted=plain != text)
        # Also compared with its own name: that is part of content keys, so a path may be written in one way only.
        precise = precision in {"cpu": PRECISIONS[:1], "cuda": PRECISIONS, "mps": PRECISIONS[:1]}.get(device, ())
        if not precise or path.products not in PRODUCTS or str(path) != text:
            raise ValueError(f"no numeric path {text!r}; one is cpu-float32-mkl-sparse, another cuda-float32")
        return path

    @property
    def listed(self) -> bool:
        """True if a perceptron's pixels are taken from lists of those that are not zero, at most `LISTABLE` of them."""
        return self.sparse or self.lazy

    @property
    def one_seed_at_a_time(self) -> bool:
        """True if seeds are trained one after another.

        Seeds have their own data: a CPU's cache has room for that of one seed; on a GPU all are trained together.
        """
        return self.device == "cpu"

    @property
    def one_by_one(self) -> bool:
        """True if members in tensors are trained one after another, which products of a GPU's kind are not.

        Of residual and own networks, that is; "mkl" and "onednn" are the same then, torch's own choice.
        """
        return self.device == "cpu" and self.products != "torch"

    def __str__(self) -> str:
        parts = [self.device, self.precision]
        if self.device == "cpu":
            parts += [self.products, *["sparse"] * self.sparse, *["lazy"] * self.lazy]
        return "-".join([*parts, *["subtracted"] * self.subtracted])
