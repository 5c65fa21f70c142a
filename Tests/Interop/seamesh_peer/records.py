"""Records that stand outside of sessions: holdings and bundles."""

from dataclasses import dataclass

from nacl.signing import SigningKey

from . import values
from .hashing import public_key, sign, tag, verify

RECEIVED, ACCEPTED = 0, 1


@dataclass(frozen=True)
class Holdings:
    """`own`: the device's replica and the number of its last change there, or None."""

    fleet: bytes
    device: bytes
    partition: str
    number: int
    vector: list
    kind: int
    own: tuple[bytes, int] | None

    @property
    def fields(self) -> list:
        vector = [list(entry) for entry in sorted(self.vector)]
        own = None if self.own is None else list(self.own)
        return [1, self.fleet, self.device, self.partition, self.number, vector, self.kind, own]

    @property
    def signed_bytes(self) -> bytes:
        return tag("holdin") + values.encode(self.fields)

    def encode(self, key: SigningKey) -> bytes:
        assert public_key(key) == self.device
        return self.with_signature(sign(key, self.signed_bytes))

    def with_signature(self, signature: bytes) -> bytes:
        return values.encode([*self.fields, signature])

    def is_signed(self, signature: bytes) -> bool:
        return verify(signature, self.signed_bytes, self.device)


def bundle(fleet: bytes, statements: list[bytes], partitions: dict[str, list[list]]) -> bytes:
    """`partitions`: by name, [context, run] or [context, run, payload] in the order in which they can be taken."""
    named = [[name, partitions[name]] for name in sorted(partitions, key=str.encode)]
    return values.encode([1, fleet, statements, named])
