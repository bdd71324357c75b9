"""Check that a source distribution and the wheels built from it hold exactly the required files.

usage: python -m scripts.check_archives SDIST WHEEL WHEEL_OF_SDIST [CHECKOUT]

WHEEL_OF_SDIST was built from the source distribution. With a checkout, the source distribution must have all its files.
"""

import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

TOP = {"cairn.py", "cairn-stubs", "data", "eval", "index", "learning", "retrieval"}
"""Top-level names installed by a wheel."""

BILL = "bom.cdx.json"
"""The bill of materials, which scripts/pins/bom.py writes into a source distribution."""

NEEDED = (
    "cairn.py",
    "cairn-stubs/__init__.pyi",
    *(f"{package}/py.typed" for package in ("eval", "index", "learning", "retrieval")),
    *(f"data/models/{name}.npz" for name in ("cairn", "pr-proj", "rootsift-proj")),
    "data/sets/oxford5k.json",
    "retrieval/web/pages/search.html",
    "*.data/data/share/man/man1/cairn.1",
    "*.dist-info/licenses/LICENSE",
    "*.dist-info/entry_points.txt",
)
"""Required files of a wheel; the rest is Python modules, pages and manifests."""

# In a source distribution, but not in the checkout.
_MADE = r"(PKG-INFO|bom\.cdx\.json|setup\.cfg|[^/]+\.egg-info/.*|site/.*)"
_LEFT_BEHIND = r"(^|/)(__pycache__|build|\.venv[^/]*|\.git|\.[a-z]+_cache|\.hypothesis|[^/]+\.cairn)/|\.py[co]$"


def wrong_wheel(names: Iterable[str]) -> Iterator[str]:
    """List missing and unexpected files of a wheel."""
    names = set(names)
    for needed in NEEDED:
        pattern = re.escape(needed).replace(r"\*", "[^/]+")
        if not any(re.fullmatch(pattern, name) for name in names):
            yield f"the wheel lacks {needed}"
    for top in sorted({name.partition("/")[0] for name in names} - TOP):
        if not re.search(r"\.(dist-info|data)$", top):
            yield f"the wheel would install {top}"
    yield from (f"the wheel holds {name}" for name in sorted(names) if re.search(_LEFT_BEHIND, name))


def wrong_source(names: Iterable[str], tracked: Iterable[str] = (), known: Iterable[str] = ()) -> Iterator[str]:
    """List missing files of a source distribution (`tracked`), and unexpected ones."""
    names, tracked = set(names), set(tracked)
    allowed = tracked | set(known)
    yield from (f"the source distribution lacks {name}" for name in sorted(tracked - names))
    if "scripts/pins/bom.py" in tracked and BILL not in names:
        yield f"the source distribution lacks {BILL}"
    for name in sorted(names - tracked):
        stranger = bool(allowed) and name not in allowed and not re.fullmatch(_MADE, name)
        if stranger or re.search(_LEFT_BEHIND, name):
            yield f"the source distribution holds {name}"


def differences(one: dict[str, bytes], other: dict[str, bytes]) -> Iterator[str]:
    """List the files that differ between two archives."""
    for name in sorted(one.keys() | other.keys()):
        if one.get(name) != other.get(name):
            yield f"the wheel and the one of the source distribution differ in {name}"


def _files(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def _listed(checkout: Path, *options: str) -> list[str]:
    done = subprocess.run(["git", "ls-files", "-z", *options], cwd=checkout, capture_output=True, text=True)
    names = done.stdout.split("\0") if done.returncode == 0 else []
    return [name for name in names if name and (checkout / name).is_file()]


def main() -> None:
    """Print all problems, and exit with 1 if there are any."""
    source, wheel, other, *checkout = map(Path, sys.argv[1:])
    with tarfile.open(source) as archive:
        names = [member.name.partition("/")[2] for member in archive.getmembers() if not member.isdir()]
    tracked = _listed(checkout[0]) if checkout else []
    known = _listed(checkout[0], "--others", "--exclude-standard") if checkout else []
    files = _files(wheel)
    wrong = [*wrong_source(names, tracked, known), *wrong_wheel(files), *differences(files, _files(other))]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"The source distribution has {len(names)} files, and makes the same wheel of {len(files)} as the checkout.")


if __name__ == "__main__":
    main()
