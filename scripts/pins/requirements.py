"""Write the hashes of all pinned packages into the requirements files, and their licences into a file next to them.

Versions are those pinned in the files; all their dependencies on any system must be pinned too. Hashes are of all files
of a version on PyPI; licences are from the metadata of the packages installed here. Needs uv
(``pip install uv``).

usage: .venv-test/bin/python -m scripts.pins.requirements
"""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from .bom import LICENCES, SCOPES, Pin, plain, read_pins

ROOT = Path(__file__).resolve().parents[2]

_UV = ["pip", "compile", "-", "--universal", "--python-version", "3.11", "--generate-hashes", "--no-annotate"]
_UV += ["--no-header", "--no-config", "--quiet"]


def bare(text: str) -> str:
    """A requirements file without its hashes."""
    return re.sub(r"[ \t]*\\\n[ \t]+--hash=\S+", "", text)


def with_hashes(text: str, pins: list[Pin]) -> str:
    """Add hashes to the pins of a requirements file; raises KeyError if a pin has no hashes."""
    known = {(pin.name, pin.version): pin.hashes for pin in pins}
    lines = []
    for line in bare(text).splitlines():
        more = [one for pin in read_pins(line) for one in sorted(known[pin.name, pin.version])]
        lines.append(" \\\n    ".join([line, *(f"--hash=sha256:{one}" for one in more)]))
    return "\n".join(lines) + "\n"


def licence_of(name: str) -> str | None:
    """The licence of an installed package as an SPDX expression; None if it does not state one."""
    try:
        return metadata.metadata(name).json.get("license_expression")  # type: ignore[return-value]
    except metadata.PackageNotFoundError:
        return None


def main() -> None:
    """Rewrite the files."""
    uv = shutil.which("uv") or shutil.which("uv", path=os.fspath(Path(sys.executable).parent))
    if uv is None:
        sys.exit("scripts/pins/requirements: uv is needed and not installed: pip install uv.")
    # Another index may have other files of the same version.
    clean = {key: value for key, value in os.environ.items() if not key.startswith("UV_")}
    pins = ""
    for name in SCOPES:
        text = bare((ROOT / name).read_text(encoding="utf-8"))
        pins += re.sub("^-r .*\n", "", text, flags=re.MULTILINE)
        ran = subprocess.run([uv, *_UV], input=pins, capture_output=True, text=True, encoding="utf-8", env=clean)
        if ran.returncode:
            sys.exit(f"scripts/pins/requirements: {name}: {ran.stderr.strip()}")
        resolved = read_pins(ran.stdout)
        pinned = {(pin.name, pin.version) for pin in read_pins(pins)}
        missing = sorted({f"{pin.name}=={pin.version}" for pin in resolved if (pin.name, pin.version) not in pinned})
        if missing:
            sys.exit(f"scripts/pins/requirements: {name} does not pin {', '.join(missing)}, which some system needs.")
        (ROOT / name).write_text(with_hashes(text, resolved), encoding="utf-8")
    path = ROOT / LICENCES
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    names = sorted({pin.name for pin in read_pins(pins)})
    licences = {name: one for name in names if (one := licence_of(plain(name)) or known.get(name))}
    path.write_text(json.dumps(licences, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
