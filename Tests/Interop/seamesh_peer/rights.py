"""What the statements say: which belong to the set, who counts, levels, bounds and floors (RULES.md, "Judging").

Everything here is text: ids and hashes in lower-case hexadecimal, devices and replicas under whatever name they have.
Nothing is hashed and no signature is checked; `statements.to_judge` makes these statements out of signed ones.
"""

from dataclasses import dataclass
from math import inf
from typing import NamedTuple

FLEET = ""
NONE, CARRY, READ, WRITE, MANAGE = range(5)
#: How many statements of one device in one scope are in the set whatever else is there (C26).
ALLOWANCE = 1_024
OWN_FIELDS = {"userName", "displayName", "avatarImage", "lastSeenAt", "presence"}

_LISTS = {"ends", "tips", "more"}
#: The fields that the rules read. A body with any other is unread, and so is a kind that is not here (C27).
FIELDS = {
    "genesis": set(),
    "membership": {"device", "user", "role", "agency"},
    "replica": {"replica", "membership"},
    "rule": {"key", "fields"},
    "grant": {"subject", "pattern", "level", "keep"} | _LISTS,
    "end": {"why", "target", "keep"} | _LISTS,
    "raise": {"end"} | _LISTS,
    "baseline": {"partition", "vector"},
    "room": {"by"},
    "invite": {"by", "user", "seen"},
    "remove": {"by", "user", "seen"} | _LISTS,
    "leave": {"by", "user", "seen"},
}
ROOM_KINDS = {"room", "invite", "remove", "leave"}
KINDS_WITH_TIPS = {"grant", "end", "raise", "remove"}


@dataclass(frozen=True, eq=False)
class Statement:
    id: str
    kind: str
    issuer: str
    seq: int
    previous: str | None
    scope: str
    body: dict
    #: Of a replica: the nonce gives its id for the issuer (C2).
    is_certified: bool = False

    @property
    def is_unread(self) -> bool:
        return self.kind not in FIELDS or not self.body.keys() <= FIELDS[self.kind]

    @property
    def order(self):
        return self.seq, self.id

    @property
    def tips(self) -> list:
        """(scope, device, number, id) of all tips with a number above 0; those with 0 have no line."""
        groups = self.body.get("tips", []) if self.kind in KINDS_WITH_TIPS else []
        return [(scope, *tip) for scope, tips in groups for tip in tips if tip[1] > 0]


# Positions: (number, hash). Equal numbers are on branches of which neither is more; the lowest hash stands for both.

ZERO_HASH = "0" * 32
ZERO, UNBOUNDED = (0, ZERO_HASH), (inf, ZERO_HASH)


def least(positions) -> tuple:
    return min(positions, default=UNBOUNDED)


def greatest(positions) -> tuple:
    return min(positions, key=lambda position: (-position[0], position[1]), default=ZERO)


def higher(base: tuple, other: tuple) -> tuple:
    """Whichever has the higher number; `base` where both have the same."""
    return other if other[0] > base[0] else base


# Names and patterns (C16, C19)


def is_name(name: str) -> bool:
    """Well-formed as the name of a partition."""
    return 1 <= len(name.encode()) <= 255 and not any(letter < "\x20" or letter == "\x7f" for letter in name)


def key_and_value(name: str) -> tuple:
    key, _, value = name.partition("=")
    return (key, value) if name.count("=") == 1 and key and value else (None, None)


def reserved_part(name: str) -> str:
    key, equals, _ = name.partition("=")
    is_reserved = equals and (key in ("user", "all-users", "conversation") or key.startswith("_"))
    return key + "=" if is_reserved else ""


