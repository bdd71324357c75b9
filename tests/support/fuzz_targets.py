"""Fuzz targets: all readers, with valid samples, and checks of accepted inputs.

A sample is a folder, as a table of file names and contents. A reader may refuse it with a CairnError; accepted data are
used as usual, so that inconsistent arrays are detected.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image

from index.arrays import fingerprint, load_array, load_json, save_array, save_json
from index.clustering.sources import ArraySource
from index.errors import CairnError
from index.faiss_search import FaissOptions
from index.flann_search import FlannOptions
from index.inverted import InvertedIndex
from index.scanning.ivf_search import IvfOptions
from index.segments.description import verify_segment
from index.segments.segment import Segment
from index.segments.writing import write_segment
from index.similarity import SimilarityMatrix
from index.vocabulary import Vocabulary, VocabularyOptions
from learning.building.point_file import read_points
from learning.building.sequences import read_sequences
from learning.convex.records import ModelRecords, Record
from learning.labels.files import read_labels
from learning.labels.ground_truth import read_ground_truth
from learning.latent.models import LatentRecord
from learning.mining.matches import MinedMatches, MinedPatches
from learning.patches.phototour import PatchSet, write_bitmaps, write_info, write_pairs
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.photos import all_indexed
from retrieval.catalogue.tables.importing import read_table
from retrieval.collection.options import CollectionOptions, read_options, write_options
from retrieval.descriptors.learnt import LearntDescriptor, LearntModel, load_model, save_model
from retrieval.groups.groups import read_groups
from retrieval.groups.links import Link, decode_links, encode_links
from retrieval.metadata.pages import page_path
from retrieval.metadata.photo import read_metadata
from retrieval.metadata.text import LONGEST_CAPTION, MOST_TAGS, clean
from retrieval.photos.apart import decoding_here
from retrieval.photos.decoding import other_pages, read_colour, read_photo
from retrieval.photos.options import ImageOptions
from retrieval.photos.tiff import MOST_PAGES
from tests.support import feature_files, metadata_files, ranking_files
from tests.support.fuzzing import Sample
from tests.support.hostile import encode, photo
from tests.support.learning import learnt_models, mined_files
from tests.support.segments_of_format_1 import write_segment_of_format_1

SIDE = 96  # longer side of the sample photos, pixels
WORDS = 40  # of the sample segment
PIXELS = 1_000_000  # of a photo: larger claimed sizes are refused


@dataclass(frozen=True)
class Target:
    """One reader."""

    samples: Callable[[], list[Sample]]  # valid ones
    read: Callable[[Path], None]  # raises CairnError, or AssertionError if accepted data are invalid
    sign: Callable[[Path], None] | None = None  # updates the checksums of a folder to its contents


def write(sample: Sample, folder: Path) -> None:
    """Write a sample's files, and no others."""
    for name, contents in sample.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)


def _files(folder: Path) -> Sample:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


# ------------------------------------------------------------------------------------------------------------ photos

PHOTO = "photo"


