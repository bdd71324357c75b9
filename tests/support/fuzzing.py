"""Mutations of files, drawn by Hypothesis: random, by disk errors or malicious."""

import io
import json
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]
Sample = dict[str, bytes]

# Values where size checks and arithmetic break.
INTEGERS: tuple[int, ...]
INTEGERS = (0, 1, 2, 3, 7, 127, 128, 255, 256, 1000, 32767, 32768, 65535, 65536, 10**6, 2**30, 2**31 - 1, 2**31)
INTEGERS += (2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1, -1, -2, -(2**31), -(2**63))
NUMBERS: tuple[Any, ...] = (*INTEGERS, 10**30, 10**400, 0.5, -0.5, 1e-300, 1e300, float("nan"), float("inf"))
TEXTS = ("", "x", "../../etc/passwd", "/etc/passwd", "a\0b", "\ud800", "é" * 50, "9" * 5000, "%s{0}[red]", "\x1b[31m\n")
TOKENS = ("0", "-1", "1e400", "nan", "-inf", "9" * 30, "9" * 5000, "0x10", "1_0", "1.5", "", "x", "\0", "²", "٣")
OPENINGS = (b"[", b"{", b"(", b"a.", b"[[", b'{"a":', b"a=[", b"a={b=")
DESCRS = (
    *("'|O'", "'<f4'", "'<f8'", "'>f4'", "'<f2'", "'|b1'", "'|u1'", "'<i8'", "'<u8'", "'<i4'", "'<c16'", "'<f16'"),
    *("'<U4'", "'|S7'", "'|V9'", "'<M8[ns]'", "'<m8'", "'|S0'", "'<U0'", "'|V2147483647'", "'<U536870911'"),
    *("[('a', '<f4'), ('b', '|O')]", "[('a', '<f4', (2, 3))]", "[]", "None", "('<f4', (1000000, 1000000))"),
)
HEADERS = ("(" * 9000, "-" * 9000 + "1", "{'descr': " * 500, "__import__('os').system('true')", "{}")
VALUES = tuple(struct.pack(f"<{kind}", value) for kind in "fd" for value in (float("nan"), float("inf"), -1.0, 1e30))
LONGEST = 1 << 20  # bytes of a text: long files alone are not tested
BOMB = 1 << 27  # unpacked bytes of an archive entry, regardless of its stated size
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


class Input(dict[str, bytes]):
    """A mutated sample; its contents would be too long to print."""

    __repr__ = object.__repr__


@st.composite
def inputs(draw: Draw, samples: Sequence[Sample]) -> Input:
    """Samples with one mutated file, rarely several."""
    sample = Input(draw(st.sampled_from(samples)))
    for _ in range(draw(st.sampled_from((1, 1, 1, 2)))):
        name = draw(st.sampled_from(sorted(sample)))
        change = CHANGES.get(name[name.rfind(".") :] if "." in name else "", change_bytes)
        others = [other[name] for other in samples if name in other]
        if draw(st.sampled_from((0, 0, 0, 1))):
            change = change_bytes
        try:
            sample[name] = change(draw, sample[name], others)
        except Exception:  # its contents no longer match its name
            sample[name] = change_bytes(draw, sample[name], others)
    return sample


def change_bytes(draw: Draw, contents: bytes, others: Sequence[bytes]) -> bytes:
    """Flip, overwrite, cut, insert, copy or splice, from once to four times."""
    for _ in range(draw(st.integers(1, 4))):
        at, length = _place(draw, len(contents)), draw(st.sampled_from((1, 2, 4, 8, 100, 1000)))
        kind = draw(st.sampled_from(("flip", "overwrite", "integer", "cut", "remove", "insert", "copy", "splice")))
        new, end = b"", at
        if kind == "flip":
            new = bytes(one ^ 1 << draw(st.integers(0, 7)) for one in contents[at : at + 1])
        elif kind == "overwrite":
            new = draw(
                st.one_of(st.binary(min_size=1, max_size=16), st.sampled_from((b"\0" * length, b"\xff" * length)))
            )
        elif kind == "integer":
            new = _integer(draw, draw(st.sampled_from((2, 4, 8))))
        elif kind == "copy":
            start = _place(draw, len(contents))
            new = contents[start : start + length]
        if kind == "cut":
            contents = contents[:at]
        elif kind == "splice":
            other = draw(st.sampled_from(others)) if others else contents
            contents = contents[:at] + other[_place(draw, len(other)) :]
        else:
            end += length if kind == "remove" else 0 if kind == "insert" else len(new)
            new = draw(st.binary(min_size=1, max_size=100)) if kind == "insert" else new
            contents = contents[:at] + new + contents[end:]
    return contents


