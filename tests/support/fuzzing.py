"""Mutations of files: what chance, a bad disk or somebody with bad intentions makes of a good one.

Each takes the contents of a file and a generator, and gives other contents; the same generator gives the same.
"""

from __future__ import annotations

import io
import json
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Rng = np.random.Generator

# Where size checks and arithmetic break.
INTEGERS = (0, 1, 2, 3, 7, 127, 128, 255, 256, 1000, 32767, 32768, 65535, 65536, 10**6, 2**30, 2**31 - 1, 2**31)
INTEGERS += (2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1, -1, -2, -(2**31), -(2**63))
NUMBERS: tuple[Any, ...] = (*INTEGERS, 10**30, 10**400, 0.5, -0.5, 1e-300, 1e300, float("nan"), float("inf"))
TEXTS = ("", "x", "../../etc/passwd", "/etc/passwd", "a\0b", "\ud800", "é" * 50, "9" * 5000, "%s{0}[red]", "\x1b[31m\n")
NUMBER_TOKENS = ("0", "-1", "1e400", "nan", "-inf", "9" * 30, "9" * 5000, "0x10", "1_0", "1.5", "", "x", "\0", "²", "٣")
LONGEST = 1 << 20  # bytes of a text: it is not what a file is long by itself that is tried
BOMB = 1 << 27  # bytes that an entry of an archive unpacks to, whatever it says


def pick(rng: Rng, choices: Sequence[Any]) -> Any:
    """Draw one of some things."""
    return choices[int(rng.integers(len(choices)))]


def place(rng: Rng, length: int) -> int:
    """Draw a place in a file: half of the time near its beginning, where headers are, or near its end."""
    near = min(length, int(pick(rng, (32, 128, 512))))
    kind = rng.random()
    if kind < 0.35:
        return int(rng.integers(near + 1))
    return length - int(rng.integers(near + 1)) if kind < 0.5 else int(rng.integers(length + 1))


# ------------------------------------------------------------------------------------------------------------- bytes


def mutate_bytes(contents: bytes, rng: Rng, others: Sequence[bytes] = ()) -> bytes:
    """Flip, overwrite, cut, insert, copy or splice, from once to four times."""
    for _ in range(int(rng.integers(1, 5))):
        contents = pick(rng, BYTE_MUTATIONS)(contents, rng, others)
    return contents


