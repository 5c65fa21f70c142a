"""Tests of the outside peer by itself: run with `/usr/bin/python3 -m unittest discover -s Tests/Interop`."""

import dataclasses
import re
import socket
import threading
import unittest

import documentation
import make_vectors
from make_vectors import DEVICE, EXPORTER, FLEET, REPLICA, ROOT, key
from seamesh_peer import (
    chains, channel, curve, handshake, hashing, joining, messages, payloads, records, session, statements, values)


class Vectors(unittest.TestCase):
    def test_stored_vectors_are_what_this_implementation_makes(self):
        self.assertEqual(make_vectors.PATH.read_text(), make_vectors.make(), "run Tests/Interop/make_vectors.py")


class Values(unittest.TestCase):
    def test_examples_of_rfc_8949_appendix_a(self):
        examples = {
            "1903e8": 1000, "3903e7": -1000, "f90000": 0.0, "f98000": -0.0, "fa47c35000": 100000.0,
            "fb3ff199999999999a": 1.1, "83010203": [1, 2, 3], "a26161016162820203": {"a": 1, "b": [2, 3]},
        }  # fmt: skip
        for encoded, value in examples.items():
            self.assertEqual(values.encode(value).hex(), encoded)
            self.assertEqual(values.decode(bytes.fromhex(encoded)), value)

    def test_other_forms_are_refused(self):
        for encoded in ["1800", "fb3ff8000000000000", "9fff", "a2616201616101", "fb7ff8000000000000"]:
            with self.assertRaises(ValueError, msg=encoded):
                values.decode(bytes.fromhex(encoded))

    def test_canonical_order_is_the_order_of_values(self):
        ordered = [None, False, True, -(2**63), -1, 0, 2**63 - 1, -1.5, -0.0, 0.0, 1e-9, 2.0, "", "a", "a\0", "b", b"\0"]
        self.assertEqual([values.canonical(item) for item in ordered], sorted(map(values.canonical, ordered)))


