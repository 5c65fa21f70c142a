"""Chains: contexts, changes, runs, and the hashes that tie them together."""

from dataclasses import dataclass, field

from nacl.signing import SigningKey

from . import acceptance, payloads, values
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


# Types of extensions. Of the critical ones `origin` alone does not make a change opaque.
ORIGIN, KEY_EPOCH, RETIRES = 0x8001, 0x8002, 0x8003
SCHEMA_VERSION, ON_BEHALF_OF, WALL_SOURCE, CAUSE = 1, 2, 3, 4


def origin(replica: bytes, sequence: int, chain_hash: bytes) -> bytes:
    """The content of the extension that names the first original of a change that is issued again."""
    return replica + u(sequence, 8) + chain_hash


@dataclass(frozen=True)
class Change:
    sequence: int
    timestamp: int
    wall: int
    payload: bytes
    key_hashes: list[bytes]
    codec: int = 0
    extensions: dict[int, bytes] = field(default_factory=dict)
    payload_name: tuple[bytes, int] | None = None
    """Hash and byte count, of a change that is its header alone."""

    @property
    def named(self) -> tuple[bytes, int]:
        return self.payload_name or (sha256(self.payload), len(self.payload))

    @property
    def is_opaque(self) -> bool:
        """Held by who does not know its codec, or an extension that its author says matters."""
        return self.codec != 0 or any(number & 0x8000 and number != ORIGIN for number in self.extensions)

    @property
    def origin(self) -> tuple[str, int, str] | None:
        content = self.extensions.get(ORIGIN)
        return content and (content[:16].hex(), int.from_bytes(content[16:24]), content[24:].hex())

    def hash(self, chain: Chain, previous: bytes, context: bytes) -> bytes:
        payload_hash, byte_count = self.named
        return sha256(
            tag("change"), chain.ids, u(self.sequence, 8), previous, context,
            u(self.timestamp, 8), u(self.wall % (1 << 64), 8), u(self.codec, 1), u(byte_count, 4), payload_hash,
            u(len(self.extensions), 2),
            *(u(number, 2) + counted(content) for number, content in sorted(self.extensions.items())),
            u(len(self.key_hashes), 2), *self.key_hashes,
        )  # fmt: skip

    def fields(self, previous: "Change | None", header_only: bool = False) -> list:
        payload_hash, byte_count = self.named
        apart = byte_count > INLINE_LIMIT
        payload = [payload_hash, byte_count] if apart or header_only else self.payload
        fields = [
            self.timestamp if previous is None else _wrapped(self.timestamp - previous.timestamp),
            self.wall if previous is None else _wrapped(self.wall - previous.wall),
            payload + [None] if header_only else payload,
        ]
        names_keys = apart or self.is_opaque or header_only
        options = {1: self.codec, 2: self.extensions, 3: b"".join(self.key_hashes) if names_keys else b""}
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

    @property
    def hashes(self) -> list[bytes]:
        previous, context, out = self.hash_before, context_digest(self.context), []
        for change in self.changes:
            previous = change.hash(self.chain, previous, context)
            out.append(previous)
        return out

    @property
    def signed_bytes(self) -> bytes:
        return b"".join([
            tag("run"), b"\1", self.chain.ids, u(self.first, 8), u(self.last, 8), self.hash_before,
            context_digest(self.context), self.hashes[-1],
        ])  # fmt: skip

    def encode(self, key: SigningKey, headers_only=()) -> bytes:
        """`headers_only`: the places of the changes that go without their payloads."""
        changes = [
            change.fields(self.changes[place - 1] if place else None, place in headers_only)
            for place, change in enumerate(self.changes)
        ]
        head = [self.chain.replica, self.first, self.hash_before, context_digest(self.context)]
        return values.encode(head + [changes, sign(key, self.signed_bytes)])

    def is_signed(self, signature: bytes, key: bytes) -> bool:
        return verify(signature, self.signed_bytes, key)

    @property
    def last(self) -> int:
        return self.first + len(self.changes) - 1


def read(encoded: bytes, fleet: bytes, partition: bytes, context: list, payload_apart: bytes = b"") -> tuple[Run, bytes]:
    """The run and its signature. Raises ValueError where the context is not the one that was hashed."""
    replica, first, hash_before, digest, changes, signature = values.decode(encoded)
    if context_digest(context) != digest:
        raise ValueError("another context than was hashed")
    chain = Chain(fleet, partition, replica)
    made: list[Change] = []
    for place, fields in enumerate(changes):
        made.append(_read_change(fields, first + place, made[-1] if made else None, partition, payload_apart))
    return Run(chain, first, hash_before, context, made), signature


def _read_change(fields: list, sequence: int, previous: Change | None, partition: bytes, apart: bytes) -> Change:
    timestamp, wall, payload = fields[:3]
    options = fields[3] if len(fields) == 4 else {}
    if previous is not None:
        timestamp, wall = (previous.timestamp + timestamp) % (1 << 64), _wrapped(previous.wall + wall)
    keys = options.get(3, b"")
    key_hashes = [keys[place : place + 16] for place in range(0, len(keys), 16)]
    codec, extensions = options.get(1, 0), options.get(2, {})
    if isinstance(payload, list) and len(payload) == 3:
        return Change(sequence, timestamp, wall, b"", key_hashes, codec, extensions, (payload[0], payload[1]))
    if isinstance(payload, list):
        if [sha256(apart), len(apart)] != payload:
            raise ValueError("another payload than was named")
        payload = apart
    return Change(
        sequence, timestamp, wall, payload, key_hashes or payloads.key_hashes(payload, partition), codec, extensions)


def to_judge(run: Run, signer: bytes | None) -> acceptance.Run:
    """With hashes and replicas as lower-case hexadecimal; None where the signature is nobody's."""
    changes = []
    for change, hash in zip(run.changes, run.hashes):
        documents = [] if change.is_opaque else [
            (write.id if isinstance(write.id, str) else None, [operation.path[0] for operation in write.operations])
            for write in payloads.decode(change.payload)]
        changes.append(acceptance.Change(hash.hex(), documents, change.is_opaque, change.origin))
    context = [(replica.hex(), number, tip.hex()) for replica, number, tip in run.context]
    return acceptance.Run(
        run.chain.replica.hex(), run.first, run.hash_before.hex(), context, signer.hex() if signer else "", changes)
