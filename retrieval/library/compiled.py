"""Load all compiled functions in advance, so that no user waits for compilation."""

from importlib import import_module

from index.progress import Progress, silent

COMPILED = (
    "index.hamming.sign_kernels",
    "index.hamming.vote_kernels",
    "index.kernels.product_kernels",
    "index.postings.list_kernels",
    "index.scanning.scan_kernels",
    "retrieval.descriptors.sift_kernels",
    "retrieval.features.geometry_kernels",
    "retrieval.features.half_kernels",
    "retrieval.matching.evidence_kernels",
    "retrieval.matching.map_kernels",
    "retrieval.matching.local_kernels",
    "retrieval.matching.refinement_kernels",
    "retrieval.matching.vote_kernels",
    "retrieval.matching.word_kernels",
    "retrieval.regions.extrema_kernels",
    "retrieval.regions.sampling_kernels",
    "retrieval.search.homography_kernels",
)
"""The modules that have compiled functions."""


def compile_all(tell: Progress = silent) -> None:
    """Load all compiled functions; compile missing ones, which takes about a minute on a new machine."""
    for done, module in enumerate(COMPILED):
        tell("compile", done, len(COMPILED))
        import_module(module)
    tell("compile", len(COMPILED), len(COMPILED))


if __name__ == "__main__":
    from retrieval.library.progress import progress_bars

    with progress_bars(False, {"compile": "Compiling (modules)"}) as tell:
        compile_all(tell)