class Documentation(unittest.TestCase):
    """The examples in Docs/PROTOCOL.md, read by an implementation that did not make them."""

    FLEET, PARTITION, REPLICA = b"\x11" * 32, b"\x22" * 32, bytes(range(1, 17))

    def setUp(self):
        self.golden = documentation.golden()
        self.chain = chains.Chain(self.FLEET, self.PARTITION, self.REPLICA)

    def test_every_example_is_deterministic(self):
        self.assertTrue(self.golden)
        for name, content in self.golden.items():
            if re.search("-(hash|hashes|digest|signed-bytes|proved-bytes|answer-bytes|proof)$|^mark-", name):
                continue
            with self.subTest(name):
                values.decode(content)

    def test_the_run_with_one_change_hashes_as_documented(self):
        replica, first, before, context_digest, changes, signature = values.decode(self.golden["run-single"])
        timestamp, wall, payload = changes[0]
        self.assertEqual((replica, first), (self.REPLICA, 1))
        context = [(bytes(range(0xA0, 0xB0)), 9, (1).to_bytes(8, "big") + (2).to_bytes(8, "big"))]
        keys = self.golden["key-hashes"]
        change = chains.Change(1, timestamp, wall, payload, [keys[place : place + 16] for place in range(0, len(keys), 16)])
        run = chains.Run(self.chain, first, before, context, [change])
        self.assertEqual(self.chain.genesis, self.golden["genesis-hash"])
        self.assertEqual(before, self.golden["genesis-hash"])
        self.assertEqual(chains.context_digest(context), self.golden["context-digest"])
        self.assertEqual(context_digest, self.golden["context-digest"])
        self.assertEqual(payload, self.golden["payload"])
        self.assertEqual(hashing.sha256(payload), self.golden["payload-hash"])
        self.assertEqual(run.hashes[-1], self.golden["chain-hash"])
        self.assertEqual(run.signed_bytes, self.golden["run-signed-bytes"])
        self.assertEqual(signature, b"\x55" * 32 + b"\x66" * 32)

    def test_key_hashes_follow_from_the_payload(self):
        hashes = payloads.key_hashes(self.golden["payload"], self.PARTITION)
        self.assertEqual(b"".join(hashes), self.golden["key-hashes"])

    def test_the_list_of_a_blob_is_hashed_as_documented(self):
        pieces = hashing.sha256(hashing.tag("pieces"), b"\x77" * 32, b"\x78" * 32)
        self.assertEqual(pieces, self.golden["blob-list-hash"])

    CONTEXT = [(bytes(range(0xA0, 0xB0)), 9, (1).to_bytes(8, "big") + (2).to_bytes(8, "big"))]

    def test_runs_read_back_and_are_made_again(self):
        large = values.decode(self.golden["run-apart"])[4][0][2]
        text = "x" * 16_384
        write = payloads.Write("Vessel", 7, payloads.EDIT, 1, [payloads.Operation(payloads.SET, ["notes"], text)])
        apart = payloads.encode([write], (self.REPLICA, 1))
        self.assertEqual([hashing.sha256(apart), len(apart)], large)
        for name in ["run-single", "run-extensions", "run-sealed", "run-apart", "run-headers-only"]:
            with self.subTest(name):
                golden = self.golden[name]
                run, signature = chains.read(golden, self.FLEET, self.PARTITION, self.CONTEXT, apart)
                only = [place for place, change in enumerate(run.changes) if change.payload_name]
                self.assertEqual(only, [1] if name == "run-headers-only" else [])
                made = values.decode(run.encode(DEVICE, only))
                self.assertEqual(values.encode([*made[:5], signature]), golden)
        whole, _ = chains.read(self.golden["run-extensions"], self.FLEET, self.PARTITION, self.CONTEXT)
        self.assertEqual(whole.changes[2].extensions[chains.ORIGIN], chains.origin(self.CONTEXT[0][0], 5, b"\x33" * 32))

    def test_a_header_alone_has_the_hash_of_the_whole_change(self):
        alone, _ = chains.read(self.golden["run-headers-only"], self.FLEET, self.PARTITION, self.CONTEXT)
        writes = [
            payloads.Write("Vessel", 7, payloads.EDIT, 1, [payloads.Operation(payloads.SET, ["notes"], note)])
            for note in ["calm", "rough"]
        ]
        changes = [
            chains.plain_change(self.chain, place + 1, change.timestamp, change.wall, [writes[place]])
            for place, change in enumerate(alone.changes)
        ]
        self.assertEqual(chains.Run(self.chain, 1, self.chain.genesis, self.CONTEXT, changes).hashes, alone.hashes)

    def test_holdings_and_the_bundle_are_made_again(self):
        tip = lambda high, low: high.to_bytes(8, "big") + low.to_bytes(8, "big")
        vector = [(self.CONTEXT[0][0], 9, tip(1, 2)), (self.REPLICA, 3, tip(3, 4))]
        held = records.Holdings(
            self.FLEET, b"\x99" * 32, "agency=Gabon", 7, vector, records.ACCEPTED, (self.REPLICA, 4))
        self.assertEqual(held.signed_bytes, self.golden["holdings-signed-bytes"])
        self.assertEqual(held.with_signature(b"\x55" * 32 + b"\x66" * 32), self.golden["holdings"])
        runs = [
            [[0, [list(entry) for entry in self.CONTEXT]], self.golden["run-single"]], [[1, []], self.golden["run-sealed"]],
        ]  # fmt: skip
        made = records.bundle(self.FLEET, [self.golden["statement-rule"]], {"agency=Gabon": runs})
        self.assertEqual(made, self.golden["bundle"])


