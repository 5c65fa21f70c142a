"""Document values: their deterministic CBOR (RFC 8949 §4.2.1) and their canonical bytes (rule M2).

Python's own types stand for null, bool, int64, double, text, bytes, array and map; the classes here for the rest.
"""

import struct
import uuid
from dataclasses import dataclass

import cbor2

from .hashing import sha256, tag

DATE, OBJECT_ID, BLOB = 53505, 53506, 53507
PIECE_BYTES = 262_144


@dataclass(frozen=True)
class Date:
    milliseconds: int


@dataclass(frozen=True)
class ObjectID:
    content: bytes


@dataclass(frozen=True)
class Blob:
    hash: bytes
    size: int
    type: str
    list: bytes = b""
    """Of content above one piece: the hash over the hashes of its pieces."""

    @staticmethod
    def of(content: bytes, type: str) -> "Blob":
        return Blob(sha256(content), len(content), type, list_hash(content) if len(content) > PIECE_BYTES else b"")


def list_hash(content: bytes) -> bytes:
    pieces = (content[place : place + PIECE_BYTES] for place in range(0, len(content), PIECE_BYTES))
    return sha256(tag("pieces"), *map(sha256, pieces))


def plain(value):
    """The value in terms of what cbor2 writes."""
    match value:
        case Date():
            return cbor2.CBORTag(DATE, value.milliseconds)
        case ObjectID():
            return cbor2.CBORTag(OBJECT_ID, value.content)
        case Blob():
            return cbor2.CBORTag(BLOB, [value.hash, value.size, value.type, value.list])
        case list():
            return [plain(item) for item in value]
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case _:
            return value


def encode(value) -> bytes:
    return cbor2.dumps(plain(value), canonical=True)


def decode(content: bytes):
    """Refuses what is not in its one form, by writing it again."""
    try:
        value = cbor2.loads(content)
        again = cbor2.dumps(value, canonical=True)
    except (cbor2.CBORError, TypeError) as error:
        raise ValueError("no CBOR") from error
    if again != content:
        raise ValueError("not deterministic CBOR")
    return value


def taken(value):
    """A decoded value, with the kinds that have classes here as those, also inside of arrays and maps."""
    match value:
        case cbor2.CBORTag() if value.tag == DATE:
            return Date(value.value)
        case cbor2.CBORTag() if value.tag == OBJECT_ID:
            return ObjectID(value.value)
        case cbor2.CBORTag() if value.tag == BLOB:
            return Blob(*value.value)
        case list():
            return [taken(item) for item in value]
        case dict():
            return {key: taken(item) for key, item in value.items()}
    return value


def escaped(content: bytes) -> bytes:
    return content.replace(b"\0", b"\0\xff") + b"\0"


def _signed(value: int) -> bytes:
    return ((value + (1 << 63)) & ((1 << 64) - 1)).to_bytes(8, "big")


def canonical(value) -> bytes:
    match value:
        case None:
            return b"\x01"
        case bool():
            return b"\x03" if value else b"\x02"
        case int():
            return b"\x04" + _signed(value)
        case float():
            bits = struct.unpack(">Q", struct.pack(">d", value))[0]
            bits = ~bits & ((1 << 64) - 1) if bits >> 63 else bits ^ (1 << 63)
            return b"\x05" + bits.to_bytes(8, "big")
        case str():
            return b"\x06" + escaped(value.encode())
        case bytes():
            return b"\x07" + escaped(value)
        case Date():
            return b"\x08" + _signed(value.milliseconds)
        case ObjectID():
            return b"\x09" + value.content
        case uuid.UUID():
            return b"\x0a" + value.bytes
        case list():
            return b"\x0b" + b"".join(map(canonical, value)) + b"\0"
        case dict():
            entries = sorted(value.items(), key=lambda entry: entry[0].encode())
            return b"\x0c" + b"".join(canonical(key) + canonical(item) for key, item in entries) + b"\0"
        case Blob():
            return b"\x0d" + value.hash + _signed(value.size) + escaped(value.type.encode())
    raise TypeError(value)
