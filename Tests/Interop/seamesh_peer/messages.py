"""Session messages: CBOR arrays of a number and what belongs to it."""

from dataclasses import dataclass, field, replace

from nacl.signing import SigningKey

from . import values
from .hashing import counted, mac, public_key, sha256, sign, tag, u, verify

(HELLO, JOIN_REQUEST, JOIN_ACCEPTED, JOIN_REFUSED, STATEMENT_IDS, STATEMENTS, STATEMENTS_COMPLETE, INTEREST_REQUEST,
 INTEREST, INTEREST_CHANGE, SUMMARY, VECTORS, PULL, RUNS, PAYLOAD_PIECE, HAVE, CHAIN_PROBE, PING, PONG,
 GOODBYE) = range(20)  # fmt: skip

SUMMARY_BUCKETS = 64
#: Steps of a comparison.
DIGEST, EQUAL, BUCKETS, PARTITIONS, DIFFERING = range(5)
#: Entries of all vectors in one message.
VECTOR_LIMIT = 4_096


def message(number: int, *items) -> bytes:
    return values.encode([number, *items])


def read(frame: bytes) -> tuple[int, list]:
    number, *items = values.decode(frame)
    return number, items


@dataclass(frozen=True)
class Hello:
    fleet: bytes
    device: bytes
    instance: bytes
    replica: bytes | None
    own_commits: int
    wall: int
    listen_port: int
    authority: bytes
    interest: bytes
    credentials: list[bytes]
    signature: bytes | None = None
    version: int = 1
    features: int = 0

    def signed_bytes(self, exporter: bytes, is_dialer: bool) -> bytes:
        return b"".join([
            tag("hello"), exporter, u(is_dialer, 1), u(self.version, 8), u(self.features, 8), self.fleet, self.device,
            self.instance, b"\0" if self.replica is None else b"\1" + self.replica, u(self.own_commits, 8),
            u(self.wall % (1 << 64), 8), u(self.listen_port, 2), self.authority, self.interest,
            *map(sha256, self.credentials),
        ])  # fmt: skip

    def signed(self, key: SigningKey, exporter: bytes, is_dialer: bool) -> "Hello":
        return replace(self, signature=sign(key, self.signed_bytes(exporter, is_dialer)))

    def is_signed(self, exporter: bytes, is_dialer: bool) -> bool:
        return self.signature is not None and verify(
            self.signature, self.signed_bytes(exporter, is_dialer), self.device)

    def encode(self) -> bytes:
        return message(
            HELLO, self.version, self.features, self.fleet, self.device, self.instance, self.replica, self.own_commits,
            self.wall, self.listen_port, self.authority, self.interest, self.credentials, self.signature)  # fmt: skip

    @staticmethod
    def read(items: list) -> "Hello":
        version, features, *rest = items
        return Hello(*rest, version, features)


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

    def proved_bytes(self, role: bytes, exporter: bytes, extensions: dict) -> bytes:
        """What the invitation's secret authenticates: the request for JOINER, the answer to it for INVITER."""
        return b"".join([
            tag("join"), exporter, role, self.fleet, self.inviter, u(self.serial, 8), self.device,
            counted(self.label.encode()), u(len(extensions), 8),
            *(u(key, 8) + counted(content) for key, content in sorted(extensions.items())),
        ])  # fmt: skip

    def proved(self, secret: bytes, exporter: bytes) -> "JoinRequest":
        return replace(self, proof=mac(secret, self.proved_bytes(JOINER, exporter, self.extensions)))

    def answer(self, secret: bytes, exporter: bytes, extensions: dict | None = None) -> bytes:
        """The proof of who made the invitation."""
        return mac(secret, self.proved_bytes(INVITER, exporter, extensions or {}))

    def encode(self) -> bytes:
        return message(
            JOIN_REQUEST, self.fleet, self.inviter, self.serial, self.device, self.label, self.proof, self.extensions)


def interest_digest(partitions: list[bytes], prefixes: list[str]) -> bytes:
    return sha256(tag("intere"), *sorted(partitions), *(counted(item) for item in sorted(map(str.encode, prefixes))))


def authority_digest(statement_ids: list[bytes]) -> bytes:
    return sha256(tag("author"), *sorted(statement_ids))


def vector_digest(vector: list) -> bytes:
    return sha256(tag("vector"), *(replica + u(sequence, 8) + tip for replica, sequence, tip in sorted(vector)))


def partition_digest(vector: list, forks: list = ()) -> bytes:
    """`forks`: replica, sequence and the two lowest hashes of each."""
    digest = vector_digest(vector)
    if not forks:
        return digest
    return sha256(tag("forks"), digest, *(replica + u(place, 8) + a + b for replica, place, a, b in sorted(forks)))


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


def parts(name: str, vector: list) -> list[list]:
    """A vector of any size in messages that a receiver takes."""
    entries = sorted(vector)
    pieces = [entries[place : place + VECTOR_LIMIT] for place in range(0, len(entries), VECTOR_LIMIT)] or [[]]
    return [partition_vector(name, piece, has_more=piece is not pieces[-1]) for piece in pieces]


def hello_for(key: SigningKey, fleet: bytes, instance: bytes, **fields) -> Hello:
    """A hello of a device that has written nothing yet, where `fields` say nothing else."""
    usual = {
        "replica": None, "own_commits": 0, "wall": 0, "listen_port": 0, "authority": authority_digest([]),
        "interest": interest_digest([], []), "credentials": [],
    }  # fmt: skip
    return Hello(fleet, public_key(key), instance, **(usual | fields))
