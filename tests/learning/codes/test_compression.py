import json
from functools import partial

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from index.errors import CairnError
from index.messages import on_command_line
from learning.codes.compression import CompressionOptions, compress_model
from learning.commands.compress import compress
from retrieval.descriptors.learnt import LearntModel, load_model, save_model
from retrieval.descriptors.registry import find_descriptor

DIM = 12
APP = typer.Typer()
APP.command()(compress)


def model_of(**changes):
    """rootSIFT, projected at random, with moments like those of a learnt descriptor."""
    rng = np.random.default_rng(0)
    spread = 0.8 ** np.arange(DIM)
    fields = {
        "base": "rootsift",
        "projection": (rng.standard_normal((DIM, 128)) * spread[:, None]).astype(np.float32),
        "mean": rng.standard_normal(DIM).astype(np.float32),
        "covariance": np.diag(spread**2).astype(np.float32),
        "provenance": {"seed": 7},
    }
    return LearntModel(**{**fields, **changes})


class Patches:
    """Random patches, as `learning.patches.phototour.PatchSet` gives them."""

    fingerprint = "f00d"

    def __init__(self, number=400):
        self.patches = np.random.default_rng(1).integers(0, 256, (number, 64, 64), dtype=np.uint8)

    def __len__(self):
        return len(self.patches)

    def read(self, numbers):
        return self.patches[numbers]


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Let the command learn product codes from few rows."""
    monkeypatch.setattr("learning.codes.compression.CompressionOptions", partial(CompressionOptions, rows=3_000))


@pytest.fixture
def file(tmp_path):
    save_model(tmp_path / "parent.npz", model_of())
    return tmp_path / "parent.npz"


def run(*arguments):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


def refused(*arguments):
    error = run(*arguments).exception
    assert isinstance(error, CairnError), error
    return error.message.sentence(on_command_line)


@pytest.mark.parametrize(
    ("request_", "dim", "bits", "size", "method"),
    [
        (("--bits", 64), 64, 64, 8, "binary-spread"),
        (("--bits", 64, "--method", "frame"), 64, 64, 8, "binary-frame"),
        (("--bits", 20, "--method", "lsh"), 20, 20, 3, "binary-lsh"),
        (("--product", 32), DIM, 32, 4, "product-balanced"),
        pytest.param(("--product", 32, "--method", "plain"), DIM, 32, 4, "product-plain", marks=pytest.mark.slow),
        (("--product", 1024), DIM, 8 * DIM, DIM, "product-balanced"),
    ],
)
def test_a_compressed_descriptor_is_one_like_any_other(file, request_, dim, bits, size, method):
    out = file.with_name("code.npz")
    result = run(file, "--out", out, *request_, "--json")
    assert result.exception is None
    report = json.loads(result.stdout)
    found = {key: report[key] for key in ("dim", "bits", "bytes", "method", "parent")}
    parent = find_descriptor(str(file))
    assert found == {"dim": dim, "bits": bits, "bytes": size, "method": method, "parent": parent.fingerprint}
    descriptor = find_descriptor(str(out))
    assert (descriptor.dim, descriptor.bytes) == (dim, size)
    assert descriptor.fingerprint == report["fingerprint"] != parent.fingerprint
    patches = np.random.default_rng(2).integers(0, 256, (40, 31, 31)).astype(np.uint8)
    rows = descriptor.describe(patches)
    assert rows.shape == (40, dim)
    np.testing.assert_array_equal(descriptor.model.code.decode(descriptor.encode(patches)), rows)
    if method == "product-balanced" and size == DIM:
        # Rows beyond what the moments promised are cut, so only typical ones are compared.
        assert np.median(np.abs(rows - parent.describe(patches))) < 0.02


@pytest.mark.slow
def test_the_same_request_writes_the_same_file(file):
    for kind in ("--bits", "--product"):
        outs = [file.with_name(f"{name}.npz") for name in "abc"]
        for out, seed in zip(outs, (0, 0, 1), strict=True):
            assert run(file, "--out", out, kind, 32, "--seed", seed).exception is None
        assert outs[0].read_bytes() == outs[1].read_bytes()
        assert outs[0].read_bytes() != outs[2].read_bytes()


@pytest.mark.slow
def test_the_file_says_what_the_code_was_learnt_from(file):
    run(file, "--out", file.with_name("code.npz"), "--product", 32, "--seed", 5)
    provenance = load_model(file.with_name("code.npz")).provenance
    assert provenance["seed"] == 7
    assert provenance["code"] == {
        "kind": "product",
        "bits": 32,
        "method": "balanced",
        "seed": 5,
        "parent": load_model(file).fingerprint,
        "patches": None,
    }


def test_codes_can_be_learnt_from_patches():
    model, patches = model_of(mean=None, covariance=None), Patches()
    reported = []
    options = CompressionOptions("binary", 16, "frame", rows=300)
    compressed = compress_model(model, options, patches, lambda *what: reported.append(what))
    assert reported[-1] == ("describe", 300, 300)
    assert compressed.provenance["code"]["patches"] == "f00d"
    # Centred on the patches described: each bit parts them evenly.
    from retrieval.descriptors.learnt import LearntDescriptor
    from retrieval.regions.patches import resample_patches

    rows = LearntDescriptor(compressed).describe(resample_patches(patches.patches, 31))
    assert np.abs(rows.mean(axis=0) - 0.5).max() < 0.15
    product = compress_model(model, CompressionOptions("product", 16), patches)
    assert product.code.bytes == 2


def test_what_cannot_be_compressed_is_refused(file):
    out = file.with_name("code.npz")
    assert "either --bits" in refused(file, "--out", out)
    assert "either --bits" in refused(file, "--out", out, "--bits", 64, "--product", 64)
    assert f"choose {DIM} or more rather than 8" in refused(file, "--out", out, "--bits", 8)
    assert "multiple of 8" in refused(file, "--out", out, "--product", 63)
    assert "frame, lsh" in refused(file, "--out", out, "--bits", 64, "--method", "plain")
    assert "balanced, plain" in refused(file, "--out", out, "--product", 64, "--method", "lsh")
    assert ".npz" in refused(file, "--out", file.with_name("code"), "--bits", 64)
    assert "would be lost" in refused(file, "--out", file, "--bits", 64)
    assert "info.txt" in refused(file, "--out", out, "--bits", 64, "--patches", file.parent)
    assert not out.exists()
    assert run(file, "--out", out, "--bits", 64).exception is None
    again = file.with_name("again.npz")
    assert "compressed already" in refused(out, "--out", again, "--bits", 64)


def test_a_descriptor_without_moments_needs_patches(tmp_path):
    save_model(tmp_path / "bare.npz", model_of(mean=None, covariance=None))
    for kind in ("--bits", "--product"):
        assert "with --patches" in refused(tmp_path / "bare.npz", "--out", tmp_path / "code.npz", kind, 64)
