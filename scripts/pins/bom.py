"""The bill of materials of the source distribution: all that is pinned, in CycloneDX's JSON.

setuptools calls `SourceDistribution` when it builds one (pyproject.toml), with nothing but itself installed.
"""

import json
import re
import tomllib
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setuptools.command.sdist import sdist

NAME = "bom.cdx.json"
"""File in the source distribution."""
SCOPES = {"requirements.txt": "required", "requirements-cluster.txt": "optional", "requirements-test.txt": "excluded"}
"""The requirements files, each of which may include those before it, and what is in them for whom."""
LICENCES = "scripts/pins/licences.json"
"""Licences by package, as the packages name them; `scripts.pins.requirements` writes it."""

_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?:\s*;\s*(?P<marker>[^\\]+?))?\s*(?:\\|$)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Pin:
    """A pinned version."""

    name: str  # as indexes write it
    version: str
    marker: str  # on which systems; empty: on all
    hashes: tuple[str, ...]  # SHA-256 of the files of this version


def read_pins(text: str) -> list[Pin]:
    """The pins of a requirements file, without those that it includes."""
    found = ((_PIN.match(line), line) for line in text.replace("\\\n", " \\ ").splitlines())
    return [
        Pin(plain(pin["name"]), pin["version"], pin["marker"] or "", tuple(_HASH.findall(line)))
        for pin, line in found
        if pin
    ]


def plain(name: str) -> str:
    """The name of a package as indexes write it."""
    return re.sub("[-_.]+", "-", name).lower()


def bill_of_materials(root: Path) -> dict[str, Any]:
    """Make the bill of materials of a checkout; the same files make the same bill."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    licences = json.loads((root / LICENCES).read_text(encoding="utf-8"))
    own = f"{project['name']}=={project['version']}"
    components, needed = [], []
    for file, scope in SCOPES.items():
        for pin in read_pins((root / file).read_text(encoding="utf-8")):
            components.append(_component(pin, scope, licences.get(pin.name)))
            if scope == "required":
                needed.append(components[-1]["bom-ref"])
    made: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "description": project["description"],
                "licenses": [{"expression": project["license"]}],
            },
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": needed}],
    }
    return {"serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(made))}", **made}


def _component(pin: Pin, scope: str, licence: str | None) -> dict[str, Any]:
    purl = f"pkg:pypi/{pin.name}@{pin.version}"
    files = [{"alg": "SHA-256", "content": one} for one in pin.hashes]
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": pin.name,
        "version": pin.version,
        "scope": scope,
        "purl": purl,
        "externalReferences": [
            {"type": "distribution", "url": purl, "comment": "one of the files of this version", "hashes": files}
        ],
    }
    if licence is not None:
        made["licenses"] = [{"expression": licence}]
    if pin.marker:
        made["properties"] = [{"name": "cairn:marker", "value": pin.marker}]
    return made


class SourceDistribution(sdist):  # type: ignore[misc]  # setuptools has no types
    """A source distribution with the bill of materials in it."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Write all that belongs to it into a folder."""
        super().make_release_tree(base_dir, files)
        text = json.dumps(bill_of_materials(Path(base_dir)), indent=1) + "\n"
        (Path(base_dir) / NAME).write_text(text, encoding="utf-8")
