"""All compiled functions, made ready before somebody waits for an answer."""

from importlib import import_module

COMPILED = (
    "index.hamming.sign_kernels",
    "index.hamming.vote_kernels",
    "index.kernels.product_kernels",
    "index.postings.list_kernels",
    "index.scanning.scan_kernels",
    "retrieval.descriptors.sift_kernels",
    "retrieval.features.geometry_kernels",
    "retrieval.matching.evidence_kernels",
    "retrieval.matching.map_kernels",
    "retrieval.matching.refinement_kernels",
    "retrieval.matching.vote_kernels",
    "retrieval.matching.word_kernels",
    "retrieval.regions.extrema_kernels",
    "retrieval.regions.sampling_kernels",
    "retrieval.search.homography_kernels",
)
"""The modules that have compiled functions."""


def compile_all() -> None:
    """Load all compiled functions; what was never compiled on this machine is, which takes some thirty seconds."""
    for module in COMPILED:
        import_module(module)


if __name__ == "__main__":
    compile_all()