def change_text(draw: Draw, contents: bytes, others: Sequence[bytes]) -> bytes:
    """Change numbers and lines of a text."""
    for _ in range(draw(st.integers(1, 3))):
        numbers = list(re.finditer(rb"-?\d+(\.\d+)?", contents))
        if numbers and draw(st.booleans()):
            number = draw(st.sampled_from(numbers))
            contents = contents[: number.start()] + draw(st.sampled_from(TOKENS)).encode() + contents[number.end() :]
            continue
        lines = contents.split(b"\n")
        at = draw(st.integers(0, len(lines) - 1))
        text = draw(st.sampled_from(TEXTS)).encode("utf-8", "surrogatepass")
        nested = draw(st.sampled_from(OPENINGS)) * 3000
        times = draw(st.sampled_from((2, 100, 2000)))
        lines[at : at + 1] = draw(st.sampled_from(([], [lines[at]] * 2, [lines[at] * times], [text], [nested])))
        contents = b"\n".join(lines)[:LONGEST]
    return contents


def change_json(draw: Draw, contents: bytes, others: Sequence[bytes]) -> bytes:
    """Change values, types, names and the nesting of JSON."""
    value = json.loads(contents)
    for _ in range(draw(st.integers(1, 3))):
        value = _change_value(draw, value)
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _change_value(draw: Draw, value: Any) -> Any:
    kind = draw(st.sampled_from(("inside", "inside", "inside", "inside", "drop", "rename", "repeat", "other")))
    if kind == "other" or not isinstance(value, dict | list) or not value:
        odd: tuple[Any, ...] = (None, True, False, [], {}, [value], {"x": value}, str(value))
        nested: Any = value
        for _ in range(300):
            nested = [nested]
        return draw(st.sampled_from((*NUMBERS, *TEXTS, *odd, nested)))
    key = draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
    changed = value.copy()
    if kind == "drop":
        del changed[key]
    elif kind == "rename" and isinstance(changed, dict):
        changed[draw(st.sampled_from(TEXTS))] = changed.pop(key)
    elif kind == "repeat" and isinstance(changed, list):
        changed *= draw(st.sampled_from((2, 50)))
    else:
        changed[key] = _change_value(draw, value[key])
    return changed


