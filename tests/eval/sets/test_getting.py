"""The command that gets sets, from a local server with small archives in the published layouts."""

import errno
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eval.sets import checks
from eval.sets.getting import fill_up
from eval.sets.layouts import NAMES, locate
from eval.sets.manifests import read_manifest
from tests.conftest import Ran
from tests.support.file_server import FileServer, serve_files
from tests.support.paths import ROOT

Cairn = Callable[..., Ran]

OXFORD = [f"all_souls_{number:06}.jpg" for number in range(6)]
PARIS = [f"paris/defense/paris_defense_{number:06}.jpg" for number in range(4)]
BAD_PARIS = "paris/louvre/paris_louvre_000136.jpg"


def truth(landmark: str, photo: str) -> dict[str, bytes]:
    """The ground truth of one landmark; each query names one photo."""
    kinds = {"query": f"{photo} 1 2 3 4\n", "good": f"{photo.removeprefix('oxc1_')}\n", "ok": "", "junk": ""}
    return {f"{landmark}_{n}_{kind}.txt": text.encode() for n in range(1, 6) for kind, text in kinds.items()}


def pack(files: dict[str, bytes] | list[str], kind: str = "tgz") -> bytes:
    members = files if isinstance(files, dict) else {name: b"photo" for name in files}
    held = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(held, "w") as zipped:
            for name, content in members.items():
                zipped.writestr(name, content)
    else:
        with tarfile.open(fileobj=held, mode="w:gz") as tar:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return held.getvalue()


PATCHES = {
    "info.txt": b"0 0\n" * 300,
    **{f"patches{number:04}.bmp": b"bitmap" for number in range(2)},
    **{f"m50_{pairs}_{pairs}_0.txt": b"" for pairs in (100000, 500000)},
}
SEQUENCES = {f"{name}/{file}": b"x" for name in ("i_ski", "v_wall") for file in checks._PATCHES}
SMALL: dict[str, tuple[dict[str, int], list[bytes]]] = {  # required files of a set, and its archives
    "oxford5k": (
        {"images": 5, "ground_truth": 20},
        [pack(OXFORD), pack(truth("all_souls", "oxc1_all_souls_000001"))],
    ),
    "paris6k": (
        {"images": 4, "ground_truth": 20},
        [
            pack(PARIS[:2]),
            pack([*PARIS[2:], BAD_PARIS]),
            pack({f"paris_120310/{k}": v for k, v in truth("defense", "paris_defense_000001").items()}),
        ],
    ),
    "roxford5k": ({"images": 6, "ground_truth": 1}, [b"\x80\x02}q\x00."]),
    "rparis6k": ({"images": 4, "ground_truth": 1}, [b"\x80\x02}q\x00."]),
    **{part: ({"patches": 300}, [pack(PATCHES, "zip")]) for part in ("notredame", "yosemite")},
    "liberty": ({"patches": 300}, [pack({f"liberty/{k}": v for k, v in PATCHES.items()}, "zip")]),
    "hpatches": ({"sequences": 2}, [pack({f"hpatches-release/{k}": v for k, v in SEQUENCES.items()}, "zip")]),
    "holidays": (
        {"images": 4, "queries": 2},
        [pack(["jpg/100000.jpg", "jpg/100001.jpg"]), pack(["jpg/100100.jpg", "jpg/100101.jpg"])],
    ),
    "ukbench": (
        {"images": 4},
        [pack([f"full/ukbench{n:05}.jpg" for n in range(4)] + ["thumbnails/ukbench00000.th.jpg"], "zip")],
    ),
}


@pytest.fixture(scope="module")
def running() -> Iterator[FileServer]:
    with serve_files() as server:
        yield server


@pytest.fixture
def server(running: FileServer, monkeypatch: pytest.MonkeyPatch) -> FileServer:
    running.files.clear()
    running.requested.clear()
    monkeypatch.setattr(checks, "_QUERIES", {"oxford5k": "all_souls", "paris6k": "defense"})
    return running


