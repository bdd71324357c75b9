"""The bill of materials of the source distribution: all pinned packages, in CycloneDX JSON.

setuptools calls `SourceDistribution` to build one (pyproject.toml), with only itself installed.
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
"""The requirements files, which may include earlier ones, and their purposes."""
LICENCES = "scripts/pins/licences.json"
"""Licences by package, from their metadata; written by `scripts.pins.requirements`."""

_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?:\s*;\s*(?P<marker>[^\\]+?))?\s*(?:\\|$)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Pin:
    """A pinned version."""

    name: str  # normalised as in package indexes
    version: str
    marker: str  # systems; empty: all
    hashes: tuple[str, ...]  # SHA-256 of the files of this version


def read_pins(text: str) -> list[Pin]:
    """The pins of a requirements file, without included files."""
    matches = ((_PIN.match(line), line) for line in text.replace("\\\n", " \\ ").splitlines())
    return [
        Pin(plain(pin["name"]), pin["version"], pin["marker"] or "", tuple(_HASH.findall(line)))
        for pin, line in matches
        if pin
    ]


def plain(name: str) -> str:
    """The normalised name of a package, as in package indexes."""
    return re.sub("[-_.]+", "-", name).lower()


def bill_of_materials(root: Path) -> dict[str, Any]:
    """Make the bill of materials of a checkout; deterministic."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    licences = json.loads((root / LICENCES).read_text(encoding="utf-8"))
    own = f"{project['name']}=={project['version']}"
    components, needed = [], []
    for file, scope in SCOPES.items():
        for pin in read_pins((root / file).read_text(encoding="utf-8")):
            components.append(_component(pin, scope, licences.get(pin.name)))
            if scope == "required":
                needed.append(components[-1]["bom-ref"])
    bill: dict[str, Any] = {
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
    return {"serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bill))}", **bill}


def _component(pin: Pin, scope: str, licence: str | None) -> dict[str, Any]:
    purl = f"pkg:pypi/{pin.name}@{pin.version}"
    files = [{"alg": "SHA-256", "content": one} for one in pin.hashes]
    component: dict[str, Any] = {
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
        component["licenses"] = [{"expression": licence}]
    if pin.marker:
        component["properties"] = [{"name": "cairn:marker", "value": pin.marker}]
    return component


class SourceDistribution(sdist):  # type: ignore[misc]  # setuptools has no types
    """A source distribution that includes the bill of materials."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Write its files into a folder."""
        super().make_release_tree(base_dir, files)
        text = json.dumps(bill_of_materials(Path(base_dir)), indent=1) + "\n"
        (Path(base_dir) / NAME).write_text(text, encoding="utf-8")
