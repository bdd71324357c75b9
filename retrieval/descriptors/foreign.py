"""Descriptors of another program: their name, length and comparison, without a method to compute them."""

import re

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint
from index.errors import CairnError
from retrieval.descriptors.contract import Both

PREFIX = "foreign:"
UNIT, BYTES, AS_THEY_ARE, BITS = "unit", "bytes", "as-they-are", "bits"
VALUES = (UNIT, BYTES, AS_THEY_ARE, BITS)
"""How entries are compared: floats at unit length, whole numbers 0 to 255, floats as they are, or bits as -1 and 1."""

MOST_DIMENSIONS = 4096
_NAME = re.compile(r"foreign:([A-Za-z0-9._+-]{1,64}):([0-9]{1,4})(?::([a-z-]+))?")


class ForeignDescriptor:
    """A descriptor whose rows come from files: it fulfils the contract, except for `describe`."""

    patch_size = 1
    extent = 1.0

    def __init__(self, label: str, dim: int, values: str = UNIT) -> None:
        self.dim = dim
        self.values = values
        self.name = f"{PREFIX}{label}:{dim}" + (f":{values}" if values != UNIT else "")
        self.fingerprint = fingerprint({}, {"foreign": self.name})
        self.bytes = {BITS: -(-dim // 8), BYTES: dim}.get(values, 4 * dim)

    def describe(self, patches: NDArray[np.uint8 | np.float32]) -> NDArray[np.float32]:
        """Raise CairnError: only the program that made the descriptors can compute them."""
        raise CairnError(
            "The descriptor {name} is another program's: Cairn cannot describe patches with it.", name=self.name
        )

    def describe_both(self, patches: NDArray[np.uint8 | np.float32]) -> Both:
        """Refuse: see `describe`."""
        return self.describe(patches), None


def is_foreign(name: str) -> bool:
    """Whether a name is that of a descriptor of another program."""
    return name.startswith(PREFIX)


def parse_foreign(name: str) -> ForeignDescriptor:
    """Read the name of a foreign descriptor; raises CairnError if it is not one."""
    match = _NAME.fullmatch(name)
    if match is None or not 1 <= int(match[2]) <= MOST_DIMENSIONS or (match[3] or UNIT) not in VALUES:
        raise CairnError(
            "{name} names no descriptor of another program, as foreign:superpoint:256 does.", name=repr(name)
        )
    return ForeignDescriptor(match[1], int(match[2]), match[3] or UNIT)


def label_of(text: str) -> str:
    """Make a label from any text, such as the name of a file."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.")[:64] or "features"
