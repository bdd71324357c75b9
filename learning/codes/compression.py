"""Compress a learnt descriptor: learn a code, and store it in the descriptor's file (Simonyan14 sections 8, 10.1)."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.progress import Progress, silent
from learning.codes import binary, product
from learning.patches.phototour import PatchSet
from learning.patches.sources import describe_patches
from retrieval.descriptors.codes import Code
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel


@dataclass(frozen=True)
class CompressionOptions:
    """Settings of compression."""

    kind: str = "binary"  # or "product"
    bits: int = 1_024  # of a code; the maximum for a product code
    method: str | None = None  # one of binary.METHODS or product.METHODS; None: the first
    rows: int = 30_000  # training rows of a product code, drawn or described
    seed: int = 0  # of all random choices

    @property
    def chosen_method(self) -> str:
        """The method, with its default resolved."""
        methods = binary.METHODS if self.kind == "binary" else product.METHODS
        if self.method is not None and self.method not in methods:
            raise CairnError(f"A {self.kind} code has no method {self.method!r}: choose one of {', '.join(methods)}.")
        return self.method or methods[0]


def compress_model(
    model: LearntModel,
    options: CompressionOptions,
    patches: PatchSet | None = None,
    progress: Progress = silent,
) -> LearntModel:
    """Add a code to a learnt descriptor, learnt from patches, or from Gaussian rows with its mean and covariance."""
    if model.code is not None:
        raise CairnError("The descriptor is compressed already: compress the one that it was made of.")
    method = options.chosen_method
    rows = None if patches is None else _describe_sample(model, patches, options, progress)
    code = _learn_code(model, rows, method, options)
    source = {
        "kind": options.kind,
        "bits": options.bits,
        "method": method,
        "seed": options.seed,
        "parent": model.fingerprint,
        "patches": None if patches is None else patches.fingerprint,
    }
    return replace(model.with_code(code), provenance={**model.provenance, "code": source})


def _learn_code(model: LearntModel, rows: NDArray[np.float32] | None, method: str, options: CompressionOptions) -> Code:
    if options.kind == "binary":
        if rows is not None:
            return binary.learn_binary(rows, options.bits, method=method, seed=options.seed)
        mean, covariance = _moments(model)
        if method == "spread":
            return binary.spread_code(mean, covariance, options.bits, seed=options.seed)
        return binary.centred_code(mean, options.bits, method=method, seed=options.seed)
    quantiser = product.ProductOptions(options.bits, method, seed=options.seed)
    if rows is None:
        rows = product.rows_of_moments(*_moments(model), options.rows, np.random.default_rng(options.seed))
    return product.learn_product(rows, quantiser)


def _moments(model: LearntModel) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    if model.mean is None or model.covariance is None:
        raise CairnError(
            "The descriptor's file has no mean and covariance of its training patches: give patches with {--patches}."
        )
    return model.mean, model.covariance


def _describe_sample(
    model: LearntModel, patches: PatchSet, options: CompressionOptions, progress: Progress
) -> NDArray[np.float32]:
    """Rows (N, m) of a random sample of patches."""
    number = min(options.rows, len(patches))
    sample = np.sort(np.random.default_rng(options.seed).choice(len(patches), number, replace=False))
    descriptor = LearntDescriptor(model)
    tell = partial(progress, "describe")
    return describe_patches(patches, sample, descriptor.describe, descriptor.patch_size, tell)
