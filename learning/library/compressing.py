"""Compressing a learnt descriptor; `cairn compress` calls the same."""

from time import perf_counter
from typing import TYPE_CHECKING, Any

from index.errors import CairnError
from index.options.arguments import takes_options
from index.options.declaration import build
from learning.library.paragraphs import SAID
from learning.library.patch_options import CodeChoices
from learning.library.paths import AnyPath, as_path
from retrieval.library.progress import Telling, telling

if TYPE_CHECKING:
    from learning.library.new_descriptor import NewDescriptor

TITLES = {"describe": "Patches"}
"""Titles of the steps."""


@takes_options(CodeChoices, said=SAID)
def compress(
    descriptor: AnyPath, out: AnyPath | None = None, *, progress: Telling = None, **options: Any
) -> "NewDescriptor":
    """Compress a learnt descriptor into a binary or a product-quantised code.

    Parameters
    ----------
    descriptor : path
        Its file (.npz).
    out : path, optional
        Another file (.npz) to write.
    {progress}
    {options}

    Returns
    -------
    NewDescriptor

    Raises
    ------
    CairnError
        The descriptor cannot be read or compressed, or options do not go together.
    """
    from learning.codes.compression import CompressionOptions, compress_model
    from learning.library.labelled import output_file, write_learnt
    from learning.library.new_descriptor import About, NewDescriptor
    from learning.patches.phototour import PatchSet
    from retrieval.descriptors.contract import check_distance
    from retrieval.descriptors.learnt import LearntDescriptor, load_model

    began, how = perf_counter(), build(CodeChoices, options)
    if how.bits is not None and how.product is None:
        wanted = CompressionOptions("binary", how.bits, how.method, seed=how.seed)
    elif how.product is not None and how.bits is None:
        wanted = CompressionOptions("product", how.product, how.method, seed=how.seed)
    else:
        raise CairnError("Choose either {--bits}, for a binary code, or {--product}, for a product-quantised one.")
    source, file = as_path(descriptor, "descriptor"), output_file(out)
    if file is not None and file.exists() and source.exists() and file.samefile(source):
        raise CairnError(f"{file} is the descriptor itself, which would be lost: write the compressed one elsewhere.")
    model = load_model(source)
    check_distance(LearntDescriptor(model))
    patches = PatchSet.open(how.patches) if how.patches is not None else None
    with telling(progress, TITLES) as tell:
        compressed = compress_model(model, wanted, patches, tell)
    described, _ = write_learnt(compressed, file, None)
    code = compressed.code
    assert code is not None
    report = {
        "dim": code.dim,
        "bits": code.meta()["bits"],
        "bytes": code.bytes,
        "method": f"{wanted.kind}-{wanted.chosen_method}",
        "parent": model.fingerprint,
        "fingerprint": compressed.fingerprint,
        "seconds": round(perf_counter() - began, 3),
    }
    return NewDescriptor(described, file, About(report))
