"""What differs between two sets of statements of one scope, found by their tips: the steps of `statementSet`.

Nothing here keeps state: what is held goes in, what is to be said comes out. Tips are (sequence, id), by issuer and
ascending; those that were told have the beginnings of ids alone.
"""

from typing import Iterable, NamedTuple

from . import rights
from .hashing import sha256, tag, u
from .statements import Statement, has_shape, to_judge

#: Steps.
BUCKETS, TIPS, WANTED = range(3)
BUCKET_COUNT, DIGEST_BYTES, ID_BYTES = 64, 8, 16
#: Issuers and tips together.
LISTING_LIMIT = 32_768
ALL = frozenset(range(BUCKET_COUNT))

Tips = dict[bytes, list[tuple[int, bytes]]]


def bucket(issuer: bytes) -> int:
    return issuer[0] >> 2


def tips(held: Iterable[Statement]) -> Tips:
    """Of each issuer the statements that are no other's `previous`."""
    held = list(held)
    passed = {item.previous for item in held}
    found: Tips = {}
    for item in held:
        if item.id not in passed:
            found.setdefault(item.issuer, []).append((item.sequence, item.id))
    return {issuer: sorted(found[issuer]) for issuer in sorted(found)}


def digests(ends: Tips) -> bytes:
    """Step 0."""
    inputs = [b""] * BUCKET_COUNT
    for issuer in sorted(ends):
        entries = (u(sequence, 8) + id for sequence, id in ends[issuer])
        inputs[bucket(issuer)] += issuer + u(len(ends[issuer]), 8) + b"".join(entries)
    zero = bytes(DIGEST_BYTES)
    return b"".join(sha256(tag("author"), item)[:DIGEST_BYTES] if item else zero for item in inputs)


class Listing(NamedTuple):
    """What a step 1 tells: the buckets that it lists, and the tips of all issuers in them."""

    buckets: frozenset[int]
    told: Tips

    @property
    def content(self) -> list:
        return [u(sum(1 << place for place in self.buckets), 8), shown(self.told)]


def shown(told: Tips) -> list:
    """As a message has it."""
    return [
        [issuer, [[sequence, id[:ID_BYTES]] for sequence, id in told[issuer]]] for issuer in sorted(told)]


def _read_told(items, buckets: frozenset[int]) -> Tips:
    told = _read_tips(items)
    if not buckets.issuperset(map(bucket, told)):
        raise ValueError("an issuer in no listed bucket")
    return told


def read_room_tips(items) -> Tips:
    """Of a room, of which what is told of an issuer does not hang on buckets. An issuer of whom nothing is told stands for
    one of whom nothing is held."""
    return _read_tips(items)


def _read_tips(items) -> Tips:
    if not has_shape(items, [(32, [(int, ID_BYTES)])]):
        raise ValueError("no tips")
    if len(items) + sum(len(ends) for _, ends in items) > LISTING_LIMIT:
        raise ValueError("too many tips")
    told = {issuer: [tuple(end) for end in ends] for issuer, ends in items}
    if list(told) != sorted(told) or len(told) < len(items):
        raise ValueError("issuers that do not ascend")
    if any(sorted(set(ends)) != ends for ends in told.values()):
        raise ValueError("tips that do not ascend")
    if any(not 1 <= sequence < 1 << 53 for ends in told.values() for sequence, _ in ends):
        raise ValueError("a number that no statement has")
    return told


def read_buckets(content) -> bytes:
    if not has_shape(content, BUCKET_COUNT * DIGEST_BYTES):
        raise ValueError("no digests of buckets")
    return content


def read_listing(mask, items) -> Listing:
    if not has_shape(mask, 8):
        raise ValueError("no set of buckets")
    bits = int.from_bytes(mask, "big")
    buckets = frozenset(place for place in ALL if bits >> place & 1)
    told = _read_told(items, buckets)
    if not all(told.values()):
        raise ValueError("an issuer without tips")
    return Listing(buckets, told)


def read_wanted(items, listing: Listing) -> Tips:
    """`listing`: what the step 1 told that this answers."""
    return _read_told(items, listing.buckets)


def tell(held: Iterable[Statement], theirs: bytes) -> Listing:
    """Step 1, upon the digests of a step 0."""
    ends = tips(held)
    ours = digests(ends)
    places = [place for place in ALL if _digest(ours, place) != _digest(theirs, place)]
    listed = frozenset(places) or ALL
    return Listing(listed, {issuer: ends[issuer] for issuer in ends if bucket(issuer) in listed})


