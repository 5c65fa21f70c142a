"""A device's store and its sessions with other nodes: interest, summaries, streams. Before those comes `handshake`.

One thread, one message at a time. It keeps everything in memory and pulls and pushes whole runs, as the protocol's
description asks of anyone. What counts of them it judges anew each time, by `rights`, `acceptance` and `merge`.
"""

import time
from dataclasses import dataclass, field

from nacl.signing import SigningKey

from . import acceptance, chains, channel, exchange, handshake, merge, messages, payloads, rights, statements, values
from .handshake import AWAITING_INTEREST, LIVE, Goodbye, Handshake
from .hashing import fleet_id, partition_id, public_key, sha256, u
from .messages import message
from .rooms import Rooms

TIP_BYTES = 16
PIECE_BYTES = 64 * 1024
#: Of runs put aside for these not even headers are kept.
NOT_STORED = ("no-grant", "document-rule", "undeclared", "void")
#: Of rooms' statements: in all, of one room, of one device, and bytes of one device that come before another.
ROOM_STATEMENTS, STATEMENTS_OF_ROOM, STATEMENTS_OF_DEVICE, BYTES_OF_DEVICE = 65_536, 16_384, 4_096, 4_194_304
#: Messages that are a room's where their scope is one.
OF_SCOPES = (messages.STATEMENT_SET, messages.STATEMENTS, messages.STATEMENTS_COMPLETE)


class Refused(Exception):
    """The other side said goodbye, or refused to admit; `reason` is its number."""

    def __init__(self, reason: int):
        super().__init__(f"reason {reason}")
        self.reason = reason


@dataclass
class Partition:
    name: str
    id: bytes
    store: "Store"
    held: acceptance.Held
    #: (context, run as bytes, run) of those whose content is here, in order of arrival.
    log: list = field(default_factory=list)

    @property
    def judgement(self) -> acceptance.Judgement:
        return acceptance.Judgement(self.store.rights, self.name, self.held)

    def positions(self, which: str) -> list:
        return [
            (bytes.fromhex(replica), number, bytes.fromhex(hash)[:TIP_BYTES])
            for replica, number, hash in self.judgement.vector(which)]

    @property
    def vector(self) -> list:
        """What is announced."""
        return self.positions("clipped")

    @property
    def above(self) -> list:
        """Where chains end of which more is received than counts, but those of compromised authors."""
        chains = self.judgement.chains
        ends = {replica: chain.received for replica, chain in chains.items() if chain.received > chain.clipped}
        return [
            (bytes.fromhex(replica), number, bytes.fromhex(chains[replica].hash_at(number))[:TIP_BYTES])
            for replica, number in ends.items() if not self.store.rights.is_compromised(replica)]

    def documents(self) -> list[merge.Document]:
        """What the accepted changes show. An original on a branch that was lost here is not told from what took its place
        (the last case of has_seen)."""
        judgement = self.judgement
        accepted = {change.hash: (replica, change) for replica, change in judgement.accepted_changes()}
        changes, reissues = [], {}
        for _, _, run in self.log:
            covered = {bytes.fromhex(r): number for r, number in judgement.covered(chains.to_judge(run, None).context).items()}
            for change, hash in zip(run.changes, run.hashes):
                if hash.hex() in accepted:
                    dot = run.chain.replica, change.sequence
                    changes.append(merge.Change(dot, change.timestamp, covered, payloads.decode(change.payload)))
                    origin = judgement.origin(*accepted[hash.hex()])
                    if origin:
                        reissues.setdefault((bytes.fromhex(origin[0]), origin[1]), []).append((hash, dot))
        groups = [[first, *(dot for _, dot in sorted(others))] for first, others in reissues.items()]
        return merge.documents(changes, groups)


