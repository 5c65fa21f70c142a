"""Documents and conflict inbox, computed anew from the accepted changes of one partition (RULES.md, "Merging").

Paths are tuples of keys (texts), `payloads.Element` with the dot of the change that inserted it, and, last only, `Member`.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from . import values
from .hashing import u
from .payloads import (
    CREATE, DELETE, Element, INCREMENT, LIST_INSERT, LIST_REMOVE, REMOVE, SET, SET_ADD, SET_REMOVE, Write)

#: Kinds of an entry (M3); those of operations are in `payloads`.
ENTRY = {
    SET: "set", REMOVE: "remove", INCREMENT: "increment", LIST_INSERT: "set", LIST_REMOVE: "remove",
    SET_ADD: "add", SET_REMOVE: "drop",
}  # fmt: skip


class Member(NamedTuple):
    """A member of a set, by its canonical bytes."""

    content: bytes


@dataclass(frozen=True)
class Change:
    dot: tuple[bytes, int]
    hlc: int
    #: How far it sees each other replica.
    context: dict[bytes, int]
    writes: list[Write]

    def sees(self, dot: tuple[bytes, int]) -> bool:
        replica, sequence = dot
        if replica == self.dot[0]:
            return sequence < self.dot[1]
        return sequence <= self.context.get(replica, 0)


@dataclass(frozen=True, eq=False)
class Entry:
    """What one operation does, or a create or delete as such."""

    change: Change
    generation: int
    kind: str
    path: tuple = ()
    value: object = None

    @property
    def stamp(self):
        return self.change.hlc, *self.change.dot

    @property
    def order(self):
        return self.generation, path_bytes(self.path), self.change.dot


# Values and paths (M1 to M3)


def same(one, other) -> bool:
    return values.canonical(one) == values.canonical(other)


def is_int(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value) -> bool:
    return is_int(value) or isinstance(value, float)


def is_marker(value) -> bool:
    return isinstance(value, (dict, list)) and not value


def wrapped(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def element_key(element: Element) -> bytes:
    """Lists are ordered by these."""
    replica, sequence = element.dot
    return element.position + replica + u(sequence, 8) + b"\x80"


def path_bytes(path: tuple) -> bytes:
    return b"".join(map(_segment_bytes, path))


def _segment_bytes(segment) -> bytes:
    match segment:
        case Element():
            return b"\x0e" + values.escaped(element_key(segment))
        case Member():
            return b"\x0f" + segment.content
        case _:
            return values.canonical(segment)


# Entries and groups (M3, M17)


class Groups:
    """An original's dot with those of its re-issues, in order; of them the accepted ones and the original are live."""

    def __init__(self, groups: list, accepted: set):
        self.live, self.effective = {}, {}
        for original, *reissues in groups:
            live = [original] + [dot for dot in reissues if dot in accepted]
            effective = next((dot for dot in live if dot in accepted), original)
            for dot in live:
                self.live[dot], self.effective[dot] = live, effective

    def has_entries(self, dot) -> bool:
        return self.effective.get(dot, dot) == dot

    def is_seen(self, change: Change, dot) -> bool:
        """Whoever sees one of the live has seen all of them."""
        return any(change.sees(one) for one in self.live.get(dot, [dot]))

    def element(self, element: Element) -> Element:
        return replace(element, dot=self.effective.get(element.dot, element.dot))


def entries_of(change: Change, write: Write, groups: Groups) -> list[Entry]:
    found = []
    if write.kind in (CREATE, DELETE):
        found.append(Entry(change, write.generation, "create" if write.kind == CREATE else "delete"))
    for operation in write.operations:
        path = list(operation.path)
        if operation.kind == LIST_INSERT:
            path.append(Element(operation.position))
        path = [
            groups.element(replace(part, dot=part.dot or change.dot)) if isinstance(part, Element) else part
            for part in path]
        if operation.kind in (SET_ADD, SET_REMOVE):
            path.append(Member(values.canonical(operation.value)))
        found.append(Entry(change, write.generation, ENTRY[operation.kind], tuple(path), operation.value))
    return found


# Domination (M5, M6)


def overrides(o: Entry, e: Entry) -> bool:
    if o.kind in ("create", "delete"):
        return o.generation > e.generation
    if o.generation < e.generation:
        return False
    if o.kind == "drop":
        return o.path == e.path
    is_same_generation = o.generation == e.generation
    if o.path == e.path:
        adds_up = e.kind == "increment" or e.kind == "set" and is_number(e.value)
        return not (is_same_generation and o.kind == "increment" and adds_up)
    if e.path[: len(o.path)] == o.path:
        return True
    if o.path[: len(e.path)] == e.path:
        if o.kind == "remove":
            return False
        # What is written inside leaves the marker that it stands on.
        marker = {} if isinstance(o.path[len(e.path)], str) else []
        return not (is_same_generation and e.kind == "set" and e.value == marker)
    return False


def survivors(entries: list[Entry], groups: Groups) -> list[Entry]:
    """Whether one that dominates is dominated itself does not matter."""
    return [
        e for e in entries
        if e.kind not in ("create", "delete", "drop") and not any(
            o.change is not e.change and overrides(o, e) and groups.is_seen(o.change, e.change.dot) for o in entries)]


# What is shown (M7 to M10)

NOTHING_YET = (-1,)


@dataclass
class Shown:
    """What a path shows: `kind` is map, list, set, number or value."""

    kind: str
    stamp: tuple
    value: object
    #: What it rests on, without increments and without what is inside.
    base: object
    #: What is inside of a map, list or set, in order, by segment.
    children: dict = field(default_factory=dict)
    #: A container without a marker, or a number without a base.
    is_implied: bool = False

    def at(self, path: tuple) -> "Shown | None":
        place = self
        for segment in path:
            place = place.children.get(segment)
            if place is None:
                return None
        return place


