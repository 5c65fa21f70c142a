"""Statements: signed facts about the fleet or a room."""

import re
from dataclasses import dataclass
from functools import cached_property

from nacl.signing import SigningKey

from . import rights, values
from .hashing import public_key, replica_id, sha256, sign, tag, verify

(GENESIS, MEMBERSHIP, REPLICA, GRANT, RULE, END, RAISE, BASELINE, INVITATION, ROOM, REMOVAL, LEAVE) = range(1, 13)
NONE, CARRY, READ, WRITE, MANAGE = range(5)
EVERYONE = [3]


def genesis(fleet_name: str):
    return GENESIS, [fleet_name]


def membership(device: bytes, user: str, label: str, role: str, profile: dict):
    return MEMBERSHIP, [device, role, user, label, profile]


def replica(device: bytes, nonce: bytes, membership_id: bytes):
    return REPLICA, [replica_id(device, nonce), nonce, membership_id]


def grant(subject: list, level: int, pattern: str, ends=(), tips=(), keep=(), more=False):
    return GRANT, [list(tips), subject, level, pattern, list(ends), list(keep), more]


def rule(key: str, fields=()):
    return RULE, [key, sorted(fields, key=str.encode)]


def end(why: int, target: list, ends=(), tips=(), keep=(), more=False):
    return END, [list(tips), why, target, list(ends), list(keep), more]


def room(membership_id: bytes, wall: int):
    """To be made with nothing before it: it begins the scope that its id names. Without a note of the wall clock a
    membership could make one room only."""
    return ROOM, [membership_id, {NOTE_WALL: wall.to_bytes(8, "big")}]


def invitation(membership_id: bytes, user: str, seen=()):
    return INVITATION, [membership_id, user, list(seen)]


def removal(membership_id: bytes, user: str, seen=(), ends=(), tips=(), more=False):
    return REMOVAL, [list(tips), membership_id, user, list(seen), list(ends), more]


def leave(membership_id: bytes, user: str, seen=()):
    return LEAVE, [membership_id, user, list(seen)]


def is_room(scope: str) -> bool:
    """Whether it is a room's, by its form."""
    return re.fullmatch("conversation=[0-9a-f]{64}", scope) is not None


@dataclass(frozen=True)
class Statement:
    fleet: bytes
    kind: int
    issuer: bytes
    sequence: int
    previous: bytes | None
    scope: str
    body: list
    signature: bytes
    encoded: bytes

    @cached_property
    def id(self) -> bytes:
        return sha256(_signed_bytes(self.fields))

    @property
    def place(self) -> str:
        """The scope that it belongs to. A room's creation is signed with none, for the room is named by its id."""
        return f"conversation={self.id.hex()}" if self.kind == ROOM else self.scope

    @property
    def tips(self) -> list:
        """(scope, issuer, sequence, id) of those that name a statement, of a shape that is known."""
        names_tips = self.kind in (GRANT, END, RAISE, REMOVAL) and isinstance(self.body, list)
        groups = self.body[0] if names_tips and has_shape(self.body[:1], (TIPS,)) else []
        return [(scope, *tip) for scope, tips in groups for tip in tips if tip[1]]

    @property
    def fields(self) -> list:
        return [1, self.fleet, self.kind, self.issuer, self.sequence, self.previous, self.scope, self.body]


def _signed_bytes(fields: list) -> bytes:
    return tag("statem") + values.encode(fields)


def make(fleet: bytes, key: SigningKey, previous: Statement | None, kind_and_body, scope: str = "") -> Statement:
    """What the holder of the key says next, after `previous` in the same scope; None before the first."""
    kind, body = kind_and_body
    (sequence, before) = (previous.sequence + 1, previous.id) if previous else (1, None)
    fields = [1, fleet, kind, public_key(key), sequence, before, scope, body]
    signature = sign(key, _signed_bytes(fields))
    return Statement(*fields[1:], signature, values.encode(fields + [signature]))


