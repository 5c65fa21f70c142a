"""A device's store and its sessions with other nodes: statements, interest, summaries, streams.

One thread, one message at a time. It keeps everything in memory and pulls and pushes whole runs, as the protocol's
description asks of anyone.
"""

import os
import time
from dataclasses import dataclass, field

from nacl.signing import SigningKey

from . import chains, channel, messages, statements, values
from .hashing import partition_id, public_key, sha256
from .messages import message

TIP_BYTES = 16
PIECE_BYTES = 64 * 1024


class Refused(Exception):
    """The other side said goodbye, or refused to admit; `reason` is its number."""

    def __init__(self, reason: int):
        super().__init__(f"reason {reason}")
        self.reason = reason


@dataclass
class Partition:
    name: str
    id: bytes
    #: (context, run as bytes, run), in order of arrival.
    log: list = field(default_factory=list)

    @property
    def vector(self) -> list:
        ends = {}
        for _, _, run in self.log:
            ends[run.chain.replica] = (run.chain.replica, run.last, run.hashes[-1][:TIP_BYTES])
        return sorted(ends.values())


class Store:
    """What a device keeps between sessions."""

    def __init__(self, fleet: bytes, key: SigningKey, names: list[str]):
        self.fleet, self.key, self.device = fleet, key, public_key(key)
        self.statements: dict[bytes, statements.Statement] = {}
        self.partitions: dict[str, Partition] = {}
        for name in names:
            self.want(name)
        self.replica: bytes | None = None
        #: What other nodes want, by the digest of it.
        self.interests: dict[bytes, list] = {}

    @property
    def authority(self) -> bytes:
        return messages.authority_digest(list(self.statements))

    @property
    def wanted(self) -> list[bytes]:
        return sorted(partition.id for partition in self.partitions.values())

    def keep(self, encoded: bytes) -> statements.Statement:
        statement = statements.read(encoded)
        if statement.fleet != self.fleet:
            raise ValueError("a statement of another fleet")
        self.statements[statement.id] = statement
        return statement

    def sign(self, kind_and_body) -> statements.Statement:
        own = [item.sequence for item in self.statements.values() if item.issuer == self.device]
        return self.keep(statements.make(self.fleet, self.key, max(own, default=0) + 1, kind_and_body).encoded)

    def membership(self) -> statements.Statement:
        mine = (item for item in self.statements.values() if item.kind == statements.MEMBERSHIP)
        return next(item for item in mine if item.body[0] == self.device)

    def signer(self, replica: bytes) -> bytes:
        """The device that declared the replica; StopIteration where none did."""
        declared = (item for item in self.statements.values() if item.kind == statements.REPLICA)
        return next(item.issuer for item in declared if item.body[0] == replica)

    def declare_replica(self, nonce: bytes) -> statements.Statement:
        statement = self.sign(statements.replica(self.device, nonce, self.membership().id))
        self.replica = statement.body[0]
        return statement

    def want(self, name: str) -> Partition:
        self.partitions[name] = Partition(name, partition_id(self.fleet, name))
        return self.partitions[name]

    def context(self, name: str) -> list:
        """What a change written now has seen of others."""
        return [entry for entry in self.partitions[name].vector if entry[0] != self.replica]

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

    def take(self, name: str, context: list, encoded: bytes, payload_apart: bytes = b"") -> None:
        """Keeps a run if its hashes, signature and context hold and it fits; ValueError otherwise."""
        partition = self.partitions[name]
        run, signature = chains.read(encoded, self.fleet, partition.id, context, payload_apart)
        if not run.is_signed(signature, self.signer(run.chain.replica)):
            raise ValueError("a run that its replica's device did not sign")
        held = {replica: (sequence, tip) for replica, sequence, tip in partition.vector}
        sequence, _ = held.get(run.chain.replica, (0, b""))
        if run.last <= sequence:
            return
        before = next((item.hashes[-1] for _, _, item in reversed(partition.log) if item.chain == run.chain), None)
        if run.first != sequence + 1 or run.hash_before != (before or run.chain.genesis):
            raise ValueError("a run that does not follow on its chain")
        if any(held.get(replica, (0, b""))[0] < seen for replica, seen, _ in context):
            raise ValueError("a run before what it has seen")
        partition.log.append((context, encoded, run))


