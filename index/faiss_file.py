"""The layout of the index files that faiss writes for us, checked byte by byte before it reads one.

Faiss believes what a file says of itself: a length or a number that is not as it should be makes it take any amount of
memory, read beyond the file's end, or return points that there are not.
"""

import struct

import numpy as np

_L2 = 1  # the metric
_UNUSED = 1 << 20  # of every index's header
_BLOCK = 32  # codes that are scanned together
_ANY_SIZE = (1 << 64) - 1  # of a code, in lists that hold blocks of them


class _Reader:
    """Goes through a file from its beginning; all numbers are little endian and nothing is aligned."""

    def __init__(self, contents: np.ndarray) -> None:
        self._contents = contents
        self._at = 0

    def take(self, bytes_: int) -> np.ndarray:
        """Bytes that come next."""
        if not 0 <= bytes_ <= len(self._contents) - self._at:
            raise ValueError("the index ends too early")
        self._at += bytes_
        return self._contents[self._at - bytes_ : self._at]

    def expect(self, form: str, *wanted: object) -> None:
        """Read values of these types (see `struct`), which must be those wanted."""
        if struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")).tobytes()) != wanted:
            raise ValueError("the index is of another kind or size")

    def length(self) -> int:
        """Number of items that follow."""
        return int(struct.unpack("<Q", self.take(8).tobytes())[0])

    def floats(self, number: int) -> None:
        """Pass over a vector of finite numbers."""
        self.expect("Q", number)
        if not np.isfinite(np.frombuffer(self.take(4 * number), "<f4")).all():
            raise ValueError("the index holds what is no number")

    def end(self) -> None:
        """Nothing may follow."""
        if self._at != len(self._contents):
            raise ValueError("the index is longer than it should be")


def check_scanned(contents: np.ndarray, points: int, dim: int, codes: int) -> None:
    """Check an index file of "PQ{codes}x4fs": all codes in one list.

    Parameters
    ----------
    contents : ndarray, shape (bytes,), uint8
        Of the file.
    points, dim : int
        Shape of what it must index.
    codes : int
        4-bit codes of a point.

    Raises
    ------
    ValueError
        It is not such a file.
    """
    reader = _Reader(contents)
    padded = -(-points // _BLOCK) * _BLOCK
    _expect_header(reader, b"IPfs", points, dim)
    _expect_quantiser(reader, dim, codes)
    reader.expect("iiiQQQ", 0, _BLOCK, 0, padded, _even(codes), padded * _even(codes) // 2)
    reader.take(padded * _even(codes) // 2)
    reader.end()


def check_listed(contents: np.ndarray, points: int, dim: int, codes: int, lists: int, probes: int) -> None:
    """Check an index file of "IVF{lists},PQ{codes}x4fs": codes in inverted lists.

    Parameters
    ----------
    contents : ndarray, shape (bytes,), uint8
        Of the file.
    points, dim : int
        Shape of what it must index. Each point must be in one list, once.
    codes : int
        4-bit codes of a point.
    lists : int
        Inverted lists.
    probes : int
        How many of them are scanned for a query.

    Raises
    ------
    ValueError
        It is not such a file.
    """
    reader = _Reader(contents)
    block = _even(codes) * _BLOCK // 2  # bytes
    _expect_header(reader, b"IwPf", points, dim)
    reader.expect("QQ", lists, probes)
    _expect_header(reader, b"IxF2", lists, dim)
    reader.floats(lists * dim)
    reader.expect("BQ", 0, 0)  # no map from points to lists
    reader.expect("BQiQiQ", 0, (codes + 1) // 2, _BLOCK, _even(codes), 0, 0)
    _expect_quantiser(reader, dim, codes)
    reader.expect("4sQQQQ", b"ilbl", lists, _ANY_SIZE, _BLOCK, block)
    members = []
    for _ in range(lists):
        number = reader.length()
        members.append(np.frombuffer(reader.take(8 * number), "<i8"))
        coded = -(-number // _BLOCK) * block
        reader.expect("Q", coded)
        reader.take(coded)
    reader.end()
    listed = np.sort(np.concatenate(members))
    if not np.array_equal(listed, np.arange(points)):
        raise ValueError("a point is in no list, or in several")


def _expect_header(reader: _Reader, kind: bytes, points: int, dim: int) -> None:
    reader.expect("4siqqqBi", kind, dim, points, _UNUSED, _UNUSED, 1, _L2)


def _expect_quantiser(reader: _Reader, dim: int, codes: int) -> None:
    reader.expect("QQQ", dim, codes, 4)
    reader.floats(16 * dim)


def _even(codes: int) -> int:
    return codes + codes % 2
