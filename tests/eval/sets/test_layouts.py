"""Locations of the published sets in common layouts."""

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import pytest

from eval.sets.layouts import CORRUPT_PARIS, HARRIS, NAMES, PARTS, locate, published_layout
from index.errors import CairnError

OXFORD = ("all_souls_000013.jpg", "radcliffe_camera_000519.jpg")
PARIS = ("defense/paris_defense_000042.jpg", "louvre/paris_louvre_000136.jpg")


def touch(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")


def queries(folder: Path, *names: str) -> None:
    touch(folder, [f"{name}_1_{kind}.txt" for name in names for kind in ("query", "good", "ok", "junk")])


def everything(root: Path) -> None:
    """Every set under one folder, each in a layout of its own archives."""
    touch(root / "oxford5k" / "oxbuild_images", OXFORD)
    queries(root / "oxford5k" / "gt_files_170407", "all_souls", "radcliffe_camera")
    touch(root / "Paris6k" / "paris", PARIS)
    queries(root / "Paris6k", "defense")
    touch(root / "flickr100k" / "oxc1_100k", ["acropolis/acropolis_000001.jpg", "tiger/tiger_000001.jpg"])
    touch(root / "roxford5k", ["gnd_roxford5k.pkl"])
    touch(root / "rparis6k", ["gnd_rparis6k.pkl"])
    for part in (*PARTS, *HARRIS):
        touch(root / "phototour" / part, ["info.txt", "m50_100000_100000_0.txt"])
    touch(root / "hpatches" / "hpatches-release", ["i_ski/ref.png", "v_graffiti/ref.png"])
    touch(root / "hpatches" / "hpatches-sequences-release", ["i_ski/1.ppm", "v_graffiti/1.ppm"])
    touch(root / "holidays" / "jpg", ["100000.jpg", "100001.jpg"])
    touch(root / "ukbench" / "full", ["ukbench00000.jpg", "ukbench00000.th.jpg"])
    touch(root / "revisitop1m" / "jpg", ["0/1.jpg", "0/2.jpg", "1/3.jpg"])
    touch(root / "gldv2" / "index", ["0/1/2/0123.jpg", "0/1/3/0134.jpg"])
    touch(root / "gldv2", ["test/a/b/c/abcd.jpg", "ground_truth/retrieval_solution_v2.1.csv"])
    touch(root / "wild", ["images/sf_q_0.jpg", "images/sf_r_0.jpg", "images/rock_0.jpg", "gt/sf_0_query.txt"])


def test_each_set_is_found_beside_all_others(tmp_path: Path) -> None:
    everything(tmp_path)
    found = {name: locate(name, tmp_path) for name in NAMES}
    assert {name: one.folder.relative_to(tmp_path).as_posix() for name, one in found.items()} == {
        **{name: name for name in ("oxford5k", "roxford5k", "rparis6k", "phototour", "holidays", "ukbench")},
        **{part: f"phototour/{part}" for part in (*PARTS, *HARRIS)},
        "paris6k": "Paris6k",
        "flickr100k": "flickr100k",
        **{name: name for name in ("revisitop1m", "gldv2")},
        "smvs": "wild",
        "hpatches": "hpatches/hpatches-release",
        "hpatches-sequences": "hpatches/hpatches-sequences-release",
    }
    assert {name: len(one.images) for name, one in found.items() if one.images} == {
        **{"oxford5k": 2, "roxford5k": 2, "paris6k": 1, "rparis6k": 1},  # one of Paris is no photo
        **{"flickr100k": 2, "holidays": 2, "ukbench": 1, "revisitop1m": 3, "gldv2": 2, "smvs": 2},
    }
    assert found["gldv2"].queries == tmp_path / "gldv2" / "test"
    assert found["gldv2"].ground_truth == tmp_path / "gldv2" / "ground_truth" / "retrieval_solution_v2.1.csv"
    assert found["roxford5k"].images == found["oxford5k"].images
    assert found["oxford5k"].ground_truth == tmp_path / "oxford5k" / "gt_files_170407"
    assert found["rparis6k"].ground_truth == tmp_path / "rparis6k" / "gnd_rparis6k.pkl"
    assert not any(found[name].ground_truth for name in ("flickr100k", "phototour", "hpatches", "holidays"))


@pytest.mark.parametrize(
    ("name", "photos", "gt"),
    [
        ("oxford5k", "images", "gt"),
        ("oxford5k", "jpg", "gt"),
        ("oxford5k", "oxbuild_images", "gt_files_170407"),  # the archives' own names
        ("oxford5k", "oxbuild_images-v1", "gt_files_170407"),
        ("paris6k", "paris", "paris_120310"),
        ("oxford5k", ".", "gt"),
        ("oxford5k", ".", "."),  # Oxford5K's archives hold no folder: both unpacked in one place
        ("paris6k", "images", "."),
    ],
)
def test_the_folder_of_the_set_itself_may_be_given(tmp_path: Path, name: str, photos: str, gt: str) -> None:
    touch(tmp_path / photos, OXFORD if name == "oxford5k" else PARIS)
    queries(tmp_path / gt, "all_souls" if name == "oxford5k" else "eiffel")
    assert published_layout(name, tmp_path) == (tmp_path / photos, tmp_path / gt)
    assert len(locate(name, tmp_path).images) == (2 if name == "oxford5k" else 1)


def test_the_revisited_sets_lie_as_their_own_download_leaves_them(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "datasets" / "roxford5k"
    touch(folder, ["gnd_roxford5k.pkl", *(f"jpg/{name}" for name in OXFORD)])
    assert len(locate("roxford5k", tmp_path).images) == 2
    assert locate("roxford5k", folder) == locate("roxford5k", tmp_path)


def test_parts_of_phototour_go_by_several_names(tmp_path: Path) -> None:
    touch(tmp_path, ["notredame/notredame/info.txt", "Yosemite/info.txt", "liberty_harris/info.txt"])
    (tmp_path / "Yosemite").rename(tmp_path / "yosemite")
    assert locate("notredame", tmp_path).folder == tmp_path / "notredame" / "notredame"
    assert locate("liberty_harris", tmp_path).folder == tmp_path / "liberty_harris"
    assert locate("liberty_harris", tmp_path / "liberty_harris").folder == tmp_path / "liberty_harris"
    with pytest.raises(CairnError, match="no patches of liberty below"):  # other patches, though of the same place
        locate("liberty", tmp_path)
    touch(tmp_path, ["liberty/info.txt"])
    assert locate("phototour", tmp_path).folder == tmp_path
    touch(tmp_path, ["patchdata/trevi/info.txt"])
    with pytest.raises(CairnError, match="no patches of yosemite"):
        locate("yosemite", tmp_path / "patchdata")


def test_hpatches_as_photos_serves_where_there_are_no_patches(tmp_path: Path) -> None:
    folder = tmp_path / "hpatches-sequences-release"
    touch(folder, ["i_ski/1.ppm"])
    for root in (tmp_path, folder):
        assert locate("hpatches", root).folder == locate("hpatches-sequences", root).folder == folder


def test_one_set_is_never_taken_for_another(tmp_path: Path) -> None:
    touch(tmp_path / "images", PARIS)
    queries(tmp_path / "gt", "defense")
    with pytest.raises(CairnError, match="no ground truth of oxford5k"):
        locate("oxford5k", tmp_path)
    queries(tmp_path / "gt", "all_souls")
    with pytest.raises(CairnError, match="no photos of oxford5k"):
        locate("oxford5k", tmp_path)
    everything(tmp_path / "all")
    (tmp_path / "all" / "oxford5k" / "oxbuild_images").rename(tmp_path / "away")
    with pytest.raises(CairnError, match=r"no photos of oxford5k .*get roxford5k"):
        locate("roxford5k", tmp_path / "all")


def test_other_photos_beside_the_sets_are_not_taken_for_theirs(tmp_path: Path) -> None:
    everything(tmp_path)
    touch(tmp_path, ["images/mine.jpg", "jpg/100000.jpg", "own.jpg"])
    queries(tmp_path / "gt", "my_house")
    for name in ("oxford5k", "roxford5k"):
        assert {path.parent for path in locate(name, tmp_path).images} == {tmp_path / "oxford5k" / "oxbuild_images"}
    assert locate("paris6k", tmp_path).ground_truth == tmp_path / "Paris6k"


def test_what_is_missing_is_said_with_the_command_that_gets_it(tmp_path: Path) -> None:
    (tmp_path / "jpg").mkdir()
    for name in NAMES:
        for root in (tmp_path, tmp_path / "nowhere"):
            place = re.escape(shlex.quote(str(root)))
            reported = f"cairn data get {name} --root {place} (gets it|gets them|get them again)\\.$"
            with pytest.raises(CairnError, match=reported):
                locate(name, root)
    with pytest.raises(CairnError, match="There is no set 'oxford105k': choose oxford5k, "):
        locate("oxford105k", tmp_path)
    assert len(CORRUPT_PARIS) == 20
