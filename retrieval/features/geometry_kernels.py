"""Decoding of the geometry of features: compiled."""

import numpy as np
from numpy.typing import NDArray

from index.kernels.compiling import FLOAT32, INT64, UINT8, array, compiled, written


@compiled(array(UINT8, 2), array(INT64), array(INT64), *6 * [array(FLOAT32)], written(FLOAT32, 2), written(FLOAT32, 3))
def decode_rows(
    geometry: NDArray[np.uint8],
    rows: NDArray[np.int64],
    bits: NDArray[np.int64],
    x: NDArray[np.float32],
    y: NDArray[np.float32],
    scales: NDArray[np.float32],
    firsts: NDArray[np.float32],
    seconds: NDArray[np.float32],
    below: NDArray[np.float32],
    centres: NDArray[np.float32],
    linear: NDArray[np.float32],
) -> None:
    """Decode some rows of the column `geometry` into `linear`, see `retrieval.features.encoding.encode_geometry`.

    `geometry` (N, 5) uint8. `rows` (n,) int64. `bits` (5,) int64: of x, y, scale, stretch and shear, the lowest first.
    `x`, `y`, `scales`, `firsts`, `seconds`, `below` (2 ** bits,) float32: values of each number of steps: of the
    centre, the scale, and the diagonal entries and the one below in units of the scale. `centres` (n, 2) and `linear`
    (n, 2, 2) float32: outputs.
    """
    to_y, to_scale = bits[0], bits[0] + bits[1]
    to_stretch = to_scale + bits[2]
    to_shear = to_stretch + bits[3]
    of_x, of_y, of_scale, of_stretch, of_shear = (
        (1 << bits[0]) - 1,
        (1 << bits[1]) - 1,
        (1 << bits[2]) - 1,
        (1 << bits[3]) - 1,
        (1 << bits[4]) - 1,
    )
    for row in range(len(rows)):
        which = rows[row]
        code = np.int64(geometry[which, 0])
        for byte in range(1, 5):
            code |= np.int64(geometry[which, byte]) << (8 * byte)
        scale, stretch = scales[(code >> to_scale) & of_scale], (code >> to_stretch) & of_stretch
        centres[row, 0], centres[row, 1] = x[code & of_x], y[(code >> to_y) & of_y]
        linear[row, 0, 0], linear[row, 0, 1] = scale * firsts[stretch], np.float32(0)
        linear[row, 1, 0] = scale * below[(code >> to_shear) & of_shear]
        linear[row, 1, 1] = scale * seconds[stretch]
