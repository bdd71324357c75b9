"""Blocks of IPTC and XMP made by hand, and files that hold them, for tests of metadata."""

import io
import struct
import zlib
from typing import Any

from PIL import Image

# EXIF's tags, by name.
MAKE, MODEL, DESCRIPTION, DATE_TIME = 0x010F, 0x0110, 0x010E, 0x0132
ORIGINAL, DIGITISED = 0x9003, 0x9004
EXIF_IFD, GPS_IFD = 0x8769, 0x8825
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
SPACES = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "photoshop": "http://ns.adobe.com/photoshop/1.0/",
    "exif": "http://ns.adobe.com/exif/1.0/",
    "xmp": "http://ns.adobe.com/xap/1.0/",
    "tiff": "http://ns.adobe.com/tiff/1.0/",
    "lr": "http://ns.adobe.com/lightroom/1.0/",
    "digiKam": "http://www.digikam.org/ns/1.0/",
    "mwg-rs": "http://www.metadataworkinggroup.com/schemas/regions/",
    "xmpDM": "http://ns.adobe.com/xmp/1.0/DynamicMedia/",
}


def exif(
    main: dict[int, Any] | None = None, times: dict[int, Any] | None = None, gps: dict[int, Any] | None = None
) -> Image.Exif:
    """EXIF as Pillow writes it: tags of the main, EXIF and GPS directories."""
    made = Image.Exif()
    made.update(main or {})
    for pointer, tags in ((EXIF_IFD, times), (GPS_IFD, gps)):
        if tags:
            made.get_ifd(pointer).update(tags)
    return made


def iptc(*datasets: tuple[int, int, bytes]) -> bytes:
    """IPTC-IIM datasets of record, number and value."""
    return b"".join(struct.pack(">BBBH", 0x1C, *key, len(value)) + value for *key, value in datasets)


def resources(block: bytes) -> bytes:
    """Photoshop's image resources: some other one with a name of odd length, then the IPTC block."""
    other = b"8BIM" + struct.pack(">H", 0x03ED) + b"\x04name\0" + struct.pack(">I", 3) + b"abc\0"
    return other + b"8BIM" + struct.pack(">H", 0x0404) + b"\0\0" + struct.pack(">I", len(block)) + block


def xmp(body: str = "", attributes: str = "") -> bytes:
    """An XMP packet with properties as elements, and as attributes."""
    spaces = " ".join(f'xmlns:{name}="{address}"' for name, address in SPACES.items())
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">'
        f'<rdf:RDF xmlns:rdf="{RDF}"><rdf:Description rdf:about="" {spaces} {attributes}>{body}</rdf:Description>'
        '</rdf:RDF></x:xmpmeta><?xpacket end="w"?>'
    ).encode()


def listed(kind: str, *items: str) -> str:
    """A list of RDF: Bag, Seq or Alt; in an Alt, the first is of no language and the second the default."""
    languages = ("de", "x-default", "fr") if kind == "Alt" else ()
    tags = [f' xml:lang="{language}"' for language in languages] + [""] * len(items)
    return (
        f"<rdf:{kind}>"
        + "".join(f"<rdf:li{t}>{i}</rdf:li>" for t, i in zip(tags, items, strict=False))
        + f"</rdf:{kind}>"
    )


def picture(side: int = 8) -> Image.Image:
    return Image.new("RGB", (side, side), (90, 120, 60))


def jpeg(**blocks: bytes | Image.Exif) -> bytes:
    """A JPEG file with metadata: exif (Pillow's), iptc and xmp (blocks)."""
    buffer = io.BytesIO()
    picture().save(buffer, "JPEG", exif=blocks.get("exif", b""))
    data = buffer.getvalue()
    segments = b""
    if "xmp" in blocks:
        segments += _segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + bytes(blocks["xmp"]))
    if "iptc" in blocks:
        segments += _segment(0xED, b"Photoshop 3.0\0" + resources(bytes(blocks["iptc"])))
    return data[:2] + segments + data[2:]


def _segment(marker: int, body: bytes) -> bytes:
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(body) + 2) + body


def png(exif_block: bytes = b"", xmp_block: bytes = b"", compressed: bool = False, late: bool = False) -> bytes:
    """A PNG file with chunks of EXIF and XMP, before its pixels or after them."""
    buffer = io.BytesIO()
    picture().save(buffer, "PNG")
    data = buffer.getvalue()
    chunks = _chunk(b"eXIf", exif_block) if exif_block else b""
    if xmp_block:
        text = zlib.compress(xmp_block) if compressed else xmp_block
        chunks += _chunk(b"iTXt", b"XML:com.adobe.xmp\0" + bytes([compressed, 0]) + b"\0\0" + text)
    place = len(data) - 12 if late else 33  # before IEND, or after IHDR
    return data[:place] + chunks + data[place:]


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def tiff(exif_block: Image.Exif, iptc_block: bytes = b"", xmp_block: bytes = b"", big: bool = False) -> bytes:
    """A TIFF file, or a BigTIFF one."""
    tags = Image.Exif()
    tags.load(exif_block.tobytes())
    for tag, block in ((700, xmp_block), (33723, iptc_block)):
        if block:
            tags[tag] = block
    buffer = io.BytesIO()
    picture().save(buffer, "TIFF", exif=tags.tobytes(), big_tiff=big)
    return buffer.getvalue()