def begins_or_equals(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def matches(pattern: str, name: str) -> bool:
    return begins_or_equals(pattern, name) and pattern.startswith(reserved_part(name))


def covers(pattern: str, other: str) -> bool:
    return matches(pattern, other.removesuffix("*")) and (pattern.endswith("*") or not other.endswith("*"))


def reaches(subject: list, membership: Statement) -> bool:
    kind, value = subject
    # An absent field equals nothing, not even an empty text.
    return kind == "*" or membership.body.get(kind) == value


# The set (C26)


def line(statements: dict, id: str) -> set:
    """The statement with this id and all its ancestors, as ids; nothing where it is not among these."""
    found = set()
    while id in statements:
        found.add(id)
        id = statements[id].previous
    return found


def _is_linked(s: Statement, linked: dict, makers: set, devices: set) -> bool:
    if s.issuer not in devices:
        return False
    if s.previous is None:
        follows = s.seq == 1
    else:
        p = linked.get(s.previous)
        follows = p is not None and (p.issuer, p.scope, p.seq + 1) == (s.issuer, s.scope, s.seq)
    fleet_tips = [tip[1:] for tip in s.tips if tip[0] == FLEET]
    return follows and all(
        s.issuer in makers and id in linked
        and (linked[id].issuer, linked[id].seq, linked[id].scope) == (device, number, FLEET)
        for device, number, id in fleet_tips
    )


def find_set(seen: list[Statement], root: str, allowance: int = ALLOWANCE) -> tuple[dict, set]:
    """The set, by id, and the scopes that are full."""
    linked, makers = {}, {root}
    devices = set(makers)
    waiting = {s.id: s for s in seen}
    before = None
    while before != (len(linked), len(makers), len(devices)):
        before = len(linked), len(makers), len(devices)
        for s in list(waiting.values()):
            if _is_linked(s, linked, makers, devices):
                linked[s.id] = waiting.pop(s.id)
        for m in linked.values():
            if m.kind == "membership" and m.scope == FLEET and m.issuer in makers:
                devices.add(m.body["device"])
                if m.issuer == root and m.body["role"] == "admin":
                    makers.add(m.body["device"])

    kept = {s.id for s in linked.values() if s.kind == "room" and s.scope == f"conversation={s.id}"}
    for s in linked.values():
        if s.issuer in makers:
            for _, _, _, id in s.tips:
                kept |= line(linked, id)
    allowances = {}
    for s in sorted(linked.values(), key=lambda s: s.order):
        if s.issuer not in makers:
            allowances.setdefault((s.issuer, s.scope), []).append(s)
    full = {scope for (_, scope), mine in allowances.items() if len(mine) >= allowance}
    dropped = {s.id for mine in allowances.values() for s in mine[allowance:]} - kept
    return {id: s for id, s in linked.items() if id not in dropped}, full


class Source(NamedTuple):
    """Something that lets a member write; `fields` is None where it allows any (C17, C18)."""

    fields: set | None
    limit: tuple


class Bound(NamedTuple):
    """How far a chain counts, and what is said of what lies above (C13, C14)."""

    base: tuple
    allowed: tuple
    free: tuple
    bound: tuple
    branch: tuple
    why: str
    lack: str
    sources: list[Source]
    user: str | None


class Rights:
    """Everything that follows from the statements seen."""

    def __init__(self, seen: list[Statement], root: str, allowance: int = ALLOWANCE):
        self.root = root
        self.set, self.full = find_set(seen, root, allowance)
        self._said = {}
        for s in self.set.values():
            fits = (s.scope != FLEET) == (s.kind in ROOM_KINDS)
            if not s.is_unread and fits and not s.body.get("more"):
                self._said.setdefault(s.kind, []).append(s)
        self._known_lists, self._known_rooms, self._known_shaken = {}, {}, {}
        self._find_admins()
        self._find_members()
        self._find_replicas()
        self._hear_admins()
        self._hear_managers()

    def said(self, kind: str, scope: str | None = None) -> list[Statement]:
        return [s for s in self._said.get(kind, []) if scope in (None, s.scope)]

    # What narrowings and raises say (C11, C12)

    def lists(self, e: Statement) -> tuple[dict, dict, list]:
        """ends by partition, tips by scope, and keep, gathered from all parts of it."""
        if e.id not in self._known_lists:
            ends, tips, keep, part = {}, {}, [], e
            while True:
                for partition, entries in part.body.get("ends", []):
                    ends.setdefault(partition, []).extend(entries)
                for scope, group in part.body.get("tips", []):
                    tips.setdefault(scope, []).extend(group)
                keep += part.body.get("keep", [])
                part = self.set.get(part.previous)
                if part is None or not part.body.get("more") or _subject_matter(part) != _subject_matter(e):
                    break
            self._known_lists[e.id] = ends, tips, keep
        return self._known_lists[e.id]

    def entry(self, e: Statement, partition: str, replica: str) -> tuple | None:
        listed = [(number, hash) for r, number, hash in self.lists(e)[0].get(partition, []) if r == replica]
        return greatest(listed) if listed else None

    def listed(self, e: Statement, scope: str, device: str) -> set | None:
        tips = [tip for tip in self.lists(e)[1].get(scope, []) if tip[0] == device]
        if not tips:
            return None
        return set().union(*(line(self.set, id) for _, number, id in tips if number > 0))

    def spares(self, e: Statement, name: str) -> bool:
        if e.kind == "end" and e.body["target"][0] != "grant" and e.body["why"] != "compromised":
            return True
        ends, tips, keep = self.lists(e)
        return name not in ends and name not in tips and any(begins_or_equals(pattern, name) for pattern in keep)

    def word(self, e: Statement, partition: str, replica: str) -> tuple:
        entry = self.entry(e, partition, replica)
        if entry is not None:
            return entry
        return UNBOUNDED if self.spares(e, partition) else ZERO

    def leaves(self, e: Statement, s: Statement, raises: list[Statement]) -> bool:
        """Does it let the statement stand?"""
        if any(s.id in (self.listed(x, s.scope, s.issuer) or ()) for x in raises):
            return True
        listed = self.listed(e, s.scope, s.issuer)
        if listed is not None:
            return s.id in listed
        return s.scope != FLEET and self.spares(e, s.scope)

    # Who counts (C13, C15)

    def _count(self, m: Statement, hears_end, hears_raise) -> set:
        """Which statements of its device the membership carries, as ids."""
        count, device = set(self.set), m.body["device"]
        for e in self.said("end"):
            listed = self.listed(e, FLEET, device)
            if e.body["target"] == ["membership", m.id] and listed is not None and hears_end(e):
                for x in self.said("raise"):
                    if x.body["end"] == e.id and hears_raise(x):
                        listed = listed | (self.listed(x, FLEET, device) or set())
                count &= listed
        return count

    def _find_admins(self):
        self.admins = {
            m.id: m for m in self.said("membership") if m.issuer == self.root and m.body["role"] == "admin"}
        by_root = {m.id: self._count(m, self._is_roots, self._is_roots) for m in self.admins.values()}
        self._peers = {
            s.id for s in self.set.values()
            if any(m.body["device"] == s.issuer and s.id in by_root[m.id] for m in self.admins.values())}
        self.count = {m.id: self._count(m, lambda e: self._may_end_admin(e, m), self._is_roots) for m in self.admins.values()}
        self._by_admins = {
            s.id for s in self.set.values()
            if s.issuer == self.root
            or any(m.body["device"] == s.issuer and s.id in self.count[m.id] for m in self.admins.values())}

    def _is_roots(self, s: Statement) -> bool:
        return s.issuer == self.root

    def _may_end_admin(self, e: Statement, m: Statement) -> bool:
        """By root, or by another admin: of two who end one another neither can be shown to have been first."""
        return self._is_roots(e) or e.id in self._peers and e.issuer != m.body["device"]

    def _is_admins(self, s: Statement) -> bool:
        return s.id in self._by_admins

    def _find_members(self):
        others = [m for m in self.said("membership") if m.body["role"] != "admin" and self._is_admins(m)]
        strange = [
            m for m in self.set.values()
            if m.kind == "membership" and m.scope == FLEET and m.is_unread and self._is_admins(m)]
        self.members = self.admins | {m.id: m for m in others}
        self.strange = {m.id: m for m in strange}
        for m in others + strange:
            self.count[m.id] = self._count(m, self._is_admins, self._is_admins)

    def _find_replicas(self):
        """The declaration that counts, by replica (C2)."""
        self.replicas = {}
        for d in sorted(self.said("replica"), key=lambda d: d.order):
            m = (self.members | self.strange).get(d.body["membership"])
            if m and d.is_certified and m.body["device"] == d.issuer and d.id in self.count[m.id]:
                self.replicas.setdefault(d.body["replica"], d)

    def membership_of(self, replica: str) -> Statement | None:
        d = self.replicas.get(replica)
        return d and self.set[d.body["membership"]]

    def device_of(self, replica: str) -> str | None:
        """Whose it is, whether or not its declaration counts."""
        declared = (d for d in self.said("replica") if d.is_certified and d.body["replica"] == replica)
        return next((d.issuer for d in declared), None)

    def _hear_admins(self):
        self.grants = [g for g in self.said("grant") if self._is_admins(g)]
        self.ends = {e.id: e for e in self.said("end") if self._admins_end_counts(e)}
        #: Ends that count as a manager's.
        self.managers_ends = set()
        self.raises = {}
        for x in self.said("raise"):
            if self._is_admins(x):
                self.raises.setdefault(x.body["end"], []).append(x)

    def _admins_end_counts(self, e: Statement) -> bool:
        kind, id = e.body["target"]
        if kind == "membership":
            # An end that is silent on the device's own statements says nothing at all.
            m = self.set.get(id)
            if m is None or self.listed(e, FLEET, m.body.get("device")) is None:
                return False
            if id in self.admins:
                return self._may_end_admin(e, m)
        return self._is_admins(e)

    def raises_of(self, e: Statement) -> list[Statement]:
        return self.raises.get(e.id, [])

    def _hear_managers(self):
        # All by what the admins' word left, then added.
        self.grants += [
            g for g in self.said("grant")
            if not self._is_admins(g) and g.body["level"] < MANAGE and self._is_managers(g, [g.body["pattern"]])]
        for e in self.said("end"):
            if e.id not in self.ends and self._managers_end_counts(e):
                self.ends[e.id] = e
        for x in sorted(self.said("raise"), key=lambda x: x.id):
            if not self._is_admins(x) and self._is_managers(x, self.lists(x)[0]) and self._may_be_raised(x.body["end"]):
                self.raises.setdefault(x.body["end"], []).append(x)
        self.rules = [r for r in self.said("rule") if self._is_admins(r)]
        self.baselines = [
            b for b in self.said("baseline") if self._is_admins(b) or self._is_managers(b, [b.body["partition"]])]

    def _is_managers(self, s: Statement, names) -> bool:
        """Is it a manager's for all of these names or patterns?"""
        members = [m for m in self.members.values() if m.body["device"] == s.issuer and s.id in self.count[m.id]]
        manage = [g for g in self.grants if g.body["level"] == MANAGE]
        return bool(names) and "" not in names and any(
            reaches(g.body["subject"], m)
            and all(covers(g.body["pattern"], name) for name in names)
            and all(self.leaves(c, s, self.raises_of(c)) for c in self.closers(g, MANAGE))
            for m in members for g in manage)

    def _managers_end_counts(self, e: Statement) -> bool:
        kind, id = e.body["target"]
        ends, _, _ = self.lists(e)
        if kind == "replica" and id in self.replicas:
            m = self.membership_of(id)
            if self.replicas[id].issuer == e.issuer and e.body["why"] == "close":
                entries = [entry for group in ends.values() for entry in group]
                return e.id in self.count[m.id] and all(replica == id for replica, _, _ in entries)
            if m.id not in self.admins and self._is_managers(e, ends):
                self.managers_ends.add(e.id)
                return True
        if kind == "grant":
            g = next((g for g in self.grants if g.id == id), None)
            return g is not None and g.body["level"] < MANAGE and self._is_managers(e, [g.body["pattern"]])
        return False

    def _may_be_raised(self, id: str) -> bool:
        """By a manager, who decides nothing about memberships."""
        e = self.set.get(id)
        return e is not None and (e.kind == "grant" or e.kind == "end" and e.body["target"][0] != "membership")

    def raised(self, e: Statement, partition: str, replica: str) -> tuple:
        """What an end finally says of a chain (C14)."""
        is_silent = e.id in self.managers_ends and partition not in self.lists(e)[0]
        word = UNBOUNDED if is_silent else self.word(e, partition, replica)
        entries = (self.entry(x, partition, replica) for x in self.raises_of(e))
        return greatest([word, *(entry for entry in entries if entry is not None)])

    def is_compromised(self, replica: str) -> bool:
        """Whether an end on a membership of its author says so."""
        m = self.membership_of(replica)
        mine = {o.id for o in self.members.values() if m and o.body["device"] == m.body["device"]}
        return any(
            e.body["why"] == "compromised" and e.body["target"][0] == "membership" and e.body["target"][1] in mine
            for e in self.ends.values())

    # Bounds (C13, C14, C17, C18)

    def closers(self, g: Statement, level: int) -> list[Statement]:
        closers = [e for e in self.ends.values() if e.body["target"] == ["grant", g.id]]
        if g.kind == "grant":
            lower = sorted(_lower(self.grants, g, level), key=lambda other: other.order)
            closers += lower[:1]
        return closers

    def limit(self, g: Statement, partition: str, replica: str) -> tuple:
        return least(self.raised(c, partition, replica) for c in self.closers(g, WRITE))

    def sources(self, m: Statement, partition: str, replica: str) -> list[Source]:
        """Everything ever issued that lets the member write there, with its limit for this chain."""
        if m.id not in self.members:
            return []
        key, value = key_and_value(partition)
        user, agency = m.body.get("user"), m.body.get("agency")
        found = [
            Source(None, self.limit(g, partition, replica)) for g in self.grants
            if g.body["level"] >= WRITE and reaches(g.body["subject"], m) and matches(g.body["pattern"], partition)]
        for r in self.rules:
            if r.body["key"] != key:
                continue
            if key == "agency" and value == agency or key == "user" and value == user:
                found.append(Source(None, self.limit(r, partition, replica)))
            if key == "all-users" and user:
                found.append(Source(OWN_FIELDS | set(r.body.get("fields", [])), self.limit(r, partition, replica)))
        # An end on the rule for rooms closes the level and sets no limit.
        if any(r.body["key"] == "conversation" for r in self.rules):
            room = self.room(partition)
            if user and user == room.creator:
                found.append(Source(None, UNBOUNDED))
            for i in room.invitations:
                if i.body["user"] == user:
                    cuts = room.closers(i)
                    found.append(Source(None, least(self.word(z, partition, replica) for z in cuts)))
        return found

    def bound(self, partition: str, replica: str) -> Bound:
        base = greatest(
            (number, hash) for b in self.baselines if b.body["partition"] == partition
            for r, number, hash in b.body["vector"] if r == replica)
        m = self.membership_of(replica)
        if m is None:
            return Bound(base, base, base, base, base, "undeclared", "undeclared", [], None)
        targets = ["membership", m.id], ["replica", replica]
        end = least(self.raised(e, partition, replica) for e in self.ends.values() if e.body["target"] in targets)
        sources = self.sources(m, partition, replica)
        allowed = greatest(source.limit for source in sources)
        free = greatest(source.limit for source in sources if source.fields is None)
        lack = "above-limit" if sources else "no-grant"
        why = "above-end" if sources and end[0] <= allowed[0] else lack
        branch = higher(base, least([end, allowed]))
        bound = higher(base, end) if self.in_doubt else branch
        return Bound(base, allowed, free, bound, branch, why, lack, sources, m.body.get("user"))

    # The floor (C8): everything that anybody entitled ever said, counting or not

    def ever_admin(self, device: str) -> bool:
        return device == self.root or any(m.body["device"] == device for m in self.admins.values())

    def entitled(self, device: str) -> bool:
        if self.ever_admin(device):
            return True
        manage = [g for g in self.said("grant") if g.body["level"] == MANAGE and self.ever_admin(g.issuer)]
        return any(
            m.body["device"] == device and self.ever_admin(m.issuer) and reaches(g.body["subject"], m)
            for m in self.said("membership") for g in manage)

    def narrowings(self, target: list) -> list[Statement]:
        is_own = (lambda e: self.device_of(target[1]) == e.issuer) if target[0] == "replica" else (lambda e: False)
        return [e for e in self.said("end") if e.body["target"] == target and (self.entitled(e.issuer) or is_own(e))]

    def lowered(self, g: Statement, level: int) -> list[Statement]:
        narrowings = self.narrowings(["grant", g.id])
        return narrowings + _lower(self.said("grant"), g, level) if g.kind == "grant" else narrowings

    def shaken(self, s: Statement) -> bool:
        if s.id not in self._known_shaken:
            self._known_shaken[s.id] = self._is_shaken(s)
        return self._known_shaken[s.id]

    def _is_shaken(self, s: Statement) -> bool:
        for m in self.set.values():
            if m.kind == "membership" and m.body.get("device") == s.issuer:
                for e in self.narrowings(["membership", m.id]):
                    listed = self.listed(e, FLEET, s.issuer)
                    if listed is not None and s.id not in listed:
                        return True
        if s.kind != "grant":
            return False
        own = [m for m in self.said("membership") if m.body["device"] == s.issuer]
        return any(
            g.body["level"] == MANAGE and any(reaches(g.body["subject"], m) for m in own) and self.lowered(g, MANAGE)
            for g in self.said("grant"))

    def floor(self, partition: str, replica: str) -> float:
        if self.full & {FLEET, partition}:
            return 0
        lowest = [inf]
        for d in self.said("replica"):
            m = self.set.get(d.body["membership"])
            if d.body["replica"] == replica and d.is_certified and m is not None and m.kind == "membership":
                lowest += self._floors(d, m, partition, replica)
        return min(lowest)

    def _floors(self, d: Statement, m: Statement, partition: str, replica: str) -> list:
        if self.shaken(d) or self.shaken(m):
            return [0]
        ends = self.narrowings(["membership", m.id]) + self.narrowings(["replica", replica])
        rights = [
            g for g in self.said("grant")
            if g.body["level"] >= WRITE and reaches(g.body["subject"], m) and matches(g.body["pattern"], partition)]
        for right in rights + self.said("rule"):
            if self.entitled(right.issuer):
                if self.shaken(right):
                    return [0]
                ends += self.lowered(right, WRITE)
        return [self.word(e, partition, replica)[0] for e in ends] + [self.room(partition).floor(m, replica)]

    @property
    def in_doubt(self) -> bool:
        """Somebody may have allowed what cannot be read here (C27)."""
        return any(s.is_unread and s.scope == FLEET and self.entitled(s.issuer) for s in self.set.values())

    # Levels now (C16, C19)

    def level(self, membership: str, partition: str) -> int:
        m = self.members.get(membership)
        ended = [e.body["target"] for e in self.ends.values()]
        if m is None or not is_name(partition) or ["membership", m.id] in ended:
            return NONE
        best, registers = NONE, {}
        for g in self.grants:
            if matches(g.body["pattern"], partition) and reaches(g.body["subject"], m):
                registers.setdefault(_register(g), []).append(g)
        for register in registers.values():
            newest = min(register, key=lambda g: (-g.seq, g.id))
            if ["grant", newest.id] not in ended:
                best = max(best, newest.body["level"])
        key, value = key_and_value(partition)
        if key and any(r.body["key"] == key and ["grant", r.id] not in ended for r in self.rules):
            if key == "agency" and value == m.body.get("agency") or key == "user" and value == m.body.get("user"):
                best = max(best, WRITE)
            if key == "all-users":
                best = max(best, READ)
            if key == "conversation":
                best = max(best, self.room(partition).level(m))
        return best

    def room(self, name: str) -> "Room":
        if name not in self._known_rooms:
            self._known_rooms[name] = Room(self, name)
        return self._known_rooms[name]


def _subject_matter(e: Statement) -> tuple:
    """Parts that differ in this are not parts of one narrowing (C12)."""
    return e.kind, e.scope, *(e.body.get(field) for field in ("target", "end", "subject", "pattern", "level", "user"))


def _register(g: Statement) -> tuple:
    return g.issuer, tuple(g.body["subject"]), g.body["pattern"]


def _lower(grants: list[Statement], g: Statement, level: int) -> list[Statement]:
    """Those of its register that come after it, below the level."""
    return [
        other for other in grants
        if _register(other) == _register(g) and other.body["level"] < level and other.order > g.order]


class Room:
    """Who may be in a room, by its own statements (C24, C25). None stands for nobody."""

    def __init__(self, rights: Rights, name: str):
        self.rights, self.name = rights, name
        created = (s for s in rights.said("room", name) if name == f"conversation={s.id}")
        self.creator = next((self.speaker(s) for s in created), None) or None
        removals = rights.said("remove", name)
        is_of_another = [z for z in removals if self.creator and z.body["user"] != self.creator]
        self.removals = [z for z in is_of_another if self.voice(z) == self.creator]
        #: Whether or not they count.
        self.cuts = [z for z in is_of_another if self.speaker(z) == self.creator]
        self.leaves = [s for s in rights.said("leave", name) if s.body["user"] == self.voice(s)]
        self.invitations = self._find_invitations() if self.creator else []

    def speaker(self, s: Statement) -> str | None:
        m = self.rights.set.get(s.body["by"])
        if m is None or m.kind != "membership" or m.body["device"] != s.issuer:
            return None
        return m.body.get("user") if self.rights.entitled(m.issuer) else None

    def voice(self, s: Statement) -> str | None:
        m = self.rights.members.get(s.body["by"])
        if m is None or m.body["device"] != s.issuer:
            return None
        ends = [e for e in self.rights.ends.values() if e.body["target"] == ["membership", m.id]]
        stands = all(self.rights.leaves(e, s, self.rights.raises_of(e)) for e in ends)
        return (m.body.get("user") or None) if stands else None

    def seen(self, s: Statement) -> set:
        """All ids that it names, and what those name in turn."""
        found, new = set(), set(s.body.get("seen", []))
        while new:
            found |= new
            known = (self.rights.set[id] for id in new if id in self.rights.set)
            new = {id for t in known for id in t.body.get("seen", [])} - found
        return found

    def closers(self, i: Statement) -> list[Statement]:
        seen = self.seen(i)
        return [z for z in self.removals if z.body["user"] == i.body["user"] and z.id not in seen]

    def _find_invitations(self) -> list[Statement]:
        found, waiting = [], self.rights.said("invite", self.name)
        while True:
            new = [i for i in waiting if self._may_invite(i, found)]
            if not new:
                return found
            found += new
            waiting = [i for i in waiting if i not in new]

    def _may_invite(self, i: Statement, found: list[Statement]) -> bool:
        voice = self.voice(i)
        return voice is not None and (voice == self.creator or any(
            j.body["user"] == voice and all(self.rights.leaves(z, i, []) for z in self.closers(j)) for j in found))

    def level(self, m: Statement) -> int:
        user = m.body.get("user")
        if self.creator and user == self.creator:
            return MANAGE
        left = {s.id for s in self.leaves if s.body["user"] == user}
        is_in = any(
            i.body["user"] == user and not self.closers(i) and left <= self.seen(i) for i in self.invitations)
        return WRITE if is_in else NONE

    def floor(self, m: Statement, replica: str) -> float:
        user = m.body.get("user")
        narrowed = [o for o in self.rights.said("membership") if self.rights.narrowings(["membership", o.id])]
        suspects = {z.body["user"] for z in self.cuts} | {o.body.get("user") for o in narrowed} - {None}
        doubtful, before = set(), None
        while before != len(doubtful):
            before = len(doubtful)
            invitations = self.rights.said("invite", self.name)
            doubtful |= {i.body["user"] for i in invitations if self.speaker(i) in suspects | doubtful}
        words = [self.rights.word(z, self.name, replica)[0] for z in self.cuts if z.body["user"] == user]
        return min([inf, *words, *([0] if user in doubtful else [])])
