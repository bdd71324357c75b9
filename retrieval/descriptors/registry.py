"""Descriptors of patches, under one contract."""

from collections.abc import Callable
from pathlib import Path

from index import extensions
from index.errors import CairnError
from retrieval.descriptors.contract import Descriptor
from retrieval.descriptors.foreign import is_foreign, parse_foreign
from retrieval.descriptors.raw_pixels import RawPixels
from retrieval.descriptors.sift import Sift
from retrieval.descriptors.surf import Surf

DESCRIPTORS: dict[str, Callable[[], Descriptor]] = {
    "sift": lambda: Sift(root=False),
    "rootsift": lambda: Sift(root=True),
    "surf": Surf,
    "ssd": RawPixels,
    "ssd-32": lambda: RawPixels(32),
}


MODELS = ("cairn", "pr-proj", "rootsift-proj")
"""Learnt descriptors that come with Cairn; their files state their origin."""

_SHIPPED = Path(__file__).parents[2] / "data" / "models"


def model_file(name: str, folder: Path | None = None) -> Path | None:
    """Return the file of a learnt descriptor, by its name or its own path; None for the others."""
    if name in MODELS:
        return _SHIPPED / f"{name}.npz"
    return (folder or Path()) / name if name.endswith(".npz") else None


def find_descriptor(name: str, folder: Path | None = None) -> Descriptor:
    """Look a descriptor up by its name, or read it from its file.

    `name`: a name of `DESCRIPTORS` or `MODELS`; the path of a file (.npz) that `cairn learn` or `cairn compress` wrote;
    building blocks, such as ``T3h-S4-25``, with the initial parameters of learning; the name of one of
    another program, as in a collection of such features (see `retrieval.descriptors.foreign`); or the name or place
    of an extension (`index.extensions`).
    """
    if name in DESCRIPTORS:
        return DESCRIPTORS[name]()
    file = model_file(name, folder)
    if file is not None:
        from retrieval.descriptors.learnt import LearntDescriptor, load_model

        return LearntDescriptor(load_model(file))
    if is_foreign(name):
        return parse_foreign(name)
    from retrieval.descriptors.blocks.descriptor import is_blocks, named_blocks

    if is_blocks(name):
        from retrieval.descriptors.learnt import LearntDescriptor, LearntModel

        return LearntDescriptor(LearntModel("blocks", base_model=named_blocks(name)))
    extension = extensions.find("descriptor", name)
    if extension is not None:
        descriptor: Descriptor = extension.load()
        return descriptor
    extensions.refuse_missing("descriptor", name)
    known = ", ".join([*DESCRIPTORS, *MODELS, *(one.name for one in extensions.extensions("descriptor"))])
    raise CairnError(
        "There is no descriptor {name}; choose one of {known}, a file (.npz) of {cairn learn}, or blocks as T3h-S4-25.",
        name=repr(name),
        known=known,
    )