def is_of_another_version(encoded: bytes) -> bool:
    """Then nothing else of it can be judged. ValueError where it is no array that begins with a version."""
    fields = values.decode(encoded)
    if not isinstance(fields, list) or not fields or type(fields[0]) is not int or fields[0] < 0:
        raise ValueError("no statement of any version")
    return fields[0] != 1


def read(encoded: bytes) -> Statement:
    """Raises ValueError unless this is a statement of version 1 that its issuer signed."""
    fields = values.decode(encoded)
    if not has_shape(fields, (int, 32, int, 32, int, _is_id_or_none, str, _is_any, 64)) or fields[0] != 1:
        raise ValueError("no statement of version 1")
    statement = Statement(*fields[1:], encoded)
    if not 1 <= statement.sequence < 1 << 53 or (statement.sequence == 1) != (statement.previous is None):
        raise ValueError("a sequence that does not fit")
    if not verify(statement.signature, _signed_bytes(statement.fields), statement.issuer):
        raise ValueError("wrong signature")
    return statement


# Shapes of bodies (PROTOCOL, "Statements"). A number stands for a byte string of so many, a tuple for an array of
# exactly these, a list for one of any length.

LOWEST_UNKNOWN_NOTE = 32_768
NOTE_WALL = 1
WHYS = ["close", "retire", "compromised"]
TIPS = [(str, [(32, int, 32)])]
ENDS = [(str, [(16, int, 16)])]


def _is_subject(item) -> bool:
    return any(has_shape(item, shape) and item[0] == number for number, shape in enumerate(
        [(int, 32), (int, str), (int, str), (int,)]))


def _is_target(item) -> bool:
    return any(has_shape(item, shape) and item[0] == number for number, shape in enumerate(
        [(int, 32), (int, 16), (int, 32)]))


def _is_id_or_none(item) -> bool:
    return item is None or has_shape(item, 32)


def _is_any(item) -> bool:
    return True


def _is_level(item) -> bool:
    return item in range(5) and type(item) is int


def _is_why(item) -> bool:
    return item in range(len(WHYS)) and type(item) is int


SHAPES = {
    GENESIS: (str,),
    MEMBERSHIP: (32, str, str, str, dict),
    REPLICA: (16, 16, 32),
    GRANT: (TIPS, _is_subject, _is_level, str, ENDS, [str], bool),
    RULE: (str, [str]),
    END: (TIPS, _is_why, _is_target, ENDS, [str], bool),
    RAISE: (TIPS, 32, ENDS, bool),
    BASELINE: (str, [(16, int, 16, int)]),
    INVITATION: (32, str, [32]),
    ROOM: (32,),
    REMOVAL: (TIPS, 32, str, [32], ENDS, bool),
    LEAVE: (32, str, [32]),
}
#: What is read of an unknown shape.
BEGINNINGS = {MEMBERSHIP: (32, str, str), GRANT: (TIPS,), END: (TIPS,), RAISE: (TIPS,), REMOVAL: (TIPS,)}


def has_shape(item, shape) -> bool:
    match shape:
        case int():
            return isinstance(item, bytes) and len(item) == shape
        case tuple():
            return isinstance(item, list) and len(item) == len(shape) and all(map(has_shape, item, shape))
        case list():
            return isinstance(item, list) and all(has_shape(part, shape[0]) for part in item)
    if shape is int:
        return type(item) is int and item >= 0
    if shape is dict:
        return isinstance(item, dict) and all(isinstance(part, str) for pair in item.items() for part in pair)
    return isinstance(item, shape) if isinstance(shape, type) else shape(item)


def _are_notes(item) -> bool:
    """What may stand behind a body, and is never judged by."""
    return isinstance(item, dict) and 1 <= len(item) <= 64 and all(
        type(key) is int and 0 <= key < LOWEST_UNKNOWN_NOTE and isinstance(note, bytes) for key, note in item.items())