class Store:
    """What a device keeps between sessions."""

    def __init__(self, fleet: bytes, key: SigningKey, names: list[str]):
        self.fleet, self.key, self.device = fleet, key, public_key(key)
        #: The fleet's, and those of rooms in the order in which they came.
        self.statements: dict[bytes, statements.Statement] = {}
        self.room_statements: dict[bytes, statements.Statement] = {}
        #: Devices that have used up what is kept of theirs in rooms.
        self.spent: set[bytes] = set()
        self.last_room = 0
        self._rights: tuple[list, rights.Rights] | None = None
        self.partitions: dict[str, Partition] = {}
        for name in names:
            self.want(name)
        self.replica: bytes | None = None
        #: What other nodes want, by device and the digest of it.
        self.interests: dict[tuple[bytes, bytes], list] = {}

    @property
    def authority(self) -> bytes:
        return messages.authority_digest(list(self.statements))

    @property
    def wanted(self) -> list[bytes]:
        return sorted(partition.id for partition in self.partitions.values())

    def keep(self, encoded: bytes, scope: str = "") -> statements.Statement | None:
        """None where it is of another version. ValueError where its sender is at fault."""
        if statements.is_of_another_version(encoded):
            return None
        statement = statements.read(encoded)
        if statement.fleet != self.fleet:
            raise ValueError("a statement of another fleet")
        if statement.place != scope:
            raise ValueError("a statement of another scope")
        statements.to_judge(statement)
        (self.room_statements if scope else self.statements).setdefault(statement.id, statement)
        return statement

    def keep_all(self, encoded: list[bytes], scope: str = ""):
        """What a peer sent, but for what does not come into the set (C26)."""
        for item in encoded:
            self.keep(item, scope)
        self.settle()

    def settle(self):
        self.statements = {id: item for id, item in self.statements.items() if id.hex() in self.rights.set}
        self.room_statements = {id: item for id, item in self.room_statements.items() if id.hex() in self.rights.set}
        self._keep_to_limits()

    # Rooms

    def _keep_to_limits(self):
        """Of rooms' statements those stay that came first."""
        counts, sizes, in_room, kept = {}, {}, {}, {}
        for id, item in self.room_statements.items():
            device, room = item.issuer, item.place
            has_room = counts.get(device, 0) < STATEMENTS_OF_DEVICE and sizes.get(device, 0) <= BYTES_OF_DEVICE
            if has_room and in_room.get(room, 0) < STATEMENTS_OF_ROOM and len(kept) < ROOM_STATEMENTS:
                kept[id] = item
                counts[device] = counts.get(device, 0) + 1
                sizes[device] = sizes.get(device, 0) + len(item.encoded)
                in_room[room] = in_room.get(room, 0) + 1
        self.room_statements = kept
        self.spent = {
            device for device in counts if counts[device] >= STATEMENTS_OF_DEVICE or sizes[device] > BYTES_OF_DEVICE}

    def is_spent(self, device: bytes) -> bool:
        return device in self.spent

    def is_over(self, name: str) -> bool:
        """Whether the device that made the room is spent."""
        return any(item.kind == statements.ROOM and self.is_spent(item.issuer) for item in self.room(name))

    def room(self, name: str) -> list[statements.Statement]:
        """Its statements."""
        return [item for item in self.room_statements.values() if item.place == name]

    @property
    def rooms(self) -> list[str]:
        """Those of which statements are here."""
        return sorted({item.place for item in self.room_statements.values()})

    def wants(self, name: str) -> bool:
        return name in self.partitions

    def may_carry(self, device: bytes, name: str) -> bool:
        mine = (m for m in self.rights.members.values() if m.body["device"] == device.hex())
        return any(self.rights.level(m.id, name) >= rights.CARRY for m in mine)

    def lines(self, device: bytes, name: str) -> list[statements.Statement]:
        """Of removals in the room that name a user of the device, whether or not they count."""
        memberships = (s for s in self.rights.set.values() if s.kind == "membership" and s.scope == rights.FLEET)
        users = {m.body["user"] for m in memberships if m.body["device"] == device.hex()}
        removals = [z for z in self.rights.said("remove", name) if z.body["user"] in users]
        found = set().union(*(rights.line(self.rights.set, z.id) for z in removals))
        return [item for item in self.room(name) if item.id.hex() in found]

    @property
    def root(self) -> bytes | None:
        """Its key, where anything that it said is here."""
        return next((item.issuer for item in self.statements.values() if fleet_id(item.issuer) == self.fleet), None)

    def ordered(self) -> list[statements.Statement]:
        """All statements, each behind what it stands on."""
        return exchange.in_order(self.statements.values(), self.root) if self.root else []

    def is_member(self, device: bytes) -> bool:
        """By the statements here: one whose membership is ended is none."""
        ended = [end.body["target"] for end in self.rights.ends.values()]
        return any(
            m.body["device"] == device.hex() and ["membership", m.id] not in ended
            for m in [*self.rights.members.values(), *self.rights.strange.values()])

    def credentials(self) -> list[bytes]:
        """This device's membership, if it has one, and that of the admin who signed it, where it was not root."""
        own = self.membership()
        if own is None:
            return []
        if fleet_id(own.issuer) == self.fleet:
            return [own.encoded]
        admins = (
            item for item in self.statements.values() if item.kind == statements.MEMBERSHIP
            and item.issuer == self.root and item.body[:2] == [own.issuer, "admin"])
        return [own.encoded, *(item.encoded for item in list(admins)[:1])]

    @property
    def rights(self) -> rights.Rights:
        here = [*self.statements, *self.room_statements]
        if self._rights is None or self._rights[0] != here:
            seen = [statements.to_judge(item) for item in [*self.statements.values(), *self.room_statements.values()]]
            self._rights = here, rights.Rights(seen, self.root.hex() if self.root else "")
        return self._rights[1]

    def sign(self, kind_and_body, scope: str = "") -> statements.Statement:
        held = self.room(scope) if scope else self.statements.values()
        own = [item for item in held if item.issuer == self.device]
        last = min(own, key=lambda item: (-item.sequence, item.id), default=None)
        return self.keep(statements.make(self.fleet, self.key, last, kind_and_body, scope).encoded, scope)

    def make_room(self) -> str:
        """A room of this device's user; its name."""
        # Two of one membership and one millisecond would be one.
        self.last_room = max(int(time.time() * 1_000), self.last_room + 1)
        made = statements.make(self.fleet, self.key, None, statements.room(self.membership().id, self.last_room))
        self.keep(made.encoded, made.place)
        return made.place

    def membership(self) -> statements.Statement | None:
        mine = (item for item in self.statements.values() if item.kind == statements.MEMBERSHIP)
        return next((item for item in mine if item.body[0] == self.device), None)

    def declare_replica(self, nonce: bytes) -> statements.Statement:
        statement = self.sign(statements.replica(self.device, nonce, self.membership().id))
        self.replica = statement.body[0]
        return statement

    def want(self, name: str) -> Partition:
        id = partition_id(self.fleet, name)
        held = acceptance.Held(lambda replica: chains.Chain(self.fleet, id, bytes.fromhex(replica)).genesis.hex())
        self.partitions[name] = Partition(name, id, self, held)
        return self.partitions[name]

    def context(self, name: str) -> list:
        """What a change written now has seen of others (C3)."""
        partition = self.partitions[name]
        entries = {replica: (replica, number, tip) for replica, number, tip in partition.positions("accepted")}
        own = [run for _, _, run in partition.log if run.chain.replica == self.replica]
        for replica, number, tip in own[-1].context if own else []:
            chain = partition.judgement.chain(replica.hex())
            on_path = (chain.hash_at(number) or "").startswith(tip.hex())
            if number > entries.get(replica, (replica, 0, b""))[1] and (on_path or not chain.is_forked):
                entries[replica] = replica, number, tip
        entries.pop(self.replica, None)
        return sorted(entries.values())

    def write(self, name: str, writes: list):
        run = self.make_run(name, writes)
        self.take(name, run.context, run.encode(self.key), run.changes[0].payload)

    def make_run(self, name: str, writes: list) -> chains.Run:
        """A run of one change after all that is held, not yet kept."""
        partition = self.partitions[name]
        chain = chains.Chain(self.fleet, partition.id, self.replica)
        own = [run for _, _, run in partition.log if run.chain == chain]
        first, before = (own[-1].last + 1, own[-1].hashes[-1]) if own else (1, chain.genesis)
        seen = max((change.timestamp for _, _, run in partition.log for change in run.changes), default=0)
        now = int(time.time() * 1_000)
        change = chains.plain_change(chain, first, max(seen + 1, now << 16), now, writes)
        return chains.Run(chain, first, before, self.context(name), [change])

    def take(self, name: str, context: list, encoded: bytes, payload_apart: bytes = b"") -> tuple[str, str]:
        """Keeps a run if its hashes, signature and context hold and it may be taken; the verdict and why (C8). ValueError
        where that is an error of who sent it."""
        partition = self.partitions[name]
        run, signature = chains.read(encoded, self.fleet, partition.id, context, payload_apart)
        declared = self.rights.replicas.get(run.chain.replica.hex())
        signer = declared and bytes.fromhex(declared.issuer)
        judged = chains.to_judge(run, signer if signer and run.is_signed(signature, signer) else None)
        judgement = partition.judgement
        verdict, why = judgement.verdict(judged)
        if verdict in ("refuse", "error"):
            raise ValueError(f"a run is not taken: {why}")
        if verdict == "take" or (verdict, why) == ("aside", "fork"):
            # Of a fork the other branch may come to be the one that counts.
            partition.log.append((context, encoded, run))
            partition.held.learn(judged)
        elif verdict == "aside" and why not in NOT_STORED and judgement.knows(judged.replica, judged.hash_before):
            partition.held.learn(judged, has_content=False)
        return verdict, why


