"""An engine with another verifier for its best photos: see `retrieval.matching.verifiers`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from retrieval.catalogue.photos import rows_of
from retrieval.collection.collection import Collection
from retrieval.features.encoding import decode_geometry
from retrieval.matching.verification import Verification
from retrieval.matching.verifiers import VerifierInput, find_verifier, verification_of
from retrieval.regions.geometry import Frames
from retrieval.search.engines.contract import Engine
from retrieval.search.engines.registry import VerifiedPhotos, find_engine
from retrieval.search.scoreboard import Begun
from retrieval.search.views import View


class OtherVerifier(Engine):
    """Scores by another engine, and verifies by the verifier that the options name."""

    def __init__(self, engine: Engine, collection: Collection) -> None:
        self.options, self.index = engine.options, engine.index
        self._engine, self._collection = engine, collection
        self._verifier = find_verifier(self.options.verifier)
        if find_engine(self.options.engine).verified is VerifiedPhotos.NONE:
            raise CairnError(
                "The engine {engine} does not verify photos: leave out {--verifier}, or choose another engine.",
                engine=self.options.engine,
            )
        self._describes = bool(getattr(self._verifier, "needs_descriptors", False))
        if self._describes and not collection.options.keep_descriptors:
            raise CairnError(
                "The verifier {verifier} needs descriptors, and {folder} stores none: index with {--keep-descriptors}.",
                verifier=self.options.verifier,
                folder=collection.folder,
            )
        self.needs_descriptors = engine.needs_descriptors or self._describes

    def score_many(self, views: Sequence[View]) -> NDArray[np.float32]:
        """Score photos as the engine does: see `Engine.score_many`."""
        return self._engine.score_many(views)

    def begin(self, views: Sequence[View]) -> Begun:
        """Begin to score as the engine does: see `Engine.begin`."""
        return self._engine.begin(views)

    def verify(self, view: View, number: int) -> Verification:
        """Verify one photo: see `Engine.verify`."""
        return self.verify_many(view, [number])[0]

    def verify_many(self, view: View, numbers: Sequence[int]) -> list[Verification]:
        """Verify some photos, one after the other: see `Engine.verify_many`."""
        images = self.index.images.features_of(numbers)
        rows = self._collection.catalogue.read(rows_of, numbers)
        query = self._features(view.frames, view.words, view.descriptors, view.size)
        results = []
        for image, row in zip(images, rows, strict=True):
            frames = decode_geometry(image.columns, np.arange(len(image.words)))
            size = row.width or 1, row.height or 1
            photo = self._features(frames, image.words, image.columns.get("descriptor"), size)
            results.append(verification_of(self._verifier, query, photo, self.options.verification))
        return results

    def _features(
        self,
        frames: Frames,
        words: NDArray[np.integer],
        descriptors: NDArray[np.float16] | None,
        size: tuple[int, int],
    ) -> VerifierInput:
        side = np.float32(max(size))
        return VerifierInput(
            frames.centres * side - np.float32(0.5),
            frames.linear * side,
            np.asarray(words, np.int32),
            np.asarray(descriptors) if self._describes and descriptors is not None else None,
            (size[1], size[0]),
            self._collection.options.features.regions.detector,
        )