class Signatures(unittest.TestCase):
    def test_the_library_and_the_equation_agree_on_honest_and_hostile_signatures(self):
        for case in make_vectors.make_signatures():
            with self.subTest(case["name"]):
                self.assertEqual(case["is_accepted"], hashing.verify(case["signature"], case["message"], case["key"]))

    def test_the_curve_has_the_base_and_the_order_of_the_standard(self):
        self.assertEqual(curve.encode(curve.BASE).hex(), "58" + "66" * 31)
        self.assertEqual(curve.times(curve.L, curve.BASE), curve.ZERO)
        self.assertEqual(curve.times(8, curve.TORSION), curve.ZERO)


class Statements(unittest.TestCase):
    def setUp(self):
        self.statement = statements.make(FLEET, ROOT, None, statements.rule("agency"))

    def test_a_statement_reads_back(self):
        self.assertEqual(statements.read(self.statement.encoded), self.statement)

    def test_any_turned_bit_is_found(self):
        for place in range(len(self.statement.encoded)):
            for bit in range(8):
                content = bytearray(self.statement.encoded)
                content[place] ^= 1 << bit
                with self.assertRaises(Exception, msg=f"byte {place}, bit {bit}"):
                    statements.read(bytes(content))


class Judging(unittest.TestCase):
    """What the store takes and shows, by statements and runs as they are signed."""

    NAME = "agency=Gabon"
    KINDS = {"lowering": "grant", "invitation": "invite", "removal": "remove"}

    def setUp(self):
        root = hashing.public_key(ROOT)
        self.fleet = hashing.fleet_id(root)
        self.last = None
        self.store = self.new_store(DEVICE)
        self.say(statements.genesis("North"))
        joined = statements.membership(self.store.device, "ana", "", "crew", {"agency": "Gabon"})
        self.membership = self.say(joined)

    def new_store(self, device) -> session.Store:
        return session.Store(self.fleet, device, [self.NAME])

    def say(self, content) -> statements.Statement:
        """By root."""
        self.last = statements.make(self.fleet, ROOT, self.last, content)
        return self.store.keep(self.last.encoded)

    def run_of(self, **fields) -> tuple:
        """The next of the device, which declares its replica first where it has none."""
        if self.store.replica is None:
            self.store.declare_replica(bytes(16))
        operations = [payloads.Operation(payloads.SET, [name], fields[name]) for name in fields]
        writes = [payloads.Write("Vessel", "v", payloads.EDIT, 1, operations)]
        return self.NAME, self.store.context(self.NAME), self.store.make_run(self.NAME, writes).encode(DEVICE)

    def test_a_run_without_a_right_is_put_aside_until_a_rule_gives_one(self):
        run = self.run_of(name="Ana")
        self.assertEqual(self.store.take(*run), ("aside", "no-grant"))
        self.assertEqual(self.store.partitions[self.NAME].vector, [])
        self.say(statements.rule("agency"))
        self.assertEqual(self.store.take(*run)[0], "take")
        self.assertEqual(self.store.take(*run)[0], "have")
        document, = self.store.partitions[self.NAME].documents()
        self.assertEqual((document.id, document.body), ("v", {"name": "Ana"}))

    def test_what_an_end_does_not_list_is_held_and_not_shown(self):
        self.say(statements.rule("agency"))
        for name in ["Ana", "Ben"]:
            self.store.take(*self.run_of(name=name))
        partition = self.store.partitions[self.NAME]
        (replica, _, _), = partition.vector
        first = partition.log[0][2].hashes[0][: session.TIP_BYTES]
        own = max((item for item in self.store.statements.values() if item.issuer == self.store.device),
                  key=lambda item: item.sequence)
        tips = [["", [[own.issuer, own.sequence, own.id]]]]
        ends = [[self.NAME, [[replica, 1, first]]]]
        self.say(statements.end(2, [0, self.membership.id], ends, tips))
        self.assertEqual(partition.vector, [(replica, 1, first)])
        self.assertEqual([item[1::2] for item in partition.judgement.held()], [(2, "above-end")])
        self.assertEqual(partition.documents()[0].body, {"name": "Ana"})
        self.assertEqual(self.store.take(*self.run_of(name="Cora")), ("aside", "above-end"))

    def test_a_run_by_another_device_or_of_a_replica_that_nobody_declared_is_refused(self):
        self.say(statements.rule("agency"))
        name, context, run = self.run_of(name="Ana")
        fields = values.decode(run)
        thief = chains.read(run, self.fleet, self.store.partitions[name].id, context)[0].encode(key(9))
        self.assertNotEqual(values.decode(thief)[-1], fields[-1])
        with self.assertRaises(ValueError):
            self.store.take(name, context, thief)
        self.store.replica = bytes(16)
        with self.assertRaises(ValueError):
            self.store.take(*self.run_of(name="Ana"))

    def test_a_statement_to_which_nothing_leads_is_not_kept(self):
        stranger = statements.make(self.fleet, key(9), None, statements.rule("user"))
        self.store.keep(stranger.encoded)
        self.store.settle()
        self.assertNotIn(stranger.id, self.store.statements)
        self.assertIn(self.membership.id, self.store.statements)

    def test_the_examples_of_statements_have_the_shapes_of_their_kinds(self):
        examples = {name: item for name, item in documentation.golden().items() if name.startswith("statement-")}
        self.assertEqual(len(examples), 13)
        for name, content in examples.items():
            with self.subTest(name):
                judged = statements.to_judge(statements.Statement(*values.decode(content)[1:], content))
                kind = name.removeprefix("statement-")
                self.assertEqual(judged.kind, self.KINDS.get(kind, kind))
                self.assertFalse(judged.is_unread)

    def test_of_an_unknown_shape_is_read_what_never_changes(self):
        later = statements.make(self.fleet, ROOT, None, (statements.MEMBERSHIP, [self.store.device, "crew", "ana", 7]))
        judged = statements.to_judge(later)
        self.assertTrue(judged.is_unread)
        self.assertEqual((judged.body["device"], judged.body["role"]), (self.store.device.hex(), "crew"))
        without_tips = statements.make(self.fleet, ROOT, None, (statements.GRANT, [7]))
        with self.assertRaises(ValueError):
            statements.to_judge(without_tips)


