"""The operations of a local write: the difference between a version read and a new body (RULES.md, "Positions" to
"Alignment")."""

import random
from dataclasses import replace

from . import values
from .merge import Shown, element_key, is_int, same, wrapped
from .payloads import (
    Element, INCREMENT, LIST_INSERT, LIST_REMOVE, Operation, REMOVE, SET, SET_ADD, SET_REMOVE)

LONGEST_POSITION = 512


# Positions (M13)


def place(left: bytes | None, right: bytes | None, draw=random.randrange) -> bytes:
    """A position between two elements' keys, also when something follows it."""
    d = 1
    while True:
        floor = int.from_bytes((left or b"")[:d].ljust(d, b"\0"), "big")
        ceiling = 256**d if right is None else int.from_bytes(right[:d].ljust(d, b"\0"), "big")
        room = ceiling - floor - 1
        if room >= 1 << 16:
            break
        d += 1
    drawn = draw(room if left is None and right is None else 1 << 10)
    is_upwards = right is None or left is not None and len(left) >= len(right)
    return (floor + 1 + drawn if is_upwards else ceiling - 1 - drawn).to_bytes(d, "big")


def places(left: bytes | None, right: bytes | None, count: int) -> list[bytes]:
    """For so many new elements in one gap: what one write puts in stays together."""
    start = place(left, right)
    if count == 1:
        return [start]
    return [start + ((i + 1) * (65_536 // (count + 1))).to_bytes(2, "big") for i in range(count)]


# Alignment (M15)


def likeness(one, other, key: str | None) -> int:
    if same(one, other):
        return 1 << 32
    if not isinstance(one, dict) or not isinstance(other, dict):
        return 0
    equal = sum(1 for name in one if name in other and same(one[name], other[name]))
    if key is not None:
        return (1 << 16) + equal if key in one and key in other and same(one[key], other[key]) else 0
    return equal if 2 * equal >= len(one.keys() | other.keys()) else 0


def align(old: list, new: list, key: str | None) -> list[tuple[int, int]]:
    """Pairs of places in both, in order."""
    start = 0
    while start < min(len(old), len(new)) and same(old[start], new[start]):
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and same(old[-1 - end], new[-1 - end]):
        end += 1
    n, m = len(old) - start - end, len(new) - start - end
    pairs = [(i, i) for i in range(start)]
    if n * m <= 1_000_000:
        middle = _best_pairs(old[start : start + n], new[start : start + m], key)
        pairs += [(start + i, start + j) for i, j in middle]
    return pairs + [(start + n + i, start + m + i) for i in range(end)]


def _best_pairs(old: list, new: list, key: str | None) -> list[tuple[int, int]]:
    alike = [[likeness(one, other, key) for other in new] for one in old]
    # The greatest sum that is left from each place on.
    best = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            paired = alike[i][j] + best[i + 1][j + 1] if alike[i][j] else 0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < len(old) and j < len(new):
        if alike[i][j] and best[i][j] == alike[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


# Differences (M14)


class Hints:
    """(path with * for any element, kind, the key by which elements are known or None)."""

    def __init__(self, hints: list = ()):
        self.hints = hints

    def at(self, path: tuple) -> tuple[str | None, str | None]:
        steps = [part if isinstance(part, str) else None for part in path]
        for pattern, kind, key in self.hints:
            if [None if part == "*" else part for part in pattern] == steps:
                return kind, key
        return None, None


def difference(read: Shown, now: Shown, new: dict, hints: Hints, erase: bool) -> list[Operation]:
    """Of a whole document: what is read, what is shown now, and what it should be."""
    return Writer(hints, erase).diff((), read, now, new)


class Writer:
    def __init__(self, hints: Hints, erase: bool):
        self.hints, self.erase = hints, erase

    def diff(self, path: tuple, read: Shown | None, now: Shown | None, new) -> list[Operation]:
        if read is not None and same(read.value, new):
            return []
        kind, key = self.hints.at(path)
        if kind is None and now is not None and now.kind in ("list", "set") and now.children:
            kind = now.kind
        if isinstance(new, dict):
            return opened("map", path, read, now, new, self.fields(path, read, now, new))
        if isinstance(new, list) and kind == "list":
            return opened("list", path, read, now, new, self.items(path, read, now, new, key))
        if isinstance(new, list) and kind == "set":
            return opened("set", path, read, now, new, members(path, read, now, new))
        if kind == "counter" and now is not None and now.kind == "number" and read is not None and all(
                map(is_int, (read.value, now.base, new))):
            return [Operation(INCREMENT, list(path), wrapped(new - read.value))]
        return [Operation(SET, list(path), new)]

    def fields(self, path: tuple, read: Shown | None, now: Shown | None, new: dict) -> list[Operation]:
        old, present = children(read, "map"), children(now, "map")
        gone = [name for name in sorted(old, key=str.encode) if self.erase and name not in new and name in present]
        operations = [Operation(REMOVE, [*path, name]) for name in gone]
        for name in sorted(new, key=str.encode):
            operations += self.diff((*path, name), old.get(name), present.get(name), new[name])
        return operations

    def items(self, path: tuple, read: Shown | None, now: Shown | None, new: list, key: str | None) -> list[Operation]:
        present = children(now, "list")
        old = list(children(read, "list").items()) if now is not None and now.kind == "list" else []
        pairs = align([item.value for _, item in old], new, key)
        paired = {i for i, _ in pairs}
        operations = [
            Operation(LIST_REMOVE, [*path, element])
            for i, (element, _) in enumerate(old) if i not in paired and element in present]
        # What stands at each place of the new list: the old element, or None where one is inserted.
        places_of_new: list = [None] * len(new)
        for i, j in pairs:
            element, item = old[i]
            if element in present or same(item.value, new[j]):
                places_of_new[j] = element
        inserted = _positions(places_of_new)
        if inserted is None:
            removals = [Operation(LIST_REMOVE, [*path, element]) for element, _ in old if element in present]
            positions = places(None, None, len(new))
            return removals + [op for j, item in enumerate(new) for op in self.insertion(path, item, positions[j])]
        before = dict(old)
        for j, item in enumerate(new):
            element = places_of_new[j]
            if element is None:
                operations += self.insertion(path, item, inserted[j])
            elif element in present:
                operations += self.diff((*path, element), before[element], present[element], item)
        return operations

    def insertion(self, path: tuple, item, position: bytes) -> list[Operation]:
        """A set of the element becomes the insertion; what is inside follows."""
        first, *others = self.diff((*path, Element(position)), None, None, item)
        return [replace(first, kind=LIST_INSERT, path=list(path), position=position), *others]


def children(shown: Shown | None, kind: str) -> dict:
    return shown.children if shown is not None and shown.kind == kind else {}


def members(path: tuple, read: Shown | None, now: Shown | None, new: list) -> list[Operation]:
    present = children(now, "set")
    old = children(read, "set") if now is not None and now.kind == "set" else {}
    wanted = {values.canonical(item): item for item in new}
    removed = [item.value for member, item in old.items() if member.content not in wanted and member in present]
    known = {member.content for member in old}
    added = [wanted[content] for content in sorted(wanted) if content not in known]
    return [Operation(SET_REMOVE, list(path), item) for item in removed] + [
        Operation(SET_ADD, list(path), item) for item in added]


def opened(kind: str, path: tuple, read: Shown | None, now: Shown | None, new, below: list[Operation]) -> list[Operation]:
    """With the marker before it, where what is written inside would not show the container by itself."""
    marker = Operation(SET, list(path), {} if kind == "map" else [])
    if not new and now is not None and now.is_implied and len(below) == len(now.children):
        return [marker]
    if _is_such(kind, now) or not path or _is_such(kind, read) and not below:
        return below
    return [marker, *below]


def _is_such(kind: str, shown: Shown | None) -> bool:
    return shown is not None and (
        shown.kind == kind or kind == "set" and shown.kind == "list" and not shown.children)


def _positions(elements: list) -> dict[int, bytes] | None:
    """For the places where there is None; None where any position would be too long."""
    found, start = {}, None
    for j, element in enumerate([*elements, Element(b"")]):
        if element is None:
            start = j if start is None else start
        elif start is not None:
            left = element_key(elements[start - 1]) if start else None
            right = element_key(elements[j]) if j < len(elements) else None
            found |= zip(range(start, j), places(left, right, j - start))
            start = None
    return None if any(len(position) > LONGEST_POSITION for position in found.values()) else found
