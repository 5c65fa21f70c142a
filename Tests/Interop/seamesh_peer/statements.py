"""Statements: signed facts about the fleet."""

from dataclasses import dataclass

from nacl.signing import SigningKey

from . import values
from .hashing import public_key, replica_id, sha256, sign, tag, verify

GENESIS, MEMBERSHIP, REPLICA, GRANT, RULE = 1, 2, 3, 4, 5
NONE, CARRY, READ, WRITE, MANAGE = range(5)
EVERYONE = [3]


def genesis(fleet_name: str, admission: bytes):
    return GENESIS, [fleet_name, admission]


def membership(device: bytes, user: str, label: str, role: str, profile: dict):
    return MEMBERSHIP, [device, user, label, role, profile]


def replica(device: bytes, nonce: bytes, membership_id: bytes):
    return REPLICA, [replica_id(device, nonce), nonce, membership_id]


def grant(subject: list, level: int, pattern: str):
    return GRANT, [subject, level, pattern]


def rule(key: str):
    return RULE, [key]


@dataclass(frozen=True)
class Statement:
    fleet: bytes
    kind: int
    issuer: bytes
    sequence: int
    scope: str
    body: list
    signature: bytes
    encoded: bytes

    @property
    def id(self) -> bytes:
        return sha256(_signed_bytes(self.fields))

    @property
    def fields(self) -> list:
        return [1, self.fleet, self.kind, self.issuer, self.sequence, self.scope, self.body]


def _signed_bytes(fields: list) -> bytes:
    return tag("statem") + values.encode(fields)


def make(fleet: bytes, key: SigningKey, sequence: int, kind_and_body, scope: str = "") -> Statement:
    kind, body = kind_and_body
    fields = [1, fleet, kind, public_key(key), sequence, scope, body]
    signature = sign(key, _signed_bytes(fields))
    return Statement(*fields[1:], signature, values.encode(fields + [signature]))


def read(encoded: bytes) -> Statement:
    """Raises ValueError unless this is a statement of version 1 that its issuer signed."""
    fields = values.decode(encoded)
    if not isinstance(fields, list) or len(fields) != 8 or fields[0] != 1:
        raise ValueError("no statement of version 1")
    statement = Statement(*fields[1:], encoded)
    if not verify(statement.signature, _signed_bytes(statement.fields), statement.issuer):
        raise ValueError("wrong signature")
    return statement
