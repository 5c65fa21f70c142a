"""Session messages: CBOR arrays of a number and what belongs to it."""

from dataclasses import dataclass, replace

from nacl.signing import SigningKey

from . import values
from .hashing import counted, public_key, sha256, sign, tag, u, verify

(HELLO, JOIN_REQUEST, JOIN_ACCEPTED, JOIN_REFUSED, STATEMENT_IDS, STATEMENTS, STATEMENTS_COMPLETE, INTEREST_REQUEST,
 INTEREST, INTEREST_CHANGE, SUMMARY, VECTORS, PULL, RUNS, PAYLOAD_PIECE, HAVE, CHAIN_PROBE, PING, PONG,
 GOODBYE) = range(20)  # fmt: skip

SUMMARY_BUCKETS = 64


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


@dataclass(frozen=True)
class JoinRequest:
    fleet: bytes
    device: bytes
    user: str
    label: str
    role: str
    profile: dict
    proof: bytes | None = None

    def signed_bytes(self, exporter: bytes) -> bytes:
        texts = (counted(text.encode()) for text in (self.user, self.label, self.role))
        return b"".join([tag("join"), exporter, self.fleet, self.device, *texts, values.canonical(self.profile)])

    def proved(self, admission: SigningKey, exporter: bytes) -> "JoinRequest":
        return replace(self, proof=sign(admission, self.signed_bytes(exporter)))

    def encode(self) -> bytes:
        return message(
            JOIN_REQUEST, self.fleet, self.device, self.user, self.label, self.role, self.profile, self.proof)


def interest_digest(partitions: list[bytes], prefixes: list[str]) -> bytes:
    return sha256(tag("intere"), *sorted(partitions), *(counted(item) for item in sorted(map(str.encode, prefixes))))


def authority_digest(statement_ids: list[bytes]) -> bytes:
    return sha256(tag("author"), *sorted(statement_ids))


def vector_digest(vector: list) -> bytes:
    return sha256(tag("vector"), *(replica + u(sequence, 8) + tip for replica, sequence, tip in sorted(vector)))


def summary(exporter: bytes, vectors: dict[bytes, list]) -> bytes:
    """64 buckets over partition id and vector; the first 8 bytes of each bucket's hash, zero for an empty one."""
    buckets = [b""] * SUMMARY_BUCKETS
    for partition, vector in sorted(vectors.items()):
        buckets[partition[0] >> 2] += partition + vector_digest(vector)
    words = (sha256(tag("summar"), exporter, content)[:8] if content else bytes(8) for content in buckets)
    return message(SUMMARY, b"".join(words))


def partition_vector(name: str, vector: list, staged: list | None = None) -> list:
    entries = [list(entry) for entry in sorted(vector)]
    return [name, entries, [list(item) for item in staged]] if staged else [name, entries]


def hello_for(key: SigningKey, fleet: bytes, instance: bytes, **fields) -> Hello:
    """A hello of a device that has written nothing yet, where `fields` say nothing else."""
    usual = {
        "replica": None, "own_commits": 0, "wall": 0, "listen_port": 0, "authority": authority_digest([]),
        "interest": interest_digest([], []), "credentials": [],
    }  # fmt: skip
    return Hello(fleet, public_key(key), instance, **(usual | fields))
