"""Visual words of descriptors in an array: training, files, and statistics."""

from functools import partial
from os import PathLike
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from index import vocabulary
from index.errors import CairnError
from index.parallel import one_thread
from index.vocabulary import LARGEST_VALUE, VocabularyOptions
from retrieval.library.parts.arguments import checked_count, checked_rows
from retrieval.library.progress import INDEXING, Telling, telling


class Vocabulary:
    """Visual words: cluster centres of descriptors. Each represents the descriptors nearest to it.

    Made by `train` or `load`. Collections can use the folder that `save` writes, and `load` that of a collection.

    Examples
    --------
    >>> import numpy as np
    >>> import cairn
    >>> rows = np.array([[0, 0], [0, 1], [9, 9], [9, 8]], np.float32)
    >>> vocabulary = cairn.Vocabulary.train(rows, words=2)
    >>> first, second, third, last = vocabulary.assign(rows).tolist()
    >>> first == second, third == last, first == last
    (True, True, False)
    """

    def __init__(self, made: vocabulary.Vocabulary) -> None:
        self._made = made

    @classmethod
    def train(
        cls,
        descriptors: ArrayLike,
        words: int | None = None,
        *,
        seed: int = 0,
        passes: int = 10,
        search: str = "ivf",
        features: str = "",
        trained_on: str = "",
        progress: Telling = None,
    ) -> Self:
        """Make a vocabulary by approximate k-means (Philbin et al., CVPR 2007).

        Parameters
        ----------
        descriptors : array_like, shape (N, D)
            Such as those of several images, one below the other.
        words : int, optional
            Number of words; by default one for 30 descriptors. At most one for each distinct descriptor.
        seed : int
            Random seed. The same descriptors and the same seed give the same words.
        passes : int
            Of k-means over the descriptors.
        search : str
            Back-end of nearest-neighbour search: ``ivf``, ``faiss``, ``flann`` or ``pyflann``.
        features : str
            Fingerprint of how the descriptors were made, from `features_fingerprint`: a collection accepts only a
            vocabulary that was made for its own features.
        trained_on : str
            Source of the descriptors, for people to read.
        progress : None, bool or callable
            Progress: none, a bar, or a function of ("vocabulary", done, of).

        Raises
        ------
        CairnError
            There are no descriptors, one is not finite, or an option is out of range.

        Examples
        --------
        >>> import numpy as np
        >>> import cairn
        >>> cairn.Vocabulary.train(np.random.default_rng(0).normal(size=(600, 8)))
        Vocabulary(words=20, dim=8)
        """
        rows = checked_rows(descriptors, "descriptors")
        if not rows.size:
            raise CairnError("There are no descriptors to compute a vocabulary from.")
        _refuse_large(rows)
        options = VocabularyOptions(
            words=None if words is None else checked_count(words, "words", 1),
            iterations=checked_count(passes, "passes", 1),
            seed=checked_count(seed, "seed", 0),
            backend=search,
        )
        from index.clustering.sources import ArraySource  # only k-means needs it

        source = ArraySource(rows)
        with telling(progress, INDEXING) as tell, one_thread():
            made = vocabulary.Vocabulary.train(
                source, options, descriptor=features, trained_on=trained_on, progress=partial(tell, "vocabulary")
            )
        return cls(made)

    @classmethod
    def load(cls, folder: "str | PathLike[str]") -> Self:
        """Read the vocabulary that `save` wrote, or that of a collection.

        Parameters
        ----------
        folder : path
            Of the vocabulary, or of a collection.

        Raises
        ------
        CairnError
            It does not exist, is damaged, of a later version, or needs a search back-end that is not installed.
        """
        from retrieval.collection.collection import find_vocabulary  # SQLAlchemy comes with it

        return cls(vocabulary.Vocabulary.load(find_vocabulary(Path(folder))))

    def save(self, folder: "str | PathLike[str]") -> None:
        """Write it to a new folder atomically.

        Parameters
        ----------
        folder : path
            Must not exist, or be empty; the folder that it lies in must exist.

        Raises
        ------
        CairnError
            The folder exists and is not empty, or its parent does not exist.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import cairn
        >>> vocabulary = cairn.Vocabulary.train(np.eye(8), words=4)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     vocabulary.save(folder + "/words")
        ...     cairn.Vocabulary.load(folder + "/words").fingerprint == vocabulary.fingerprint
        True
        """
        folder = Path(folder).absolute()
        if not folder.parent.is_dir():
            raise CairnError(f"The folder {folder.parent} for the vocabulary does not exist.")
        self._made.save(folder)

    @property
    def contract(self) -> vocabulary.Vocabulary:
        """The internal object, for the rest of Cairn."""
        return self._made

    @property
    def words(self) -> int:
        """Number of words, K."""
        return self._made.words

    @property
    def dim(self) -> int:
        """Length of a descriptor, D."""
        return self._made.dim

    @property
    def centres(self) -> NDArray[np.float32]:
        """The words' centres, (K, D) float32, read-only."""
        return self._made.centres

    @property
    def features(self) -> str:
        """Fingerprint of how its descriptors were made; empty if unknown."""
        return self._made.descriptor

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all data that determines the assignment of words."""
        return self._made.fingerprint

    @property
    def quantisation_error(self) -> float:
        """Mean squared distance of the training descriptors, or of a sample of them, to their words."""
        return self._made.quantisation_error

    def assign(self, descriptors: ArrayLike) -> NDArray[np.int32]:
        """Assign each descriptor its word: the nearest centre, by approximate search.

        Parameters
        ----------
        descriptors : array_like, shape (N, D)
            N may be 0.

        Returns
        -------
        ndarray, shape (N,), int32
            From 0 to `words` - 1.

        Raises
        ------
        CairnError
            They are of another length, or not finite.
        """
        with one_thread():
            return self._made.assign(self._rows(descriptors))

    def assign_soft(self, descriptors: ArrayLike, k: int = 3) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Share each descriptor between its nearest words (soft assignment; Philbin et al., CVPR 2008).

        Parameters
        ----------
        descriptors : array_like, shape (N, D)
        k : int
            Words for each descriptor; at most all.

        Returns
        -------
        words : ndarray, shape (N, k), int32
            Nearest first.
        weights : ndarray, shape (N, k), float32
            Of each descriptor, they add up to 1.

        Raises
        ------
        CairnError
            As `assign`; or k is less than 1.
        """
        with one_thread():
            return self._made.assign_soft(self._rows(descriptors), checked_count(k, "k", 1))

    def _rows(self, descriptors: ArrayLike) -> NDArray[np.float32]:
        rows = checked_rows(descriptors, "descriptors", self.dim)
        _refuse_large(rows)
        return rows

    def __len__(self) -> int:
        return self.words

    def __repr__(self) -> str:
        return f"Vocabulary(words={self.words}, dim={self.dim})"


def _refuse_large(rows: NDArray[np.float32]) -> None:
    """Raise CairnError if squared distances of descriptors may be too large for single precision."""
    if rows.size and not np.abs(rows).max() < LARGEST_VALUE:
        raise CairnError(f"Descriptors must have values below {LARGEST_VALUE:g}: divide them by a number.")
