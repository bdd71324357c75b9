"""Options on disk: what is written is read, and what is damaged is refused in one sentence."""

import dataclasses
import inspect
import os
import tomllib
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from index.errors import CairnError
from index.options.declaration import options_of
from retrieval.collection.options import CollectionOptions, read_options, write_options
from retrieval.features.options import FeatureOptions
from retrieval.photos.options import PANORAMA, ImageOptions
from retrieval.regions.options import AdaptationOptions, RegionOptions

numbers = st.floats(allow_nan=False, allow_infinity=False)
collections = st.builds(
    CollectionOptions,
    descriptor=st.text(),
    words=st.integers(0, 2**40),
    seed=st.integers(0, 2**60),
    keep_descriptors=st.booleans(),
    image=st.builds(
        ImageOptions, max_side=st.integers(0, 10**6), max_pixels=st.integers(1, 10**12), panorama=st.integers(1, 99)
    ),
    features=st.builds(
        FeatureOptions,
        st.builds(
            RegionOptions,
            threshold=st.none() | numbers,
            edge_ratio=numbers,
            adaptation=st.builds(AdaptationOptions, window=numbers, keep_unconverged=st.booleans()),
        ),
        measurement_scale=st.none() | numbers,
        upright=st.booleans(),
    ),
)


@given(options=collections)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, options: CollectionOptions) -> None:
    path = tmp_path_factory.getbasetemp() / "written.toml"
    write_options(path, options)
    assert read_options(path) == options
    assert [file.name for file in path.parent.glob("written*")] == ["written.toml"]


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    path = tmp_path / "collection.toml"
    path.write_text("format = 1\nwords = 7\n[features]\nmeasurement_scale = 3\n")
    expected = CollectionOptions(
        words=7, image=ImageOptions(), features=FeatureOptions(measurement_scale=3), signature="none"
    )
    assert read_options(path) == expected


def test_collections_of_earlier_versions_read_panoramas_as_they_did(tmp_path: Path) -> None:
    path = tmp_path / "collection.toml"
    write_options(path, CollectionOptions(signature="none"))
    assert read_options(path).image.panorama == PANORAMA
    table = tomllib.loads(path.read_text())
    del table["image"]["panorama"]
    path.write_text(tomli_w.dumps(table))
    assert read_options(path) == CollectionOptions(image=ImageOptions(), signature="none")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 3}, "update Cairn"),
        ({"format": None}, "format"),
        ({"words": 1.5}, "words"),
        ({"words": True}, "words"),
        ({"words": "7"}, "words"),
        ({"descriptor": 7}, "descriptor"),
        ({"keep_descriptors": 1}, "keep_descriptors"),
        ({"image": 3}, "image"),
        ({"image": {"max_side": "wide"}}, "max_side"),
        ({"image": {"max_side": -1}}, "max_side is 0 at least"),
        ({"features": {"measurement_scale": "big"}}, "measurement_scale"),
        ({"features": {"regions": {"adaptation": {"windows": 2.0}}}}, "windows"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, change: dict, told: str) -> None:
    path = tmp_path / "collection.toml"
    table = {"format": 1, "words": 5} | change
    path.write_text(tomli_w.dumps({key: value for key, value in table.items() if value is not None}))
    with pytest.raises(CairnError, match=told):
        read_options(path)


def test_every_field_is_explained() -> None:
    """By its declaration, or a comment: the dataclass is what the user reads."""
    for kind in (CollectionOptions, ImageOptions, FeatureOptions, RegionOptions, AdaptationOptions):
        lines = inspect.getsource(kind).splitlines()
        declared = {one.path[0] for one in options_of(kind).values() if len(one.path) == 1 and one.option.help}
        for item in dataclasses.fields(kind):
            (line,) = [line for line in lines if line.strip().startswith(f"{item.name}:")]
            assert item.name in declared or "  # " in line, (kind.__name__, item.name)


@pytest.mark.parametrize("what", ["pipe", "device", "folder", "large"])
def test_what_is_no_small_file_is_not_read(tmp_path: Path, what: str) -> None:
    path = tmp_path / "collection.toml"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to("/dev/zero")
    elif what == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)
    with pytest.raises(CairnError, match="cairn repair"):
        read_options(path)
