"""Metadata of photos from the manifests that their pages come from."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from retrieval.catalogue.headers import field_of
from retrieval.catalogue.metadata_store import (
    LONGEST_KEY,
    LONGEST_VALUE,
    TAG,
    folded_key,
    import_values,
    values_by_number,
)
from retrieval.catalogue.schema import IMPORTED, INDEXED
from retrieval.collection.collection import Collection
from retrieval.iiif.downloads import manifest_in
from retrieval.iiif.manifests import IiifManifest, ManifestPage
from retrieval.metadata.columns import ATTRIBUTION, CANVAS, ITEM, MANIFEST, ORDER, PAGE, RIGHTS, SIZE, SOURCE
from retrieval.metadata.dates import read_date
from retrieval.metadata.fields import FIELDS
from retrieval.metadata.text import LONGEST_TITLE, clean, clean_tags

Values = dict[str, tuple[str, ...]]


def keep_metadata(collection: Collection, folders: Iterable[Path]) -> None:
    """Store metadata of fetched manifests for the photos of their pages.

    Title, date and tags are set once, when a page is added, because people may edit them. Other columns follow the
    manifest.
    """
    known = collection.catalogue.known()
    for folder in folders:
        stored = manifest_in(folder)
        if stored is None:
            continue
        address, manifest, pages = stored
        of_photo: dict[int, Values] = {}
        labels: dict[str, str] = {}
        order = {page.canvas: number for number, page in enumerate(manifest.pages, 1)}
        for file, page in pages.items():
            photo = known.get(str(folder.resolve() / file))
            if photo is not None and photo.state == INDEXED:
                of_photo[photo.number] = page_values(address, manifest, page, order[page.canvas], labels)
        keep_values(collection, of_photo, labels, CANVAS)


def keep_values(collection: Collection, of_photo: Mapping[int, Values], labels: dict[str, str], mark: str) -> None:
    """Store values of photos by number and key, except fields of photos that have the marking column."""
    earlier = collection.catalogue.read(values_by_number, list(of_photo), None)
    changed: dict[int, Values] = {}
    for number, values in of_photo.items():
        before = {key: tuple(some) for (source, key), some in earlier[number].items() if source == IMPORTED}
        is_known = folded_key(mark) in before
        wanted = {key: some for key, some in values.items() if key not in FIELDS or not is_known}
        differing = {key: some for key, some in wanted.items() if before.get(key) != some}
        if differing:
            changed[number] = differing
    if changed:
        collection.catalogue.write(import_values, changed, labels=labels)


def page_values(address: str, manifest: IiifManifest, page: ManifestPage, order: int, labels: dict[str, str]) -> Values:
    """Return the metadata of a page for `import_values`; spellings of columns go into `labels`."""
    values: Values = {}

    def add(label: str, texts: Iterable[str]) -> None:
        label = clean(label, LONGEST_KEY)
        if folded_key(label) in FIELDS:
            label = f"{label[: LONGEST_KEY - 9]} (column)"
        kept = tuple(text for one in texts if (text := clean(one, LONGEST_VALUE)))
        if kept and label:
            key = folded_key(label)
            labels.setdefault(key, label)
            values[key] = tuple(dict.fromkeys((*values.get(key, ()), *kept)))

    title = clean(", ".join(filter(None, (manifest.label, page.label))), LONGEST_TITLE)
    if title:
        values["title"] = (title,)
    add(ITEM, [manifest.label])
    add(PAGE, [page.label])
    add(ORDER, [str(order)])
    add("Section", page.sections)
    tags: list[str] = []
    for label, texts in manifest.pairs.items():
        meaning = field_of(label)
        date = read_date(texts[0]) if meaning == "taken" else None
        if date is not None and "taken" not in values:
            values["taken"] = (date,)
        elif meaning == TAG:
            tags += (part for text in texts for part in text.split(";"))
        else:
            add(label, texts)
    if kept := clean_tags(tags):
        values[TAG] = kept
    add(ATTRIBUTION, [manifest.attribution])
    add(RIGHTS, [manifest.rights])
    add(SOURCE, [manifest.homepage])
    add(MANIFEST, [address])
    add(CANVAS, [page.canvas])
    if page.width and page.height:
        add(SIZE, [f"{page.width}x{page.height}"])
    return values
