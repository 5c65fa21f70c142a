"""Statements of rooms on one session (PROTOCOL, "Statements of rooms"): which go to the peer, and the steps by which it is
found what either lacks.

Of either role, and without a connection: messages go in, messages to send come out. When a comparison begins, and which
partitions it finds to differ, says who keeps this.
"""

from . import exchange, messages
from .messages import message
from .statements import Statement, has_shape, is_room

#: Of which a side tells tips for one comparison, and of which it answers.
TOLD_LIMIT, ANSWERED_LIMIT = 256, 1_024


def in_order(held: list[Statement]) -> list[Statement]:
    """Of one room: each behind what it goes on from and what its tips name there."""
    by_id, out = {item.id: item for item in held}, {}

    def visit(item: Statement):
        stack = [(item, False)]
        while stack:
            item, is_ready = stack.pop()
            if item.id in out:
                continue
            if is_ready:
                out[item.id] = item
                continue
            stack.append((item, True))
            stack += [(by_id[id], False) for id in _stands_on(item) if id in by_id and id not in out]

    for item in held:
        visit(item)
    return list(out.values())


def _stands_on(item: Statement) -> list[bytes]:
    return [item.previous, *(id for scope, _, _, id in item.tips if scope == item.place)]


def check_form(number: int, *content):
    """ValueError where it is no message of any scope."""
    match number, content:
        case messages.STATEMENTS_COMPLETE, []:
            return
        case messages.STATEMENTS, [encoded] if has_shape(encoded, [lambda item: isinstance(item, bytes)]):
            return
        case messages.STATEMENT_SET, [exchange.BUCKETS, digests]:
            exchange.read_buckets(digests)
        case messages.STATEMENT_SET, [exchange.TIPS, mask, items] if has_shape(mask, 8):
            exchange.read_room_tips(items)
        case messages.STATEMENT_SET, [exchange.WANTED, items]:
            exchange.read_room_tips(items)
        case _:
            raise ValueError(f"no message {number}")


