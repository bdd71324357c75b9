"""The command pairs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from retrieval.commands.console import say
from retrieval.commands.option_groups import grouped
from retrieval.commands.options import ClusterAddress, Folder, Workers, WorkOptions


@dataclass(frozen=True)
class PairFiles:
    """Files that pairs are written to, as options of the command line."""

    out: Annotated[
        Path | None, typer.Option(help="Write the pairs to a text file, two names per line, as hloc reads them.")
    ] = None
    colmap: Annotated[
        Path | None,
        typer.Option(help="Match the pairs, and write them to a new database for COLMAP's mapper."),
    ] = None
    h5: Annotated[
        Path | None,
        typer.Option(help="Match the pairs, and write features and matches to a new HDF5 file in the layout of hloc."),
    ] = None


@grouped
def pairs(
    *,
    collection: Folder,
    top: Annotated[int, typer.Option(help="Largest number of photos that each photo is paired with.", min=1)] = 20,
    verified: Annotated[
        bool,
        typer.Option(
            "--verified",
            help="Pair photos only if the match is verified by geometry, those with the most inliers first.",
        ),
    ] = False,
    inliers: Annotated[
        int, typer.Option(help="With --verified, smallest number of verified matches of a pair.", min=1)
    ] = 15,
    files: PairFiles,
    workers: Workers = 0,
    cluster: ClusterAddress = None,
    run: WorkOptions,
) -> None:
    """Pair each photo with the most similar ones, for structure from motion with hloc or COLMAP.

    Pairs are chosen by the features in the collection, and no photo is read again. With --colmap or --h5 the pairs are
    also matched: by descriptors if the collection holds them, as after cairn index --keep-descriptors, otherwise by
    visual words and signatures, which find a part of the matches. Features from another program keep their keypoints
    and their order. Without --out, --colmap and --h5, the pairs are printed.
    """
    from time import perf_counter

    from index.extras import require_h5py
    from retrieval.foreign.exporting import check_file
    from retrieval.library.cluster import joined

    began = perf_counter()
    for path, new in ((files.out, False), (files.colmap, True), (files.h5, True)):
        if path is not None:
            check_file(path, new)
    if files.h5 is not None:
        require_h5py()
    with joined(cluster) as work, run.open(collection, work) as opened:
        result = opened.pairs(top, verified=verified, inliers=inliers, workers=workers, progress=run.progress)
        if files.out is not None:
            result.save(files.out)
        if files.colmap is not None:
            result.save_colmap(files.colmap, progress=run.progress)
        if files.h5 is not None:
            result.save_h5(files.h5, progress=run.progress)
    written = vars(files)
    if run.print_json(
        collection,
        verified=verified,
        pairs=[list(pair) for pair in result],
        **{name: str(path) if path is not None else None for name, path in written.items()},
        seconds=round(perf_counter() - began, 3),
    ):
        return
    if not any(written.values()):
        for pair in result:
            print(*pair)
        return
    say(f"{collection}: {len(result)} pairs in {perf_counter() - began:.1f} s.")
    for path in filter(None, written.values()):
        say(f"Written: {path}")