@dataclass
class Stream:
    """One partition on one session. Numbers are None where nothing was asked for."""

    outgoing: int | None = None
    incoming: int | None = None
    base: list = field(default_factory=list)
    #: Last sequences that the other side has named, and those that it has or is being sent.
    held: dict = field(default_factory=dict)
    covered: dict = field(default_factory=dict)
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
    """The dialer's side of one connection. `trace` holds (sent by us, number, frame bytes) of every message."""

    def __init__(self, store: Store, host: str, port: int, key: SigningKey | None = None):
        self.store = store
        self.trace: list[tuple[bool, int, int]] = []
        self.key = key or store.key
        self.channel = channel.dial(host, port, self.key)
        self.instance = os.urandom(16)
        self.streams: dict[str, Stream] = {}
        self.peer: messages.Hello | None = None
        self.peer_interest = None
        self.peer_statements_complete = self.statements_sent = False
        self.summary_sent = self.summary_received = None
        self.level: set[int] = set()
        #: Wanted by either side since the session began: earlier summaries did not count it.
        self.late: list[tuple[list[bytes], list[str]]] = []
        self.is_compared = False
        self.next_stream = 1
        self.pieces: dict[bytes, bytes] = {}

    def close(self):
        self.channel.close()

    # Messages

    def send(self, number: int, *items):
        self.send_frame(message(number, *items))

    def send_frame(self, frame: bytes):
        self.trace.append((True, frame[1] if frame[1] < 24 else frame[2], len(frame) + 4))
        self.channel.send(frame)

    def receive(self, seconds: float = 20) -> tuple[int, list]:
        frame = self.channel.receive(seconds)
        number, items = messages.read(frame)
        self.trace.append((False, number, len(frame) + 4))
        return number, items

    def step(self, seconds: float = 20) -> int:
        number, items = self.receive(seconds)
        self._handlers[number](self, *items)
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

    def join(self, request: messages.JoinRequest, admission: SigningKey):
        """Returns once admitted; the other side then closes."""
        self.send_frame(request.proved(admission, self.channel.exporter).encode())
        while True:
            number, items = self.receive()
            if number == messages.JOIN_ACCEPTED:
                return
            if number == messages.JOIN_REFUSED:
                raise Refused(items[0])
            for encoded in items[0] if number == messages.STATEMENTS else []:
                self.store.keep(encoded)

    # Handshake

    def hello(self) -> messages.Hello:
        own = messages.hello_for(
            self.key, self.store.fleet, self.instance, replica=self.store.replica, wall=int(time.time() * 1_000),
            authority=self.store.authority, interest=messages.interest_digest(self.store.wanted, []))
        return own.signed(self.key, self.channel.exporter, is_dialer=True)

    def start(self):
        """From hello to the comparison of summaries."""
        self.settle(self.greet())

    def greet(self) -> messages.Hello:
        own = self.hello()
        self.send_frame(own.encode())
        return own

    def settle(self, own: messages.Hello):
        self.until(lambda: self.peer)
        if self.peer.authority != own.authority:
            self.send(messages.STATEMENT_IDS, sorted(id[:TIP_BYTES] for id in self.store.statements))
            self.until(lambda: self.peer_statements_complete and self.statements_sent)
        if self.peer.interest == own.interest:
            self.peer_interest = [self.store.wanted, []]
        self.peer_interest = self.peer_interest or self.store.interests.get(self.peer.interest)
        if self.peer_interest is None:
            self.send(messages.INTEREST_REQUEST)
            self.until(lambda: self.peer_interest)
        self.send_summary()
        self.until(lambda: self.is_compared)

    def _hello(self, *items):
        peer = messages.Hello.read(list(items))
        if peer.fleet != self.store.fleet or peer.device != self.channel.peer or not peer.is_signed(
                self.channel.exporter, is_dialer=False):
            raise ValueError("a hello that does not hold")
        self.peer = peer

    def _statement_ids(self, held):
        for id, statement in sorted(self.store.statements.items()):
            if id[:TIP_BYTES] not in held:
                self.send(messages.STATEMENTS, [statement.encoded])
        self.send(messages.STATEMENTS_COMPLETE)
        self.statements_sent = True

    def _statements(self, encoded):
        for item in encoded:
            self.store.keep(item)

    def _statements_complete(self):
        self.peer_statements_complete = True

    def _interest_request(self):
        self.send(messages.INTEREST, self.store.wanted, [])

    def _interest(self, partitions, prefixes):
        self.peer_interest = [partitions, prefixes]
        self.store.interests[messages.interest_digest(partitions, prefixes)] = self.peer_interest

    def want(self, name: str):
        """Wants a partition on a standing session."""
        partition = self.store.want(name)
        self.late.append(([partition.id], []))
        self.send(messages.INTEREST_CHANGE, [partition.id], [], [], [])
        self.send_vectors(lambda item: item is partition)

    def _interest_change(self, added, added_prefixes, removed, removed_prefixes):
        self.late.append((added, added_prefixes))
        partitions, prefixes = self.peer_interest or [[], []]
        self._interest(
            sorted(set(partitions) - set(removed) | set(added)),
            sorted(set(prefixes) - set(removed_prefixes) | set(added_prefixes)))
        self.send_vectors(lambda partition: is_wanted(partition, added, added_prefixes))

    # Summaries

    def is_common(self, partition: Partition) -> bool:
        return is_wanted(partition, *self.peer_interest)

    def is_level(self, partition: Partition) -> bool:
        return partition.id[0] >> 2 in self.level and not any(is_wanted(partition, *late) for late in self.late)

    def send_summary(self):
        vectors = {item.id: item.vector for item in self.store.partitions.values() if self.is_common(item) and item.log}
        frame = messages.summary(self.channel.exporter, vectors)
        self.summary_sent = messages.read(frame)[1][0]
        self.send_frame(frame)
        self._compare()

    def _summary(self, content):
        self.summary_received = content
        if self.peer_interest is not None and self.summary_sent is None:
            self.send_summary()
        self._compare()

    def _compare(self):
        if self.summary_sent is None or self.summary_received is None:
            return
        pairs = [
            (self.summary_sent[place : place + 8], self.summary_received[place : place + 8])
            for place in range(0, 8 * messages.SUMMARY_BUCKETS, 8)
        ]
        self.level = {bucket for bucket, (ours, theirs) in enumerate(pairs) if ours == theirs}
        self.summary_sent = self.summary_received = None
        self.is_compared = True
        for partition in self.store.partitions.values():
            if self.is_common(partition) and self.is_level(partition):
                stream = self.streams.setdefault(partition.name, Stream(0, 0))
                stream.note(partition.vector)
        self.send_vectors(lambda partition: partition.id[0] >> 2 not in self.level)

    def send_vectors(self, is_meant):
        meant = [item for item in self.store.partitions.values() if item.log and self.is_common(item) and is_meant(item)]
        if meant:
            self.send(messages.VECTORS, [messages.partition_vector(item.name, item.vector) for item in meant])

    # Streams

    def held(self, name: str) -> dict[bytes, int]:
        """What the other side has named of the partition: last sequences by replica."""
        return self.streams[name].held if name in self.streams else {}

    def _vectors(self, items):
        for item in items:
            self._have(item)

    def _have(self, item):
        name, vector = item
        partition, stream = self.store.partitions[name], self.streams.setdefault(name, Stream())
        stream.note(vector)
        if stream.incoming is None:
            self.next_stream += 1
            stream.incoming, stream.base = self.next_stream, []
            self.send(messages.PULL, stream.incoming, messages.partition_vector(name, partition.vector))

    def _pull(self, number, wanted):
        name, vector, *staged = wanted
        stream = self.streams.setdefault(name, Stream())
        stream.outgoing, stream.held, stream.covered = number, {}, {}
        stream.staged = dict(staged[0] if staged else [])
        stream.note(vector)
        self.pump(name)

    def pump(self, name: str):
        """Sends what the other side lacks, if it has asked."""
        stream = self.streams.get(name)
        if stream is None or stream.outgoing is None:
            return
        for context, encoded, run in self.store.partitions[name].log:
            if stream.covered.get(run.chain.replica, 0) < run.last:
                for number, *piece in self.pieces_of(run, stream.staged):
                    self.send(number, *piece)
                self.send_run(name, context, encoded)
                stream.cover([(run.chain.replica, run.last, b"")])

    @staticmethod
    def pieces_of(run: chains.Run, staged: dict) -> list:
        """The messages that go ahead of a run with a payload apart."""
        payload = run.changes[0].payload
        if len(payload) <= chains.INLINE_LIMIT:
            return []
        hash = sha256(payload)
        return [
            [messages.PAYLOAD_PIECE, hash, len(payload), offset, payload[offset : offset + PIECE_BYTES]]
            for offset in range(staged.get(hash, 0), len(payload), PIECE_BYTES)
        ]

    def send_run(self, name: str, context: list, encoded: bytes):
        entry = [[0, [list(item) for item in context]], encoded]
        self.send(messages.RUNS, name, self.streams[name].outgoing, False, [entry])

    def _runs(self, name, number, is_fork_evidence, entries):
        stream = self.streams[name]
        if number != stream.incoming or is_fork_evidence:
            return
        for (form, content), encoded in entries:
            if form == 0:
                context = [tuple(entry) for entry in content]
            else:
                changed = {entry[0]: tuple(entry) for entry in stream.base} | {entry[0]: tuple(entry) for entry in content}
                context = sorted(entry for entry in changed.values() if entry[1])
            stream.base = context
            payload = values.decode(encoded)[-2][0][2]
            self.store.take(name, context, encoded, self.pieces.pop(payload[0], b"") if isinstance(payload, list) else b"")
        self.send(messages.HAVE, messages.partition_vector(name, self.store.partitions[name].vector))

    def _payload_piece(self, hash, total, offset, content):
        held = self.pieces.get(hash, b"")
        if len(held) != offset or offset + len(content) > total:
            raise ValueError("a piece out of order")
        self.pieces[hash] = held + content

    def _ping(self, nonce):
        self.send(messages.PONG, nonce)

    def _goodbye(self, reason):
        raise Refused(reason)

    _handlers = {
        messages.HELLO: _hello, messages.STATEMENT_IDS: _statement_ids, messages.STATEMENTS: _statements,
        messages.STATEMENTS_COMPLETE: _statements_complete, messages.INTEREST_REQUEST: _interest_request,
        messages.INTEREST: _interest, messages.INTEREST_CHANGE: _interest_change, messages.SUMMARY: _summary,
        messages.VECTORS: _vectors, messages.PULL: _pull, messages.RUNS: _runs,
        messages.PAYLOAD_PIECE: _payload_piece, messages.HAVE: _have, messages.PING: _ping,
        messages.PONG: lambda self, nonce: None, messages.GOODBYE: _goodbye,
    }  # fmt: skip
