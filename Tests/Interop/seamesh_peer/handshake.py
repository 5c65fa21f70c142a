"""From the first message to where both sides hold one set of statements: hello, credentials, the exchange.

Of either role, and without a connection: messages go in, messages to send come out.
"""

import os
from dataclasses import replace

from nacl.signing import SigningKey

from . import exchange, messages, statements
from .hashing import fleet_id, public_key
from .messages import Hello, message

#: Phases of a receiver. The last two follow on the handshake.
AWAITING_HELLO, AWAITING_CREDENTIALS, EXCHANGING, AWAITING_INTEREST, LIVE = range(5)

_ALWAYS = {messages.PING, messages.PONG, messages.GOODBYE}
_STATEMENTS = {messages.STATEMENT_SET, messages.STATEMENTS, messages.STATEMENTS_COMPLETE}
_EARLY = {messages.INTEREST_REQUEST, messages.INTEREST, messages.SUMMARY}
#: What is in turn; `Handshake` looks at the rest: roles, steps, how often.
TURNS = {
    AWAITING_HELLO: {messages.HELLO, messages.CREDENTIAL_REQUEST},
    AWAITING_CREDENTIALS: {messages.CREDENTIALS, messages.STATEMENT_SET},
    EXCHANGING: _STATEMENTS | _EARLY | {messages.CREDENTIAL_REQUEST},
    AWAITING_INTEREST: _STATEMENTS | _EARLY,
    LIVE: _STATEMENTS | {
        messages.INTEREST_REQUEST, messages.INTEREST, messages.INTEREST_CHANGE, messages.SUMMARY, messages.VECTORS, messages.PULL,
        messages.RUNS, messages.PAYLOAD_PIECE, messages.HAVE, messages.CHAIN_PROBE},
}  # fmt: skip

CREDENTIAL_LIMIT = 4
SCOPE_BYTES = 255
#: An authority mark that equals none.
NO_MARK = bytes(messages.MARK_BYTES)


class Goodbye(Exception):
    """What this side says before it closes; `reason` is its number."""

    def __init__(self, reason: int, why: str = ""):
        super().__init__(f"goodbye {reason}: {why}")
        self.reason = reason


def credentials_hold(fleet: bytes, brought: list[bytes], device: bytes, known: list[statements.Statement]) -> bool:
    """Whether the brought statements alone show the device's membership. `known`: what is in the set here."""
    try:
        here = [statements.read(item) for item in brought]
        judged = {item.id: statements.to_judge(item) for item in [*here, *known]}
    except ValueError:
        return False
    ended = {tuple(item.body["target"]) for item in judged.values() if item.kind == "end" and "target" in item.body}

    def memberships(items: list, of: bytes) -> list:
        return [
            item for item in items if item.kind == statements.MEMBERSHIP and item.place == "" and item.fleet == fleet
            and judged[item.id].body["device"] == of.hex() and ("membership", item.id.hex()) not in ended]

    def is_roots(item: statements.Statement) -> bool:
        return fleet_id(item.issuer) == fleet

    def is_by_admin(own: statements.Statement) -> bool:
        return judged[own.id].body["role"] != "admin" and any(
            is_roots(item) and judged[item.id].body["role"] == "admin"
            for item in memberships([*here, *known], own.issuer))

    return any(is_roots(own) or is_by_admin(own) for own in memberships(here, device))


