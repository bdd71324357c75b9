"""Photos of the database, and their names in a ground truth."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eval.protocols.truth import PLAIN, BenchmarkQuery, QueryLabels, Truth
from eval.retrieval.asking import cut_out
from eval.retrieval.photos import choose_photos
from index.errors import CairnError


def write_all(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return folder


def truth_of(count: int, **more: object) -> Truth:
    """Queries q0, q1, …, each with one positive and one photo of junk."""
    queries = tuple(
        BenchmarkQuery(
            f"q{n}", f"q{n}", (0, 0, 9, 9), {PLAIN: QueryLabels(frozenset((f"p{n}",)), frozenset((f"j{n}",)))}
        )
        for n in range(count)
    )
    return Truth(queries, **more)  # type: ignore[arg-type]


def test_a_share_has_all_that_its_queries_name_and_a_part_of_the_rest(tmp_path: Path) -> None:
    names = [f"{kind}{n}.jpg" for kind in "qpj" for n in range(10)] + [f"x{n}.jpg" for n in range(70)]
    images = write_all(tmp_path / "images", *names)
    beside = write_all(tmp_path / "beside", *(f"{n}/same.jpg" for n in range(40)))
    photos, truth = choose_photos([images], truth_of(10), distractors=[beside], share=0.3, seed=1)
    assert len(truth.queries) == 3
    found = {path.stem for path in photos.image_files}
    assert truth.named <= found and len(found) == 9 + round(0.3 * 91)
    assert len(photos.distractor_files) == 12
    assert (photos.images, photos.distractors) == (photos.image_files, photos.distractor_files)
    assert choose_photos([images], truth_of(10), distractors=[beside], share=0.3, seed=1)[0] == photos
    other = choose_photos([images], truth_of(10), distractors=[beside], share=0.3, seed=2)[0]
    assert other != photos
    assert len(choose_photos([images], truth_of(10), share=0.01)[1].queries) == 2
    whole, all_of_it = choose_photos([images], truth_of(10), distractors=[beside])
    assert (whole.images, whole.distractors) == ((images,), (beside,))
    assert (len(whole.image_files), len(whole.distractor_files), len(all_of_it.queries)) == (100, 40, 10)


def test_a_photo_among_the_images_is_no_distractor(tmp_path: Path) -> None:
    images = write_all(tmp_path / "images", "q0.jpg", "p0.jpg", "more/x.jpg")
    photos, _ = choose_photos([images], truth_of(1), distractors=[images / "more", write_all(tmp_path / "b", "p0.jpg")])
    assert photos.distractor_files == (tmp_path / "b" / "p0.jpg",)


def test_a_database_is_searched_alone_and_queries_lie_beside_it(tmp_path: Path) -> None:
    images = write_all(tmp_path / "images", "q0.jpg", "p0.jpg", "j0.jpg", "x.jpg")
    truth = truth_of(1, database=frozenset(("p0", "j0")), cropped=True)
    photos, _ = choose_photos([images], truth)
    assert {path.stem for path in photos.images} == {"p0", "j0"}
    assert choose_photos([images], truth, distractors=[images])[0].distractor_files == ()
    assert photos.queries == {"q0": images / "q0.jpg"}
    shutil.move(images / "q0.jpg", write_all(tmp_path / "queries", "other.jpg"))
    assert choose_photos([images], truth, queries=tmp_path / "queries")[0].queries == {
        "q0": tmp_path / "queries" / "q0.jpg"
    }
    write_all(images, "again/p0.png")
    with pytest.raises(CairnError, match="'p0', come twice"):
        choose_photos([images], truth)


def test_a_query_is_cut_out_by_whole_pixels(tmp_path: Path) -> None:
    values = np.arange(48, dtype=np.uint8).reshape(6, 8)
    Image.fromarray(values).save(tmp_path / "photo.png")
    for box, part in (
        ((1.4, 2.0, 4.6, 5.2), values[2:5, 1:5]),
        ((-3.0, -1.0, 2.0, 99.0), values[:, :2]),
    ):
        cut_out(tmp_path / "photo.png", box, tmp_path / "cut.png")
        assert np.array_equal(np.asarray(Image.open(tmp_path / "cut.png")), part)
    with pytest.raises(CairnError, match="outside the photo"):
        cut_out(tmp_path / "photo.png", (9.0, 0.0, 12.0, 4.0), tmp_path / "cut.png")
    with pytest.raises(CairnError, match="cannot be used"):
        cut_out(tmp_path / "lost.png", (0.0, 0.0, 2.0, 2.0), tmp_path / "cut.png")
