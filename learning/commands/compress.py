"""Command: compress."""

from pathlib import Path
from typing import Annotated, Any

import typer

from learning.library.patch_options import CodeChoices
from retrieval.commands.console import print_json, say
from retrieval.commands.option_groups import OptionsOf, grouped
from retrieval.commands.options import Json, Quiet


@grouped
def compress(
    descriptor: Annotated[Path, typer.Argument(help="Descriptor file (.npz) that cairn learn descriptor wrote.")],
    out: Annotated[Path, typer.Option(help="Descriptor file (.npz) to write.")],
    options: Annotated[dict[str, Any], OptionsOf(CodeChoices)],
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Compress a learnt descriptor into a binary or a product-quantised code.

    The file written is a descriptor like any other, usable wherever one is named. Binary codes are the fastest to
    compare, and need at least as many bits as the descriptor has dimensions; product-quantised ones are closer to the
    original at the same size.
    """
    from learning.library.compressing import compress as compress_descriptor

    learnt = compress_descriptor(descriptor, out, **options, progress=not (quiet or json))
    report, code = learnt.to_dict(), learnt.model.code
    if json:
        print_json(report)
        return
    assert code is not None
    kind, _, method = report["method"].partition("-")
    size = options["bits"] or options["product"]
    unused = f" of {size}, one byte a dimension" if report["bits"] < size else ""
    say(
        f"{out}: {kind} code ({method}) of {report['bits']} bits{unused}: {code.bytes} bytes instead of "
        f"{4 * code.source_dim}; {report['seconds']:.1f} s"
    )
