"""Chains: contexts, changes, runs, and the hashes that tie them together."""

from dataclasses import dataclass, field

from nacl.signing import SigningKey

from . import payloads, values
from .hashing import counted, sha256, sign, tag, u, verify

INLINE_LIMIT = 16 * 1024


@dataclass(frozen=True)
class Chain:
    fleet: bytes
    partition: bytes
    replica: bytes

    @property
    def ids(self) -> bytes:
        return self.fleet + self.partition + self.replica

    @property
    def genesis(self) -> bytes:
        return sha256(tag("chain"), self.ids)


def context_digest(context: list) -> bytes:
    """Over (replica, sequence, tip) entries, sorted by replica."""
    entries = (replica + u(sequence, 8) + tip for replica, sequence, tip in sorted(context))
    return sha256(tag("contex"), *entries)


def encode_context(context: list) -> bytes:
    """The whole form: what differs from a base would be the other."""
    return values.encode([0, [list(entry) for entry in sorted(context)]])


@dataclass(frozen=True)
class Change:
    sequence: int
    timestamp: int
    wall: int
    payload: bytes
    key_hashes: list[bytes]
    wall_source: int = 0
    wall_uncertainty: int = 0
    codec: int = 0
    flags: int = 0
    schema_version: int = 0
    on_behalf_of: str = ""
    group: tuple[bytes, int, int] | None = None
    retires: bytes = b""
    origin: tuple[bytes, int, bytes] | None = None
    extensions: dict[int, bytes] = field(default_factory=dict)

    def hash(self, chain: Chain, previous: bytes, context: bytes) -> bytes:
        return sha256(
            tag("change"), chain.ids, u(self.sequence, 8), previous, context,
            u(self.timestamp, 8), u(self.wall % (1 << 64), 8), u(self.wall_source, 1), u(self.wall_uncertainty, 4),
            u(self.codec, 1), u(self.flags, 2), u(len(self.payload), 4), sha256(self.payload),
            u(self.schema_version, 4), counted(self.on_behalf_of.encode()),
            b"\0" if self.group is None else b"\1" + self.group[0] + u(self.group[1], 4) + u(self.group[2], 4),
            counted(self.retires),
            b"\0" if self.origin is None else b"\1" + self.origin[0] + u(self.origin[1], 8) + self.origin[2],
            u(len(self.extensions), 2),
            *(u(number, 2) + counted(content) for number, content in sorted(self.extensions.items())),
            u(len(self.key_hashes), 2), *self.key_hashes,
        )  # fmt: skip

    def fields(self, previous: "Change | None") -> list:
        apart = len(self.payload) > INLINE_LIMIT
        fields = [
            self.timestamp if previous is None else _wrapped(self.timestamp - previous.timestamp),
            self.wall if previous is None else _wrapped(self.wall - previous.wall),
            [sha256(self.payload), len(self.payload)] if apart else self.payload,
        ]
        opaque = self.codec != 0 or any(number & 0x8000 for number in self.extensions)
        options = {
            1: self.wall_source, 2: self.wall_uncertainty, 3: self.codec, 4: self.flags, 5: self.schema_version,
            6: self.on_behalf_of, 7: self.group and list(self.group), 8: self.retires,
            9: self.origin and list(self.origin), 10: self.extensions,
            11: b"".join(self.key_hashes) if apart or opaque else b"",
        }  # fmt: skip
        options = {number: value for number, value in options.items() if value}
        return fields + [options] if options else fields


def _wrapped(difference: int) -> int:
    """As a signed 64-bit number, modulo 2^64."""
    return (difference + (1 << 63)) % (1 << 64) - (1 << 63)


def plain_change(chain: Chain, sequence: int, timestamp: int, wall: int, writes: list, **options) -> Change:
    payload = payloads.encode(writes, (chain.replica, sequence))
    ordered = sorted(writes, key=lambda write: write.order)
    hashes = [write.key_hash(chain.partition) for write in ordered]
    return Change(sequence, timestamp, wall, payload, hashes, **options)


