"""Options of commands that take features of other programs."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from index.errors import CairnError
from index.options.panels import FEATURES
from retrieval.commands.option_groups import given, option_flag

if TYPE_CHECKING:
    from retrieval.collection.options import CollectionOptions
    from retrieval.library.cluster import ClusterWork
    from retrieval.library.collection import Collection

QueryFeatures = Annotated[
    Path | None,
    typer.Option(
        "--features",
        rich_help_panel=FEATURES,
        metavar="PATH",
        help="Features of query photos, for a collection made with cairn index --features: an .npz file for one photo, "
        "or whatever that option takes. Photos of the collection need none.",
    ),
]
FeaturesAgain = Annotated[
    Path | None,
    typer.Option(
        "--features",
        rich_help_panel=FEATURES,
        metavar="PATH",
        help="Features of the photos, for a collection made with cairn index --features.",
    ),
]
_OWN = (
    "descriptor",
    "detector",
    "measurement_scale",
    "upright",
    "max_side",
    "ignore",
    "cluster",
)  # options that go without --features


@dataclass(frozen=True)
class FeatureFiles:
    """Where features are, and how they are compared."""

    features: Annotated[
        Path | None,
        typer.Option(
            "--features",
            rich_help_panel=FEATURES,
            metavar="PATH",
            help="Read keypoints and descriptors from files instead of computing them: a folder of .npz files (a/1.npz "
            "or a/1.jpg.npz for a/1.jpg), an HDF5 file written by hloc, or a COLMAP database. See "
            "docs/how-to/own-features.md.",
        ),
    ] = None
    features_name: Annotated[
        str | None,
        typer.Option(
            "--features-name",
            rich_help_panel=FEATURES,
            metavar="NAME",
            help="Name of the descriptor (default: the name of the file or folder). Collections can only share a "
            "vocabulary if this name is the same.",
        ),
    ] = None
    normalise: Annotated[
        bool | None,
        typer.Option(
            "--normalise/--as-they-are",
            rich_help_panel=FEATURES,
            help="Scale descriptors to unit length, or leave them as they are (default: scale them, unless they are "
            "whole numbers from 0 to 255).",
            show_default=False,
        ),
    ] = None
    binary: Annotated[
        bool,
        typer.Option("--binary", rich_help_panel=FEATURES, help="Descriptors are packed bits, like those of ORB."),
    ] = False

    @property
    def values(self) -> str | None:
        """How descriptors are compared, for `retrieval.foreign.opening.identify`."""
        from retrieval.descriptors.foreign import AS_THEY_ARE, BITS, UNIT

        if self.binary and self.normalise is not None:
            raise CairnError("--binary cannot be used with --normalise or --as-they-are: bits have no length.")
        if self.binary:
            return BITS
        return None if self.normalise is None else UNIT if self.normalise else AS_THEY_ARE

    def check(self, context: typer.Context) -> None:
        """Raise CairnError if options cannot be combined."""
        names = given(context)
        others = [name for name in _OWN if name in names]
        if self.features is not None and others:
            raise CairnError(
                f"--features cannot be used with {option_flag(context, others[0])}, which is for features that Cairn "
                "computes."
            )
        if self.features is not None and "features_from" in names:
            raise CairnError(
                "--features reads features from files, and --features-from computes them: give only one of the two."
            )
        alone = [name for name in ("features_name", "normalise", "binary") if name in names]
        if self.features is None and alone:
            raise CairnError("--features-name, --normalise, --as-they-are and --binary need --features.")


def make_collection(
    folder: Path,
    options: "CollectionOptions",
    files: FeatureFiles,
    photos: list[Path],
    catalogue: str | None,
    cluster: "ClusterWork | None" = None,
) -> "Collection":
    """Create or open a collection, with features from another program if they are given."""
    from retrieval.library.opening import make

    if files.features is None:
        return make(folder, options, catalogue=catalogue, cluster=cluster)
    return make(
        folder,
        options,
        features=files.features,
        photos=photos,
        label=files.features_name,
        values=files.values,
        catalogue=catalogue,
    )