class Chains(unittest.TestCase):
    def test_the_signature_covers_every_part_of_a_run(self):
        chain = chains.Chain(FLEET, bytes(32), REPLICA)
        write = payloads.Write("a", 1, payloads.DELETE, 2)
        change = chains.plain_change(chain, 1, 1, 1, [write])
        run = chains.Run(chain, 1, chain.genesis, [], [change])
        signature = values.decode(run.encode(DEVICE))[-1]
        public = hashing.public_key(DEVICE)
        self.assertTrue(run.is_signed(signature, public))
        others = [
            chains.Run(chains.Chain(FLEET, bytes([1]) * 32, REPLICA), 1, chain.genesis, [], [change]),
            chains.Run(chain, 2, chain.genesis, [], [change]),
            chains.Run(chain, 1, bytes(32), [], [change]),
            chains.Run(chain, 1, chain.genesis, [(bytes(16), 1, bytes(16))], [change]),
            chains.Run(chain, 1, chain.genesis, [], [chains.plain_change(chain, 1, 2, 1, [write])]),
            chains.Run(chain, 1, chain.genesis, [], [dataclasses.replace(change, codec=1)]),
            chains.Run(chain, 1, chain.genesis, [], [dataclasses.replace(change, extensions={1: b""})]),
            chains.Run(chain, 1, chain.genesis, [], [change, dataclasses.replace(change, sequence=2)]),
        ]
        for place, other in enumerate(others):
            self.assertFalse(other.is_signed(signature, public), place)


class Joining(unittest.TestCase):
    def test_a_code_reads_back_however_it_was_typed(self):
        code = joining.make_code(FLEET, bytes(32), 1, bytes(32), 9, ["10.0.0.1:80", "010.0.0.1:80"])
        spaced = "-".join(code[place : place + 5] for place in range(0, len(code), 5)).lower()
        self.assertEqual(joining.read_code(spaced)["addresses"], ["10.0.0.1:80", "010.0.0.1:80"])
        with self.assertRaises(ValueError):
            joining.read_code(("B" if code[0] != "B" else "C") + code[1:])