@dataclass
class Node:
    """The entries at one path, and what is below."""

    entries: list[Entry] = field(default_factory=list)
    below: dict = field(default_factory=dict)

    def put(self, entry: Entry):
        node = self
        for segment in entry.path:
            node = node.below.setdefault(segment, Node())
        node.entries.append(entry)


def shown(node: Node, is_root: bool = False) -> Shown | None:
    winner = max((e for e in node.entries if e.kind != "increment"), key=lambda e: e.stamp, default=None)
    stamp = winner.stamp if winner else NOTHING_YET
    inside = {segment: child for segment, child in ((s, shown(n)) for s, n in node.below.items()) if child}
    groups = {
        "number": [e for e in node.entries if e.kind == "increment"],
        "set": {s: c for s, c in inside.items() if isinstance(s, Member)},
        "list": {s: c for s, c in inside.items() if isinstance(s, Element)},
        "map": {s: c for s, c in inside.items() if isinstance(s, str)},
    }

    def latest(kind: str) -> tuple:
        group = groups[kind]
        return max((item.stamp for item in (group if kind == "number" else group.values())), default=NOTHING_YET)

    def newest(*kinds: str) -> str | None:
        """Of those that are not empty; among equal ones the first."""
        return max((kind for kind in kinds if groups[kind]), key=latest, default=None)

    if is_root:
        kind = "map"
    elif winner is None:
        kind = newest("number", "set", "list", "map")
    elif winner.kind == "remove":
        kind = None
    elif winner.kind == "set" and is_marker(winner.value):
        kind = "map" if winner.value == {} else newest("set", "list") or "list"
    elif winner.kind == "set" and is_number(winner.value):
        kind = "number"
    else:
        return Shown("value", stamp, winner.value, winner.value)
    if kind is None:
        return None
    stamp = max(stamp, latest(kind))
    is_implied = winner is None and not is_root
    if kind == "number":
        base = 0 if winner is None else winner.value
        return Shown(kind, stamp, _sum(base, groups[kind]), base, {}, is_implied)
    children = dict(sorted(groups[kind].items(), key=lambda item: _segment_bytes(item[0])))
    if kind == "map":
        return Shown(kind, stamp, {s: c.value for s, c in children.items()}, {}, children, is_implied)
    return Shown(kind, stamp, [c.value for c in children.values()], [], children, is_implied)


def _sum(base, increments: list[Entry]):
    total = wrapped(sum(e.value for e in increments))
    if is_int(base):
        return wrapped(base + total)
    return base + total if total else base


# Documents


@dataclass
class Document:
    collection: str
    id: object
    generation: int
    survivors: list[Entry]
    #: None where it is deleted.
    shown: Shown | None

    @property
    def body(self) -> dict | None:
        return self.shown and self.shown.value

    @property
    def order(self):
        return self.collection.encode(), values.canonical(self.id)


def documents(changes: list[Change], groups: list = ()) -> list[Document]:
    """All that an accepted change touches, in order; `groups` are lists of dots, the original's first."""
    known = Groups(list(groups), {change.dot for change in changes})
    entries, names = {}, {}
    for change in changes:
        if known.has_entries(change.dot):
            for write in change.writes:
                names[write.order] = write.collection, write.id
                entries.setdefault(write.order, []).extend(entries_of(change, write, known))
    found = []
    for order in sorted(entries):
        generation = max(e.generation for e in entries[order])
        left = survivors(entries[order], known)
        tree = Node()
        for e in left:
            if e.generation == generation:
                tree.put(e)
        is_alive = generation % 2 == 1
        found.append(Document(*names[order], generation, left, shown(tree, is_root=True) if is_alive else None))
    return found


# The conflict inbox (M11)


@dataclass(frozen=True)
class Item:
    entry: Entry
    #: Of increments their sum.
    value: object

    @property
    def is_marker(self) -> bool:
        return self.entry.kind == "set" and is_marker(self.value)

    @property
    def path(self) -> tuple:
        """A member is told with the path of its set."""
        return self.entry.path[:-1] if self.entry.kind == "add" else self.entry.path


def _is_passed_over(e: Entry, document: Document) -> bool:
    at = document.shown.at(e.path) if document.shown else None
    match e.kind:
        case "set":
            return at is not None and same(at.base, e.value)
        case "add":
            return at is not None
        case "remove":
            return at is None
        case "increment":
            return e.generation == document.generation and at is not None and at.kind == "number"


def inbox(document: Document) -> list[Item]:
    items, sums = [], {}
    for e in document.survivors:
        if _is_passed_over(e, document):
            continue
        if e.kind == "increment":
            # One item for what one replica added at one path in one generation.
            sums.setdefault((e.generation, e.path, e.change.dot[0]), []).append(e)
        else:
            items.append(Item(e, e.value))
    for increments in sums.values():
        total = wrapped(sum(e.value for e in increments))
        if total:
            items.append(Item(max(increments, key=lambda e: e.change.dot[1]), total))
    # A marker says nothing where something listed lies below it; the deepest are settled first.
    for item in sorted(items, key=lambda item: -len(item.entry.path)):
        path = item.entry.path
        if item.is_marker and any(
                len(other.entry.path) > len(path) and other.entry.path[: len(path)] == path for other in items):
            items.remove(item)
    return sorted(items, key=lambda item: item.entry.order)