class Handshake:
    """`has_lost`: this side asks for all statements anew, and judges nobody by those that it has."""

    def __init__(self, store, exporter: bytes, peer_key: bytes, is_dialer: bool, key: SigningKey | None = None,
                 interest: bytes | None = None, has_lost: bool = False, **fields):
        self.store, self.exporter, self.peer_key, self.is_dialer = store, exporter, peer_key, is_dialer
        self.key, self.interest, self.has_lost, self.fields = key or store.key, interest, has_lost, fields
        self.instance = fields.pop("instance", None) or os.urandom(16)
        self.phase = AWAITING_HELLO
        self.peer: Hello | None = None
        #: The digest that this side's hello told.
        self.authority: bytes | None = None
        #: The peer's credentials held, and its membership by the set has yet to be seen.
        self.is_unproven = False
        self.was_asked = False
        self.early_buckets: bytes | None = None
        self.next_step: int | None = None
        self.listing: exchange.Listing | None = None
        self.has_sent = self.has_received = False

    @property
    def is_through(self) -> bool:
        return self.phase in (AWAITING_INTEREST, LIVE)

    def begin(self) -> list[bytes]:
        return [self._own_hello()] if self.is_dialer else []

    def take(self, number: int, items: list) -> list[bytes]:
        """Goodbye where there is nothing more to say but that."""
        try:
            if not self.is_in_turn(number):
                return []
            return self._handlers[number](self, *items)
        except (ValueError, TypeError, OverflowError) as error:
            raise Goodbye(messages.PROTOCOL_ERROR, str(error)) from error

    def is_in_turn(self, number: int) -> bool:
        """False where it is passed over, ValueError where it is an error."""
        if number >= messages.OPTIONAL or number == messages.RUNS and self.phase != LIVE:
            return False
        if number not in TURNS[self.phase] | _ALWAYS:
            raise ValueError(f"message {number} in phase {self.phase}")
        return True

    def is_marked(self, of: int, digest: bytes) -> bool:
        """Whether the peer told this digest."""
        told = self.peer.authority if of == messages.AUTHORITY else self.peer.interest
        return told == messages.mark(self.store.fleet, self.exporter, not self.is_dialer, of, digest)

    # Hello

    def _own_hello(self) -> bytes:
        self.authority = self.authority or self.store.authority
        hello = messages.hello_for(
            self.store.fleet, self.exporter, self.is_dialer, self.instance, interest=self.interest,
            **({"authority": self.authority} | self.fields))
        if self.has_lost:
            hello = replace(hello, authority=NO_MARK)
        return hello.signed(self.key, self.exporter, self.is_dialer).encode()

    def _proof(self, is_dialer: bool) -> bytes:
        return messages.fleet_proof(self.store.fleet, self.exporter, is_dialer)

    def _hello(self, *items) -> list[bytes]:
        peer = Hello.read(list(items))
        if peer.proof != self._proof(not self.is_dialer):
            raise Goodbye(messages.OTHER_FLEET)
        if not peer.is_signed(self.exporter, not self.is_dialer, self.peer_key):
            raise ValueError("a hello that is not signed by the key of the certificate")
        if peer.instance == self.instance:
            raise Goodbye(messages.OWN_CONNECTION)
        self.peer = peer
        self.authority = self.authority or self.store.authority
        if self.has_lost or self.store.is_member(self.peer_key):
            return self._go_on()
        if not self.differs:
            raise Goodbye(messages.NOT_A_MEMBER)
        self.phase = AWAITING_CREDENTIALS
        return [message(messages.CREDENTIAL_REQUEST, self._proof(self.is_dialer))]

    @property
    def differs(self) -> bool:
        return self.has_lost or not self.is_marked(messages.AUTHORITY, self.authority)

    def _go_on(self) -> list[bytes]:
        """With a peer that is known well enough for statements."""
        said = [] if self.is_dialer else [self._own_hello()]
        if not self.differs:
            self.phase = AWAITING_INTEREST
            return said
        self.phase = EXCHANGING
        if self.is_dialer:
            self.next_step = exchange.BUCKETS
            return self._buckets(self.early_buckets) if self.early_buckets else []
        self.next_step = exchange.TIPS
        return [*said, self._step(exchange.BUCKETS, exchange.digests(exchange.tips(self.held)))]

    # Credentials

    def _credential_request(self, proof) -> list[bytes]:
        if self.was_asked or not self.is_dialer and self.phase == AWAITING_HELLO:
            raise ValueError("asked for credentials out of turn")
        if proof != self._proof(not self.is_dialer):
            raise Goodbye(messages.OTHER_FLEET)
        self.was_asked = True
        return [message(messages.CREDENTIALS, self.store.credentials())]

    def _credentials(self, brought) -> list[bytes]:
        if not statements.has_shape(brought, [lambda item: isinstance(item, bytes)]) or len(brought) > CREDENTIAL_LIMIT:
            raise ValueError("no credentials")
        if not credentials_hold(self.store.fleet, brought, self.peer_key, list(self.store.statements.values())):
            raise Goodbye(messages.NOT_A_MEMBER)
        self.is_unproven = True
        return self._go_on()

    # The exchange

    @property
    def held(self) -> list[statements.Statement]:
        return list(self.store.statements.values())

    def _step(self, step: int, *content) -> bytes:
        return message(messages.STATEMENT_SET, "", step, *content)

    def _statement_set(self, scope, step, *content) -> list[bytes]:
        check_scope(scope)
        if self.phase == AWAITING_CREDENTIALS:
            if not self.is_dialer or scope or step != exchange.BUCKETS or self.early_buckets:
                raise ValueError("a step before the credentials")
            self.early_buckets = exchange.read_buckets(*content)
            return []
        if scope:
            return []  # Of rooms `rooms` is asked.
        if self.is_through or step != self.next_step:
            raise ValueError(f"step {step} out of turn")
        steps = {exchange.BUCKETS: self._buckets, exchange.TIPS: self._tips, exchange.WANTED: self._wanted}
        return steps[step](*content)

    def _buckets(self, content) -> list[bytes]:
        theirs = exchange.read_buckets(content)
        self.listing = exchange.Listing(exchange.ALL, {}) if self.has_lost else exchange.tell(self.held, theirs)
        self.next_step = exchange.WANTED
        return [self._step(exchange.TIPS, *self.listing.content)]

    def _tips(self, mask, items) -> list[bytes]:
        self.listing = exchange.read_listing(mask, items)
        self.next_step = None
        answer = self._step(exchange.WANTED, exchange.shown(exchange.wanted(self.held, self.listing)))
        if self.is_unproven or not exchange.knows_all(self.held, self.listing.told):
            return [answer]
        return [answer, *self._say_lacking()]

    def _say_lacking(self) -> list[bytes]:
        self.has_sent = True
        return self._say(exchange.lacking_by_listing(self.store.ordered(), self.listing))

    def _wanted(self, items) -> list[bytes]:
        told = exchange.read_wanted(items, self.listing)
        self.next_step = None
        if self.has_lost:
            return []
        self.has_sent = True
        return self._say(exchange.lacking_by_wanted(self.store.ordered(), told))

    @staticmethod
    def _say(lacking: list[statements.Statement]) -> list[bytes]:
        said = messages.statement_messages("", [item.encoded for item in lacking])
        return [*said, message(messages.STATEMENTS_COMPLETE, "")]

    def _statements(self, scope, encoded) -> list[bytes]:
        check_scope(scope)
        if not scope:
            self.store.keep_all(encoded)
        return []

    def _statements_complete(self, scope) -> list[bytes]:
        check_scope(scope)
        if scope:
            return []
        # For a dialer step 2 has to be there, for a listener step 1.
        if self.is_through or self.listing is None or self.next_step is not None or self.has_received:
            raise ValueError("complete out of turn")
        self.has_received = True
        if self.is_unproven and not self.store.is_member(self.peer_key):
            raise Goodbye(messages.NOT_A_MEMBER)
        self.is_unproven = False
        said = [] if self.has_sent or self.has_lost else self._say_lacking()
        self.phase = AWAITING_INTEREST
        return said

    _handlers = {
        messages.HELLO: _hello, messages.CREDENTIAL_REQUEST: _credential_request, messages.CREDENTIALS: _credentials,
        messages.STATEMENT_SET: _statement_set, messages.STATEMENTS: _statements,
        messages.STATEMENTS_COMPLETE: _statements_complete,
    }  # fmt: skip
    NUMBERS = frozenset(_handlers)


def check_scope(scope):
    if not isinstance(scope, str) or len(scope.encode()) > SCOPE_BYTES:
        raise ValueError("no scope")


def joining_holds(store) -> bool:
    """Whether all statements that came, of a join or of one that had lost its own, show the fleet and this member."""
    root = store.root
    has_genesis = any(item.kind == statements.GENESIS and item.issuer == root for item in store.statements.values())
    return has_genesis and store.is_member(public_key(store.key))
