"""Tiny ONNX networks for tests: only convolutions, written as protocol buffers directly."""

from pathlib import Path

import numpy as np


def _varint(value: int) -> bytes:
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _tensor(name: str, values: np.ndarray) -> bytes:
    dims = b"".join(_field(1, size) for size in values.shape)
    return dims + _field(2, 1) + _field(8, name) + _field(9, values.astype("<f4").tobytes())


def _value(name: str, shape: tuple[int | str, ...]) -> bytes:
    dims = b"".join(_field(1, _field(1 if isinstance(size, int) else 2, size)) for size in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, 1) + _field(2, dims)))


def _convolution(name: str, stride: int, padding: int) -> bytes:
    ints = {"strides": [stride] * 2, "pads": [padding] * 4}
    attributes = (
        _field(1, key) + b"".join(_field(8, one) for one in some) + _field(20, 7) for key, some in ints.items()
    )
    inputs = b"".join(_field(1, one) for one in ("image", f"{name}_weights", f"{name}_bias"))
    return inputs + _field(2, name) + _field(4, "Conv") + b"".join(_field(5, one) for one in attributes)


def write_model(path: Path, heads: dict[str, tuple[np.ndarray, np.ndarray, int]]) -> Path:
    """Write a network of parallel convolutions: weights, biases and stride of each by name."""
    channels = next(iter(heads.values()))[0].shape[1]
    graph = b"".join(
        _field(1, _convolution(name, stride, (weights.shape[2] - stride) // 2))
        for name, (weights, _, stride) in heads.items()
    )
    graph += _field(2, "tiny")
    for name, (weights, bias, _) in heads.items():
        graph += _field(5, _tensor(f"{name}_weights", weights)) + _field(5, _tensor(f"{name}_bias", bias))
    graph += _field(11, _value("image", (1, channels, "height", "width")))
    graph += b"".join(_field(12, _value(name, (1, len(one[0]), "rows", "columns"))) for name, one in heads.items())
    path.write_bytes(_field(1, 7) + _field(8, _field(1, "") + _field(2, 13)) + _field(7, graph))
    return path


def _blob() -> np.ndarray:
    """A difference of Gaussians, (9, 9), with a high response at spots."""
    y, x = np.mgrid[-4:5, -4:5]
    narrow, wide = (np.exp(-(x**2 + y**2) / (2 * s * s)) / (2 * np.pi * s * s) for s in (1.2, 2.0))
    return narrow / narrow.sum() - wide / wide.sum()


def superpoint_like(path: Path, dim: int = 32) -> Path:
    """Scores of the pixels in cells of 8 by 8 (65, H/8, W/8), and descriptors (dim, H/8, W/8), of a grey image."""
    cells = np.zeros((65, 1, 16, 16))
    for place in range(64):
        i, j = divmod(place, 8)
        cells[place, 0, i : i + 9, j : j + 9] = 400 * _blob()
    drawn = np.random.default_rng(0).normal(size=(dim, 1, 24, 24))
    drawn -= drawn.mean(axis=(2, 3), keepdims=True)
    return write_model(path, {"semi": (cells, np.zeros(65), 8), "desc": (drawn, np.zeros(dim), 8)})


def aliked_like(path: Path, dim: int = 24) -> Path:
    """A score (1, H, W) and descriptors (dim, H, W) of each pixel of a colour image."""
    scores = 4 * np.tile(_blob() / 3, (1, 3, 1, 1))
    drawn = np.random.default_rng(0).normal(size=(dim, 3, 15, 15))
    drawn -= drawn.mean(axis=(2, 3), keepdims=True)
    return write_model(path, {"scores": (scores, np.zeros(1), 1), "rows": (drawn, np.zeros(dim), 1)})


def disk_like(path: Path, dim: int = 16) -> Path:
    """The same in one map (dim + 1, H, W), with the score last."""
    drawn = np.random.default_rng(0).normal(size=(dim + 1, 3, 15, 15))
    drawn -= drawn.mean(axis=(2, 3), keepdims=True)
    drawn[-1] = 0
    drawn[-1, :, 3:12, 3:12] = 4 * _blob() / 3
    return write_model(path, {"unet": (drawn, np.zeros(dim + 1), 1)})
