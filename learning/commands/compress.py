"""Command: compress."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from retrieval.commands.console import print_json, progress_bars, say
from retrieval.commands.options import Json, Quiet, Seed


def compress(
    descriptor: Annotated[Path, typer.Argument(help="Descriptor file (.npz) that cairn learn descriptor wrote.")],
    out: Annotated[Path, typer.Option(help="Descriptor file (.npz) to write.")],
    bits: Annotated[
        int | None, typer.Option(help="Binary code of so many bits: 64, 128, 1024, or any from its dimensions up.")
    ] = None,
    product: Annotated[
        int | None, typer.Option(help="Product-quantised code of at most so many bits: 64, 1024, or any multiple of 8.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="Binary: spread (Parseval frame, thresholds spread out), frame (all at zero, as in the paper), "
            "or lsh (random projections). Product: balanced (principal axes, "
            "dealt by their variances) or plain (dimensions as they stand). The first is the default."
        ),
    ] = None,
    patches: Annotated[
        Path | None,
        typer.Option(
            help="Learn from these patches, a folder in the PhotoTour layout, rather than from the mean and covariance "
            "of the training patches that the descriptor file holds."
        ),
    ] = None,
    seed: Seed = 0,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Compress a learnt descriptor into a binary or a product-quantised code.

    The file written is a descriptor like any other, usable wherever one is named. Binary codes are the fastest to
    compare, and need at least as many bits as the descriptor has dimensions; product-quantised ones are closer to the
    original at the same size.
    """
    from index.errors import CairnError
    from learning.codes.compression import CompressionOptions, compress_model
    from learning.patches.phototour import PatchSet
    from retrieval.descriptors.contract import check_distance
    from retrieval.descriptors.learnt import LearntDescriptor, check_model_path, load_model, save_model

    started = perf_counter()
    if bits is not None and product is None:
        options = CompressionOptions("binary", bits, method, seed=seed)
    elif product is not None and bits is None:
        options = CompressionOptions("product", product, method, seed=seed)
    else:
        raise CairnError("Choose either --bits, for a binary code, or --product, for a product-quantised one.")
    check_model_path(out)
    if out.exists() and descriptor.exists() and out.samefile(descriptor):
        raise CairnError(f"{out} is the descriptor itself, which would be lost: write the compressed one elsewhere.")
    model = load_model(descriptor)
    check_distance(LearntDescriptor(model))
    source = PatchSet.open(patches) if patches is not None else None
    with progress_bars(quiet or json, {"describe": "Patches"}) as tell:
        compressed = compress_model(model, options, source, tell)
    save_model(out, compressed)
    seconds = round(perf_counter() - started, 3)
    code = compressed.code
    assert code is not None
    used = code.meta()["bits"]
    if json:
        print_json(
            {
                "dim": code.dim,
                "bits": used,
                "bytes": code.bytes,
                "method": f"{options.kind}-{options.chosen_method}",
                "parent": model.fingerprint,
                "fingerprint": compressed.fingerprint,
                "seconds": seconds,
            }
        )
        return
    unused = f" of {options.bits}, one byte a dimension" if used < options.bits else ""
    say(
        f"{out}: {options.kind} code ({options.chosen_method}) of {used} bits{unused}: {code.bytes} bytes instead of "
        f"{4 * code.source_dim}; {seconds:.1f} s"
    )
