"""Options of measurements on labelled patches."""

from dataclasses import dataclass
from typing import Annotated

from index.options.declaration import Option, option_of
from retrieval.collection.options import CollectionOptions


@dataclass(frozen=True)
class PatchMeasurement:
    """Options of pairs of patches and their measurement. See `eval.library.patches.evaluate_patches`."""

    binary: Annotated[
        bool,
        Option("The descriptions are packed bits (uint8), compared by Hamming distance.", flags=("--binary",)),
    ] = False
    pairs: Annotated[
        str | None,
        Option("Pair file of the folder, or a split: train, validation or test; test if it is left out."),
    ] = None
    comparison: Annotated[
        str | None,
        Option(
            "How descriptors are compared: distance, or inner (their inner product); by default as a learnt "
            "descriptor's file says, and else by distance.",
            metavar="NAME",
        ),
    ] = None
    footprint: Annotated[
        float, Option("Share of a patch's side, about its middle, that is described.", least=0.1, most=1)
    ] = 1.0
    max_pairs: Annotated[
        int, Option("Measure on so many pairs at most, drawn by the seed, to try things out; 0: all.", least=0)
    ] = 0
    seed: Annotated[int, option_of(CollectionOptions, "seed")] = 0
