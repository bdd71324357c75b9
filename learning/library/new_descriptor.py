"""A descriptor that was learnt just now, and how it came about."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from learning.library.paths import AnyPath, as_path
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel, check_model_path, save_model

if TYPE_CHECKING:
    from learning.convex.records import Record
    from learning.latent.models import LatentRecord
    from learning.latent.verdict import Verdict


@dataclass(frozen=True)
class About:
    """What is told of a descriptor beside its rows; see `NewDescriptor`."""

    facts: dict[str, Any]
    pooling: "Record | LatentRecord | None"
    projection: "Record | LatentRecord | None"
    tried: "Sequence[Record | LatentRecord]"
    outcome: str | None = None
    verdict: str | None = None
    details: list[str] = field(default_factory=list)
    nearest: "Verdict | None" = None


class NewDescriptor(LearntDescriptor):
    """A learnt descriptor, and how it came about. It serves wherever Cairn takes a descriptor.

    Attributes
    ----------
    name, dim, fingerprint, bytes, extent : str, int, str, int, float
        As of every descriptor: see `cairn.Descriptor`.
    path : Path or None
        Its file (.npz), which `cairn.create` takes as descriptor; None where none was named.
    model : LearntModel
        All its parameters: pooling regions, projection, centre.
    pooled_dim : int
        Entries before the projection.
    rings : int
        Pooling rings; 0: there are none.
    validation : dict
        ``fpr95`` (false positive rate at 95% recall on validation pairs), or, from photos without labels, ``recall``
        (share of the features whose nearest neighbour is a match, on image pairs held out).
    pooling, projection : record or None
        The model of each stage that was chosen, with its settings; that of a whitening is a projection's.
    tried : list of records
        All models that were tried.
    outcome : str or None
        From photos without labels: whether it is ``better``, ``worse``, the ``same`` or ``mixed``, beside rootSIFT.
    verdict : str or None
        The same in a sentence, and what follows from it.
    details : list of str
        The figures that it rests on, in sentences.

    Examples
    --------
    >>> import cairn, numpy as np
    >>> patches = np.random.default_rng(0).integers(0, 256, (40, 32, 32)).astype(np.uint8)
    >>> learnt = cairn.learn_descriptor((patches, np.arange(40) // 2), dim=16, workers=1)
    >>> learnt.dim, learnt.pooled_dim, learnt.describe(patches).shape
    (16, 128, (40, 16))
    >>> sorted(learnt.validation)
    ['fpr95']
    """

    def __init__(self, model: LearntModel, path: Path | None, about: About) -> None:
        super().__init__(model)
        self.path = path
        self.pooling: Any = about.pooling
        self.projection: Any = about.projection
        self.tried: list[Any] = list(about.tried)
        self.outcome, self.verdict, self.details = about.outcome, about.verdict, about.details
        self.nearest = about.nearest
        self._facts = about.facts
        self.pooled_dim, self.rings = model.base_dim, int(about.facts["rings"])
        self.validation: dict[str, float] = about.facts["validation"]

    @property
    def side(self) -> int:
        """Samples along the side of a patch."""
        return self.patch_size

    @property
    def contract(self) -> LearntDescriptor:
        """The same as the rest of Cairn takes it."""
        return LearntDescriptor(self.model)

    def describe(self, patches: NDArray[np.uint8 | np.float32]) -> NDArray[np.float32]:
        """Describe patches.

        Parameters
        ----------
        patches : ndarray, shape (N, S, S)
            Grey values. Patches of another side than `side` are resampled.

        Returns
        -------
        ndarray, shape (N, D), float32
        """
        from retrieval.regions.patches import resample_patches

        return super().describe(resample_patches(np.asarray(patches), self.side))

    def save(self, path: AnyPath) -> Path:
        """Write it to a file (.npz), which `cairn.create` and `cairn index --descriptor` take.

        Raises
        ------
        CairnError
            The file cannot be written there.
        """
        file = as_path(path, "path")
        check_model_path(file)
        save_model(file, self.model)
        return file

    def to_dict(self) -> dict[str, Any]:
        """Give what `cairn learn descriptor --json` prints."""
        return self._facts

    def __repr__(self) -> str:
        return f"NewDescriptor({self.name!r}, dim={self.dim}, side={self.side})"
