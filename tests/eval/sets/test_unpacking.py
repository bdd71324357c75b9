"""Valid, damaged or hostile archives: unpacked completely below one folder, or not at all."""

import gzip
import io
import os
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from eval.sets.unpacking import BadArchive, DamagedArchive, HostileArchive, unpack
from eval.sets.volumes import unpack_volumes
from index.errors import CairnError

FILES = {"set/a.jpg": b"a" * 5000, "set/deep/b.jpg": b"b" * 70_000, "set/empty.txt": b""}


def tar(path: Path, members: dict[str, bytes], mode: str = "w:gz", **special: tarfile.TarInfo) -> Path:
    with tarfile.open(path, mode) as opened:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            opened.addfile(info, io.BytesIO(content))
        for info in special.values():
            opened.addfile(info)
    return path


def zipped(path: Path, members: dict[str, bytes], **options: int) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return path


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz", "zip"])
@pytest.mark.parametrize("strip", [False, True])
def test_an_archive_of_any_kind_is_unpacked(tmp_path: Path, mode: str, strip: bool) -> None:
    """The name does not determine the type: mirrors repack."""
    members = {**FILES, "__MACOSX/._a.jpg": b"x", "set/.DS_Store": b"x"}
    make: Callable[..., Path] = zipped if mode == "zip" else tar
    archive = make(tmp_path / "set.tar.gz", members, mode=mode)
    reported: list[int] = []
    unpack(archive, tmp_path / "out", 10**6, lambda done, of: reported.append(done), strip=strip)
    expected = {name.removeprefix("set/" if strip else ""): content for name, content in FILES.items()}
    assert tree(tmp_path / "out") == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "set.tar.gz"]
    assert reported == sorted(reported)


def link(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/etc/passwd", "a member '/etc/passwd'"),
        ("../outside.txt", "a member '../outside.txt'"),
        ("set/../../outside.txt", "a member"),
        ("set\\..\\outside.txt", "a member"),
        ("C:/outside.txt", "a member"),
        ("set/\x1b[31mred.jpg", "a member"),
        ("set/line\nbreak.jpg", "a member"),
        ("x" * 250, "a member"),
        ("set/a.jpg", "twice"),
        ("set/./a.jpg", "twice"),
        ("set/a.jpg/b", "twice"),  # a file that is a folder too
    ],
)
@pytest.mark.parametrize("make", [tar, zipped])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_lead_elsewhere_are_refused(
    tmp_path: Path, make: Callable[..., Path], name: str, reason: str
) -> None:
    archive = tmp_path / "in" / "set.tgz"
    archive.parent.mkdir()
    if name == "set/a.jpg" and make is tar:
        make(archive, FILES)
        with tarfile.open(archive, "w:gz") as opened:
            for _ in range(2):
                opened.addfile(tarfile.TarInfo(name))
    elif name == "set/a.jpg":
        with zipfile.ZipFile(archive, "w") as zipping:
            for _ in range(2):
                zipping.writestr(name, b"x")
    else:
        make(archive, {**FILES, name: b"evil"})
    with pytest.raises(HostileArchive, match=reason) as refused:
        unpack(archive, tmp_path / "in" / "out", 10**6)
    assert str(refused.value).isprintable() and str(refused.value).endswith(": nothing of it is unpacked.")
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "set.tgz"]