@pytest.fixture
def manifests(server: FileServer, tmp_path: Path) -> Path:
    """Cairn's manifests, with small archives at addresses of this machine."""
    folder = tmp_path / "manifests"
    folder.mkdir()
    for name, (layout, archives) in SMALL.items():
        manifest = json.loads((ROOT / "data" / "sets" / f"{name}.json").read_text())
        manifest["layout"] |= layout
        for download, content in zip(manifest["downloads"], archives, strict=True):
            url = server.add(download["file"], content)
            sha = hashlib.sha256(content).hexdigest()
            missing = {"url": f"{url}.gone", "bytes": None, "sha256": None, "md5": None}
            download["addresses"] = [missing, {**missing, "url": url, "bytes": len(content), "sha256": sha}]
        (folder / f"{name}.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def data(cairn: Cairn, manifests: Path, tmp_path: Path) -> Callable[..., Ran]:
    def run(command: str, *arguments: object) -> Ran:
        return cairn("data", command, *arguments, "--root", tmp_path / "root", "--manifests", manifests)

    return run


def test_every_set_is_got_found_and_left_alone_then(
    data: Callable[..., Ran], server: FileServer, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    names = ["roxford5k", "rparis6k", "oxford5k", "paris6k", "phototour", "hpatches", "holidays", "ukbench"]
    got = {one["name"]: one for one in data("get", *names, "--json").json["sets"]}
    assert list(got) == [
        *("oxford5k", "roxford5k", "paris6k", "rparis6k", "notredame", "yosemite", "liberty", "phototour"),
        *("hpatches", "holidays", "ukbench"),
    ]
    assert all(one["whole"] for one in got.values())
    assert got["paris6k"]["known_bad"] == ["paris_louvre_000136.jpg"]
    assert [file["file"] for file in got["paris6k"]["files"]] == [
        "paris_1-v1.tgz",
        "paris_2-v1.tgz",
        "paris_120310.tgz",
    ]
    assert got["paris6k"]["files"][0]["sha256"] == hashlib.sha256(SMALL["paris6k"][1][0]).hexdigest()
    assert {name: one["status"] for name, one in got.items() if one["status"] != "got"} == {"phototour": "there"}
    for name in names:
        assert locate(name, root).folder.is_relative_to(root)
    assert len(locate("oxford5k", root).images) == len(locate("roxford5k", root).images) == 6
    assert locate("rparis6k", root).ground_truth == root / "rparis6k" / "gnd_rparis6k.pkl"
    assert locate("phototour", root).folder == root / "phototour"
    assert sorted(path.name for path in (root / ".downloads").iterdir()) == ["lock"]

    server.requested.clear()
    ran = data("get", *names)
    assert (ran.code, server.requested) == (0, [])
    assert "roxford5k is there in" in ran.out and "6 of 6 images" in ran.out
    assert data("check", *names).code == 0


def test_only_what_is_missing_is_downloaded(data: Callable[..., Ran], server: FileServer, tmp_path: Path) -> None:
    """The root is the folder of the set itself, with photos where revisitop's own download puts them."""
    root = tmp_path / "root"
    (root / "jpg").mkdir(parents=True)
    for name in OXFORD:
        (root / "jpg" / name).write_bytes(b"mine")
    assert data("get", "oxford5k").code == 0
    assert {path for path, _ in server.requested} == {"gt_files_170407.tgz.gone", "gt_files_170407.tgz"}
    assert {path.read_bytes() for path in (root / "jpg").iterdir()} == {b"mine"}
    assert locate("oxford5k", root).images[0].parent == root / "jpg"
    (root / "oxford5k" / "gt" / "all_souls_3_ok.txt").unlink()
    ran = data("check", "oxford5k", "--json")
    assert (ran.code, ran.json["sets"][0]["missing"]) == (1, ["all_souls_3_ok.txt"])
    assert data("get", "oxford5k", "--keep-archives", "--quiet").code == 0
    assert (root / ".downloads" / "oxford5k" / "gt_files_170407.tgz").is_file()


def test_photos_that_are_missing_are_named_and_filled_in(data: Callable[..., Ran], tmp_path: Path) -> None:
    assert data("get", "oxford5k").code == 0
    images = tmp_path / "root" / "oxford5k" / "images"
    (images / OXFORD[1]).unlink()
    (images / OXFORD[2]).write_bytes(b"")
    (images / OXFORD[3]).write_bytes(b"other")
    ran = data("check", "oxford5k")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        f"oxford5k is not whole in {images.parent / 'gt'}: 4 of 5 images, 20 of 20 ground truth",
        "  missing: all_souls_000001.jpg",
        "  empty: all_souls_000002.jpg",
    ]
    assert data("get", "oxford5k").code == 0
    assert [(images / name).read_bytes() for name in OXFORD[1:4]] == [b"photo", b"photo", b"other"]
    # A named photo is missing, though others make up the number.
    (images / OXFORD[1]).rename(images / "other.jpg")
    assert data("check", "oxford5k", "--json").json["sets"][0]["found"]["images"] == 6
    assert data("get", "oxford5k").code == 0
    assert (images / OXFORD[1]).is_file()


def test_an_archive_that_is_refused_is_kept_aside(
    data: Callable[..., Ran], manifests: Path, server: FileServer, tmp_path: Path
) -> None:
    manifest = json.loads((manifests / "ukbench.json").read_text())
    evil = pack({"full/ukbench00000.jpg": b"x", "../evil.jpg": b"x"}, "zip")
    manifest["downloads"][0]["addresses"][1] |= {"bytes": None, "sha256": None}
    (manifests / "ukbench.json").write_text(json.dumps(manifest))
    server.add("ukbench.zip", evil)
    ran = data("get", "ukbench")
    assert ran.code == 2
    assert "'../evil.jpg'" in ran.err and "kept as ukbench.zip.bad, and the same command downloads it again" in ran.err
    root = tmp_path / "root"
    assert not (root / "ukbench").exists() and not list(tmp_path.rglob("evil.jpg"))
    server.add("ukbench.zip", SMALL["ukbench"][1][0])
    assert data("get", "ukbench").code == 0
    # An incomplete archive is unpacked, and missing files are reported.
    server.add("ukbench.zip", pack(["full/ukbench00001.jpg"], "zip"))
    (root / "ukbench" / "full" / "ukbench00000.jpg").unlink()
    ran = data("get", "ukbench")
    assert (ran.code, "missing: ukbench00000.jpg" in ran.out) == (1, True)


def test_a_page_in_the_place_of_a_ground_truth_is_kept_aside(
    data: Callable[..., Ran], manifests: Path, server: FileServer, tmp_path: Path
) -> None:
    manifest = json.loads((manifests / "roxford5k.json").read_text())
    manifest["downloads"][0]["addresses"][1] |= {"bytes": None, "sha256": None}
    (manifests / "roxford5k.json").write_text(json.dumps(manifest))
    server.add("gnd_roxford5k.pkl", b"<html>Log in</html>")
    assert "kept as gnd_roxford5k.pkl.bad" in data("get", "roxford5k").refused()
    assert not list((tmp_path / "root" / "roxford5k").glob("*"))
    server.add("gnd_roxford5k.pkl", SMALL["roxford5k"][1][0])
    assert data("get", "roxford5k").code == 0


def test_a_set_may_lie_on_another_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for name in ("new/a.jpg", "there/b.jpg", "there/c.jpg"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(b"photo")
    (target / "there").mkdir(parents=True)
    (target / "there" / "b.jpg").write_bytes(b"mine")
    replace = Path.replace

    def on_two_disks(path: Path, to: Path) -> Path:
        if path.is_relative_to(source):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return replace(path, to)

    monkeypatch.setattr(Path, "replace", on_two_disks)
    fill_up(source, target)
    found = {path.relative_to(target).as_posix(): path.read_bytes() for path in target.rglob("*") if path.is_file()}
    assert found == {"new/a.jpg": b"photo", "there/b.jpg": b"mine", "there/c.jpg": b"photo"}
    assert not source.exists()


def test_a_set_of_two_archives_is_placed_only_when_both_are_there(
    data: Callable[..., Ran], server: FileServer, tmp_path: Path
) -> None:
    second = server.files.pop("paris_2-v1.tgz")
    assert data("get", "paris6k").code == 2
    assert not (tmp_path / "root" / "paris6k").exists()
    server.files["paris_2-v1.tgz"] = second
    server.requested.clear()
    assert data("get", "paris6k").code == 0
    assert "paris_1-v1.tgz" not in {path for path, _ in server.requested}  # not downloaded twice


def test_wrong_requests_are_one_sentence(data: Callable[..., Ran], manifests: Path, tmp_path: Path) -> None:
    assert "There is no set 'oxford105k'" in data("get", "oxford105k").refused()
    assert "There is no folder" in data("check", "oxford5k").refused()
    for damaged in ("{", "[]", '{"name": "ukbench"}', (manifests / "holidays.json").read_text()):
        (manifests / "ukbench.json").write_text(damaged)
        assert "ukbench.json" in data("get", "ukbench").refused()
    manifest = json.loads((manifests / "holidays.json").read_text())
    wrong: list[tuple[str, Any]] = [("into", "../../etc"), ("file", "a/b"), ("into", "/etc"), ("addresses", [])]
    wrong += [("addresses", [{"url": url}]) for url in ("file:///etc/passwd", "http://[/", "/etc/passwd")]
    wrong += [("addresses", [{"url": "http://a/b", "sha256": "abc"}])]
    for key, value in wrong:
        (manifests / "holidays.json").write_text(
            json.dumps({**manifest, "downloads": [{**manifest["downloads"][0], key: value}]})
        )
        assert "cannot be used" in data("get", "holidays").refused()
    assert not list((tmp_path / "root").glob("[!.]*"))


def test_the_manifests_that_come_with_cairn_are_sound(cairn: Cairn, tmp_path: Path) -> None:
    known = {name: read_manifest(name) for name in NAMES}
    assert sorted(f"{name}.json" for name in NAMES) == sorted(path.name for path in (ROOT / "data" / "sets").iterdir())
    for name, manifest in known.items():
        assert manifest.citation and manifest.licence and manifest.page.startswith("http")
        parts = {download.brings for download in manifest.downloads} | {one for n in manifest.needs for one in n.parts}
        assert {need.set for need in manifest.needs} <= set(NAMES), name
        assert parts or name == "smvs"  # which is published in another layout
    assert [len(download.volumes()) for download in known["flickr100k"].downloads] == [40]
    assert known["flickr100k"].downloads[0].volumes()[6][1][0].url.endswith("/ox100k/oxc1_100k.part07.rar")
    archives = known["gldv2"].downloads
    assert [one.file for one in archives[98:102]] == ["index_098.tar", "index_099.tar", "test_000.tar", "test_001.tar"]
    assert archives[7].addresses[0].url.endswith("/index/images_007.tar")
    assert len({one.file for one in archives}) == len(archives) == 122
    million = [one.file for one in known["revisitop1m"].downloads]
    assert (million[0], million[-1], len(million)) == ("revisitop1m.1.tar.gz", "revisitop1m.100.tar.gz", 100)
    listed = cairn("data", "list", "--root", tmp_path, "--json").json["sets"]
    assert [one["name"] for one in listed] == list(NAMES) and not any(one["whole"] for one in listed)
    assert "of manifests" in cairn("data", "list", "--manifests", tmp_path / "none").refused()
    out = cairn("data", "list").out
    assert all(name in out for name in NAMES)


def test_nothing_heavy_is_loaded_to_list_sets() -> None:
    heavy = ("pooch", "requests", "cv2", "sqlalchemy")
    code = f"""
import sys, cairn
sys.argv = ["cairn", "data", "list"]
try:
    cairn.main()
finally:
    print([one for one in {heavy} if one in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert ran.stdout.splitlines()[-1] == "[]", ran.stderr