def photo_samples() -> list[Sample]:
    """Photos of every supported format, as stored by cameras, scanners and programs."""
    rgb = photo(size=(SIDE, SIDE * 3 // 4))
    grey, deep = rgb.convert("L"), Image.fromarray(np.asarray(rgb.convert("L"), np.uint16) * 257)
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010F] = "maker"
    palette = rgb.quantize(32)
    clear = rgb.convert("RGBA")
    clear.putalpha(grey)
    tiffs: list[tuple[Image.Image, str]] = [(rgb, kind) for kind in ("raw", "tiff_lzw", "tiff_adobe_deflate", "jpeg")]
    tiffs += [(grey, "packbits"), (rgb.convert("1"), "group4"), (deep, "raw"), (deep, "tiff_deflate")]
    tiffs += [(rgb.convert("LAB"), "raw"), (rgb.convert("CMYK"), "tiff_lzw"), (grey.convert("F"), "raw")]
    found = [encode(image, "TIFF", compression=kind) for image, kind in tiffs]
    found += [encode(rgb, "TIFF", exif=exif), encode(rgb, "TIFF", save_all=True, append_images=[grey])]
    found += [encode(image, "TIFF", compression="tiff_lzw", tile=(32, 32)) for image in (rgb,)]
    found += [encode(rgb, "JPEG", quality=80), encode(rgb, "JPEG", progressive=True), encode(grey, "JPEG")]
    found += [encode(rgb.convert("CMYK"), "JPEG"), encode(rgb, "JPEG", exif=exif, subsampling=0, icc_profile=b"x" * 99)]
    found += [encode(image, "PNG") for image in (rgb, grey, deep, palette, clear, rgb.convert("1"))]
    found += [encode(palette, "PNG", transparency=0, bits=4), encode(rgb, "PNG", exif=exif)]
    found += [encode(rgb, "WEBP", quality=70), encode(clear, "WEBP", lossless=True), encode(rgb, "WEBP", exif=exif)]
    found += [encode(rgb, "WEBP", save_all=True, append_images=[rgb.rotate(90)])]
    found += [encode(palette, "GIF"), encode(rgb, "GIF", save_all=True, append_images=[rgb.rotate(90)], transparency=0)]
    found += [encode(image, "BMP") for image in (rgb, palette, grey, rgb.convert("1"), clear)]
    found += [encode(image, "PPM") for image in (rgb, grey, rgb.convert("1"), deep)]
    found += [b"P3 3 2 255\n" + b"255 0 0 " * 6, b"P1 4 2\n" + b"0 1 1 0 " * 2, b"Pf 4 2 -1.0\n" + b"\0\0\0?" * 8]
    if "AVIF" in Image.SAVE:
        found += [encode(rgb, "AVIF", quality=50, exif=exif), encode(clear, "AVIF")]
    return [{PHOTO: contents} for contents in found]


def heic_samples() -> list[Sample]:
    """Photos in HEIC, if a writer is installed."""
    try:
        import pillow_heif
    except ImportError:
        return []
    found = []
    for image in (photo(size=(SIDE, SIDE)), photo(size=(SIDE, 64)).convert("RGBA"), photo(size=(64, 64)).convert("L")):
        file = io.BytesIO()
        pillow_heif.from_pillow(image).save(file, quality=50)
        found.append({PHOTO: file.getvalue()})
    return found


def pdf_samples() -> list[Sample]:
    """PDFs of two pages, if a reader is installed."""
    try:
        import pypdfium2  # noqa: F401
    except ImportError:
        return []
    images = photo(size=(SIDE, 64)), photo(size=(64, SIDE)).convert("L"), photo(size=(64, 64)).quantize(16)
    found = [encode(one, "PDF", save_all=True, append_images=[images[0]], resolution=200) for one in images]
    return [{PHOTO: contents} for contents in found]


def sign_photo(folder: Path) -> None:
    """Correct the checksums of a PNG, as far as its chunks can be parsed."""
    contents = bytearray((folder / PHOTO).read_bytes())
    at = 8 if contents.startswith(b"\x89PNG") else len(contents)
    while at + 12 <= len(contents):
        end = at + 8 + int.from_bytes(contents[at : at + 4], "big")
        contents[end : end + 4] = zlib.crc32(contents[at + 4 : end]).to_bytes(4, "big")
        at = end + 4
    (folder / PHOTO).write_bytes(contents)


def read_photos(folder: Path) -> None:
    """Read a photo both ways, in this process, to observe the decoder."""
    options = ImageOptions(max_side=64, max_pixels=PIXELS)
    with decoding_here():
        with contextlib.suppress(CairnError):
            assert 1 <= len(other_pages(folder / PHOTO)) + 1 <= MOST_PAGES
            read_photo(page_path(folder / PHOTO, 2), options)
        read, colour = read_photo(folder / PHOTO, options), read_colour(folder / PHOTO, options)
    assert read.grey.ndim == 2 and read.grey.dtype == np.float32 and min(read.grey.shape) >= 1
    assert max(read.grey.shape) <= 64 and read.width * read.height <= PIXELS
    assert np.isfinite(read.grey).all() and 0 <= read.grey.min() <= read.grey.max() <= 255
    assert colour.dtype == np.uint8 and colour.shape == (*read.grey.shape, 3)


def metadata_samples() -> list[Sample]:
    """Photos with date and position, in every supported form."""
    block = metadata_files.exif(
        {0x010F: "maker", 0x010E: "title"}, {0x9003: "2020:05:06 07:08:09"}, {1: "N", 2: (1, 2, 3)}
    )
    dataset = metadata_files.iptc((2, 5, b"title"), (2, 25, b"one"), (2, 25, b"two"), (2, 55, b"20200506"))
    packet = metadata_files.xmp(f"<dc:subject>{metadata_files.listed('Bag', 'dom', 'tower')}</dc:subject>")
    found = [metadata_files.jpeg(exif=block, iptc=dataset, xmp=packet)]
    found += [metadata_files.png(b"", packet, compressed=pressed) for pressed in (False, True)]
    found += [metadata_files.tiff(block, dataset, packet, big=big) for big in (False, True)]
    picture = metadata_files.picture()
    found += [encode(picture, kind, exif=block, xmp=packet) for kind in ("WEBP", "AVIF") if kind in Image.SAVE]
    return [{PHOTO: contents} for contents in found]


def read_all_metadata(folder: Path) -> None:
    """Read metadata, which must not fail for any file."""
    found = read_metadata(folder / PHOTO)
    texts = [text for text in (found.taken, found.camera, found.title, *found.tags) if text is not None]
    assert all(len(text.encode()) <= 4000 for text in texts) and len(found.tags) <= MOST_TAGS
    assert all(one.isprintable() or one in "\u200c\u200d" for text in texts for one in text)
    assert found.caption is None or clean(found.caption, LONGEST_CAPTION) == found.caption
    assert found.rating in (None, 1, 2, 3, 4, 5)
    assert (found.latitude is None) == (found.longitude is None)
    assert found.latitude is None or found.longitude is None or abs(found.latitude) <= 90 >= abs(found.longitude) / 2


# ---------------------------------------------------------------------------------------- segments and vocabularies


def segment_samples() -> list[Sample]:
    """Segments of several images, one without features, and of one, and in the first format."""
    rng, found = np.random.default_rng(0), []
    for sizes, write in (
        ((30, 0, 500, 7), write_segment),
        ((3,), write_segment),
        ((30, 0, 50, 7), write_segment_of_format_1),
    ):
        words = [rng.integers(0, WORDS, size, dtype=np.int32) for size in sizes]
        columns = {"ellipses": [rng.random((size, 5), dtype=np.float32) for size in sizes]}
        columns["codes"] = [rng.integers(0, 256, (size, 8), np.uint8) for size in sizes]
        with _folder() as folder:
            write(
                folder / "segment",
                image_numbers=np.arange(len(sizes), dtype=np.uint32) * 3 + 1,
                words=words,
                columns=columns,
                vocabulary_fingerprint="v" * 64,
                descriptor_fingerprint="d" * 64,
            )
            found.append(_files(folder / "segment"))
    return found


def sign_segment(folder: Path) -> None:
    """Update its description to the files."""
    meta = json.loads((folder / "meta.json").read_bytes())
    for name, entry in meta["files"].items():
        path = folder / f"{name}.npy"
        if path.is_file():
            entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
            with contextlib.suppress(CairnError):
                array = load_array(path, mmap=True)
                entry |= {"dtype": array.dtype.str, "shape": list(array.shape)}
    meta.pop("sha256", None)
    (folder / "meta.json").write_text(json.dumps({**meta, "sha256": fingerprint({}, meta)}))


def read_segment(folder: Path) -> None:
    """Check, open and search a segment."""
    damaged = verify_segment(folder)
    assert all(Path(name).name == name for name in damaged)
    segment = Segment.open(folder)
    for number in range(segment.images):
        features = segment.image(number)
        assert all(len(column) == len(features.words) for column in features.columns.values())
    if damaged:  # errors that only show in a full read
        return
    index = InvertedIndex([segment], WORDS)
    scores = index.score(np.arange(WORDS))
    assert len(scores) == segment.images and np.isfinite(scores.scores).all()


def _vocabularies() -> list[Vocabulary]:
    rows = np.random.default_rng(1).random((400, 16), dtype=np.float32)
    kinds: list[tuple[str, Any, int]] = [("faiss", FaissOptions(), 10), ("faiss", FaissOptions(exact_below=0), 50)]
    kinds += [("faiss", FaissOptions(exact_below=0, lists_from=0, code_dims=4), 70)]
    kinds += [("ivf", IvfOptions(exact_below=0), 60)]
    kinds += [("flann", FlannOptions(trees=2, checks=16), 40), ("pyflann", FlannOptions(trees=2, checks=16), 40)]
    found = []
    for backend, search, words in kinds:
        with contextlib.suppress(CairnError):  # the back-end is not installed
            options = VocabularyOptions(words=words, iterations=1, backend=backend, search=search)
            found.append(Vocabulary.train(ArraySource(rows), options, descriptor="d" * 64, trained_on="chance"))
    return found


def vocabulary_samples() -> list[Sample]:
    """Vocabularies of every search back-end, and of every kind of index."""
    found = []
    for vocabulary in _vocabularies():
        with _folder() as folder:
            vocabulary.save(folder / "vocabulary")
            found.append(_files(folder / "vocabulary"))
    return found


def sign_vocabulary(folder: Path) -> None:
    """Update its fingerprints to the files."""
    search = json.loads((folder / "search.json").read_bytes())
    meta = json.loads((folder / "meta.json").read_bytes())
    points = load_array(folder / "centres.npy")
    search["points"] = fingerprint({"points": points}, {})
    if (folder / "search.npz").is_file():
        search["index_sha256"] = hashlib.sha256((folder / "search.npz").read_bytes()).hexdigest()
    settings = {"backend": search["name"], "options": search["options"], "seed": search["seed"]}
    meta["search"] = settings
    meta["fingerprint"] = fingerprint({"centres": points}, {"descriptor": meta["descriptor"], **settings})
    (folder / "search.json").write_text(json.dumps(search))
    (folder / "meta.json").write_text(json.dumps(meta))


def read_vocabulary(folder: Path) -> None:
    """Load a vocabulary and find words."""
    vocabulary = Vocabulary.load(folder)
    assert vocabulary.words > 0 and np.isfinite(vocabulary.centres).all()
    assert 0 <= vocabulary.recall_at_1 <= 1 and 0 <= vocabulary.sigma < np.inf
    queries = np.random.default_rng(2).random((20, vocabulary.dim), dtype=np.float32)
    words, weights = vocabulary.assign_soft(queries)
    assert 0 <= words.min() <= words.max() < vocabulary.words and np.isfinite(weights).all()
    assert vocabulary.assign(queries).min() >= 0


# --------------------------------------------------------------------------------- descriptors, similarities, matches


def descriptor_samples() -> list[Sample]:
    """Descriptor files of every kind."""
    found = []
    small = learnt_models.circles((6,), 4)
    models: list[LearntModel] = [learnt_models.projected("sift", dim=8), learnt_models.binary(bits=32)]
    models += [learnt_models.boosted(kind) for kind in ("bgm", "lbgm")]
    models += [learnt_models.product(), LearntModel("pooled", learnt_models.pooling(regions=small))]
    for model in models:
        with _folder() as folder:
            save_model(folder / "descriptor.npz", model)
            found.append(_files(folder))
    return found


def read_descriptor(folder: Path) -> None:
    """Load a descriptor and describe patches."""
    descriptor = LearntDescriptor(load_model(folder / "descriptor.npz"))
    patches = learnt_models.textures(2, descriptor.patch_size)
    rows = descriptor.describe(patches)
    assert rows.shape == (2, descriptor.dim) and rows.dtype == np.float32 and np.isfinite(rows).all()
    assert len(descriptor.fingerprint) == 64


def similarity_samples() -> list[Sample]:
    """Similarity files with pairs, and without."""
    rng = np.random.default_rng(3)
    pairs = np.argwhere(np.triu(rng.random((WORDS, WORDS)) < 0.2, 1)).astype(np.int32)
    values = rng.random(len(pairs), dtype=np.float32)
    diagonal = np.ones(WORDS, np.float32)
    matrices = [SimilarityMatrix("v" * 64, diagonal, pairs[:, 0].copy(), pairs[:, 1].copy(), values, {"neighbours": 2})]
    found = []
    for matrix in [*matrices, SimilarityMatrix.identity("v" * 64, 3)]:
        with _folder() as folder:
            matrix.save(folder / "similarity.npz")
            found.append(_files(folder))
    return found


def read_similarity(folder: Path) -> None:
    """Load a similarity and multiply by it."""
    matrix = SimilarityMatrix.load(folder / "similarity.npz")
    words, weights = matrix.apply(np.arange(matrix.words), np.ones(matrix.words))
    assert len(words) == len(weights) and (len(words) == 0 or 0 <= words.min() <= words.max() < matrix.words)
    assert np.isfinite(weights).all()


def mined_samples() -> list[Sample]:
    """Files of mined matches."""
    found = []
    for seed in (0, 1):
        with _folder() as folder:
            mined_files.write(folder / "matches.npz", mined_files.drawn(np.random.default_rng(seed)))
            found.append(_files(folder))
    return found


def read_mined(folder: Path) -> None:
    """Open mined matches, and read every list and patch."""
    matches = MinedMatches.open(folder / "matches.npz")
    patches = MinedPatches(matches)
    assert patches.read(np.arange(len(patches))).shape == (len(patches), 31, 31)
    for x in range(min(matches.features, 50)):
        for rows in (matches.positives(x), matches.ambiguous(x), matches.negatives(x)):
            patches.read(rows)
    assert sum(len(matches.of_pair(pair)) for pair in range(min(len(matches.pairs), 50))) <= matches.features
    assert all(str(name) for name in matches.names[:50]) or len(matches.names)
    if len(matches.pairs) > 1 and matches.features:
        matches.pair_split()


def points_samples() -> list[Sample]:
    """Files of correspondences."""
    rng = np.random.default_rng(4)
    file = io.BytesIO()
    columns: dict[str, Any] = {name: rng.uniform(1, 20, 4) for name in ("x", "y", "size", "angle")}
    np.savez(
        file,
        names=np.array(["one", "two"]),
        image=np.array([0, 0, 1, 1]),
        point=np.array([5, 6, 5, 6]),
        pairs=np.array([[0, 2], [1, 3]]),
        pair_angle=np.array([3.0, 9.0]),
        **columns,
    )
    return [{"points.npz": file.getvalue()}]


def read_point_file(folder: Path) -> None:
    """Read correspondences."""
    points = read_points(folder / "points.npz", min_angle=1.0)
    assert len(points.photos) == len(points.points) == len(points.detections)
    assert np.isfinite(points.detections.frames).all()


def phototour_samples() -> list[Sample]:
    """Folders of labelled patches."""
    patches = np.random.default_rng(5).integers(0, 256, (6, 64, 64), np.uint8)
    points = np.array([0, 0, 1, 1, 2, 2])
    with _folder() as folder:
        write_bitmaps(folder, patches)
        write_info(folder, points, np.arange(6))
        write_pairs(folder, 0, np.array([0, 2, 4, 0]), np.array([1, 3, 5, 3]), points)
        return [_files(folder)]


def read_phototour(folder: Path) -> None:
    """Open a set and read its pairs and patches."""
    patches = PatchSet.open(folder)
    pairs = patches.pairs()
    assert len(pairs.first) == len(pairs.second) == len(pairs.match)
    numbers = np.arange(min(len(patches), 600))
    assert patches.read(numbers).shape == (len(numbers), 64, 64)


# ------------------------------------------------------------------------------------------------ tables and options


def records_samples() -> list[Sample]:
    """Records of model selection."""
    one = Record("pooling", "ab" * 32, 0.1, 1.0, 8, 2, 0.3, 1.5, 0, 2.0)
    two = LatentRecord("projection", "cd" * 32, 0.1, 1, 1.0, 0, 8, 2, 0.3, 0.4, 1.5, 0, [{"step": 1}], 2.0)
    found = []
    for record in (one, two):
        with _folder() as folder:
            ModelRecords(folder, type(record)).add([(record, np.ones(3, np.float32))])
            found.append(_files(folder))
    return found


def read_records(folder: Path) -> None:
    """Read records and the parameters of each."""
    latent = b"share" in (folder / "records.json").read_bytes()
    records: Any = ModelRecords(folder, LatentRecord) if latent else ModelRecords(folder, Record)
    for record in records.all:
        assert records._path(record).resolve().parent == folder.resolve()
        records.parameters(record)
    assert records.of("ab" * 32) is not None


def options_samples() -> list[Sample]:
    """Options of a collection."""
    with _folder() as folder:
        write_options(folder / "collection.toml", CollectionOptions(signature="none"))
        return [_files(folder)]


def read_collection_options(folder: Path) -> None:
    """Read options of a collection."""
    options = read_options(folder / "collection.toml")
    assert isinstance(options, CollectionOptions)
    json.dumps(fingerprint({}, {"options": options}))


def links_samples() -> list[Sample]:
    """Links of a photo, as stored in a catalogue."""
    found = [Link(3, 1, 20, (1.0, 0.5, 0.1, 0.0, 1.0, 0.2)), Link(3, 2, 12, (1.0, 0, 0, 0, 1.0, 0))]
    return [{"links": encode_links(found)}]


def read_links(folder: Path) -> None:
    """Read links of a photo."""
    for link in decode_links(3, (folder / "links").read_bytes()) or ():
        assert link.query == 3 and link.found >= 0 and np.isfinite(link.transform).all()


def groups_samples() -> list[Sample]:
    """Groups of a collection."""
    groups = [{"group": 1, "photos": [1, 2, 5], "links": 2, "duplicates": [[2, 1]]}]
    groups += [{"group": 2, "photos": [3, 4], "links": 1, "duplicates": []}]
    state = fingerprint({"numbers": np.arange(1, 7)}, {})
    value = {"format": 1, "state": state, "inliers": 20, "photos": 6, "groups": groups}
    return [{"groups.json": json.dumps(value).encode()}]


def read_group_file(folder: Path) -> None:
    """Read groups."""
    nothing = SimpleNamespace(execute=lambda _: [], scalars=lambda _: [])  # hidden, or marked as no match
    catalogue = SimpleNamespace(
        read=lambda what: np.arange(1, 7) if what is numbers_of else what(nothing), reading=lambda: nullcontext(nothing)
    )
    found: Any = SimpleNamespace(folder=folder, catalogue=catalogue)
    groups = read_groups(found)
    for group in groups.groups:
        assert len(set(group.photos)) == len(group.photos) > 1 and group.number > 0 and group.links > 0
        assert {*group.duplicates, *group.duplicates.values()} <= set(group.photos)


def ground_truth_samples() -> list[Sample]:
    """A folder in the layout of Oxford5K, and homographies of an image sequence."""
    files: dict[str, str] = {}
    for number in (1, 2):
        files[f"church_{number}_query.txt"] = f"oxc1_photo{number} 10.5 20 110 220.25\n"
        files |= {f"church_{number}_{part}.txt": "" for part in ("good", "ok", "junk")}
        files[f"church_{number}_good.txt"] = "photo1\nphoto3\nphoto5\n"
        files[f"church_{number}_junk.txt"] = "photo4\n"
    return [{name: text.encode() for name, text in files.items()}]


def _rows(folder: Path) -> Any:
    row = SimpleNamespace
    return [row(name=f"a/photo{n}.jpg", path=str(folder / f"photo{n}.jpg"), number=n) for n in range(1, 6)]


def read_ground_truths(folder: Path) -> None:
    """Read ground truth for measuring, and for learning."""
    for query in read_ground_truth(folder):
        assert query.box[0] < query.box[2] and query.box[1] < query.box[3] and np.isfinite(query.box).all()
    read_labels(folder, _rows(folder), skip_missing=True)


def labels_samples() -> list[Sample]:
    """Tables of labels."""
    lines = ["photo;label", *(f'"a/photo{n}.jpg";church' for n in (1, 2, 3)), "photo4;", "photo5;tower"]
    texts = ["\n".join(lines), "\n".join(lines).replace(";", ","), "\r\n".join(lines).replace(";", "\t")]
    return [{"labels.csv": text.encode()} for text in texts]


def read_label_table(folder: Path) -> None:
    """Read a table of labels."""
    labels = read_labels(folder / "labels.csv", _rows(folder))
    assert all(label.positives <= set(range(1, 6)) for label in labels.objects)


def table_samples() -> list[Sample]:
    """Tables of metadata."""
    lines = [
        "name;title;date;latitude;longitude;tags;shelf",
        "photo1;Dom;1923-05;50.9;6.9;a|b;12",
        '"photo2";"x;y";;;;;',
    ]
    texts = ["\n".join(lines), "\r\n".join(lines).replace(";", "\t")]
    return [{"table.csv": text.encode("utf-8-sig")} for text in texts] + [{"table.csv": texts[0].encode("utf-16")}]


def read_metadata_table(folder: Path) -> None:
    """Read a table of metadata."""
    table = read_table(folder / "table.csv")
    assert all(row.line > 0 and row.name for row in table.rows)
    json.dumps([table.unmatched, table.warnings, table.notes]).encode()


def sequence_samples() -> list[Sample]:
    """An image sequence: only its homographies are read."""
    files = {"img1.png": b"", "img2.png": b"", "img3.png": b""}
    text = b"0.9 0.1 20\n-0.1 1.1 5\n1e-5 2e-5 1\n"
    return [{**files, "H1to2p.txt": text, "H1to3p.txt": text.replace(b" ", b", ")}]


def read_sequence(folder: Path) -> None:
    """Read a sequence."""
    for number in (2, 3):
        (folder / f"H1to{number}p").write_bytes((folder / f"H1to{number}p.txt").read_bytes())
    for sequence in read_sequences(folder):
        for homography in sequence.homographies:
            assert np.isfinite(np.linalg.inv(homography)).all()


def arrays_samples() -> list[Sample]:
    """Arrays and JSON."""
    with _folder() as folder:
        save_array(folder / "array.npy", np.arange(24, dtype=np.float32).reshape(2, 3, 4))
        save_json(folder / "values.json", {"a": [1, 2.5, "x", None], "b": {"c": True}})
        return [_files(folder)]


def read_arrays(folder: Path) -> None:
    """Read an array, directly and memory-mapped, and JSON."""
    load_json(folder / "values.json")
    array = load_array(folder / "array.npy")
    assert not array.dtype.hasobject
    np.testing.assert_array_equal(np.asarray(load_array(folder / "array.npy", mmap=True)), array)


def catalogue_samples() -> list[Sample]:
    """A catalogue's database."""
    with _folder() as folder:
        catalogue = Catalogue.open(folder, create=True)
        catalogue.close()
        return [_files(folder)]


def read_catalogue(folder: Path) -> None:
    """Open a catalogue, and list its photos."""
    catalogue = Catalogue.open(folder)
    try:
        assert len(catalogue.read(numbers_of)) == len(catalogue.read(all_indexed))
    finally:
        catalogue.close()


TARGETS: dict[str, Target] = {
    "photo": Target(photo_samples, read_photos, sign_photo),
    "heic": Target(heic_samples, read_photos),
    "pdf": Target(pdf_samples, read_photos),
    "metadata": Target(metadata_samples, read_all_metadata, sign_photo),
    "segment": Target(segment_samples, read_segment, sign_segment),
    "vocabulary": Target(vocabulary_samples, read_vocabulary, sign_vocabulary),
    "descriptor": Target(descriptor_samples, read_descriptor),
    "similarity": Target(similarity_samples, read_similarity),
    "mined": Target(mined_samples, read_mined),
    "points": Target(points_samples, read_point_file),
    "phototour": Target(phototour_samples, read_phototour),
    "records": Target(records_samples, read_records),
    "options": Target(options_samples, read_collection_options),
    "links": Target(links_samples, read_links),
    "groups": Target(groups_samples, read_group_file),
    "ground-truth": Target(ground_truth_samples, read_ground_truths),
    "labels": Target(labels_samples, read_label_table),
    "table": Target(table_samples, read_metadata_table),
    "sequence": Target(sequence_samples, read_sequence),
    "arrays": Target(arrays_samples, read_arrays),
    "catalogue": Target(catalogue_samples, read_catalogue),
    "features": Target(feature_files.samples, feature_files.read_features),
    "rankings": Target(ranking_files.ranking_samples, ranking_files.read_ranking),
    "descriptions": Target(ranking_files.description_samples, ranking_files.read_description),
}