@dataclass
class Stream:
    """One partition on one session. Numbers are None where nothing was asked for."""

    outgoing: int | None = None
    incoming: int | None = None
    base: list = field(default_factory=list)
    #: Last sequences that the other side has named, and those that it has or is being sent.
    held: dict = field(default_factory=dict)
    covered: dict = field(default_factory=dict)
    #: Replicas of whose chains a run was passed over; what follows of them on this stream is, too.
    passed_over: set = field(default_factory=set)
    #: What the other side told last, to which the first pull may refer; and whether there was one, by either side.
    heard: list = field(default_factory=list)
    has_pulled: bool = False
    was_pulled: bool = False
    #: How many bytes the other side has of payloads that travel apart.
    staged: dict = field(default_factory=dict)

    def note(self, vector: list):
        self.cover(vector)
        for replica, sequence, _ in vector:
            self.held[replica] = max(self.held.get(replica, 0), sequence)

    def cover(self, vector: list):
        for replica, sequence, _ in vector:
            self.covered[replica] = max(self.covered.get(replica, 0), sequence)


def is_wanted(partition: Partition, wanted: list[bytes], prefixes: list[str]) -> bool:
    return partition.id in wanted or any(partition.name.startswith(prefix) for prefix in prefixes)


class Session:
    """One side of a connection. `trace` holds (sent by us, number, frame bytes) of every message."""

    def __init__(self, store: Store, connection, key: SigningKey | None = None, is_dialer: bool = True):
        self.store, self.is_dialer = store, is_dialer
        self.trace: list[tuple[bool, int, int]] = []
        self.key = key or store.key
        self.channel = connection
        self.streams: dict[str, Stream] = {}
        self.handshake: Handshake | None = None
        self.peer_interest = None
        self.has_requested = False
        #: The number of the question that this side asked last, and of the peer's that it answered with buckets.
        self.asked = self.told_buckets = 0
        self.listed: set[int] = set()
        self.level: set[int] = set()
        self.level_partitions: set[bytes] = set()
        #: A question that came before the peer's interest was known.
        self.waiting = None
        #: Parts of a vector until the last is here.
        self.partial: list = []
        #: Of the common scope when the session went live: later ones are not level by an equal bucket.
        self.scope_at_first: set[bytes] = set()
        self.is_compared = self.is_asking = False
        self.next_stream = 1
        #: Partitions of which something came that this device may not carry as far as it knows: pulled once it may.
        self.missed: set[str] = set()
        self.pieces: dict[bytes, bytes] = {}
        #: By partition: vectors to which the peer's first pull may refer.
        self.told: dict[str, list] = {}
        self.rooms = Rooms(store, connection.peer, self.peer_wants)

    @classmethod
    def dial(cls, store: Store, host: str, port: int, key: SigningKey | None = None) -> "Session":
        return cls(store, channel.dial(host, port, key or store.key), key)

    def close(self):
        self.channel.close()

    # Messages

    def send(self, number: int, *items):
        self.send_frame(message(number, *items))

    def send_frame(self, frame: bytes):
        self.trace.append((True, frame[1] if frame[1] < 24 else frame[2], len(frame) + 4))
        self.channel.send(frame)

    def send_all(self, frames: list[bytes]):
        for frame in frames:
            self.send_frame(frame)

    def receive(self, seconds: float = 20) -> tuple[int, list]:
        frame = self.channel.receive(seconds)
        number, items = messages.read(frame)
        self.trace.append((False, number, len(frame) + 4))
        return number, items

    def step(self, seconds: float = 20) -> int:
        """Goodbye where the other side gave cause for one, which is sent then."""
        number, items = self.receive(seconds)
        try:
            if self.is_of_a_room(number, items):
                self.take_of_room(number, items)
            elif number in Handshake.NUMBERS and not (self.handshake.is_through and number == messages.STATEMENTS):
                self.send_all(self.handshake.take(number, items))
            elif self.handshake.is_in_turn(number):
                self._handlers[number](self, *items)
            self.advance()
            self.pass_on()
        except Goodbye as goodbye:
            self.send(messages.GOODBYE, goodbye.reason)
            raise
        return number

    def until(self, is_reached, seconds: float = 20):
        deadline = time.monotonic() + seconds
        while not is_reached():
            self.step(max(0.01, deadline - time.monotonic()))

    def drain(self, seconds: float = 0.3):
        """Handles what comes until nothing has come for so long."""
        try:
            while True:
                self.step(seconds)
        except TimeoutError:
            return

    # Joining

    def join(self, request: messages.JoinRequest, secret: bytes):
        """Returns once admitted; the other side then closes."""
        self.send_frame(request.proved(secret, self.channel.exporter).encode())
        while True:
            number, items = self.receive()
            if number == messages.JOIN_ACCEPTED:
                proof, extensions = items
                messages.check_extensions(extensions)
                if proof != request.answer(secret, self.channel.exporter, extensions):
                    raise ValueError("an answer without the secret")
                if self.channel.peer != request.inviter:
                    raise ValueError("an answer by another device")
                self.store.settle()
                if not handshake.joining_holds(self.store):
                    raise ValueError("statements that do not show this member")
                return
            if number == messages.JOIN_REFUSED:
                raise Refused(items[0])
            if number != messages.STATEMENTS or items[0] != "":
                raise ValueError("an answer out of turn")
            for encoded in items[1]:
                self.store.keep(encoded)

    def recover(self):
        """All statements anew, by a member that lost its own. Then this side closes."""
        self.greet(has_lost=True)
        self.until(lambda: self.handshake.is_through)
        self.close()
        if not handshake.joining_holds(self.store):
            raise ValueError("statements that do not show this member")

    # Handshake

    def start(self):
        """From hello to the comparison of summaries."""
        self.greet()
        self.settle()

    def greet(self, **fields):
        """A dialer says hello. `fields` go into it, where it is to say something else than it would."""
        self.prepare(**fields)
        for frame in self.handshake.begin():
            self.send_frame(frame)

    def prepare(self, **fields):
        self.handshake = Handshake(
            self.store, self.channel.exporter, self.channel.peer, self.is_dialer, self.key,
            **({"interest": self.interest, "wall": int(time.time() * 1_000)} | fields))

    @property
    def interest(self) -> bytes:
        return messages.interest_digest(self.store.wanted, [])

    def settle(self):
        self.until(lambda: self.is_compared)

    def advance(self):
        """Goes live once the statements are exchanged and the peer's interest is known."""
        if self.handshake.phase != AWAITING_INTEREST or self.handshake.has_lost:
            return
        if self.peer_interest is None:
            self.peer_interest = self.remembered_interest()
        if self.peer_interest is None:
            if not self.has_requested:
                self.has_requested = True
                self.send(messages.INTEREST_REQUEST)
            return
        self.handshake.phase = LIVE
        self.scope_at_first = {item.id for item in self.store.partitions.values() if self.is_common(item)}
        self.rooms.start()
        if self.waiting:
            self._summary(*self.waiting)
        elif not self.is_dialer:
            self.ask()

    def remembered_interest(self) -> list | None:
        remembered = self.store.interests.items()
        known = {digest: item for (device, digest), item in remembered if device == self.channel.peer}
        known[self.handshake.interest] = [self.store.wanted, []]
        return next((known[digest] for digest in known if self.handshake.is_marked(messages.INTERESTS, digest)), None)

    # Statements

    def is_of_a_room(self, number: int, items: list) -> bool:
        """Or of another scope than the fleet's. From the end of the exchange of the fleet's statements on; before that no peer says any."""
        return number in OF_SCOPES and self.handshake.is_through and bool(items) and items[0] != ""

    def take_of_room(self, number: int, items: list):
        try:
            handshake.check_scope(items[0])
            self.send_all(self.rooms.take(number, *items))
        except (ValueError, TypeError) as error:
            raise Goodbye(messages.PROTOCOL_ERROR, str(error)) from error

    def pass_on(self):
        """Tells the peer what became known of rooms since it was asked last. Who was let in compares at once."""
        if self.handshake.phase != LIVE:
            return
        if self.rooms.is_due:
            self.ask()
        self.send_all(self.rooms.pass_on())
        for partition in [self.store.partitions[name] for name in self.missed]:
            if self.is_common(partition):
                self.missed.remove(partition.name)
                self.pull(partition, self.streams.setdefault(partition.name, Stream()))

    def _statements(self, scope, encoded):
        self.store.keep_all(encoded)
        # What was passed over may be let in now.
        for name, stream in self.streams.items():
            if stream.passed_over:
                self.pull(self.store.partitions[name], stream)

    def _interest_request(self):
        self.send(messages.INTEREST, self.store.wanted, [])

    def _interest(self, partitions, prefixes):
        before, before_prefixes = self.peer_interest or [[], []]
        self.hear_interest(partitions, prefixes)
        if self.handshake.phase == LIVE:
            added, added_prefixes = set(partitions) - set(before), set(prefixes) - set(before_prefixes)
            self.send_vectors(lambda partition: is_wanted(partition, added, added_prefixes))

    def hear_interest(self, partitions, prefixes):
        self.peer_interest = [partitions, prefixes]
        digest = messages.interest_digest(partitions, prefixes)
        self.store.interests[self.channel.peer, digest] = self.peer_interest

    def want(self, name: str):
        """Wants a partition on a standing session."""
        partition = self.store.want(name)
        self.send(messages.INTEREST_CHANGE, [partition.id], [], [], [])
        self.send_vectors(lambda item: item is partition)

    def _interest_change(self, added, added_prefixes, removed, removed_prefixes):
        partitions, prefixes = self.peer_interest or [[], []]
        self.hear_interest(
            sorted(set(partitions) - set(removed) | set(added)),
            sorted(set(prefixes) - set(removed_prefixes) | set(added_prefixes)))
        self.send_vectors(lambda partition: is_wanted(partition, added, added_prefixes))

    # Summaries

    def peer_wants(self, name: str) -> bool:
        """As far as it has said."""
        partitions, prefixes = self.peer_interest or [[], [""]]
        return partition_id(self.store.fleet, name) in partitions or any(name.startswith(item) for item in prefixes)

    def is_common(self, partition: Partition) -> bool:
        devices = self.store.device, self.channel.peer
        return self.peer_wants(partition.name) and all(self.store.may_carry(item, partition.name) for item in devices)

    def spoken_of(self, name: str) -> Partition | None:
        """None where it is outside of the common scope: what is said of it is ignored."""
        partition = self.store.partitions.get(name)
        if partition and not self.is_common(partition):
            self.missed.add(name)
        return partition if partition and self.is_common(partition) else None

    def is_level(self, partition: Partition) -> bool:
        is_in_equal_bucket = messages.bucket(partition.id) in self.level and partition.id in self.scope_at_first
        return partition.id in self.level_partitions or is_in_equal_bucket

    @property
    def digests(self) -> dict[bytes, bytes]:
        """Of what both want and something is held of. No fork is in them: this peer has none to prove."""
        digests = {item.id: self.digest(item) for item in self.store.partitions.values() if self.is_common(item)}
        return {id: digest for id, digest in digests.items() if digest}

    def digest(self, partition: Partition) -> bytes | None:
        vector, above = partition.vector, partition.above
        digest = messages.partition_digest(vector, above=above) if vector or above else None
        room = [item.id for item in self.store.room(partition.name)]
        return messages.room_digest(digest, room) if room else digest

    def sums(self) -> list[int]:
        return messages.sums(self.channel.exporter, self.digests)

    def ask(self):
        """Begins a comparison. The listener does so first, when it is live."""
        self.asked += 1
        self.is_compared, self.is_asking = False, True
        self.rooms.begin()
        self.send(messages.SUMMARY, self.asked, messages.DIGEST, u(sum(self.sums()) % (1 << 64), 8))

    def _summary(self, number, step, *content):
        if step == messages.DIGEST and self.handshake.phase != LIVE:
            self.waiting = (number, step, *content)
        elif step == messages.DIGEST:
            self._asked(number, *content)
        elif number == self.asked and step == messages.EQUAL:
            self._are_level(range(messages.SUMMARY_BUCKETS))
        elif number == self.asked and step == messages.BUCKETS:
            self._buckets(*content)
        elif number == self.told_buckets and step == messages.PARTITIONS:
            self._partitions(*content)
        elif number == self.asked and step == messages.DIFFERING:
            self._differing(*content)

    def _asked(self, number, digest):
        if self.is_asking and self.is_dialer:
            return  # They crossed, and the dialer's is answered.
        self.is_asking = False
        self.rooms.begin()
        sums = self.sums()
        if u(sum(sums) % (1 << 64), 8) == digest:
            self.send(messages.SUMMARY, number, messages.EQUAL)
            self._are_level(range(messages.SUMMARY_BUCKETS))
        else:
            self.told_buckets = number
            self.send(messages.SUMMARY, number, messages.BUCKETS, messages.words(sums))

    def _buckets(self, theirs):
        ours = messages.words(self.sums())
        equal = {place for place in range(messages.SUMMARY_BUCKETS) if ours[8 * place :][:8] == theirs[8 * place :][:8]}
        self.listed = set(range(messages.SUMMARY_BUCKETS)) - equal
        listings = [messages.listing(self.channel.exporter, self.digests, place) for place in sorted(self.listed)]
        self.send(messages.SUMMARY, self.asked, messages.PARTITIONS, u(sum(1 << place for place in equal), 8), listings)
        self._are_level(equal, is_last=not self.listed)

    def _partitions(self, equal, listings):
        differing, missing = set(), []
        for place, theirs in listings:
            _, ours = messages.listing(self.channel.exporter, self.digests, place)
            theirs, ours = ({pairs[at : at + 16] for at in range(0, len(pairs), 16)} for pairs in (theirs, ours))
            differing |= {pair[:8] for pair in ours - theirs}
            missing += sorted(pair[:8] for pair in theirs - ours)
            self.level_partitions |= {
                id for id in self.digests if messages.bucket(id) == place and id[:8] not in differing}
        self.send_vectors(lambda partition: partition.id[:8] in differing)
        # Also of rooms that this side may not carry any more, or not yet.
        self.tell_rooms(lambda id: id[:8] in differing | set(missing))
        if listings:
            self.send(messages.SUMMARY, self.told_buckets, messages.DIFFERING, b"".join(missing))
        mask = int.from_bytes(equal, "big")
        self._are_level(place for place in range(messages.SUMMARY_BUCKETS) if mask >> place & 1)

    def _differing(self, content):
        differing = {content[place : place + 8] for place in range(0, len(content), 8)}
        for id in self.digests:
            if messages.bucket(id) in self.listed and id[:8] not in differing:
                self.level_partitions.add(id)
        self.send_vectors(lambda partition: partition.id[:8] in differing)
        self.tell_rooms(lambda id: id[:8] in differing, but=self.rooms.heard)
        self._are_level([])

    def tell_rooms(self, is_meant, but=()):
        for name in self.store.rooms:
            if is_meant(partition_id(self.store.fleet, name)) and name not in but:
                self.send_all(self.rooms.tell(name))

    def _are_level(self, buckets, is_last: bool = True):
        self.level |= set(buckets)
        self.is_compared = is_last
        self.is_asking = self.is_asking and not is_last
        for partition in self.store.partitions.values() if is_last else []:
            if self.is_common(partition) and self.is_level(partition) and partition.name not in self.streams:
                self.streams[partition.name] = Stream(0, 0)
                self.streams[partition.name].note(partition.vector)

    @property
    def says_differences(self) -> bool:
        """Both sides take pulls and first contexts that say how they differ from what was told."""
        own, peer = self.handshake.fields.get("features", 0), self.handshake.peer
        return bool(peer and own & peer.features & messages.DIFFERENCES)

    def note_told(self, name: str, vector: list):
        if self.says_differences and len(vector) >= messages.LEAST_TOLD and not self.streams.get(name, Stream()).was_pulled:
            self.told[name] = [*self.told.get(name, []), vector][-messages.TOLD_LIMIT :]

    def send_vectors(self, is_meant):
        meant = [item for item in self.store.partitions.values() if item.log and self.is_common(item) and is_meant(item)]
        for item in meant:
            self.note_told(item.name, item.vector)
            for part in messages.parts(item.name, item.vector):
                self.send(messages.VECTORS, [part])

    def joined(self, part: list) -> list | None:
        """Name, vector and what is staged, once the last part is here."""
        name, entries, has_more, *staged = part
        self.partial += entries
        if has_more:
            return None
        vector, self.partial = self.partial, []
        return [name, vector, *staged]

    # Streams

    def held(self, name: str) -> dict[bytes, int]:
        """What the other side has named of the partition: last sequences by replica."""
        return self.streams[name].held if name in self.streams else {}

    def _vectors(self, items):
        for item in items:
            self._have(item, is_whole=True)

    def _have(self, item, is_whole=False):
        whole = self.joined(item)
        if whole is None:
            return
        name, vector = whole
        partition = self.spoken_of(name)
        if partition is None:
            return
        stream = self.streams.setdefault(name, Stream())
        stream.note(vector)
        if is_whole:
            stream.heard = vector
        # A stream that an equal summary opened may be open here alone: who is told of more than came on it asks.
        if stream.incoming is None or stream.incoming == 0 and self.is_behind(partition, vector):
            self.pull(partition, stream)

    @staticmethod
    def is_behind(partition: Partition, vector: list) -> bool:
        held = {replica: sequence for replica, sequence, *_ in partition.vector}
        return any(sequence > held.get(replica, 0) for replica, sequence, *_ in vector)

    def pull(self, partition: Partition, stream: Stream):
        self.next_stream += 1
        stream.incoming, stream.passed_over = self.next_stream, set()
        stream.base = partition.vector if self.says_differences else []
        refers = self.says_differences and not stream.has_pulled and len(stream.heard) >= messages.LEAST_TOLD
        self.note_told(partition.name, partition.vector)
        stream.has_pulled = True
        if refers:
            differing = messages.differing(partition.name, partition.vector, stream.heard)
            self.send(messages.PULL, stream.incoming, differing, messages.vector_mark(stream.heard))
            return
        for part in messages.parts(partition.name, partition.vector):
            self.send(messages.PULL, stream.incoming, part)

    def _pull(self, number, wanted, mark=None):
        whole = self.joined(wanted)
        if whole is None:
            return
        name, vector, *staged = whole
        partition = self.spoken_of(name)
        if partition is None:
            return
        told = [item for item in self.told.pop(name, []) if messages.vector_mark(item) == mark]
        if mark is not None:
            vector = messages.put_together(told[-1] if told else [], vector)
        stream = self.streams.setdefault(name, Stream())
        stream.outgoing, stream.held, stream.covered, stream.was_pulled = number, {}, {}, True
        stream.staged = dict(staged[0] if staged else [])
        stream.note(vector)
        stream.heard = vector
        self.pump(name)
        if stream.incoming is None:
            # What it tells may be more than is here; it sends no vector beside.
            self.pull(partition, stream)

    def pump(self, name: str):
        """Sends what the other side lacks, if it has asked."""
        stream = self.streams.get(name)
        if stream is None or stream.outgoing is None or self.spoken_of(name) is None:
            return
        judgement = self.store.partitions[name].judgement
        for context, encoded, run in self.store.partitions[name].log:
            chain = judgement.chain(run.chain.replica.hex())
            counts = run.first <= chain.bound.bound[0] and chain.hash_at(run.last) == run.hashes[-1].hex()
            if counts and stream.covered.get(run.chain.replica, 0) < min(run.last, chain.bound.bound[0]):
                for number, *piece in self.pieces_of(name, stream.outgoing, run, stream.staged):
                    self.send(number, *piece)
                self.send_run(name, context, encoded)
                stream.cover([(run.chain.replica, run.last, b"")])

    @staticmethod
    def pieces_of(name: str, number: int, run: chains.Run, staged: dict) -> list:
        """The messages that go ahead of a run with a payload apart."""
        payload = run.changes[0].payload
        if len(payload) <= chains.INLINE_LIMIT:
            return []
        hash = sha256(payload)
        return [
            [messages.PAYLOAD_PIECE, name, number, hash, len(payload), offset, payload[offset : offset + PIECE_BYTES]]
            for offset in range(staged.get(hash, 0), len(payload), PIECE_BYTES)
        ]

    def send_run(self, name: str, context: list, encoded: bytes):
        entry = [[0, [list(item) for item in context]], encoded]
        self.send(messages.RUNS, name, self.streams[name].outgoing, False, [entry])

    def _runs(self, name, number, is_fork_evidence, entries):
        partition = self.spoken_of(name)
        if partition is None or is_fork_evidence:
            return
        stream = self.streams.setdefault(name, Stream())
        if stream.incoming is None and number == 0:
            # The other side alone takes it for level.
            self.pull(partition, stream)
        if number != stream.incoming:
            return
        for (form, content), encoded in entries:
            if form == 0:
                context = [tuple(entry) for entry in content]
            else:
                context = messages.put_together(stream.base, content)
            stream.base = context
            replica, *_, changes, _ = values.decode(encoded)
            payload = changes[0][2]
            apart = self.pieces.pop(payload[0], b"") if isinstance(payload, list) else b""
            if replica not in stream.passed_over:
                verdict, why = self.store.take(name, context, encoded, apart)
                if verdict == "aside" and why != "fork":
                    stream.passed_over.add(replica)
        for part in messages.parts(name, self.store.partitions[name].vector):
            self.send(messages.HAVE, part)

    def _payload_piece(self, name, number, hash, total, offset, content):
        if name not in self.streams or number != self.streams[name].incoming:
            return
        held = self.pieces.get(hash, b"")
        if len(held) != offset or offset + len(content) > total:
            raise ValueError("a piece out of order")
        self.pieces[hash] = held + content

    def _ping(self, nonce):
        self.send(messages.PONG, nonce)

    def _goodbye(self, reason):
        raise Refused(reason)

    _handlers = {
        messages.STATEMENTS: _statements, messages.INTEREST_REQUEST: _interest_request, messages.INTEREST: _interest,
        messages.INTEREST_CHANGE: _interest_change, messages.SUMMARY: _summary, messages.VECTORS: _vectors,
        messages.PULL: _pull, messages.RUNS: _runs,
        messages.PAYLOAD_PIECE: _payload_piece, messages.HAVE: _have, messages.PING: _ping,
        messages.PONG: lambda self, nonce: None, messages.GOODBYE: _goodbye,
        # This peer shows nothing of forks and of what is above limits.
        messages.CHAIN_PROBE: lambda self, *_: None,
    }  # fmt: skip
