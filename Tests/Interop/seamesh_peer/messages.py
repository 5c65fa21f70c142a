"""Session messages: CBOR arrays of a number and what belongs to it."""

from dataclasses import dataclass, field, replace

from nacl.signing import SigningKey

from . import values
from .hashing import counted, discovery_key, mac, public_key, sha256, sign, tag, u, verify
from .statements import has_shape

(HELLO, JOIN_REQUEST, JOIN_ACCEPTED, JOIN_REFUSED, STATEMENT_SET, STATEMENTS, STATEMENTS_COMPLETE, INTEREST_REQUEST,
 INTEREST, INTEREST_CHANGE, SUMMARY, VECTORS, PULL, RUNS, PAYLOAD_PIECE, HAVE, CHAIN_PROBE, PING, PONG,
 GOODBYE, CREDENTIAL_REQUEST, CREDENTIALS, HOLDINGS,
 HOLDINGS_QUESTION) = range(24)  # fmt: skip
NEIGHBOURS = 65
PUSH_CHOICE = 66

#: From here on who does not know a message skips it.
OPTIONAL = 64

#: Reasons of a goodbye.
STOPPING, OTHER_FLEET, NOT_A_MEMBER, DUPLICATE, PROTOCOL_ERROR, VERSION_UNKNOWN, OWN_CONNECTION = range(7)

SUMMARY_BUCKETS = 64
#: Steps of a comparison.
DIGEST, EQUAL, BUCKETS, PARTITIONS, DIFFERING = range(5)
#: Entries of all vectors in one message.
VECTOR_LIMIT = 4_096
#: Feature bit 45: pulls and first contexts that say how they differ from what was told.
DIFFERENCES = 1 << 45
#: Entries of a vector that a first pull may refer to, and how many of those are remembered.
LEAST_TOLD, TOLD_LIMIT = 64, 3
#: A sender closes a message of statements here.
STATEMENTS_BYTES = 256 * 1024
#: Keys of extensions from here on make the message an error where they are not known; none is.
CRITICAL_EXTENSION = 32_768
EXTENSION_LIMIT, EXTENSIONS_BYTES = 8, 1_024


def message(number: int, *items) -> bytes:
    return values.encode([number, *items])


def read(frame: bytes) -> tuple[int, list]:
    number, *items = values.decode(frame)
    return number, items


def _extended(extensions: dict) -> bytes:
    """As proofs and signatures have them."""
    parts = (u(key, 8) + counted(content) for key, content in sorted(extensions.items()))
    return u(len(extensions), 8) + b"".join(parts)


def check_extensions(extensions):
    """ValueError where they are none, or too many, or one that is not known must be."""
    if not isinstance(extensions, dict) or not all(
            type(key) is int and key >= 0 and isinstance(item, bytes) for key, item in extensions.items()):
        raise ValueError("no extensions")
    if len(extensions) > EXTENSION_LIMIT or sum(map(len, extensions.values())) > EXTENSIONS_BYTES:
        raise ValueError("too many extensions")
    if any(key >= CRITICAL_EXTENSION for key in extensions):
        raise ValueError("an extension that is not known")


# What shows that a side knows the fleet, and what it tells to such alone

#: What a mark is of.
AUTHORITY, INTERESTS = 1, 2
MARK_BYTES = 16


def fleet_proof(fleet: bytes, exporter: bytes, is_dialer: bool) -> bytes:
    return mac(discovery_key(fleet), tag("proof") + exporter + u(is_dialer, 1))


def mark(fleet: bytes, exporter: bytes, is_dialer: bool, of: int, digest: bytes) -> bytes:
    """`is_dialer`: whether the one who tells it is."""
    return mac(discovery_key(fleet), tag("mark") + exporter + u(is_dialer, 1) + u(of, 1) + digest)[:MARK_BYTES]