@dataclass(frozen=True)
class Run:
    chain: Chain
    first: int
    hash_before: bytes
    context: list
    changes: list[Change]
    grant: bytes = b""
    key_epoch: int | None = None
    extensions: dict[int, bytes] = field(default_factory=dict)

    @property
    def hashes(self) -> list[bytes]:
        previous, context, out = self.hash_before, context_digest(self.context), []
        for change in self.changes:
            previous = change.hash(self.chain, previous, context)
            out.append(previous)
        return out

    @property
    def signed_bytes(self) -> bytes:
        last = self.first + len(self.changes) - 1
        return b"".join([
            tag("run"), b"\1", self.chain.ids, u(self.first, 8), u(last, 8), self.hash_before,
            context_digest(self.context),
            b"\1" + self.grant if self.grant else b"\0",
            b"\0" if self.key_epoch is None else b"\1" + u(self.key_epoch, 4),
            self.hashes[-1], u(len(self.extensions), 2),
            *(u(number, 2) + counted(content) for number, content in sorted(self.extensions.items())),
            b"\1",
        ])  # fmt: skip

    def encode(self, key: SigningKey) -> bytes:
        options = {}
        if self.grant:
            options[1] = self.grant
        if self.key_epoch is not None:
            options[2] = self.key_epoch
        if self.extensions:
            options[3] = self.extensions
        changes = [
            change.fields(self.changes[place - 1] if place else None) for place, change in enumerate(self.changes)
        ]
        head = [self.chain.replica, self.first, self.hash_before, context_digest(self.context)]
        return values.encode(
            head + ([options] if options else []) + [changes, sign(key, self.signed_bytes)])

    def is_signed(self, signature: bytes, key: bytes) -> bool:
        return verify(signature, self.signed_bytes, key)

    @property
    def last(self) -> int:
        return self.first + len(self.changes) - 1


def read(encoded: bytes, fleet: bytes, partition: bytes, context: list, payload_apart: bytes = b"") -> tuple[Run, bytes]:
    """The run and its signature. Raises ValueError where the context is not the one that was hashed."""
    replica, first, hash_before, digest, *rest = values.decode(encoded)
    changes, signature = rest[-2:]
    options = rest[0] if len(rest) == 3 else {}
    if context_digest(context) != digest:
        raise ValueError("another context than was hashed")
    chain = Chain(fleet, partition, replica)
    made: list[Change] = []
    for place, fields in enumerate(changes):
        made.append(_read_change(fields, first + place, made[-1] if made else None, partition, payload_apart))
    run = Run(chain, first, hash_before, context, made, options.get(1, b""), options.get(2), options.get(3, {}))
    return run, signature


def _read_change(fields: list, sequence: int, previous: Change | None, partition: bytes, apart: bytes) -> Change:
    timestamp, wall, payload = fields[:3]
    options = fields[3] if len(fields) == 4 else {}
    if previous is not None:
        timestamp, wall = (previous.timestamp + timestamp) % (1 << 64), _wrapped(previous.wall + wall)
    if isinstance(payload, list):
        if [sha256(apart), len(apart)] != payload:
            raise ValueError("another payload than was named")
        payload = apart
    keys = options.get(11, b"")
    key_hashes = [keys[place : place + 16] for place in range(0, len(keys), 16)] or [
        payloads.Write(collection, values.taken(id), kind, generation).key_hash(partition)
        for collection, id, kind, generation, _ in values.decode(payload)
    ]
    group, origin = options.get(7), options.get(9)
    return Change(
        sequence, timestamp, wall, payload, key_hashes, options.get(1, 0), options.get(2, 0), options.get(3, 0),
        options.get(4, 0), options.get(5, 0), options.get(6, ""), group and tuple(group), options.get(8, b""),
        origin and tuple(origin), options.get(10, {}))
