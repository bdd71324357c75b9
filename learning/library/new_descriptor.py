"""A newly learnt descriptor, and a record of its learning."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from learning.library.paths import AnyPath, as_path
from retrieval.descriptors.learnt import LearntDescriptor, check_model_path, save_model
from retrieval.library.parts.descriptor import Descriptor

if TYPE_CHECKING:
    from learning.convex.records import Record
    from learning.latent.models import LatentRecord


@dataclass(frozen=True)
class About:
    """Record of a descriptor besides its rows; see `NewDescriptor`."""

    facts: dict[str, Any] = field(default_factory=dict)
    pooling: "Record | LatentRecord | None" = None
    projection: "Record | LatentRecord | None" = None
    tried: "Sequence[Record | LatentRecord]" = ()
    outcome: str | None = None
    verdict: str | None = None
    details: list[str] = field(default_factory=list)


class NewDescriptor(Descriptor):
    """A `cairn.Descriptor` that was learnt just now, and how it came about.

    Attributes
    ----------
    name, dim, side, fingerprint, bytes, extent : str, int, int, str, int, float
        As of every descriptor: see `cairn.Descriptor`.
    NAMES : tuple of str
        Descriptors that come with Cairn.
    path : Path or None
        Its file (.npz), which `cairn.create` takes as descriptor; None if none was named.
    model : LearntModel
        All its parameters: pooling regions, projection, centre.
    pooled_dim : int
        Entries before the projection.
    rings : int
        Pooling rings; 0 without them.
    validation : dict
        ``fpr95`` (false positive rate at 95% recall on validation pairs), or, from photos without labels, ``recall``
        (share of the features whose nearest neighbour is a match, on image pairs held out).
    pooling, projection : record or None
        The model of each stage that was chosen, with its settings; that of a whitening is a projection's.
    tried : list of records
        All models that were tried.
    outcome : str or None
        From photos without labels: ``better``, ``worse``, the ``same`` or ``mixed``, compared with rootSIFT.
    verdict : str or None
        The same in a sentence, and what follows from it.
    details : list of str
        The figures that it rests on, in sentences.

    Examples
    --------
    >>> import cairn, numpy as np
    >>> patches = np.random.default_rng(0).integers(0, 256, (40, 32, 32)).astype(np.uint8)
    >>> learnt = cairn.learn_descriptor((patches, np.arange(40) // 2), dim=16, workers=1)
    >>> learnt.pooled_dim, learnt.dim <= 16, learnt.describe(patches).shape == (40, learnt.dim)
    (128, True, True)
    >>> sorted(learnt.validation)
    ['fpr95']
    """

    def __init__(self, learnt: LearntDescriptor, path: Path | None = None, about: About | None = None) -> None:
        super().__init__(learnt)
        about = about or About()
        self.path = path
        self.model = learnt.model
        self.pooling: Any = about.pooling
        self.projection: Any = about.projection
        self.tried: list[Any] = list(about.tried)
        self.outcome, self.verdict, self.details = about.outcome, about.verdict, about.details
        self.pooled_dim, self.rings = learnt.model.base_dim, int(about.facts.get("rings", 0))
        self.validation: dict[str, float] = about.facts.get("validation", {})
        self._facts = about.facts

    def save(self, path: AnyPath) -> Path:
        """Write it to a file (.npz), which `cairn.create` and `cairn index --descriptor` take.

        Parameters
        ----------
        path : path-like
            Ends with .npz; replaced where it exists.

        Returns
        -------
        Path
            The same.

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
        """Return what `cairn learn descriptor --json` prints."""
        return deepcopy(self._facts)

    def __repr__(self) -> str:
        return f"NewDescriptor({self.name!r}, dim={self.dim}, side={self.side})"
