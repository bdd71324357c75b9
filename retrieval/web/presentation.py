"""Photos as resources of the IIIF Presentation API 3.0, for viewers of libraries, with their metadata."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from index.messages import said
from retrieval.library.photos import Photo
from retrieval.metadata.columns import ATTRIBUTION, CANVAS, MANIFEST, RIGHTS, SIZE, SOURCE
from retrieval.metadata.fields import FIELDS
from retrieval.web.access.viewers import CONTEXT as AUTHORIZATION
from retrieval.web.access.viewers import probe_service
from retrieval.web.languages import spoken

CONTEXT = "http://iiif.io/api/presentation/3/context.json"
SEARCH_CONTEXT = "http://iiif.io/api/search/2/context.json"
MOST = 10_000
"""Photos of one manifest."""

Resource = dict[str, Any]
Box = tuple[float, float, float, float]

_THUMBNAIL = 256  # pixels
_SHOWN_ELSEWHERE = ("title", "caption")
_RIGHTS = re.compile(
    r"https?://((?:creativecommons\.org/(?:licenses|publicdomain)|rightsstatements\.org/vocab)/[!-~]{1,300})"
)
_PAGE = re.compile(r"https?://[!-~]{1,1000}")
_OWN = frozenset({MANIFEST, CANVAS, SIZE})


@dataclass(frozen=True)
class Presentation:
    """Makes resources whose addresses are those of a server."""

    root: str  # address of the collection on its server, without a slash at its end
    size_of: Callable[[Photo], tuple[int, int]]  # width and height in which the image service shows a photo
    access: Resource | None = None  # the service where people sign in from viewers

    def manifest(
        self,
        address: str,
        label: Resource,
        photos: Sequence[Photo],
        notes: Mapping[int, Resource],
    ) -> Resource:
        """Make a manifest, as JSON-LD, with a canvas for each photo.

        For the label see `spoken` and `plain`; `notes` are an ``AnnotationPage`` or its address, by the number of a
        photo.
        """
        canvases = [self._canvas(one, notes.get(one.number)) for one in photos]
        resource: Resource = {"@context": self._context(), "id": address, "type": "Manifest", "label": label}
        if canvases:
            resource["thumbnail"] = canvases[0]["thumbnail"]
        if len(photos) == 1:
            resource |= _descriptive_properties(photos[0])
        if self.access is not None:
            resource["services"] = [self.access]
        return {**resource, "items": canvases}

    def searched(self, made: Resource, address: str) -> Resource:
        """Name the service that finds words in the photos of a manifest."""
        service = {"id": address, "type": "SearchService2"}
        return {**made, "@context": self._context(SEARCH_CONTEXT), "service": [service]}

    def collection(
        self, address: str, label: Resource, manifests: Iterable[tuple[str, Resource, int | None]]
    ) -> Resource:
        """Make a list of manifests: for each its address below the root, its label, and its cover photo."""
        items = [
            {
                "id": f"{self.root}{path}",
                "type": "Manifest",
                "label": title,
                **({} if cover is None else {"thumbnail": [self._thumbnail(cover)]}),
            }
            for path, title, cover in manifests
        ]
        return {"@context": CONTEXT, "id": address, "type": "Collection", "label": label, "items": items}

    def matches(self, page: Resource, address: str) -> Resource:
        """Put an annotation page of `retrieval.library.annotations` into the context of manifests, with addresses as
        names.
        """
        items = [{**one, "id": f"{address}#{one['id'].rpartition(':')[2]}"} for one in page["items"]]
        more = {"next": {"id": page["next"], "type": "AnnotationPage"}} if "next" in page else {}
        return {"@context": CONTEXT, "id": address, "type": "AnnotationPage", "items": items, **more}

    def words(self, address: str, photos: Iterable[Photo]) -> Resource:
        """Make the answer of the IIIF Content Search API 2.0: photos in which words were found, with their texts."""
        items = []
        for photo in photos:
            canvas = canvas_address(self.root, photo.number)
            texts = [text for text in (photo.title, photo.caption, ", ".join(photo.tags)) if text] or [photo.name]
            items.append(_annotation(f"{canvas}/words", "describing", "\n".join(texts), canvas))
        return {"@context": SEARCH_CONTEXT, "id": address, "type": "AnnotationPage", "items": items}

    def marked(self, number: int, box: Box, text: str) -> Resource:
        """Make an ``AnnotationPage`` of a part of a photo: left, top, right and bottom in pixels, 0 at the edge."""
        canvas = canvas_address(self.root, number)
        left, top, right, bottom = map(round, box)
        part = f"{canvas}#xywh={left},{top},{max(right - left, 1)},{max(bottom - top, 1)}"
        items = [_annotation(f"{canvas}/region", "commenting", text, part)]
        return {"id": f"{canvas}/regions", "type": "AnnotationPage", "items": items}

    def _context(self, *more: str) -> str | list[str]:
        before = [*more] if self.access is None else [*more, AUTHORIZATION]
        return [*before, CONTEXT] if before else CONTEXT

    def _canvas(self, photo: Photo, notes: Resource | None) -> Resource:
        canvas, service = canvas_address(self.root, photo.number), f"{self.root}/api/iiif/{photo.number}"
        width, height = self.size_of(photo)
        services: list[Resource] = [{"id": service, "type": "ImageService3", "profile": "level2"}]
        body = {
            "id": f"{service}/full/max/0/default.jpg",
            "type": "Image",
            "format": "image/jpeg",
            "width": width,
            "height": height,
            "service": services,
        }
        if self.access is not None:  # within the image service, Mirador 4.0 would stop at it: info.json names it there
            named = {"id": self.access["id"], "type": self.access["type"]}
            services.append(probe_service(f"{service}/probe", named))
        painting = {"id": f"{canvas}/image", "type": "Annotation", "motivation": "painting", "body": body}
        return {
            "id": canvas,
            "type": "Canvas",
            "label": plain(photo.title or photo.name),
            "width": photo.width or width,
            "height": photo.height or height,
            "thumbnail": [self._thumbnail(photo.number)],
            **_descriptive_properties(photo),
            "items": [{"id": f"{canvas}/page", "type": "AnnotationPage", "items": [{**painting, "target": canvas}]}],
            **({} if notes is None else {"annotations": [notes]}),
        }

    def _thumbnail(self, number: int) -> Resource:
        address = f"{self.root}/api/photos/{number}/thumbnail?size={_THUMBNAIL}"
        return {"id": address, "type": "Image", "format": "image/jpeg"}


def canvas_address(root: str, number: int) -> str:
    """Name the canvas of a photo, by the address of its collection."""
    return f"{root}/api/iiif/{number}/canvas"


def plain(*texts: str) -> Resource:
    """Texts in no language, as the Presentation API has them."""
    return {"none": list(texts)}


def _descriptive_properties(photo: Photo) -> Resource:
    """What is known of a photo, as metadata or in the properties that the Presentation API has for it."""
    pairs = []
    for row in FIELDS.values():
        value = getattr(photo, row.name)
        texts = (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ()
        if texts and row.name not in _SHOWN_ELSEWHERE:
            pairs.append({"label": spoken(row.label), "value": plain(*texts)})
    resource: Resource = {}
    if photo.caption:
        resource["summary"] = plain(photo.caption)
    for column, texts in photo.others.items():
        pair = {"label": plain(column), "value": plain(*texts)}
        if column in _OWN or not texts:
            continue
        if column == ATTRIBUTION:
            resource["requiredStatement"] = {"label": spoken(said("Attribution")), "value": plain(*texts)}
        elif column == RIGHTS and (matched := _RIGHTS.fullmatch(texts[0])):
            resource["rights"] = f"http://{matched[1]}"  # so their owners write them
        elif column == SOURCE and _PAGE.fullmatch(texts[0]):
            label = spoken(said("Where it comes from"))
            resource["homepage"] = [{"id": texts[0], "type": "Text", "format": "text/html", "label": label}]
        else:
            pairs.append(pair)
    return {**resource, **({"metadata": pairs} if pairs else {})}


def _annotation(address: str, motivation: str, text: str, target: str) -> Resource:
    body = {"type": "TextualBody", "value": text, "format": "text/plain"}
    return {"id": address, "type": "Annotation", "motivation": motivation, "body": body, "target": target}