@dataclass(frozen=True)
class Hello:
    """`authority` and `interest` are marks."""

    proof: bytes
    instance: bytes
    wall: int
    listen_port: int
    authority: bytes
    interest: bytes
    signature: bytes = bytes(64)
    extensions: dict = field(default_factory=dict)
    version: int = 1
    features: int = 0

    def signed_bytes(self, exporter: bytes, is_dialer: bool, device: bytes) -> bytes:
        return b"".join([
            tag("hello"), exporter, u(is_dialer, 1), u(self.version, 8), u(self.features, 8), self.proof, device,
            self.instance, u(self.wall % (1 << 64), 8), u(self.listen_port, 2), self.authority, self.interest,
            _extended(self.extensions),
        ])  # fmt: skip

    def signed(self, key: SigningKey, exporter: bytes, is_dialer: bool) -> "Hello":
        return replace(self, signature=sign(key, self.signed_bytes(exporter, is_dialer, public_key(key))))

    def is_signed(self, exporter: bytes, is_dialer: bool, device: bytes) -> bool:
        """`device`: the key of the certificate, which the message does not repeat."""
        return verify(self.signature, self.signed_bytes(exporter, is_dialer, device), device)

    def encode(self) -> bytes:
        return message(
            HELLO, self.version, self.features, self.proof, self.instance, self.wall, self.listen_port,
            self.authority, self.interest, self.signature, self.extensions)  # fmt: skip

    @staticmethod
    def read(items: list) -> "Hello":
        shape = (_is_word, _is_word, 32, 16, _is_wall, _is_port, MARK_BYTES, MARK_BYTES, 64, _is_any)
        if not has_shape(items, shape) or items[0] < 1:
            raise ValueError("no hello")
        check_extensions(items[-1])
        version, features, *rest = items
        return Hello(*rest, version, features)


def _is_word(item) -> bool:
    return type(item) is int and 0 <= item < 1 << 64


def _is_wall(item) -> bool:
    return type(item) is int and -(1 << 63) <= item < 1 << 63


def _is_port(item) -> bool:
    return type(item) is int and 0 <= item < 1 << 16


def _is_any(item) -> bool:
    return True


def hello_for(fleet: bytes, exporter: bytes, is_dialer: bool, instance: bytes, *, authority: bytes | None = None,
              interest: bytes | None = None, **fields) -> Hello:
    """Not signed yet. `authority` and `interest` are digests here; without them, those of nothing."""
    authority, interest = authority or authority_digest([]), interest or interest_digest([], [])
    usual = {
        "wall": 0, "listen_port": 0, "authority": mark(fleet, exporter, is_dialer, AUTHORITY, authority),
        "interest": mark(fleet, exporter, is_dialer, INTERESTS, interest),
    }  # fmt: skip
    return Hello(fleet_proof(fleet, exporter, is_dialer), instance, **(usual | fields))


JOINER, INVITER = b"\1", b"\2"


@dataclass(frozen=True)
class JoinRequest:
    fleet: bytes
    inviter: bytes
    serial: int
    device: bytes
    label: str
    proof: bytes = bytes(32)
    extensions: dict = field(default_factory=dict)
    #: Stands in the message in place of the fleet.
    fleet_proof: bytes = bytes(32)

    def proved_bytes(self, role: bytes, exporter: bytes, extensions: dict) -> bytes:
        """What the invitation's secret authenticates: the request for JOINER, the answer to it for INVITER."""
        return b"".join([
            tag("join"), exporter, role, self.fleet, self.inviter, u(self.serial, 8), self.device,
            counted(self.label.encode()), _extended(extensions),
        ])  # fmt: skip

    def proved(self, secret: bytes, exporter: bytes) -> "JoinRequest":
        return replace(
            self, proof=mac(secret, self.proved_bytes(JOINER, exporter, self.extensions)),
            fleet_proof=fleet_proof(self.fleet, exporter, is_dialer=True))

    def answer(self, secret: bytes, exporter: bytes, extensions: dict | None = None) -> bytes:
        """The proof of who made the invitation."""
        return mac(secret, self.proved_bytes(INVITER, exporter, extensions or {}))

    def encode(self) -> bytes:
        return message(
            JOIN_REQUEST, self.fleet_proof, self.inviter, self.serial, self.device, self.label, self.proof,
            self.extensions)