def change_npy(draw: Draw, contents: bytes, others: Sequence[bytes]) -> bytes:
    """Change an array's header or values."""
    (length,) = struct.unpack_from("<H", contents, 8)
    header, data = contents[10 : 10 + length].decode("latin-1"), contents[10 + length :]
    kind = draw(st.sampled_from(("values", "shape", "descr", "order", "header")))
    if kind == "values" and data:
        new: bytes = draw(
            st.one_of(st.sampled_from(VALUES), st.sampled_from((1, 2, 4, 8)).map(lambda size: _integer(draw, size)))
        )
        at = draw(st.integers(0, (len(data) - 1) // len(new))) * len(new)
        new *= draw(st.sampled_from((1, 10, len(data))))
        return contents[: 10 + length] + data[:at] + new[: len(data) - at] + data[at + len(new) :]
    if kind == "shape" and (shape := re.search(r"'shape': \((.*?)\)", header)):
        sides = [side.strip() for side in shape[1].split(",") if side.strip()]
        drawn = [draw(st.sampled_from((side, side, *map(str, INTEGERS)))) for side in sides]
        extra = draw(st.sampled_from(([], [], ["1"], ["0"], ["2"], [str(2**40)], ["1"] * 40)))
        header = header.replace(shape[0], f"'shape': ({''.join(f'{side}, ' for side in drawn + extra)})")
    elif kind == "descr":
        header = re.sub(r"'descr': '.*?'", f"'descr': {draw(st.sampled_from(DESCRS))}", header)
        data *= draw(st.sampled_from((1, 16)))  # with as many bytes as that takes
    elif kind == "order":
        header = header.replace("False", draw(st.sampled_from(("True", "2", "None", "[]"))))
    else:
        header = draw(st.sampled_from(HEADERS))
    header = header.rstrip()
    encoded = f"{header}{' ' * (-(len(header) + 11) % 64)}\n".encode("latin-1")[:65535]
    return contents[:8] + struct.pack("<H", len(encoded)) + encoded + data


def change_zip(draw: Draw, contents: bytes, others: Sequence[bytes]) -> bytes:
    """Change an entry of an archive, or its header."""
    with zipfile.ZipFile(io.BytesIO(contents)) as archive:
        entries = [(info.filename, archive.read(info), info.compress_type) for info in archive.infolist()]
    at = draw(st.integers(0, len(entries) - 1))
    name, body, packing = entries[at]
    kinds = ("entry", "entry", "entry", "entry", "claim", "claim", "drop", "twice", "rename", "pack", "bomb", "many")
    kind = draw(st.sampled_from(kinds))
    if kind == "claim":
        fields = {b"PK\1\2": 46, b"PK\3\4": 30, b"PK\5\6": 22}
        signature = draw(st.sampled_from(list(fields)))
        found = draw(st.sampled_from([match.start() for match in re.finditer(re.escape(signature), contents)]))
        place = found + 4 + 2 * draw(st.integers(0, (fields[signature] - 8) // 2))
        number = _integer(draw, draw(st.sampled_from((2, 4))))
        return contents[:place] + number + contents[place + len(number) :]
    if kind == "bomb":
        return bomb(entries, at)
    changes: dict[str, Callable[[], list[tuple[str, bytes, int]]]] = {
        "entry": lambda: [(name, (change_json if name.endswith(".json") else change_npy)(draw, body, others), packing)],
        "drop": lambda: [],
        "twice": lambda: [entries[at]] * 2,
        "rename": lambda: [(draw(st.sampled_from((*TEXTS[:5], *TEXTS[6:], name[:-4], "more.npy"))), body, packing)],
        "pack": lambda: [(name, body, draw(st.sampled_from(PACKINGS)))],
        "many": lambda: [entries[at], *((f"{number}.npy", b"", packing) for number in range(2000))],
    }
    return write_zip([*entries[:at], *changes[kind](), *entries[at + 1 :]])


CHANGES: dict[str, Callable[[Draw, bytes, Sequence[bytes]], bytes]] = {
    ".json": change_json,
    ".jsonl": change_text,
    ".npy": change_npy,
    ".npz": change_zip,
    ".toml": change_text,
    ".txt": change_text,
    ".csv": change_text,
}


def _place(draw: Draw, length: int) -> int:
    """A position in a file, mostly near its start, where headers are, or near its end."""
    most = draw(st.sampled_from((min(length, 32), min(length, 512), length)))
    near: int = draw(st.integers(0, most))
    return length - near if draw(st.sampled_from((0, 0, 0, 1))) else near


def _integer(draw: Draw, size: int) -> bytes:
    """A number that is too large, negative or zero."""
    number = draw(st.sampled_from(INTEGERS)) % (1 << 8 * size)
    return bytes(number.to_bytes(size, draw(st.sampled_from(("little", "big")))))


def write_zip(entries: Sequence[tuple[str, bytes, int]]) -> bytes:
    """Return the bytes of an archive of (name, contents, packing)."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, warnings.catch_warnings(action="ignore"):  # duplicate names
        for name, body, packing in entries:
            archive.writestr(zipfile.ZipInfo(name), body, packing, 1 if packing == zipfile.ZIP_DEFLATED else 9)
    return file.getvalue()


def bomb(entries: Sequence[tuple[str, bytes, int]], at: int, size: int = BOMB) -> bytes:
    """Return an archive with an entry extended by nulls to `size` bytes, but with its old stated length."""
    name, body, _ = entries[at]
    inflated = [*entries[:at], (name, body + b"\0" * size, zipfile.ZIP_DEFLATED), *entries[at + 1 :]]
    contents = bytearray(write_zip(inflated))
    claims = {b"PK\1\2": (16, 24), b"PK\3\4": (14, 22)}  # offsets of checksum and length
    for signature, (checksum, length) in claims.items():
        start = -1
        for match in re.finditer(re.escape(signature), bytes(contents)):
            names = 46 if signature == b"PK\1\2" else 30
            if contents[match.start() + names :].startswith(name.encode()):
                start = match.start()
        struct.pack_into("<I", contents, start + checksum, zlib.crc32(body))
        struct.pack_into("<I", contents, start + length, len(body))
    return bytes(contents)