class Messages(unittest.TestCase):
    DEVICE_KEY = hashing.public_key(DEVICE)

    def hello(self, **fields) -> messages.Hello:
        return messages.hello_for(FLEET, EXPORTER, True, bytes(16), **fields).signed(DEVICE, EXPORTER, is_dialer=True)

    def test_a_hello_holds_for_its_connection_side_and_device_alone(self):
        encoded = self.hello().encode()
        number, items = messages.read(encoded)
        self.assertEqual(number, messages.HELLO)
        hello = messages.Hello.read(items)
        self.assertEqual(hello.encode(), encoded)
        self.assertTrue(hello.is_signed(EXPORTER, True, self.DEVICE_KEY))
        self.assertFalse(hello.is_signed(EXPORTER, False, self.DEVICE_KEY))
        self.assertFalse(hello.is_signed(bytes(32), True, self.DEVICE_KEY))
        self.assertFalse(hello.is_signed(EXPORTER, True, hashing.public_key(key(9))))

    def test_the_signature_covers_every_part_of_a_hello(self):
        hello = self.hello()
        others = {
            "proof": bytes(32), "instance": b"\1" * 16, "wall": 1, "listen_port": 1, "authority": bytes(16),
            "interest": bytes(16), "extensions": {1: b""}, "version": 2, "features": 1,
        }  # fmt: skip
        self.assertEqual({*others, "signature"}, {item.name for item in dataclasses.fields(hello)})
        for name, other in others.items():
            changed = dataclasses.replace(hello, **{name: other})
            self.assertFalse(changed.is_signed(EXPORTER, True, self.DEVICE_KEY), name)

    def test_proofs_and_marks_differ_by_fleet_connection_side_and_kind(self):
        digest = bytes(32)
        proofs = {messages.fleet_proof(*each) for each in [
            (FLEET, EXPORTER, True), (FLEET, EXPORTER, False), (FLEET, bytes(32), True), (bytes(32), EXPORTER, True)]}
        self.assertEqual(len(proofs), 4)
        marks = {messages.mark(*each, digest) for each in [
            (FLEET, EXPORTER, True, 1), (FLEET, EXPORTER, True, 2), (FLEET, EXPORTER, False, 1),
            (FLEET, bytes(32), True, 1), (bytes(32), EXPORTER, True, 1)]}
        self.assertEqual(len(marks), 5)
        self.assertEqual({len(item) for item in marks}, {16})

    def test_a_hello_that_is_out_of_bounds_is_refused(self):
        _, items = messages.read(self.hello(extensions={1: b"x"}).encode())
        messages.Hello.read(items)
        for place, other in [
            (0, 0), (0, True), (1, -1), (2, bytes(31)), (3, bytes(15)), (4, 1 << 63), (5, 1 << 16), (6, bytes(32)),
            (7, None), (8, bytes(63)), (9, []), (9, {32_768: b""}), (9, {-1: b""}), (9, {1: 1}),
            (9, {key: b"" for key in range(9)}), (9, {1: bytes(1_025)}),
        ]:
            with self.subTest(f"{place}: {other}"), self.assertRaises(ValueError):
                messages.Hello.read([*items[:place], other, *items[place + 1 :]])
        for count in (len(items) - 1, len(items) + 1):
            with self.assertRaises(ValueError):
                messages.Hello.read((items * 2)[:count])

    def test_a_request_to_join_shows_the_fleet_to_who_knows_it_alone(self):
        request = messages.JoinRequest(FLEET, bytes(32), 1, bytes(32), "label").proved(bytes(32), EXPORTER)
        encoded = request.encode()
        self.assertNotIn(FLEET, encoded)
        self.assertEqual(messages.read(encoded)[1][0], messages.fleet_proof(FLEET, EXPORTER, is_dialer=True))