def statement_messages(scope: str, encoded: list[bytes]) -> list[bytes]:
    """Statements in their order, in as many messages as it takes."""
    batches, count = [], STATEMENTS_BYTES
    for item in encoded:
        if count + len(item) > STATEMENTS_BYTES:
            batches.append([])
            count = 0
        batches[-1].append(item)
        count += len(item)
    return [message(STATEMENTS, scope, batch) for batch in batches]


def interest_digest(partitions: list[bytes], prefixes: list[str]) -> bytes:
    return sha256(tag("intere"), *sorted(partitions), *(counted(item) for item in sorted(map(str.encode, prefixes))))


def authority_digest(statement_ids: list[bytes]) -> bytes:
    return sha256(tag("author"), *sorted(statement_ids))


def vector_digest(vector: list) -> bytes:
    return sha256(tag("vector"), *(replica + u(sequence, 8) + tip for replica, sequence, tip in sorted(vector)))


def partition_digest(vector: list, forks: list = (), above: list = ()) -> bytes:
    """`forks`: replica, sequence and the two lowest hashes of each. `above`: as a vector, of what is held above limits."""
    digest = vector_digest(vector)
    if forks:
        parts = (replica + u(place, 8) + a + b for replica, place, a, b in sorted(forks))
        digest = sha256(tag("forks"), digest, *parts)
    if above:
        digest = sha256(tag("above"), digest, *(replica + u(place, 8) + tip for replica, place, tip in sorted(above)))
    return digest


def room_digest(digest: bytes | None, statement_ids: list[bytes]) -> bytes:
    """Takes the place of a room's partition digest, which is None where nothing is held but the room's statements."""
    return sha256(tag("room"), digest or bytes(32), authority_digest(statement_ids))


def bucket(partition: bytes) -> int:
    return partition[0] >> 2


def term(exporter: bytes, partition: bytes, digest: bytes) -> int:
    """What a partition adds to the sum of its bucket."""
    return int.from_bytes(sha256(tag("summar"), exporter, partition, digest)[:8], "big")


def sums(exporter: bytes, digests: dict[bytes, bytes]) -> list[int]:
    """For each bucket, over the partitions that are not empty."""
    buckets = [0] * SUMMARY_BUCKETS
    for partition, digest in digests.items():
        buckets[bucket(partition)] += term(exporter, partition, digest)
    return [total % (1 << 64) for total in buckets]


def listing(exporter: bytes, digests: dict[bytes, bytes], place: int) -> list:
    """A bucket: its number, and the first bytes of the id with the term, of each partition in it."""
    inside = sorted(partition for partition in digests if bucket(partition) == place)
    return [place, b"".join(item[:8] + u(term(exporter, item, digests[item]), 8) for item in inside)]


def words(numbers: list[int]) -> bytes:
    return b"".join(u(number, 8) for number in numbers)


def partition_vector(name: str, vector: list, staged: list | None = None, has_more: bool = False) -> list:
    entries = [list(entry) for entry in sorted(vector)]
    return [name, entries, has_more] + ([[list(item) for item in staged]] if staged else [])


def vector_mark(vector: list) -> int:
    """By which a pull names a vector that its receiver told."""
    return int.from_bytes(vector_digest(vector)[:8], "big")


def differing(name: str, vector: list, told: list) -> list:
    """How a vector differs from one that was told, as increments do."""
    gone = {replica for replica, *_ in told} - {replica for replica, *_ in vector}
    fresh = set(map(tuple, vector)) - set(map(tuple, told))
    return [name, sorted([*map(list, fresh), *([replica, 0] for replica in gone)]), False]


def put_together(told: list, entries: list) -> list:
    changed = {entry[0]: tuple(entry) for entry in [*told, *entries]}
    return sorted(entry for entry in changed.values() if entry[1])


def parts(name: str, vector: list) -> list[list]:
    """A vector of any size in messages that a receiver takes."""
    entries = sorted(vector)
    pieces = [entries[place : place + VECTOR_LIMIT] for place in range(0, len(entries), VECTOR_LIMIT)] or [[]]
    return [partition_vector(name, piece, has_more=piece is not pieces[-1]) for piece in pieces]

