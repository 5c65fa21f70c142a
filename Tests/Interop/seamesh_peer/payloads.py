"""Payloads: what a change does to documents, in the one order in which it may be written."""

from dataclasses import dataclass, field

from . import values
from .hashing import sha256, tag, u

CREATE, EDIT, DELETE = range(3)
SET, REMOVE, INCREMENT, LIST_INSERT, LIST_REMOVE, SET_ADD, SET_REMOVE = range(7)


@dataclass(frozen=True)
class Element:
    """A list element in a path. Without a dot: one that the change itself inserts."""

    position: bytes
    dot: tuple[bytes, int] | None = None


@dataclass(frozen=True)
class Operation:
    kind: int
    path: list
    value: object = None
    position: bytes = b""

    def encode(self, dot) -> bytes:
        names_itself = len(self.path) == 1 and isinstance(self.path[0], str)
        fields = [self.kind, self.path[0] if names_itself else [_segment(part, dot) for part in self.path]]
        if self.kind not in (REMOVE, LIST_REMOVE):
            fields.append(self.value)
        if self.kind == LIST_INSERT:
            fields.append(self.position)
        return values.encode(fields)

    def entry_path(self, dot) -> bytes:
        """Where the operation takes effect; operations of one document ascend by it."""
        out = b"".join(
            values.canonical(part) if isinstance(part, str) else _element(part.position, part.dot or dot)
            for part in self.path
        )
        if self.kind == LIST_INSERT:
            out += _element(self.position, dot)
        if self.kind in (SET_ADD, SET_REMOVE):
            out += b"\x0f" + values.canonical(self.value)
        return out


def _segment(part, dot):
    if isinstance(part, str):
        return part
    if part.dot is None or part.dot == dot:
        return [part.position]
    return [part.position, *part.dot]


def _element(position: bytes, dot) -> bytes:
    return b"\x0e" + values.escaped(position + dot[0] + u(dot[1], 8) + b"\x80")


@dataclass(frozen=True)
class Write:
    collection: str
    id: object
    kind: int
    generation: int
    operations: list[Operation] = field(default_factory=list)

    @property
    def order(self):
        return self.collection.encode(), values.canonical(self.id)

    def key_hash(self, partition: bytes) -> bytes:
        name = self.collection.encode()
        return sha256(tag("key"), partition, u(len(name), 2), name, values.canonical(self.id))[:16]


def key_hashes(payload: bytes, partition: bytes) -> list[bytes]:
    """Of the documents of an encoded payload, in its order."""
    return [
        Write(collection, values.taken(id), kind, generation).key_hash(partition)
        for collection, id, kind, generation, _ in values.decode(payload)
    ]


def _array(items: list[bytes]) -> bytes:
    head = bytes([0x80 + len(items)]) if len(items) < 24 else bytes([0x98, len(items)])
    return head + b"".join(items)


def encode(writes: list[Write], dot) -> bytes:
    documents = []
    for write in sorted(writes, key=lambda write: write.order):
        operations = sorted(write.operations, key=lambda operation: operation.entry_path(dot))
        fields = [write.collection, write.id, write.kind, write.generation]
        documents.append(
            _array([values.encode(item) for item in fields] + [_array([item.encode(dot) for item in operations])])
        )
    return _array(documents)


def decode(payload: bytes) -> list[Write]:
    """Elements that the change itself inserts are without a dot. ValueError where it has not this shape."""
    try:
        return [
            Write(collection, values.taken(id), kind, generation, [_operation(*fields) for fields in operations])
            for collection, id, kind, generation, operations in values.decode(payload)
        ]
    except (TypeError, IndexError) as error:
        raise ValueError("no payload") from error


def _operation(kind: int, path, value=None, position: bytes = b"") -> Operation:
    parts = [path] if isinstance(path, str) else path
    segments = [
        part if isinstance(part, str) else Element(part[0], (part[1], part[2]) if len(part) == 3 else None)
        for part in parts]
    return Operation(kind, segments, values.taken(value), position)