def _flip(contents: bytes, rng: Rng, others: Sequence[bytes]) -> bytes:
    changed = bytearray(contents)
    for _ in range(int(rng.integers(1, 9)) if changed else 0):
        changed[min(place(rng, len(changed)), len(changed) - 1)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _overwrite(contents: bytes, rng: Rng, others: Sequence[bytes]) -> bytes:
    at, length = place(rng, len(contents)), int(pick(rng, (1, 2, 4, 16, 200)))
    filling = pick(rng, (rng.bytes(length), b"\0" * length, b"\xff" * length))
    return contents[:at] + filling[: len(contents) - at] + contents[at + length :]


def _integer(contents: bytes, rng: Rng, others: Sequence[bytes]) -> bytes:
    """Put a number that is too large, negative or zero where one may be."""
    size = int(pick(rng, (2, 4, 4, 8)))
    at = min(place(rng, len(contents)), max(len(contents) - size, 0))
    number = int(pick(rng, INTEGERS)) % (1 << 8 * size)
    return contents[:at] + number.to_bytes(size, pick(rng, ("little", "big"))) + contents[at + size :]


def _cut(contents: bytes, rng: Rng, others: Sequence[bytes]) -> bytes:
    return contents[: place(rng, len(contents))]


def _remove(contents: bytes, rng: Rng, others: Sequence[bytes]) -> bytes:
    at = place(rng, len(contents))
    return contents[:at] + contents[at + int(pick(rng, (1, 2, 4, 8, 100, 1000))) :]


def _insert(contents: bytes, rng: Rng, others: Sequence[bytes]) -> bytes:
    at = place(rng, len(contents))
    return contents[:at] + rng.bytes(int(pick(rng, (1, 2, 4, 8, 100)))) + contents[at:]


def _copy(contents: bytes, rng: Rng, others: Sequence[bytes]) -> bytes:
    """Lay one part of the file over another, or put it between."""
    start, at, length = place(rng, len(contents)), place(rng, len(contents)), int(pick(rng, (4, 16, 64, 1000)))
    part = contents[start : start + length]
    return contents[:at] + part + contents[at + (len(part) if rng.random() < 0.5 else 0) :]


def _splice(contents: bytes, rng: Rng, others: Sequence[bytes]) -> bytes:
    """Go on as another sample does."""
    other = pick(rng, others) if others else contents
    return contents[: place(rng, len(contents))] + other[place(rng, len(other)) :]


BYTE_MUTATIONS: tuple[Callable[[bytes, Rng, Sequence[bytes]], bytes], ...] = (
    *(_flip, _overwrite, _integer, _integer, _cut, _remove, _insert, _copy, _splice),
)


# -------------------------------------------------------------------------------------------------------------- text


def mutate_text(contents: bytes, rng: Rng, others: Sequence[bytes] = ()) -> bytes:
    """Change numbers and lines of a text; a quarter of the time its bytes."""
    if rng.random() < 0.25:
        return mutate_bytes(contents, rng, others)
    for _ in range(int(rng.integers(1, 4))):
        kind = rng.random()
        if kind < 0.5:
            numbers = list(re.finditer(rb"-?\d+(\.\d+)?", contents))
            if numbers:
                number = pick(rng, numbers)
                token = pick(rng, NUMBER_TOKENS).encode()
                contents = contents[: number.start()] + token + contents[number.end() :]
            continue
        lines = contents.split(b"\n")
        at = int(rng.integers(len(lines)))
        if kind < 0.6:
            lines.insert(at, pick(rng, lines))
        elif kind < 0.7:
            del lines[at]
        elif kind < 0.8:
            lines[at] = lines[at] * int(pick(rng, (2, 100, 2000)))
        elif kind < 0.9:
            lines[at] = pick(rng, TEXTS).encode("utf-8", "surrogatepass")
        else:
            lines[at] = pick(rng, (b"[", b"{", b"(", b"a.", b"[[", b'{"a":', b"a=[", b"a={b=")) * 3000
        contents = b"\n".join(lines)[:LONGEST]
    return contents


# -------------------------------------------------------------------------------------------------------------- JSON


def mutate_json(contents: bytes, rng: Rng, others: Sequence[bytes] = ()) -> bytes:
    """Change values, types, names and the nesting of JSON; a quarter of the time its bytes."""
    if rng.random() < 0.25:
        return mutate_text(contents, rng, others)
    value = json.loads(contents)
    for _ in range(int(rng.integers(1, 4))):
        value = change_value(value, rng)
    return json.dumps(value).encode("utf-8", "surrogatepass")


def change_value(value: Any, rng: Rng) -> Any:
    """Change a value of JSON somewhere, at any depth."""
    inside = isinstance(value, dict | list) and len(value) > 0
    if inside and rng.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = pick(rng, keys)
        changed = value.copy()
        kind = rng.random()
        if kind < 0.08:
            del changed[key]
        elif kind < 0.14 and isinstance(changed, dict):
            changed[pick(rng, TEXTS)] = changed.pop(key)
        elif kind < 0.18 and isinstance(changed, list):
            changed *= int(pick(rng, (2, 50)))
        else:
            changed[key] = change_value(value[key], rng)
        return changed
    return _other_value(value, rng)


def _other_value(value: Any, rng: Rng) -> Any:
    kind = rng.random()
    if kind < 0.5:
        return pick(rng, NUMBERS)
    if kind < 0.7:
        return pick(rng, TEXTS)
    if kind < 0.85:
        return pick(rng, (None, True, False, [], {}, [value], {"x": value}, str(value)))
    nested: Any = value
    for _ in range(int(pick(rng, (3, 300)))):
        nested = [nested]
    return nested


# --------------------------------------------------------------------------------------------------------------- npy


def mutate_npy(contents: bytes, rng: Rng, others: Sequence[bytes] = ()) -> bytes:
    """Change what an array's header claims, or its values; a quarter of the time the file's bytes."""
    kind = rng.random()
    if kind < 0.25 or len(contents) < 12:
        return mutate_bytes(contents, rng, others)
    length = struct.unpack_from("<H", contents, 8)[0]
    header, data = contents[10 : 10 + length].decode("latin-1"), contents[10 + length :]
    if kind < 0.5:
        return contents[: 10 + length] + _change_values(data, rng)
    shape = re.search(r"'shape': \((.*?)\)", header)
    descr = re.search(r"'descr': ('.*?')", header)
    what = rng.random()
    if what < 0.45 and shape:
        sides = [side.strip() for side in shape[1].split(",") if side.strip()]
        drawn = [str(pick(rng, INTEGERS)) if rng.random() < 0.5 else side for side in sides]
        extra = pick(rng, ([], [], ["1"], ["0"], ["2"], [str(2**40)], ["1"] * 40))
        header = header.replace(shape[0], f"'shape': ({''.join(f'{side}, ' for side in drawn + extra)})")
    elif what < 0.8 and descr:
        other = pick(rng, DESCRS)
        header = header.replace(descr[0], f"'descr': {other}")
        if rng.random() < 0.5:  # with as many bytes as that takes
            data = data * 16
    elif what < 0.9:
        header = header.replace("False", pick(rng, ("True", "2", "None", "[]")))
    else:
        header = pick(rng, ("(" * 9000, "-" * 9000 + "1", "{'descr': " * 500, "__import__('os').system('true')", "{}"))
    padded = header.rstrip() + "\n"
    if rng.random() < 0.9:
        padded = header.rstrip() + " " * (-(len(header.rstrip()) + 11) % 64) + "\n"
    encoded = padded.encode("latin-1")[:65535]
    return contents[:8] + struct.pack("<H", len(encoded)) + encoded + data


DESCRS = (
    *("'|O'", "'<f4'", "'<f8'", "'>f4'", "'<f2'", "'|b1'", "'|u1'", "'<i8'", "'<u8'", "'<i4'", "'<c16'", "'<f16'"),
    *("'<U4'", "'|S7'", "'|V9'", "'<M8[ns]'", "'<m8'", "'|S0'", "'<U0'", "'|V2147483647'", "'<U536870911'"),
    *("[('a', '<f4'), ('b', '|O')]", "[('a', '<f4', (2, 3))]", "[]", "None", "('<f4', (1000000, 1000000))"),
)


def _change_values(data: bytes, rng: Rng) -> bytes:
    """Put unlikely values, such as NaN and what is far out of range, where an array's items may be."""
    if not data:
        return data
    changed = np.frombuffer(data, np.uint8).copy()
    size = int(pick(rng, (1, 2, 4, 8)))
    items = changed[: len(changed) // size * size].reshape(-1, size)
    values = [struct.pack("<d", value)[:size] for value in (np.nan, np.inf, -1.0, 1e300)] if size == 8 else []
    values += [struct.pack("<f", value) for value in (np.nan, np.inf, -1.0, 0.0, 1e30, 1e-30)] if size == 4 else []
    values += [(int(number) % (1 << 8 * size)).to_bytes(size, "little") for number in INTEGERS]
    for _ in range(int(rng.integers(1, 4)) if len(items) else 0):
        at = int(pick(rng, (0, len(items) - 1, int(rng.integers(len(items))))))
        items[at : at + int(pick(rng, (1, 1, 10, len(items))))] = np.frombuffer(pick(rng, values), np.uint8)
    return changed.tobytes()


# --------------------------------------------------------------------------------------------------------------- zip


def mutate_zip(contents: bytes, rng: Rng, others: Sequence[bytes] = ()) -> bytes:
    """Change an entry of an archive, what the archive claims of it, or the bytes of it all."""
    kind = rng.random()
    if kind < 0.2:
        return mutate_bytes(contents, rng, others)
    if kind < 0.4:
        return _change_directory(contents, rng)
    with zipfile.ZipFile(io.BytesIO(contents)) as archive:
        entries = [(info.filename, archive.read(info), info.compress_type) for info in archive.infolist()]
    if kind < 0.9:
        for _ in range(int(rng.integers(1, 3))):
            at = int(rng.integers(len(entries)))
            name, body, packing = entries[at]
            mutate = mutate_json if name.endswith(".json") else mutate_npy
            try:
                entries[at] = (name, mutate(body, rng, [other for _, other, _ in entries]), packing)
            except ValueError:  # no longer JSON
                entries[at] = (name, mutate_bytes(body, rng), packing)
        return write_zip(entries)
    at = int(rng.integers(len(entries)))
    name, body, packing = entries[at]
    change = int(rng.integers(6))
    if change == 0:
        del entries[at]
    elif change == 1:
        entries.append((name, body, packing))
    elif change == 2:
        entries[at] = (pick(rng, (*(name for name in TEXTS if name != "\ud800"), name[:-4], "more.npy")), body, packing)
    elif change == 3:
        packings = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
        entries[at] = (name, body, pick(rng, packings))
    elif change == 4:
        return bomb(entries, at)
    else:
        entries += [(f"{number}.npy", b"", packing) for number in range(2000)]
    return write_zip(entries)


def write_zip(entries: Sequence[tuple[str, bytes, int]]) -> bytes:
    """Give the bytes of an archive of (name, contents, packing)."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, warnings.catch_warnings(action="ignore"):  # of two of one name
        for name, body, packing in entries:
            archive.writestr(zipfile.ZipInfo(name), body, packing, 1 if packing == zipfile.ZIP_DEFLATED else 9)
    return file.getvalue()


def bomb(entries: Sequence[tuple[str, bytes, int]], at: int, size: int = BOMB) -> bytes:
    """Give an archive one of whose entries goes on, as nulls, for `size` bytes, though it claims its old length."""
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


def _change_directory(contents: bytes, rng: Rng) -> bytes:
    """Change a field of a central directory record, of a local header or of the end record."""
    changed = bytearray(contents)
    fields = {b"PK\1\2": 46, b"PK\3\4": 30, b"PK\5\6": 22}
    for _ in range(int(rng.integers(1, 3))):
        signature = pick(rng, list(fields))
        found = [match.start() for match in re.finditer(re.escape(signature), contents)]
        if found:
            size = int(pick(rng, (2, 4)))
            at = pick(rng, found) + 4 + 2 * int(rng.integers((fields[signature] - 4 - size) // 2 + 1))
            number = int(pick(rng, INTEGERS)) % (1 << 8 * size)
            changed[at : at + size] = number.to_bytes(size, "little")
    return bytes(changed)


MUTATIONS: dict[str, Callable[[bytes, Rng, Sequence[bytes]], bytes]] = {
    ".json": mutate_json,
    ".jsonl": mutate_text,
    ".npy": mutate_npy,
    ".npz": mutate_zip,
    ".toml": mutate_text,
    ".txt": mutate_text,
    ".csv": mutate_text,
    "": mutate_bytes,
}


def mutate(name: str, contents: bytes, rng: Rng, others: Sequence[bytes] = ()) -> bytes:
    """Mutate a file by what its name says it is; where it is not that any more, by its bytes."""
    suffix = name[name.rfind(".") :] if "." in name else ""
    try:
        return MUTATIONS.get(suffix, mutate_bytes)(contents, rng, others)
    except Exception:  # it was mutated before, and is not that any more
        return mutate_bytes(contents, rng, others)
