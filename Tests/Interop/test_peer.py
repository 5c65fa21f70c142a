"""Tests of the outside peer by itself: run with `/usr/bin/python3 -m unittest discover -s Tests/Interop`."""

import re
import socket
import threading
import unittest

import documentation
import make_vectors
from make_vectors import DEVICE, EXPORTER, FLEET, REPLICA, ROOT, key
from seamesh_peer import chains, channel, hashing, joining, messages, payloads, statements, values


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
            if re.search("-(hash|hashes|digest|signed-bytes)$", name):
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
        documents = values.decode(self.golden["payload"])
        hashes = [
            payloads.Write(collection, values.taken(id), kind, generation).key_hash(self.PARTITION)
            for collection, id, kind, generation, _ in documents
        ]
        self.assertEqual(b"".join(hashes), self.golden["key-hashes"])


class Statements(unittest.TestCase):
    def setUp(self):
        self.statement = statements.make(FLEET, ROOT, 1, statements.rule("agency"))

    def test_a_statement_reads_back(self):
        self.assertEqual(statements.read(self.statement.encoded), self.statement)

    def test_any_turned_bit_is_found(self):
        for place in range(len(self.statement.encoded)):
            for bit in range(8):
                content = bytearray(self.statement.encoded)
                content[place] ^= 1 << bit
                with self.assertRaises(Exception, msg=f"byte {place}, bit {bit}"):
                    statements.read(bytes(content))


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
            chains.Run(chain, 1, chain.genesis, [], [change], grant=bytes(32)),
            chains.Run(chain, 1, chain.genesis, [], [change], key_epoch=0),
            chains.Run(chain, 1, chain.genesis, [], [change], extensions={1: b""}),
        ]
        for place, other in enumerate(others):
            self.assertFalse(other.is_signed(signature, public), place)


class Joining(unittest.TestCase):
    def test_a_code_reads_back_however_it_was_typed(self):
        code = joining.make_code(FLEET, bytes(16), "anna", "officer", {}, ["10.0.0.1:80", "010.0.0.1:80"])
        spaced = "-".join(code[place : place + 5] for place in range(0, len(code), 5)).lower()
        self.assertEqual(joining.read_code(spaced)["addresses"], ["10.0.0.1:80", "010.0.0.1:80"])
        with self.assertRaises(ValueError):
            joining.read_code(("B" if code[0] != "B" else "C") + code[1:])


class Messages(unittest.TestCase):
    def test_a_hello_holds_for_its_connection_and_side_alone(self):
        encoded = messages.hello_for(DEVICE, FLEET, bytes(16)).signed(DEVICE, EXPORTER, is_dialer=True).encode()
        number, items = messages.read(encoded)
        self.assertEqual(number, messages.HELLO)
        hello = messages.Hello.read(items)
        self.assertEqual(hello.encode(), encoded)
        self.assertTrue(hello.is_signed(EXPORTER, is_dialer=True))
        self.assertFalse(hello.is_signed(EXPORTER, is_dialer=False))
        self.assertFalse(hello.is_signed(bytes(32), is_dialer=True))


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


if __name__ == "__main__":
    unittest.main()