# For judging (RULES, "Kinds and shapes"): ids, hashes, keys and replicas as lower-case hexadecimal.

KIND_NAMES = {
    GENESIS: "genesis", MEMBERSHIP: "membership", REPLICA: "replica", GRANT: "grant", RULE: "rule", END: "end",
    RAISE: "raise", BASELINE: "baseline", INVITATION: "invite", ROOM: "room", REMOVAL: "remove", LEAVE: "leave",
}  # fmt: skip


def to_judge(statement: Statement) -> rights.Statement:
    """ValueError where not even that can be read of it which never changes."""
    kind, body = statement.kind, statement.body
    shape = SHAPES.get(kind)
    items = body
    if shape and isinstance(body, list) and len(body) == len(shape) + 1 and _are_notes(body[-1]):
        items = body[:-1]
    is_certified = False
    if shape and has_shape(items, shape):
        fields = _fields(kind, items)
        is_certified = kind == REPLICA and replica_id(statement.issuer, items[1]) == items[0]
    else:
        fields = _fields_of_unknown_shape(kind, body) | {"unknown shape": True}
    id = statement.id.hex()
    return rights.Statement(
        id, KIND_NAMES.get(kind, str(kind)), statement.issuer.hex(), statement.sequence,
        statement.previous and statement.previous.hex(), statement.place, fields, is_certified)


def _fields(kind: int, items: list) -> dict:
    match kind, items:
        case 1, [_]:
            return {}
        case 2, [device, role, user, _, profile]:
            agency = {"agency": profile["agency"]} if "agency" in profile else {}
            return {"device": device.hex(), "role": role, "user": user} | agency
        case 3, [replica, _, membership]:
            return {"replica": replica.hex(), "membership": membership.hex()}
        case 4, [tips, subject, level, pattern, ends, keep, more]:
            kinds = ["device", "user", "role", "*"]
            value = (subject[1].hex() if subject[0] == 0 else subject[1]) if len(subject) > 1 else ""
            fields = {"subject": [kinds[subject[0]], value], "level": level, "pattern": pattern}
            return fields | {"tips": _hex(tips), "ends": _hex(ends), "keep": keep, "more": more}
        case 5, [key, names]:
            return {"key": key, "fields": names}
        case 6, [tips, why, target, ends, keep, more]:
            fields = {"why": WHYS[why], "target": [["membership", "replica", "grant"][target[0]], target[1].hex()]}
            return fields | {"tips": _hex(tips), "ends": _hex(ends), "keep": keep, "more": more}
        case 7, [tips, end, ends, more]:
            return {"end": end.hex(), "tips": _hex(tips), "ends": _hex(ends), "more": more}
        case 8, [partition, entries]:
            return {"partition": partition, "vector": _hex([entry[:3] for entry in entries])}
        case 9 | 12, [by, user, seen]:
            return {"by": by.hex(), "user": user, "seen": _hex(seen)}
        case 10, [by]:
            return {"by": by.hex()}
        case 11, [tips, by, user, seen, ends, more]:
            fields = {"by": by.hex(), "user": user, "seen": _hex(seen)}
            return fields | {"tips": _hex(tips), "ends": _hex(ends), "more": more}
    return {}


def _fields_of_unknown_shape(kind: int, body) -> dict:
    beginning = BEGINNINGS.get(kind)
    if beginning is None:
        return {}
    items = body[: len(beginning)] if isinstance(body, list) else None
    if not has_shape(items, beginning):
        raise ValueError("a statement of which nothing can be read")
    if kind == MEMBERSHIP:
        return {"device": items[0].hex(), "role": items[1], "user": items[2]}
    return {"tips": _hex(items[0])}


def _hex(item):
    if isinstance(item, list):
        return [_hex(part) for part in item]
    return item.hex() if isinstance(item, bytes) else item
