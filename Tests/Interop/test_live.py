"""The outside peer against a real node: it enters the fleet, pulls, pushes, and is refused where it must be."""

import itertools
import os
import socket
import sys
import threading
import time
import unittest

from live_node import PARTITION, LiveCase, creation, key
from OpenSSL import SSL
from seamesh_peer import exchange, hashing, messages, statements
from seamesh_peer.channel import COMPRESSED, Channel, Closed, dial
from seamesh_peer.messages import NOT_A_MEMBER, OTHER_FLEET, PROTOCOL_ERROR
from seamesh_peer.payloads import Write
from seamesh_peer.session import Refused, Session, Store

#: Well below the interval after which summaries are compared again, which would repair what was missed.
SOON = 10
REFUSED_WRONG_CODE, REFUSED_EXPIRED, REFUSED_CANCELLED, REFUSED_USED, REFUSED_ASK_INVITER = range(1, 6)
REFUSED_BUSY = 8
NOTE_INVITATION = 2
#: Wrong guesses; so many that most come from addresses that have guessed before.
TRIES = int(os.environ.get("SEAMESH_TRIES", "400"))
SESSIONS_OF_A_DEVICE = 3


class Live(LiveCase):
    # Joining

    def test_a_join_code_admits_and_shows_the_whole_fleet(self):
        store = self.enter()
        genesis = next(item for item in store.statements.values() if item.kind == statements.GENESIS)
        self.assertEqual(hashing.fleet_id(genesis.issuer), store.fleet)
        self.assertEqual(genesis.body, ["interop"])
        membership = store.membership()
        self.assertEqual(hashing.device_id(membership.issuer), self.node.device)
        *body, notes = membership.body
        self.assertEqual(body, [store.device, "crew", "ben@example.org", "outside peer", {}])
        self.assertEqual(set(notes), {NOTE_INVITATION})
        shown = self.node.command("devices")["devices"]
        self.assertIn(hashing.device_id(store.device).hex(), {item["device"] for item in shown})

    def test_a_code_is_good_once_and_its_device_may_ask_again(self):
        code, store = self.invite(), Store(self.node.fleet, key(self.id()), [PARTITION])
        self.join(store, code)
        self.join(store, code)
        self.assert_is_refused(Store(self.node.fleet, key(self.id() + " thief"), [PARTITION]), code, REFUSED_USED)

    def test_a_wrong_a_cancelled_and_an_expired_code_are_told_apart_and_show_nothing(self):
        store = Store(self.node.fleet, key(self.id()), [PARTITION])
        self.assert_is_refused(store, self.invite() | {"secret": bytes(32)}, REFUSED_WRONG_CODE)
        cancelled = self.invite()
        self.node.command("invites", "--cancel", str(cancelled["serial"]))
        self.assert_is_refused(store, cancelled, REFUSED_CANCELLED)
        brief = self.invite("--valid", "1s")
        time.sleep(1.1)
        self.assert_is_refused(store, brief, REFUSED_EXPIRED)

    def test_a_code_of_another_device_is_sent_there(self):
        store = Store(self.node.fleet, key(self.id()), [PARTITION])
        other = hashing.public_key(key("another device"))
        self.assert_is_refused(store, self.invite() | {"inviter": other}, REFUSED_ASK_INVITER)

    def test_a_code_of_another_fleet_gets_no_word(self):
        store = Store(self.node.fleet, key(self.id()), [PARTITION])
        with self.assertRaises(Closed):
            self.join(store, self.invite() | {"fleet": bytes(32)})
        self.assertEqual(store.statements, {})

    def test_tries_from_a_hundred_addresses_get_nothing_and_do_not_hold_up_a_join(self):
        alone = self.seconds_of_a_join("alone")
        ended, answers, wrong = threading.Event(), [], self.invite() | {"secret": bytes(32)}

        def guess(first: int):
            store = Store(self.node.fleet, key(f"guesser {first}"), [])
            request = messages.JoinRequest(wrong["fleet"], wrong["inviter"], wrong["serial"], store.device, "guesser")
            for number in itertools.count(first):
                if ended.is_set():
                    return
                try:
                    source = (f"127.0.2.{number % 100 + 1}", 0)
                    link = socket.create_connection(self.node.address, timeout=5, source_address=source)
                    session = Session(store, Channel(link, store.key, dialling=True))
                except (OSError, SSL.Error):
                    answers.append(None)
                    continue
                try:
                    session.join(request, wrong["secret"])
                    answers.append("in")
                except Refused as refused:
                    answers.append(refused.reason)
                except (Closed, OSError, SSL.Error):
                    answers.append(None)
                finally:
                    session.close()

        threads = [threading.Thread(target=guess, args=(first,)) for first in range(0, 100, 25)]
        for thread in threads:
            thread.start()
        try:
            while len(answers) < TRIES // 2:
                time.sleep(0.01)
            beside = [self.seconds_of_a_join(f"beside {number}") for number in range(3)]
            while len(answers) < TRIES:
                time.sleep(0.01)
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        print(f"{len(answers)} tries; joins {alone:.2f} s alone, {max(beside):.2f} s beside them", file=sys.stderr)
        self.assertEqual(set(answers) - {None, REFUSED_WRONG_CODE, REFUSED_BUSY}, set())
        self.assertLessEqual(max(beside), alone + 2)

    def seconds_of_a_join(self, name: str) -> float:
        code, store = self.invite(), Store(self.node.fleet, key(f"{self.id()} {name}"), [PARTITION])
        began = time.monotonic()
        self.join(store, code)
        return time.monotonic() - began

    def assert_is_refused(self, store: Store, code: dict, reason: int):
        with self.assertRaises(Refused) as refused:
            self.join(store, code)
        self.assertEqual((refused.exception.reason, store.statements), (reason, {}))

    # Strangers

    def test_a_device_of_another_fleet_gets_a_goodbye_alone(self):
        self.assert_is_turned_away(Store(hashing.fleet_id(os.urandom(32)), key(self.id()), []), OTHER_FLEET)

    def test_a_device_that_is_no_member_of_an_equal_set_gets_a_goodbye_alone(self):
        self.assert_is_turned_away(self.copy(self.enter(), key("stranger")), NOT_A_MEMBER)

    def test_a_device_that_is_no_member_is_asked_and_has_nothing_to_show(self):
        store = Store(self.node.fleet, key(self.id()), [])
        self.assert_is_turned_away(store, NOT_A_MEMBER, messages.CREDENTIAL_REQUEST)

    def test_a_hello_of_another_device_gets_a_goodbye_alone(self):
        store = self.enter()
        session = self.dial(store, key=key("thief"))
        exporter = session.channel.exporter
        stolen = messages.hello_for(store.fleet, exporter, True, bytes(16)).signed(store.key, exporter, is_dialer=True)
        self.assert_is_refused_with(session, stolen.encode(), PROTOCOL_ERROR)

    def test_a_hello_that_breaks_a_rule_gets_a_goodbye_alone(self):
        store = self.enter()
        for extensions in [{32_768: b""}, {number: b"" for number in range(9)}, {1: bytes(1_025)}]:
            with self.subTest(str(extensions)[:40]):
                session = self.dial(store)
                exporter = session.channel.exporter
                hello = messages.hello_for(store.fleet, exporter, True, bytes(16), extensions=extensions)
                frame = hello.signed(store.key, exporter, is_dialer=True).encode()
                self.assert_is_refused_with(session, frame, PROTOCOL_ERROR)

    def test_extensions_and_features_that_are_not_known_are_ignored(self):
        store = self.enter()
        session = self.dial(store)
        session.greet(extensions={1: b"x", 32_767: b""}, features=1 << 63 | 4, version=7)
        session.settle()

    def test_a_compressed_frame_is_refused(self):
        session = self.dial(self.enter())
        session.start()
        session.channel.send_head(COMPRESSED | 9)
        # The page says no more than that who breaks framing is disconnected.
        with self.assertRaises((Closed, Refused)):
            session.until(lambda: False, SOON)

    def assert_is_refused_with(self, session: Session, frame: bytes, reason: int):
        """The session's first words are this frame."""
        session.prepare()
        session.send_frame(frame)
        self.assert_ends(session, reason)
        self.assert_heard(session, messages.GOODBYE)

    def assert_is_turned_away(self, store: Store, reason: int, *before: int):
        """`before`: what is said ahead of the goodbye."""
        session = self.dial(store)
        session.greet()
        self.assert_ends(session, reason)
        self.assert_heard(session, *before, messages.GOODBYE)

    def assert_heard(self, session: Session, *numbers: int):
        self.assertEqual([number for is_ours, number, _ in session.trace if not is_ours], list(numbers))

    def assert_ends(self, session: Session, reason: int):
        with self.assertRaises(Refused) as refused:
            session.until(lambda: False, SOON)
        self.assertEqual(refused.exception.reason, reason)
        with self.assertRaises(Closed):
            session.step()

    def assert_ends_unanswered(self, session: Session, reason: int):
        """What comes ahead of the goodbye gets no answer, which might find nobody any more."""
        number = items = None
        while number != messages.GOODBYE:
            number, items = session.receive(SOON)
        self.assertEqual(items, [reason])
        with self.assertRaises(Closed):
            session.receive()

    def test_who_says_nothing_is_told_nothing(self):
        channel = dial(*self.node.address, key(self.id()))
        self.addCleanup(channel.close)
        with self.assertRaises(TimeoutError):
            channel.receive(0.5)

    # Credentials and statements

    def test_a_device_that_was_admitted_elsewhere_shows_its_membership(self):
        admin = self.enter(role="admin")
        store = self.copy(admin, key("admitted elsewhere"))
        member = statements.membership(store.device, "cora@example.org", "elsewhere", "crew", {})
        store.keep_all([admin.sign(member).encoded])
        session = self.dial(store)
        session.greet()
        session.settle()
        asked, shown = messages.CREDENTIAL_REQUEST, messages.CREDENTIALS
        self.assertEqual([number for _, number, _ in session.trace][:4], [messages.HELLO, asked, shown, messages.HELLO])
        shown = self.node.command("devices")["devices"]
        self.assertIn(hashing.device_id(store.device).hex(), {item["device"] for item in shown})

    def test_credentials_that_do_not_hold_get_a_goodbye(self):
        store = self.enter()
        other = self.copy(store, key("admitted by nobody"))
        # By a device that is no admin; it is in no set, so that it is shown here by hand.
        member = statements.membership(other.device, "eve@example.org", "", "crew", {})
        own = statements.make(store.fleet, store.key, None, member)
        other.statements[own.id] = own
        self.assert_is_turned_away(other, NOT_A_MEMBER, messages.CREDENTIAL_REQUEST)

    def test_who_asks_for_credentials_under_a_wrong_proof_gets_a_goodbye(self):
        store = self.enter()
        store.declare_replica(os.urandom(16))
        for is_wrong in (False, True):
            session = self.dial(store)
            session.greet()
            session.step()
            proof = messages.fleet_proof(store.fleet, session.channel.exporter, is_dialer=not is_wrong)
            session.send(messages.CREDENTIAL_REQUEST, proof)
            if is_wrong:
                self.assert_ends_unanswered(session, OTHER_FLEET)
                continue
            number = items = None
            while number != messages.CREDENTIALS:
                number, items = session.receive()
            shown = statements.read(items[0][0])
            self.assertEqual((shown.kind, hashing.device_id(shown.body[0])), (statements.MEMBERSHIP, self.node.device))
            session.close()

    def test_what_either_lacks_goes_over_and_no_more(self):
        store = self.enter()
        declared = store.declare_replica(os.urandom(16))
        # The node has one more, of root's or its own chain, that this side does not know.
        self.invite_and_admit("another of " + self.id())
        session = self.connect(store)
        self.assertIn(declared.id, store.statements)
        session.close()
        trace = self.connect(store).trace
        self.assertNotIn(messages.STATEMENT_SET, {number for _, number, _ in trace})

    def invite_and_admit(self, name: str):
        self.join(Store(self.node.fleet, key(name), []), self.invite())

    def test_a_member_that_lost_its_statements_gets_them_again(self):
        store = self.enter()
        lost = Store(store.fleet, store.key, list(store.partitions))
        self.dial(lost).recover()
        self.assertLessEqual(set(store.statements), set(lost.statements))
        self.connect(lost)

    def test_statements_of_another_scope_than_their_message_are_refused(self):
        store = self.enter()
        session = self.connect(store)
        left = statements.make(
            store.fleet, store.key, None, (statements.LEAVE, [store.membership().id, "ben@example.org", []]),
            "conversation=" + 64 * "0")
        session.send(messages.STATEMENTS, "", [left.encoded])
        self.assert_ends(session, PROTOCOL_ERROR)

    def test_a_message_from_64_on_is_skipped(self):
        session = self.connect(self.enter())
        session.send(90, "whatever comes")
        self.assert_lives(session)

    def test_a_scope_that_the_node_does_not_know_is_ignored(self):
        session = self.connect(self.enter())
        room = "conversation=" + 64 * "0"
        session.send(messages.STATEMENT_SET, room, exchange.BUCKETS, bytes(512))
        session.send(messages.STATEMENTS_COMPLETE, room)
        self.assert_lives(session)

    def test_a_statement_of_another_version_is_skipped(self):
        session = self.connect(self.enter())
        session.send(messages.STATEMENTS, "", [statements.values.encode([2, "whatever comes"])])
        self.assert_lives(session)

    def assert_lives(self, session: Session):
        session.send(messages.PING, 1)
        while session.step(SOON) != messages.PONG:
            pass

    def test_steps_out_of_turn_are_refused(self):
        store = self.enter()
        store.declare_replica(os.urandom(16))
        for step in [(exchange.BUCKETS, bytes(512)), (exchange.WANTED, []), (3,)]:
            with self.subTest(step[0]):
                session = self.dial(store)
                session.greet()
                session.step()
                session.send(messages.STATEMENT_SET, "", *step)
                self.assert_ends_unanswered(session, PROTOCOL_ERROR)

    # Pulling

    def test_what_the_node_wrote_is_pulled_and_holds(self):
        self.node.put(PARTITION, "Vessel", "pulled", {"name": "Ana", "length": 12, "ratio": 0.5, "flag": None})
        self.node.put(PARTITION, "Vessel", "pulled-2", {"name": "Ben"})
        store = self.enter()
        session = self.connect(store)
        self.pull(session)
        documents = self.documents(store)
        self.assertEqual(documents["pulled"], {"name": "Ana", "length": 12, "ratio": 0.5, "flag": None})
        self.assertEqual(documents["pulled-2"], {"name": "Ben"})
        self.assert_node_knows_that_we_are_level(store)

    def assert_node_knows_that_we_are_level(self, store: Store):
        deadline = time.monotonic() + 10
        while True:
            peers = self.node.command("peers")["peers"]
            ours = next(item for item in peers if item["device"] == hashing.device_id(store.device).hex())
            if (ours["behind"], ours["ahead"]) == (0, 0):
                return
            self.assertLess(time.monotonic(), deadline, ours)

    def test_a_new_change_comes_by_itself_on_an_open_stream(self):
        self.node.put(PARTITION, "Vessel", "before", {"name": "Ana"})
        store = self.enter()
        session = self.connect(store)
        self.pull(session)
        self.node.put(PARTITION, "Vessel", "live", {"name": "Cora"})
        self.pull(session)
        self.assertEqual(self.documents(store)["live"], {"name": "Cora"})
        pulls = [number for is_ours, number, _ in session.trace if is_ours and number == messages.PULL]
        self.assertEqual(len(pulls), 1)

    def test_equal_summaries_open_a_stream_without_a_pull(self):
        self.node.put(PARTITION, "Vessel", "before", {"name": "Ana"})
        store = self.enter()
        session = self.connect(store)
        self.pull(session)
        session.close()
        session = self.connect(store)
        session.drain()
        self.node.put(PARTITION, "Vessel", "level", {"name": "Cora"})
        self.pull(session)
        self.assertEqual(self.documents(store)["level"], {"name": "Cora"})
        self.assertNotIn(messages.PULL, {number for is_ours, number, _ in session.trace})

    def test_a_large_payload_travels_in_pieces_ahead_of_its_run(self):
        name = "agency=large"
        text = "x" * 150_000
        self.node.put(name, "Vessel", "large", {"text": text})
        store = self.enter(name)
        session = self.connect(store)
        self.pull(session, name)
        self.assertEqual(self.documents(store, name)["large"], {"text": text})
        pieces = [size for is_ours, number, size in session.trace if number == messages.PAYLOAD_PIECE]
        # How large, below their limit, is up to who sends, by how fast the link is.
        self.assertGreaterEqual(len(pieces), 3)
        self.assertLess(max(pieces), 66_000)

    def test_a_partition_that_the_device_does_not_want_is_not_named(self):
        self.node.put("agency=secret", "Vessel", "v", {"name": "Ana"})
        session = self.connect(self.enter("agency=other"))
        session.drain()
        named = {messages.VECTORS, messages.HAVE, messages.RUNS, messages.PULL}
        self.assertEqual(named & {number for _, number, _ in session.trace}, set())

    # Pushing

    def test_a_change_of_the_outside_peer_is_taken_and_shown(self):
        self.node.put(PARTITION, "Vessel", "first", {"name": "Ana"})
        store = self.enter()
        session = self.connect(store)
        self.pull(session)
        self.write(session, creation("pushed", name="Dana", length=7))
        self.await_acknowledgement(session)
        self.assertEqual(self.node.get(PARTITION, "Vessel", "pushed"), {"_id": "pushed", "name": "Dana", "length": 7})
        self.assertEqual(self.node.vector(PARTITION), store.partitions[PARTITION].vector)

    def test_what_was_written_offline_is_pulled_by_the_node(self):
        self.node.put(PARTITION, "Vessel", "first", {"name": "Ana"})
        store = self.enter()
        session = self.connect(store)
        self.pull(session)
        session.close()
        store.declare_replica(os.urandom(16))
        for place in range(3):
            store.write(PARTITION, creation(f"offline-{place}", place=place))
        session = self.connect(store)
        self.await_acknowledgement(session)
        self.assertIn(messages.VECTORS, {number for is_ours, number, _ in session.trace if is_ours})
        for place in range(3):
            shown = self.node.get(PARTITION, "Vessel", f"offline-{place}")
            self.assertEqual(shown, {"_id": f"offline-{place}", "place": place})

    def test_a_large_payload_that_was_cut_off_goes_on_where_it_was(self):
        self.node.put(PARTITION, "Vessel", "first", {"name": "Ana"})
        store = self.enter()
        session = self.connect(store)
        self.pull(session)
        text = "y" * 150_000
        session.send(messages.STATEMENTS, "", [store.declare_replica(os.urandom(16)).encoded])
        store.write(PARTITION, creation("large", text=text))
        *_, (_, _, run) = store.partitions[PARTITION].log
        number, *piece = session.pieces_of(PARTITION, session.streams[PARTITION].outgoing, run, {})[0]
        session.send(number, *piece)
        # Until the node has looked at it: an answer to what was said after it.
        session.send(messages.PING, 1)
        while session.step() != messages.PONG:
            pass
        session.close()
        session = self.connect(store)
        self.await_acknowledgement(session)
        self.assertEqual(self.node.get(PARTITION, "Vessel", "large"), {"_id": "large", "text": text})
        sent = [number for is_ours, number, _ in session.trace if is_ours and number == messages.PAYLOAD_PIECE]
        self.assertEqual(len(sent), 2)

    def write(self, session: Session, writes: list[Write]):
        """Declares a replica, then writes: the statement goes before what stands on it."""
        store = session.store
        if store.replica is None:
            session.send(messages.STATEMENTS, "", [store.declare_replica(os.urandom(16)).encoded])
        store.write(PARTITION, writes)
        if session.streams.get(PARTITION) and session.streams[PARTITION].outgoing is not None:
            session.pump(PARTITION)
        else:
            session.send_vectors(lambda partition: partition.name == PARTITION)

    def await_acknowledgement(self, session: Session):
        """Until a `have` has named all that this device wrote."""
        store = session.store
        mine = next(sequence for replica, sequence, _ in store.partitions[PARTITION].vector if replica == store.replica)
        session.until(lambda: session.held(PARTITION).get(store.replica) == mine)

    # Tampering

    def test_a_run_with_any_part_turned_is_refused_and_nothing_is_stored(self):
        self.node.put(PARTITION, "Vessel", "first", {"name": "Ana"})
        store = self.enter()
        session = self.connect(store)
        self.pull(session)
        session.close()
        store.declare_replica(os.urandom(16))
        run = store.make_run(PARTITION, creation("tampered", name="Eve")).encode(store.key)
        context = store.context(PARTITION)
        before = self.node.vector(PARTITION)
        for place in [3, 20, 25, 60, len(run) // 2, len(run) - 100, len(run) - 64, len(run) - 1]:
            with self.subTest(place):
                turned = bytearray(run)
                turned[place] ^= 1
                self.offer(store, context, bytes(turned), PROTOCOL_ERROR)
        self.offer(store, context[:0], run, PROTOCOL_ERROR)
        self.assertEqual(self.node.vector(PARTITION), before)
        self.assertIsNone(self.node.get(PARTITION, "Vessel", "tampered"))
        # The run itself is in order: the node takes it now.
        store.take(PARTITION, context, run)
        self.await_acknowledgement(self.connect(store))
        self.assertEqual(self.node.get(PARTITION, "Vessel", "tampered"), {"_id": "tampered", "name": "Eve"})

    def offer(self, store: Store, context: list, run: bytes, reason: int):
        """A new session on which the node opens its stream and is then sent this run."""
        session = self.connect(store)
        if PARTITION not in session.streams or session.streams[PARTITION].outgoing is None:
            session.send_vectors(lambda _: True)
            session.until(lambda: PARTITION in session.streams and session.streams[PARTITION].outgoing is not None)
        session.send_run(PARTITION, context, run)
        self.assert_ends(session, reason)

    def test_a_run_of_a_replica_that_nobody_declared_is_refused(self):
        self.node.put(PARTITION, "Vessel", "first", {"name": "Ana"})
        store = self.enter()
        session = self.connect(store)
        self.pull(session)
        session.close()
        store.replica = os.urandom(16)
        before = self.node.vector(PARTITION)
        run = store.make_run(PARTITION, creation("undeclared", name="Eve")).encode(store.key)
        self.offer(store, store.context(PARTITION), run, PROTOCOL_ERROR)
        self.assertEqual(self.node.vector(PARTITION), before)

    # Coming back

    def test_a_reconnect_with_nothing_new_is_two_hellos_and_two_summaries(self):
        for place in range(5):
            self.node.put(PARTITION, "Vessel", f"level-{place}", {"place": place})
        store = self.enter()
        session = self.connect(store)
        self.pull(session)
        session.close()
        session = self.dial(store)
        session.greet()
        # Both come before this side has said more than hello: one round trip.
        self.assertEqual([session.step(), session.step()], [messages.HELLO, messages.SUMMARY])
        session.settle()
        session.drain()
        hello, summary = messages.HELLO, messages.SUMMARY
        shown = [(is_ours, number) for is_ours, number, _ in session.trace]
        self.assertEqual(shown, [(True, hello), (False, hello), (False, summary), (True, summary)])
        sent, received = session.channel.tcp_bytes()
        sizes = [sum(size for is_ours, _, size in session.trace if is_ours is side) for side in (True, False)]
        print(
            f"\nreconnect with nothing new: messages {sizes[0]} B out and {sizes[1]} B in, with TLS and its handshake"
            f" {sent} B out and {received} B in; round trips: 1 TCP, 1 TLS, 1 of messages")
        self.assertLess(sent + received, 4_096)

    # Wanting more on a standing session

    def test_a_partition_that_the_device_comes_to_want_is_pulled_at_once(self):
        self.node.put("agency=late", "Vessel", "v", {"name": "Ana"})
        store = self.enter("agency=nothing")
        session = self.connect(store)
        session.want("agency=late")
        self.pull(session, "agency=late")
        self.assertEqual(self.documents(store, "agency=late"), {"v": {"name": "Ana"}})

    def test_a_partition_of_many_replicas_is_named_once_where_both_say_differences(self):
        self.node.put(PARTITION, "Vessel", "first", {"name": "Ana"})
        store = self.enter()
        for number in range(messages.LEAST_TOLD):
            store.declare_replica(os.urandom(16))
            store.write(PARTITION, creation(f"of replica {number}", name="Ana"))
        first = self.connect(store)
        self.pull(first)
        first.close()
        for features, are_short in ((0, False), (messages.DIFFERENCES, True)):
            for is_ahead in (True, False):
                with self.subTest(are_short=are_short, is_ahead=is_ahead):
                    if is_ahead:
                        self.node.put(PARTITION, "Vessel", f"of the node {features}", {"name": "Eva"})
                    else:
                        store.write(PARTITION, creation(f"own {features}", name="Ida"))
                    session = self.dial(store)
                    session.greet(features=features)
                    session.settle()
                    self.pull(session)
                    wanted = {messages.PULL} | ({messages.RUNS} if is_ahead else set())
                    # One entry has 37 bytes.
                    sizes = [(number, size > messages.LEAST_TOLD * 30) for _, number, size in session.trace if number in wanted]
                    self.assertEqual({number for number, _ in sizes}, wanted)
                    self.assertEqual({is_long for _, is_long in sizes}, {not are_short}, sizes)
                    session.close()

    def test_a_pull_that_refers_to_what_nobody_told_is_served_from_what_it_says(self):
        self.node.put(PARTITION, "Vessel", "first", {"name": "Ana"})
        store = self.enter()
        session = self.dial(store)
        session.greet(features=messages.DIFFERENCES)
        session.settle()
        self.pull(session)
        count = len(session.trace)
        session.streams[PARTITION].incoming, session.streams[PARTITION].base = 70, []
        session.send(messages.PULL, 70, messages.differing(PARTITION, [], []), 5)
        session.until(lambda: (False, messages.RUNS) in {item[:2] for item in session.trace[count:]}, SOON)

    def test_a_connection_for_blobs_is_no_second_one_beside_a_session(self):
        store = self.enter()
        session = self.connect(store)
        self.pull(session)
        # One more than a device may have sessions: were they any, the first would give way.
        for _ in range(SESSIONS_OF_A_DEVICE):
            link = socket.create_connection(self.node.address, timeout=5)
            with self.assertRaises((SSL.Error, Closed, OSError, ValueError)):
                blobs = Session(store, Channel(link, store.key, dialling=True, protocol=b"seamesh-blob/1"))
                blobs.start()
            link.close()
        self.node.put(PARTITION, "Vessel", "beside", {"name": "Ana"})
        session.until(lambda: "beside" in self.documents(store), SOON)

    def test_a_partition_that_the_node_comes_to_want_is_pushed_at_once(self):
        self.node.put(PARTITION, "Vessel", "first", {"name": "Ana"})
        store = self.enter(PARTITION, "agency=early")
        session = self.connect(store)
        session.send(messages.STATEMENTS, "", [store.declare_replica(os.urandom(16)).encoded])
        store.write("agency=early", creation("early", name="Dana"))
        session.drain()
        self.assertNotIn("agency=early", session.streams)
        self.node.command("subscribe", "agency=early")
        session.until(lambda: store.replica in session.held("agency=early"), SOON)
        self.assertEqual(self.node.get("agency=early", "Vessel", "early"), {"_id": "early", "name": "Dana"})


if __name__ == "__main__":
    unittest.main()
