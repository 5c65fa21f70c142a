"""What a real node's doctor says of members who break rules or take all that they may: each by name, once, with a count."""

import json
import os
import socket
import unittest

from live_node import PARTITION, LiveCase, creation, key
from seamesh_peer import chains, hashing, messages, payloads, statements
from seamesh_peer.messages import PROTOCOL_ERROR
from seamesh_peer.session import Refused, Session, Store

BROKEN, SPENT, UNDELETABLE = "rule-broken", "allowance-spent", "document-undeletable"
#: Half of what a device may, from which on it is named.
STATEMENTS, HALF_OF_STATEMENTS, HALF_OF_PARTITIONS = 1_024, 512, 2_048
LAST_GENERATION = (1 << 53) - 1
#: So often at the most, where what is to be told may be about to come.
ASKED = 50


class Doctor(LiveCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node.command("subscribe", "*")

    # What it says

    def over_http(self) -> list[dict]:
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(10)
        with link:
            link.connect(self.node.directory + "/api.sock")
            link.sendall(b"GET /v1/doctor HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: link.recv(65_536), b""))
        head, _, body = answer.partition(b"\r\n\r\n")
        self.assertEqual(head.split()[1], b"200")
        return json.loads(body)["findings"]

    def findings(self, code: str, store: Store) -> list[str]:
        """Of a device, as the command says them for programs; for people and over HTTP they are the same."""
        device = hashing.device_id(store.device).hex()[:8]
        for _ in range(ASKED):
            # What came meanwhile may be told by the second alone.
            told, again = json.loads(self.node.ask("doctor").stdout)["findings"], self.over_http()
            if told == again:
                break
        self.assertEqual(told, again)
        shown = self.node.ask_people("doctor").stdout
        meant = [item for item in told if item["code"] == code and device in item["message"]]
        for item in meant:
            self.assertIn(item["message"], shown)
            self.assertIn(item["remedy"], shown)
        return [item["message"] for item in meant]

    def awaited(self, code: str, store: Store, text: str) -> list[str]:
        """What was read is told once it is committed."""
        for _ in range(ASKED):
            found = self.findings(code, store)
            if any(text in message for message in found):
                break
        return found

    def assert_told(self, store: Store, reason: str, place: str = "", times: str = "once"):
        """The one thing that the device did, so often, the last time there."""
        device, user = hashing.device_id(store.device).hex()[:8], self.user
        message = f"Device {device} of {user} broke the protocol {times}: {reason}{place}."
        self.assertEqual(self.findings(BROKEN, store), [message])

    # A member who breaks rules

    @property
    def user(self) -> str:
        return self.id().rpartition(".")[2]

    def member(self, *names: str) -> Store:
        store = Store(self.node.fleet, key(self.id()), list(names) or [PARTITION])
        self.join(store, self.invite("--user", self.user))
        store.declare_replica(os.urandom(16))
        return store

    def place(self, run: chains.Run, change: int | None = None, name: str = PARTITION) -> str:
        return f", last in {name}, change {change or run.first} of replica {run.chain.replica.hex()}"

    def opened(self, store: Store, *names: str) -> Session:
        """A new connection on which the node has asked for these partitions."""
        session = self.connect(store)
        self.announce(session, *names or [PARTITION])
        return session

    def announce(self, session: Session, *names: str):
        for name in names:
            session.send(messages.HAVE, messages.partition_vector(name, [(session.store.replica, 1 << 20, bytes(16))]))
        # A stream that equal summaries have opened has the number 0.
        session.until(lambda: all(name in session.streams and session.streams[name].outgoing for name in names))

    def offer(self, store: Store, run: bytes):
        session = self.opened(store)
        session.send_run(PARTITION, [], run)
        self.assert_ends(session)

    def assert_ends(self, session: Session):
        with self.assertRaises(Refused) as refused:
            session.until(lambda: False)
        self.assertEqual(refused.exception.reason, PROTOCOL_ERROR)

    def run_of(self, store: Store, *writes, name: str = PARTITION) -> chains.Run:
        """Of the first change of the device's chain."""
        chain = chains.Chain(store.fleet, hashing.partition_id(store.fleet, name), store.replica)
        change = chains.plain_change(chain, 1, 1 << 16, 1, writes or creation("a", name="Ana"))
        return chains.Run(chain, 1, chain.genesis, [], [change])

    def test_a_run_that_does_not_read_is_told_once_and_counted_over_connections(self):
        store = self.member()
        run = self.run_of(store)
        self.offer(store, run.encode(store.key) + b"\0")
        self.assert_told(store, "a run that is not in its one form", self.place(run))
        self.offer(store, run.encode(store.key)[:-1])
        self.offer(store, run.encode(store.key) + b"\0\0")
        self.assert_told(store, "a run that is not in its one form", self.place(run), "3 times")

    def test_a_run_that_another_key_signed_is_told_of_the_device_that_sent_it(self):
        store = self.member()
        run = self.run_of(store)
        for times in ("once", "2 times"):
            self.offer(store, run.encode(key("thief")))
            self.assert_told(store, "a run whose signature does not hold", self.place(run), times)

    def test_a_run_by_a_replica_that_nobody_declared_is_told(self):
        store = self.member()
        declared, store.replica = store.replica, os.urandom(16)
        run, store.replica = self.run_of(store), declared
        for times in ("once", "2 times"):
            self.offer(store, run.encode(store.key))
            self.assert_told(store, "a run by a replica that nobody declared", self.place(run), times)

    def test_a_run_with_a_payload_that_was_never_sent_is_told_with_its_place(self):
        store = self.member()
        run = self.run_of(store, *creation("large", text="x" * 20_000))
        for times in ("once", "2 times"):
            self.offer(store, run.encode(store.key))
            self.assert_told(store, "a run whose payload did not come before it", self.place(run), times)

    def test_pieces_that_come_to_another_payload_are_told_with_their_partition(self):
        store = self.member()
        for times in ("once", "2 times"):
            session = self.opened(store)
            number = session.streams[PARTITION].outgoing
            session.send(messages.PAYLOAD_PIECE, PARTITION, number, os.urandom(32), 20_000, 0, bytes(20_000))
            self.assert_ends(session)
            self.assert_told(
                store, "pieces that do not come to the payload that they name", f", last in {PARTITION}", times)

    def test_pieces_out_of_order_are_told_with_their_partition(self):
        store = self.member()
        session = self.opened(store)
        number = session.streams[PARTITION].outgoing
        session.send(messages.PAYLOAD_PIECE, PARTITION, number, os.urandom(32), 40_000, 20_000, bytes(20_000))
        self.assert_ends(session)
        self.assert_told(store, "a piece of a payload out of order", f", last in {PARTITION}")

    def test_changes_that_break_the_same_rule_at_other_places_are_one_finding_with_the_last_place(self):
        store = self.member()
        for count in (1, 2, 3):
            run = self.run_of_many(store, count)
            self.offer(store, run.encode(store.key))
        self.assert_told(store, "a change that breaks the rules of documents", self.place(run, 3), "3 times")

    def run_of_many(self, store: Store, count: int) -> chains.Run:
        """Of so many changes, of which the last writes a document of no generation."""
        chain = chains.Chain(store.fleet, store.partitions[PARTITION].id, store.replica)
        writes = [creation(f"d{number}", name="Ana") for number in range(count - 1)]
        writes.append([payloads.Write("Vessel", "bad", payloads.CREATE, 0, creation("bad", name="Eve")[0].operations)])
        changes = [
            chains.plain_change(chain, number + 1, number + 1 << 16, 1, write) for number, write in enumerate(writes)]
        return chains.Run(chain, 1, chain.genesis, [], changes)

    def test_a_message_that_does_not_read_is_one_finding_wherever_it_ends(self):
        store = self.member()
        whole = messages.message(messages.HAVE, messages.partition_vector(PARTITION, [(store.replica, 1, bytes(16))]))
        for end in (18, 20, 30):
            session = self.connect(store)
            session.channel.send(whole[:end])
            self.assert_ends(session)
        self.assert_told(store, "bytes that do not read: ends too early", "", "3 times")

    def test_other_rules_of_one_device_are_other_findings(self):
        store = self.member()
        run = self.run_of(store)
        self.offer(store, run.encode(store.key) + b"\0")
        self.offer(store, run.encode(key("thief")))
        told = self.findings(BROKEN, store)
        self.assertEqual(len(told), 2)
        # The latest first.
        self.assertIn("signature does not hold", told[0])

    def test_who_is_no_member_is_in_the_log_alone(self):
        store = self.member()
        thief = Store(store.fleet, key("thief of " + self.id()), [])
        session = self.dial(thief)
        exporter = session.channel.exporter
        stolen = messages.hello_for(store.fleet, exporter, True, bytes(16)).signed(store.key, exporter, is_dialer=True)
        session.prepare()
        session.send_frame(stolen.encode())
        self.assert_ends(session)
        self.assertEqual(self.findings(BROKEN, thief), [])
        self.assertEqual(self.findings(BROKEN, store), [])

    # A member who takes all that he may

    def say(self, session: Session, said: list):
        for place in range(0, len(said), 20):
            session.send(messages.STATEMENTS, "", [item.encoded for item in said[place : place + 20]])
        self.settle(session)

    def settle(self, session: Session):
        """Until the node has worked off what was said before."""
        session.send(messages.PING, 1)
        while session.step() != messages.PONG:
            pass

    def declarations(self, store: Store, count: int) -> list[statements.Statement]:
        membership, said = store.membership().id, []
        last = next(item for item in store.statements.values() if item.issuer == store.device)
        for number in range(count):
            last = statements.make(
                store.fleet, store.key, last, statements.replica(store.device, hashing.u(number, 16), membership))
            said.append(last)
        return said

    def test_who_declares_half_of_the_replicas_that_he_may_is_named_with_the_figures(self):
        store = self.member()
        session = self.connect(store)
        self.assertEqual(self.findings(SPENT, store), [])
        said = self.declarations(store, HALF_OF_STATEMENTS)
        self.say(session, said)
        count = HALF_OF_STATEMENTS + 1
        [message] = self.awaited(SPENT, store, f" has signed {count} of ")
        self.assertIn(f" has signed {count} of {STATEMENTS} statements", message)
        self.assertIn(f", {count} for replica ids.", message)

    def test_who_begins_half_of_the_partitions_that_he_may_is_named(self):
        names = [f"flood={number}" for number in range(HALF_OF_PARTITIONS)]
        store = self.member(*names)
        session = self.connect(store)
        for place in range(0, len(names), 64):
            self.announce(session, *names[place : place + 64])
            for name in names[place : place + 64]:
                session.send_run(name, [], self.run_of(store, *creation("a", name="Eve"), name=name).encode(store.key))
        self.settle(session)
        [message] = self.awaited(SPENT, store, f" It writes in {HALF_OF_PARTITIONS} of ")
        self.assertIn(f" It writes in {HALF_OF_PARTITIONS} of 4096 partitions", message)

    # A document that nobody can delete

    def test_a_document_of_the_last_generation_is_named_once_somebody_wants_to_delete_it(self):
        name = "agency=undeletable"
        store = self.member(name)
        session = self.connect(store)
        session.send(messages.STATEMENTS, "", [item.encoded for item in store.statements.values() if item.issuer == store.device])
        fields = creation("stuck", name="Eve")[0].operations
        store.write(name, [payloads.Write("Vessel", "stuck", payloads.CREATE, LAST_GENERATION, fields)])
        session.send_vectors(lambda _: True)
        session.until(lambda: store.replica in session.held(name))
        refused = self.node.ask("delete", name, "Vessel", "stuck")
        self.assertNotEqual(refused.returncode, 0)
        told = [item["message"] for item in self.over_http() if item["code"] == UNDELETABLE]
        self.assertEqual(len(told), 1)
        self.assertIn(f"Vessel stuck in {name}", told[0])


if __name__ == "__main__":
    unittest.main()
