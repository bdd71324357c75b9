"""Assemble the sources of the documentation site: the pages of docs/, and generated pages.

The pages are Markdown, which code hosts also show. Parts only for Sphinx are added here, to a copy: tables of contents,
pages of the public Python names, and the project's pages outside docs/.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from documentation.python_pages import write_python_pages

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PROJECT = {
    "CONTRIBUTING.md": "those who change Cairn: tests, style, and how to add a descriptor, a command or a page",
    "ARCHITECTURE.md": "which folder is for what, and which way a photo and a query take through them",
    "CHANGELOG.md": "what has changed with each version",
}
"""Pages of the repository's root that are part of the site, in its order, and their audience."""
SECTIONS = ("tutorials", "gallery", "how-to", "reference", "explanations", "measurements", "project")
"""The parts of the site, in the order of its navigation."""
GENERATED = {DOCS / "gallery": "gallery/index.rst", ROOT / "cairn.py": "reference/python/index.rst"}
"""Targets on a code host, and the generated pages of the site that replace them."""
INDEXES = ("index.md", "README.md")
"""Names of index pages of folders."""

_FENCE = re.compile(r"(^ *```.*?^ *```)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\(<?)([^)\s>]+)(>?\))")


def stage(target: Path) -> None:
    """Write the sources of the site into a folder, emptying it first."""
    shutil.rmtree(target, ignore_errors=True)
    # sphinx-gallery makes the pages of the examples from the folder itself.
    unwanted = shutil.ignore_patterns("plot_*.py", "GALLERY_HEADER.rst", "__pycache__", "conf.py")
    shutil.copytree(DOCS, target, ignore=unwanted)
    pages = {page: staged(page) for page in [*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in PROJECT)]}
    for page, place in pages.items():
        text = page.read_text(encoding="utf-8")
        contents = list(_contents(page, text))
        text = change_links(text, lambda link, page=page: _staged_link(page, link, target))  # type: ignore[misc]
        if place == PurePosixPath("index.md"):
            contents = [f"{name}/{_index(name)}" for name in SECTIONS if name != "gallery" or has_gallery()]
        if page == DOCS / "reference" / "index.md":
            contents.insert(0, "python/index")
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        (target / place).write_text(text + _toctree(contents), encoding="utf-8")
    rows = "".join(f"| [{page.removesuffix('.md').title()}]({page}) | {what} |\n" for page, what in PROJECT.items())
    project = f"# The project\n\n| page | for |\n|---|---|\n{rows}"
    (target / "project" / "index.md").write_text(project + _toctree([*PROJECT]), encoding="utf-8")
    write_python_pages(target / "reference" / "python")


def has_gallery() -> bool:
    """Whether there is an example."""
    return any((DOCS / "gallery").glob("plot_*.py"))


def staged(page: Path) -> PurePosixPath:
    """Path of a page of the repository in the sources of the site."""
    if page.is_relative_to(DOCS):
        return PurePosixPath(page.relative_to(DOCS).as_posix())
    return PurePosixPath("project") / page.relative_to(ROOT).as_posix()


def change_links(text: str, change: Callable[[str], str]) -> str:
    """Return a page with changed link targets, except in code blocks."""
    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(lambda found: found[1] + change(found[2]) + found[3], part) for part in parts[::2]]
    return "".join(parts)


def _links(text: str) -> Iterator[str]:
    """The relative links of a page, without their anchors."""
    for part in _FENCE.split(text)[::2]:
        for _, link, _ in _LINK.findall(part):
            if not _is_elsewhere(link) and not link.startswith("#"):
                yield link.partition("#")[0]


def _is_elsewhere(link: str) -> bool:
    return re.match(r"[a-z][a-z0-9+.-]*:", link) is not None


def _contents(page: Path, text: str) -> Iterator[str]:
    """The pages below an index page, in the order of its links."""
    if page.name not in INDEXES or not page.is_relative_to(DOCS):
        return
    seen = {page}
    for link in _links(text):
        linked = Path(os.path.normpath(page.parent / link))
        below = linked.parent == page.parent or (linked.name in INDEXES and linked.parent.parent == page.parent)
        if linked.suffix == ".md" and below and linked not in seen:
            seen.add(linked)
            yield link.removesuffix(".md")


def _index(section: str) -> str:
    return "README" if (DOCS / section / "README.md").exists() else "index"


def _staged_link(page: Path, link: str, target: Path) -> str:
    """A link of a page in the sources of the site; linked files that are no pages are copied."""
    if _is_elsewhere(link) or link.startswith("#"):
        return link
    file, sharp, anchor = link.partition("#")
    linked = Path(os.path.normpath(page.parent / file))
    if linked in GENERATED:
        place = PurePosixPath(GENERATED[linked])
    elif linked.suffix == ".md" and (linked.is_relative_to(DOCS) or linked.name in PROJECT):
        place = staged(linked)
    else:
        place = PurePosixPath(linked.relative_to(DOCS if linked.is_relative_to(DOCS) else ROOT).as_posix())
        if not (target / place).exists():
            (target / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(linked, target / place)
    return PurePosixPath(os.path.relpath(place, staged(page).parent)).as_posix() + sharp + anchor


def _toctree(pages: list[str]) -> str:
    """The toctree directive of pages; empty without pages."""
    if not pages:
        return ""
    return "\n".join(["", "```{toctree}", ":hidden:", "", *pages, "```", ""])