def _digest(all: bytes, place: int) -> bytes:
    return all[place * DIGEST_BYTES :][:DIGEST_BYTES]


def wanted(held: Iterable[Statement], listing: Listing) -> Tips:
    """Step 2, upon a step 1: of whom something that was told is not known."""
    held = list(held)
    ends, known = tips(held), _at(held)
    return {
        issuer: ends.get(issuer, []) for issuer in sorted(listing.told)
        if any((issuer, *end) not in known for end in _short(listing.told[issuer]))}


def _short(ends: list) -> list:
    return [(sequence, id[:ID_BYTES]) for sequence, id in ends]


def _at(held: list[Statement]) -> dict:
    return {(item.issuer, item.sequence, item.id[:ID_BYTES]): item for item in held}


def knows_all(held: Iterable[Statement], told: Tips) -> bool:
    known = _at(list(held))
    return all((issuer, *end) in known for issuer, ends in told.items() for end in _short(ends))


def lacking_by_listing(held: Iterable[Statement], listing: Listing) -> list[Statement]:
    """What the dialer lacks by its step 1."""
    return lacking(held, listing.told, lambda issuer: bucket(issuer) in listing.buckets)


def lacking_by_wanted(held: Iterable[Statement], wanted: Tips) -> list[Statement]:
    """What the listener lacks by its step 2: of whom it does not name it holds all."""
    return lacking(held, wanted, lambda issuer: issuer in wanted)


def lacking(held: Iterable[Statement], told: Tips, is_meant) -> list[Statement]:
    """All that is not at or below a tip that was told and that is known here, in the order in which it is held."""
    held = list(held)
    known, by_id, theirs = _at(held), {item.id: item for item in held}, set()
    for issuer, ends in told.items():
        for end in _short(ends):
            item = known.get((issuer, *end))
            while item is not None and item.id not in theirs:
                theirs.add(item.id)
                item = by_id.get(item.previous)
    return [item for item in held if is_meant(item.issuer) and item.id not in theirs]


def in_order(held: Iterable[Statement], root: bytes) -> list[Statement]:
    """Each behind what it goes on from, what its tips name, and what makes its issuer a member. What nothing leads to is
    left out. Takes statements of the fleet's scope."""
    return _Order(root.hex()).of(list(held))


class _Order:
    def __init__(self, root: str):
        self.done, self.devices, self.makers = set(), {root}, {root}
        self.root = root
        self.waiting: dict[tuple, list] = {}
        self.memberships: dict[str, list[rights.Statement]] = {}
        self.out: list[Statement] = []

    def of(self, held: list[Statement]) -> list[Statement]:
        ready = [(item, to_judge(item)) for item in reversed(held)]
        while ready:
            item, judged = ready.pop()
            need = self.need(judged)
            if need:
                self.waiting.setdefault(need, []).append((item, judged))
            else:
                met = self.emit(item, judged)
                ready += [each for need in reversed(met) for each in reversed(self.waiting.pop(need, []))]
        return self.out

    def need(self, s: rights.Statement) -> tuple | None:
        """The first of what has to come before it and did not yet."""
        ends = [id for scope, _, _, id in s.tips if scope == rights.FLEET]
        if s.issuer not in self.devices:
            return "device", s.issuer
        if ends and s.issuer not in self.makers:
            return "maker", s.issuer
        return next((("id", id) for id in [s.previous, *ends] if id is not None and id not in self.done), None)

    def emit(self, item: Statement, s: rights.Statement) -> list[tuple]:
        """What it meets of the needs."""
        self.out.append(item)
        self.done.add(s.id)
        met = [("id", s.id)]
        if s.kind == "membership":
            self.memberships.setdefault(s.issuer, []).append(s)
            if s.issuer in self.makers:
                met += self.admit(s)
        return met

    def admit(self, m: rights.Statement) -> list[tuple]:
        device = m.body["device"]
        met = [("device", device)]
        self.devices.add(device)
        if m.issuer == self.root and m.body["role"] == "admin" and device not in self.makers:
            self.makers.add(device)
            met.append(("maker", device))
            for other in self.memberships.get(device, []):
                met += self.admit(other)
        return met