class Channels(unittest.TestCase):
    def test_both_ends_see_each_others_key_and_the_same_exporter(self):
        listener = socket.create_server(("127.0.0.1", 0))
        accepted = []

        def accept():
            sock, _ = listener.accept()
            server = channel.Channel(sock, key(4), dialling=False)
            accepted.append(server)
            server.send(server.receive()[::-1])

        thread = threading.Thread(target=accept)
        thread.start()
        client = channel.dial(*listener.getsockname(), key(3))
        client.send(bytes(range(256)) * 300)
        self.assertEqual(client.receive(), (bytes(range(256)) * 300)[::-1])
        thread.join()
        listener.close()
        self.assertEqual(client.peer, hashing.public_key(key(4)))
        self.assertEqual(accepted[0].peer, hashing.public_key(key(3)))
        self.assertEqual(client.exporter, accepted[0].exporter)
        self.assertEqual(len(client.exporter), 32)
        client.close()
        accepted[0].close()


class Sessions(unittest.TestCase):
    """A dialer's session against a listener that has its handshake alone."""

    NAME = "agency=Gabon"

    def setUp(self):
        fleet = hashing.fleet_id(hashing.public_key(ROOT))
        genesis = statements.make(fleet, ROOT, None, statements.genesis("North"))
        admitted, last = [genesis], genesis
        for device in (key(3), key(4)):
            member = statements.membership(hashing.public_key(device), "ann", "", "crew", {})
            last = statements.make(fleet, ROOT, last, member)
            admitted.append(last)
        admitted.append(statements.make(fleet, ROOT, last, statements.grant(statements.EVERYONE, statements.WRITE, "*")))
        self.admitted = [item.encoded for item in admitted]
        self.dialer, self.other = (session.Store(fleet, device, [self.NAME]) for device in (key(3), key(4)))
        self.errors = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listener.close)

    def serve(self, *answers: bytes):
        """One connection. `answers` go out behind the handshake."""
        def run():
            sock, _ = self.listener.accept()
            server = channel.Channel(sock, self.other.key, dialling=False)
            interest = messages.interest_digest(self.other.wanted, [])
            side = handshake.Handshake(
                self.other, server.exporter, server.peer, False, interest=interest)
            try:
                while not side.is_through:
                    for frame in side.take(*messages.read(server.receive())):
                        server.send(frame)
                for frame in answers:
                    server.send(frame)
                while True:
                    server.receive()
            except handshake.Goodbye as goodbye:
                server.send(messages.message(messages.GOODBYE, goodbye.reason))
                self.errors.append(goodbye.reason)
            except channel.Closed:
                pass
            server.close()

        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)
        dialled = session.Session.dial(self.dialer, *self.listener.getsockname())
        self.addCleanup(dialled.close)
        return dialled

    def test_two_stores_come_to_one_set_and_a_comparison(self):
        for store in (self.dialer, self.other):
            store.keep_all(self.admitted)
            store.declare_replica(bytes(16))
        dialled = self.serve(messages.message(messages.SUMMARY, 1, messages.DIGEST, bytes(8)))
        dialled.start()
        self.assertEqual(self.dialer.authority, self.other.authority)
        self.assertEqual(len(self.dialer.statements), 6)
        self.assertEqual(dialled.trace[-1][:2], (True, messages.SUMMARY))
        self.assertIn(self.NAME, dialled.streams)

    def test_who_lost_its_statements_gets_them_again_and_closes(self):
        self.other.keep_all(self.admitted)
        self.serve().recover()
        self.assertEqual(self.dialer.authority, self.other.authority)
        self.assertEqual(self.errors, [])

    def test_who_is_no_member_is_told(self):
        self.other.keep_all(self.admitted[:1])
        dialled = self.serve()
        with self.assertRaises(session.Refused) as refused:
            dialled.start()
        self.assertEqual(refused.exception.reason, messages.NOT_A_MEMBER)


if __name__ == "__main__":
    unittest.main()