def test_a_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    archive = tar(tmp_path / "set.tgz", FILES, folder=link("set/a.jpg/b/", "", tarfile.DIRTYPE))
    with pytest.raises(HostileArchive, match="twice"):
        unpack(archive, tmp_path / "out", 10**6)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    special = {"link": link("set/link", str(outside), kind), "through": tarfile.TarInfo("set/link/evil.txt")}
    archive = tar(tmp_path / "set.tgz", FILES, **special)
    with pytest.raises(HostileArchive, match="neither a file nor a folder"):
        unpack(archive, tmp_path / "out", 10**6)
    assert not any(outside.iterdir()) and not (tmp_path / "out").exists()

    info = zipfile.ZipInfo("set/link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr(info, str(outside))
    with pytest.raises(HostileArchive, match="neither a file nor a folder"):
        unpack(archive, tmp_path / "out", 10**6)


@pytest.mark.parametrize("make", [tar, zipped])
def test_a_bomb_is_stopped_at_the_declared_limit(tmp_path: Path, make: Callable[..., Path]) -> None:
    archive = make(tmp_path / "set.tgz", {"zeros": bytes(30_000_000)})
    assert archive.stat().st_size < 50_000
    with pytest.raises(HostileArchive, match="more than the 1,000,000 bytes that are declared"):
        unpack(archive, tmp_path / "out", 1_000_000)
    assert [path.name for path in tmp_path.iterdir()] == ["set.tgz"]


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_a_header_that_would_fill_the_memory_is_refused(tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = kind, 50_000_000
    archive = tmp_path / "set.tgz"
    with gzip.open(archive, "wb", 1) as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT) + b"a" * info.size)
    with pytest.raises(HostileArchive, match="a header of 50,000,"):
        unpack(archive, tmp_path / "out", 10**6)
    assert [path.name for path in tmp_path.iterdir()] == ["set.tgz"]


@pytest.mark.parametrize("make", [tar, zipped])
def test_damage_anywhere_is_told_and_leaves_nothing(tmp_path: Path, make: Callable[..., Path]) -> None:
    content = os.urandom(20_000)
    whole = make(tmp_path / "whole", {"a": content, "b": content}).read_bytes()
    archive = tmp_path / "set.tgz"
    for damaged in (b"", b"<html>302 Found</html>", whole[: len(whole) // 2], whole[:10] + bytes(4) + whole[14:25_000]):
        archive.write_bytes(damaged)
        with pytest.raises(DamagedArchive, match="is damaged or no archive"):
            unpack(archive, tmp_path / "out", 10**6)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["set.tgz", "whole"]


UNRAR = """#!/bin/sh
# Stands for unrar: the "archive" is a tar.
case "$1" in
  lb) tar tf "$3" ;;
  x) shift 5; tar xf "$1" -C "$2" ;;
esac
"""


def test_volumes_are_unpacked_by_what_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    unrar = tmp_path / "bin" / "unrar"
    archive = tar(tmp_path / "oxc1_100k.part01.rar", FILES, "w")
    monkeypatch.setenv("PATH", str(unrar.parent))
    with pytest.raises(CairnError, match="install unrar or 7z"):
        unpack_volumes(archive, tmp_path / "out", 10**6)
    unrar.write_text(UNRAR)
    unrar.chmod(0o755)
    monkeypatch.setenv("PATH", f"{unrar.parent}:/bin:/usr/bin")
    unpack_volumes(archive, tmp_path / "out", 10**6, strip=True)
    assert tree(tmp_path / "out") == {name.removeprefix("set/"): content for name, content in FILES.items()}
    with pytest.raises(HostileArchive, match="more than the 1,000 bytes"):
        unpack_volumes(archive, tmp_path / "more", 1000)
    for wrong in ({"../evil": b""}, {}):
        tar(archive, wrong, "w")
        with pytest.raises(BadArchive):
            unpack_volumes(archive, tmp_path / "more", 10**6)
    tar(archive, {}, "w", link=link("evil", "/etc", tarfile.SYMTYPE))
    with pytest.raises(HostileArchive, match="neither a file nor a folder"):
        unpack_volumes(archive, tmp_path / "more", 10**6)
    unrar.write_text("#!/bin/sh\necho 'volume missing' >&2; exit 3")
    with pytest.raises(CairnError, match=r"unrar cannot read .*volume missing.*: remove the one that is damaged"):
        unpack_volumes(archive, tmp_path / "more", 10**6)
    assert not (tmp_path / "more").exists()
    assert subprocess.run(["ls", "-A", tmp_path], capture_output=True, text=True).stdout.split() == [
        *("bin", "out", "oxc1_100k.part01.rar")
    ]