class Rooms:
    """`wants`: whether the peer wants the partition of this name, as far as it has said."""

    def __init__(self, store, peer: bytes, wants):
        self.store, self.peer, self.wants = store, peer, wants
        #: How often step 1 was told and not answered yet, by room.
        self.open: dict[str, int] = {}
        self.begin()
        self.start()

    def start(self):
        """What is here when this side goes live is left to comparisons."""
        #: What need not be told as new: that, and what came from the peer or went to it since.
        self.known: set[bytes] = set(self.store.room_statements)
        #: Of these what the peer has brought since news were told last.
        self.brought: set[bytes] = set()
        #: Rooms of which everything may go to the peer, and those that this side may carry as well.
        self.carried = self._carried()
        self.common = self._common()

    def begin(self):
        """A comparison. What was told in the one before is settled, or told again."""
        #: Of which this side told tips.
        self.told: set[str] = set()
        #: Of which the peer told.
        self.heard: set[str] = set()

    # Who hears what

    def _may_carry(self, name: str) -> bool:
        return self.store.may_carry(self.peer, name)

    def _carried(self) -> set[str]:
        return {name for name in self.store.rooms if self._goes(name) and self._may_carry(name)}

    def _common(self) -> set[str]:
        return {name for name in self._carried() if self.store.may_carry(self.store.device, name)}

    def _goes(self, name: str) -> bool:
        return self.store.wants(name) and self.wants(name)

    def _hearable(self, name: str, meant: list[Statement]) -> list[Statement]:
        """Of these what the peer may hear: all, or lines of removals."""
        if not self._may_carry(name):
            lines = {item.id for item in self.store.lines(self.peer, name)}
            meant = [item for item in meant if item.id in lines]
        return in_order(meant)

    def _say(self, name: str, meant: list[Statement]) -> list[bytes]:
        said = self._hearable(name, meant)
        self.known |= {item.id for item in said}
        return messages.statement_messages(name, [item.encoded for item in said])

    # What is told

    def tell(self, name: str) -> list[bytes]:
        """Step 1, of a room that is found to differ. Tips go to who may carry the room alone."""
        if not self._goes(name) or not self._may_carry(name) or name in self.told or len(self.told) >= TOLD_LIMIT:
            return []
        held = self.store.room(name)
        if not held or self.store.is_over(name):
            return []
        return [self._step_1(name, exchange.ALL, exchange.tips(held))]

    def _step_1(self, name: str, buckets, tips: exchange.Tips) -> bytes:
        self.told.add(name)
        self.open[name] = self.open.get(name, 0) + 1
        return self._step(name, exchange.TIPS, *exchange.Listing(buckets, tips).content)

    @staticmethod
    def _step(name: str, step: int, *content) -> bytes:
        return message(messages.STATEMENT_SET, name, step, *content)

    @property
    def is_due(self) -> bool:
        """Whether a comparison is, by what became known since the last time: somebody was let in."""
        return bool(self._carried() - self.carried or self._common() - self.common)

    def pass_on(self) -> list[bytes]:
        """What became known since the last time."""
        carried, said = self._carried(), []
        for name in self.store.rooms:
            if not self._goes(name):
                continue
            if name in carried - self.carried:
                # Ahead of anything else of the room. What let the peer in may have come from it.
                if not self.brought & {item.id for item in self.store.room(name)}:
                    said += self._say(name, self.store.room(name))
            elif name in carried | self.carried:
                said += self._say(name, [item for item in self.store.room(name) if item.id not in self.known])
        self.known |= set(self.store.room_statements)
        self.brought = set()
        self.carried, self.common = carried, self._common()
        return said

    # What comes

    def take(self, number: int, scope: str, *content) -> list[bytes]:
        """ValueError where it breaks the protocol. What is of no room or of an unwanted one is passed over, where it is a
        message at all."""
        check_form(number, *content)
        if not is_room(scope) or not self.store.wants(scope):
            return []
        if number == messages.STATEMENTS:
            return self._statements(scope, *content)
        if number == messages.STATEMENT_SET and content[0] == exchange.TIPS:
            return self._tips(scope, *content[1:])
        if number == messages.STATEMENT_SET and content[0] == exchange.WANTED:
            return self._wanted(scope, *content[1:])
        return []

    def _statements(self, scope, encoded) -> list[bytes]:
        before = set(self.store.room_statements)
        self.store.keep_all(encoded, scope)
        self.brought |= set(self.store.room_statements) - before
        self.known |= self.brought
        return []

    def _tips(self, scope, mask, items) -> list[bytes]:
        told = exchange.read_room_tips(items)
        if scope in self.heard or len(self.heard) >= ANSWERED_LIMIT:
            return []
        self.heard.add(scope)
        held = self.store.room(scope)
        unknown = {issuer for issuer in told if not exchange.knows_all(held, {issuer: told[issuer]})}
        said, ends = [], exchange.tips(held)
        wanted = {
            issuer: ends.get(issuer, []) if self._may_carry(scope) else [] for issuer in unknown
            if not self.store.is_spent(issuer)}
        if wanted:
            said.append(self._step(scope, exchange.WANTED, exchange.shown(wanted)))
        listed = int.from_bytes(mask, "big")
        more = exchange.lacking(
            held, told, lambda issuer: issuer not in unknown and listed >> exchange.bucket(issuer) & 1)
        if more and self._may_carry(scope):
            issuers = {item.issuer for item in more}
            said.append(self._step_1(scope, frozenset(), {issuer: ends[issuer] for issuer in ends if issuer in issuers}))
        elif more:
            said += self._say(scope, more)
        return said

    def _wanted(self, scope, items) -> list[bytes]:
        if not self.open.get(scope):
            return []
        wanted = exchange.read_room_tips(items)
        self.open[scope] -= 1
        return self._say(scope, exchange.lacking_by_wanted(self.store.room(scope), wanted))
