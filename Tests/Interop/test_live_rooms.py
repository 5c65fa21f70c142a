"""The outside peer's rooms on a real node: what it asks for, keeps, passes on, and says to nobody."""

import itertools
import os
import time
import unittest

from live_node import LiveCase, creation, key
from seamesh_peer import exchange, messages, statements
from seamesh_peer.session import OF_SCOPES, Refused, Session, Store

#: The node's user.
ANN = "ann@example.org"
#: Well below the interval after which summaries are compared again, which would repair what was missed.
SOON = 10
HELLO, SUMMARY, STEP, SOME = messages.HELLO, messages.SUMMARY, messages.STATEMENT_SET, messages.STATEMENTS


class Listening(Session):
    """`said` holds (sent by us, number, items, bytes) of every message."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.said: list[tuple] = []

    def send_frame(self, frame: bytes):
        number, items = messages.read(frame)
        self.said.append((True, number, items, len(frame) + 4))
        super().send_frame(frame)

    def receive(self, seconds: float = 20):
        number, items = super().receive(seconds)
        self.said.append((False, number, items, self.trace[-1][2]))
        return number, items

    def of(self, name: str) -> list[tuple]:
        """(sent by us, step) of each `statementSet` of the room, (sent by us, [how many]) of its statements."""
        return [
            (is_ours, items[1] if number == STEP else [len(items[1])])
            for is_ours, number, items, _ in self.said if number in OF_SCOPES and items[0] == name]

    def heard_of(self, name: str) -> list[bytes]:
        """Ids of the statements that the node has sent."""
        sent = (items[1] for is_ours, number, items, _ in self.said if not is_ours and number == SOME and items[0] == name)
        return [statements.read(item).id for batch in sent for item in batch]

    def count(self, what: str):
        sizes = [sum(size for is_ours, _, _, size in self.said if is_ours is side) for side in (True, False)]
        print(f"\n{what}: {len(self.said)} messages, {sizes[0]} B out and {sizes[1]} B in")


class RoomCase(LiveCase):
    """The node wants every room. BEN's device makes them, and has a user for each test."""

    session = Listening

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node.command("subscribe", "conversation=*")

    def setUp(self):
        self.ben = self.member("ben")
        self.make_room()

    def make_room(self, *users: str):
        """The room of which the test speaks from here on, with these users beside BEN."""
        self.name = self.ben.make_room()
        self.ben.want(self.name)
        for user in users:
            self.invite_to_room(user)

    def user(self, name: str) -> str:
        return name + " of " + self.id().rpartition(".")[2]

    def member(self, name: str, *wanted: str) -> Store:
        store = Store(self.node.fleet, key(self.user(name)), list(wanted))
        self.join(store, self.invite("--user", self.user(name)))
        return store

    def invite_to_room(self, user: str, by: Store | None = None, name: str | None = None) -> statements.Statement:
        by = by or self.ben
        return by.sign(statements.invitation(by.membership().id, user), name or self.name)

    def remove(self, user: str, **fields) -> statements.Statement:
        return self.ben.sign(statements.removal(self.ben.membership().id, user, **fields), self.name)

    def quiet(self, *sessions: Listening, until=None):
        """Says what is new here, and hears what comes, until that holds; without it, for as long as a little comes."""
        # A busy machine may leave something to the next comparison.
        deadline = time.monotonic() + 6 * SOON
        for round in itertools.count(1):
            for item in sessions:
                item.pass_on()
                item.drain(0.1)
            if until() if until else round == 2:
                return
            self.assertLess(time.monotonic(), deadline, [item.of(self.name) for item in sessions])

    def level(self, *sessions: Listening):
        """Until all hold the same statements of the room."""
        self.quiet(*sessions, until=lambda: len({frozenset(self.held(item.store)) for item in sessions}) == 1)

    def await_documents(self, session: Listening, *ids: str, beside: Listening | None = None):
        """`beside`: who wrote them. The node may ask for them only now."""
        sessions = [session, beside] if beside else [session]
        self.quiet(*sessions, until=lambda: set(self.documents(session.store, self.name)) == set(ids))

    def settled(self, store: Store) -> Listening:
        session = self.connect(store)
        self.quiet(session)
        return session

    def held(self, store: Store) -> set[bytes]:
        return {item.id for item in store.room(self.name)}

    def assert_lives(self, session: Session):
        session.send(messages.PING, 1)
        while session.step(SOON) != messages.PONG:
            pass

    def write(self, session: Listening, id: str):
        """By the session's device, which declares a replica first."""
        store = session.store
        if store.replica is None:
            session.send(SOME, "", [store.declare_replica(os.urandom(16)).encoded])
        store.write(self.name, creation(id, by="outside"))
        if session.streams.get(self.name) and session.streams[self.name].outgoing is not None:
            session.pump(self.name)
        else:
            session.send_vectors(lambda partition: partition.name == self.name)
        self.quiet(session)

    def shown(self, id: str) -> dict | None:
        return self.node.get(self.name, "Vessel", id)


class Invited(RoomCase):
    """The node's user is invited into most rooms."""

    def setUp(self):
        super().setUp()
        self.to_ann = self.invite_to_room(ANN)

    # What the node asks for and keeps

    def test_the_node_asks_for_all_of_a_room_that_it_is_invited_to(self):
        session = self.settled(self.ben)
        self.assertEqual(session.of(self.name), [(True, 1), (False, 2), (True, [2])])
        wanted = next(items for is_ours, number, items, _ in session.said if number == STEP and not is_ours)
        self.assertEqual(wanted, [self.name, 2, [[self.ben.device, []]]])
        session.count("a room of two statements, told to a node")
        session.close()
        self.assert_is_level(self.ben)

    def assert_is_level(self, store: Store, ended: int = 0) -> Listening:
        """But for where the lines of each room end that the store's user is out of, the node has nothing to say."""
        session = self.dial(store)
        session.greet()
        session.settle()
        session.drain()
        numbers = [(is_ours, number) for is_ours, number, _, _ in session.said]
        self.assertEqual(numbers, [(True, HELLO), (False, HELLO), (False, SUMMARY), (True, SUMMARY)] + ended * [(False, STEP)])
        return session

    def test_a_reconnect_with_nothing_new_is_two_hellos_and_two_summaries(self):
        session = self.settled(self.ben)
        self.write(session, "m")
        session.close()
        session = self.assert_is_level(self.ben)
        self.assertEqual(session.said[-1][2][1], messages.EQUAL)
        session.count("a reconnect with a room and nothing new")

    def test_the_node_asks_for_what_is_new_alone(self):
        self.settled(self.ben).close()
        self.invite_to_room("x")
        session = self.settled(self.ben)
        self.assertEqual(session.of(self.name), [(True, 1), (False, 2), (True, [1])])
        wanted = next(items for is_ours, number, items, _ in session.said if number == STEP and not is_ours)
        self.assertEqual(wanted[2], [[self.ben.device, [[2, self.to_ann.id[:16]]]]])
        session.count("one statement more, told to a node")
        session.close()
        self.assert_is_level(self.ben)

    def test_a_statement_on_a_session_is_taken_and_not_asked_for(self):
        session = self.settled(self.ben)
        start = len(session.said)
        self.invite_to_room("x")
        self.quiet(session)
        self.assertEqual([item for item in session.of(self.name)][3:], [(True, [1])])
        self.assertNotIn(STEP, {number for _, number, _, _ in session.said[start:]})
        session.close()
        self.assert_is_level(self.ben)

    def test_what_the_node_took_it_has_after_a_restart(self):
        self.settled(self.ben).close()
        self.node.restart()
        # It asks for the interest again.
        session = self.settled(self.ben)
        steps = [items[1] for _, number, items, _ in session.said if number == SUMMARY]
        self.assertEqual(steps, [messages.DIGEST, messages.EQUAL])

    # What it passes on

    def test_the_node_brings_the_room_to_another_member_whoever_comes_first(self):
        self.invite_to_room(self.user("cat"))
        for is_first in (True, False):
            with self.subTest(is_first):
                if not is_first:
                    self.make_room(ANN, self.user("cat"))
                other = Store(self.node.fleet, key(self.user("cat")), [self.name])
                cat = self.member("cat", self.name) if is_first else other
                if not is_first:
                    cat.keep_all([item.encoded for item in self.ben.statements.values()])
                    waiting = self.connect(cat)
                self.settled(self.ben)
                session = self.settled(cat) if is_first else waiting
                self.quiet(session, until=lambda: self.held(cat) == self.held(self.ben))
                self.assertTrue(cat.may_carry(cat.device, self.name))
                session.count(f"a room of three statements, heard from a node, {'later' if is_first else 'at once'}")

    def test_what_two_members_say_at_once_comes_to_both(self):
        self.invite_to_room(self.user("cat"))
        ben = self.settled(self.ben)
        cat = self.settled(self.member("cat", self.name))
        self.invite_to_room("x")
        self.invite_to_room("y", by=cat.store)
        self.level(ben, cat)
        self.assertEqual(len(self.held(self.ben)), 5)
        # Also what they said while they were away.
        ben.close(), cat.close()
        self.invite_to_room("z")
        self.invite_to_room("w", by=cat.store)
        ben = self.settled(self.ben)
        cat = self.settled(cat.store)
        self.level(ben, cat)
        self.assertEqual(len(self.held(self.ben)), 7)

    def test_two_branches_of_a_device_are_brought_together(self):
        copy = Store(self.node.fleet, self.ben.key, [self.name])
        copy.keep_all([item.encoded for item in self.ben.statements.values()])
        copy.keep_all([item.encoded for item in self.ben.room(self.name)], self.name)
        self.invite_to_room("x")
        self.settled(self.ben).close()
        self.invite_to_room("y", by=copy)
        for _ in range(2):
            session = self.settled(copy)
            session.close()
        self.assertEqual(self.held(copy), self.held(self.ben) | {copy.room(self.name)[2].id})
        self.assertEqual(len(self.held(copy)), 4)

    # Runs

    def test_a_run_in_the_room_is_taken_shown_and_passed_on(self):
        self.invite_to_room(self.user("cat"))
        cat = self.settled(self.member("cat", self.name))
        ben = self.settled(self.ben)
        self.write(ben, "m")
        self.await_documents(cat, "m", beside=ben)
        self.assertEqual(self.documents(cat.store, self.name), {"m": {"by": "outside"}})
        self.assertEqual(self.shown("m"), {"_id": "m", "by": "outside"})
        self.write(cat, "n")
        self.await_documents(ben, "m", "n", beside=cat)

    def test_a_run_that_was_there_before_the_invitation_comes_with_it(self):
        store = self.member("cat", self.name)
        cat = self.settled(store)
        ben = self.settled(self.ben)
        self.write(ben, "m")
        self.quiet(cat)
        self.assertEqual((self.held(store), self.documents(store, self.name)), (set(), {}))
        self.invite_to_room(self.user("cat"))
        self.quiet(ben)
        self.await_documents(cat, "m", beside=ben)

    def let_in_unheard(self) -> list[Listening]:
        """Sessions whose users are let in, and for whom there is a run at once. They have asked for no stream. Several, for
        it hangs on the time whether a comparison comes between."""
        return [self.let_in_at_once(f"cat {number}") for number in range(3)]

    def let_in_at_once(self, user: str) -> Listening:
        cat = self.settled(self.member(user, self.name))
        ben = self.settled(self.ben)
        self.write(ben, "before " + user)
        self.quiet(ben, until=lambda: self.shown("before " + user))
        self.invite_to_room(self.user(user))
        ben.pass_on()
        self.ben.write(self.name, creation(user, by="outside"))
        ben.pump(self.name)
        # She hears nothing until the node has passed it on.
        self.quiet(ben, until=lambda: self.shown(user))
        ben.drain(0.3)
        self.quiet(cat, until=lambda: user in self.documents(cat.store, self.name))
        ben.close()
        return cat

    def test_a_room_that_the_sides_came_to_have_in_common_later_has_no_stream_that_nobody_opened(self):
        for cat in self.let_in_unheard():
            runs = [items for is_ours, number, items, _ in cat.said if number == messages.RUNS and not is_ours]
            self.assertNotIn(0, {number for _, number, *_ in runs})

    def test_statements_of_a_room_come_before_what_is_in_it(self):
        for cat in self.let_in_unheard():
            heard = [number for is_ours, number, items, _ in cat.said if not is_ours and items and items[0] == self.name]
            self.assertLess(heard.index(SOME), heard.index(messages.RUNS))

    def test_what_the_node_writes_in_the_room_comes_to_the_member(self):
        ben = self.settled(self.ben)
        self.node.put(self.name, "Vessel", "n", {"by": "node"})
        self.await_documents(ben, "n")

    # Who is out

    def test_who_is_not_invited_hears_nothing_of_the_room(self):
        dora = self.settled(self.member("dora", self.name))
        ben = self.settled(self.ben)
        self.write(ben, "m")
        self.invite_to_room("x")
        self.remove("x")
        self.quiet(ben, dora)
        dora.close()
        dora = self.settled(dora.store)
        self.assert_heard_nothing(dora)

    def assert_heard_nothing(self, session: Listening):
        self.assertEqual((session.of(self.name), self.held(session.store)), ([], set()))
        named = {messages.VECTORS, messages.HAVE, messages.RUNS, messages.PULL, STEP}
        self.assertEqual(named & {number for _, number, _, _ in session.said}, set())

    def test_who_asks_without_a_right_hears_nothing(self):
        self.settled(self.ben)
        dora = self.settled(self.member("dora", self.name))
        tips = [[self.ben.device, [[2, self.to_ann.id[:16]]]]]
        dora.send(STEP, self.name, exchange.TIPS, b"\xff" * 8, [])
        dora.send(STEP, self.name, exchange.TIPS, b"\xff" * 8, tips)
        dora.send(STEP, self.name, exchange.WANTED, [[self.ben.device, []]])
        self.assert_lives(dora)
        self.assertEqual([item for item in dora.of(self.name) if not item[0]], [])
        self.assertEqual(self.held(dora.store), set())

    def test_who_is_removed_hears_the_line_of_it_and_no_more(self):
        self.invite_to_room(self.user("cat"))
        for is_live in (True, False):
            with self.subTest(is_live):
                if not is_live:
                    self.make_room(ANN, self.user("cat"))
                    cat.store.want(self.name)
                    cat.close()
                ben = self.settled(self.ben)
                cat = self.settled(cat.store if not is_live else self.member("cat", self.name))
                self.level(ben, cat)
                if not is_live:
                    cat.close()
                removal = self.remove(self.user("cat"))
                later = self.invite_to_room("x")
                self.quiet(ben)
                if not is_live:
                    cat = self.settled(cat.store)
                    cat.count("a removal heard from a node, later")
                self.quiet(cat, until=lambda: removal.id in self.held(cat.store))
                self.assertEqual(cat.heard_of(self.name)[-1], removal.id)
                self.assertNotIn(later.id, self.held(cat.store))
                # What was written before the node heard of it goes no further.
                self.write(ben, "after")
                self.quiet(cat)
                self.assertEqual(self.documents(cat.store, self.name), {})
                cat.close(), ben.close()
                self.assert_is_level(cat.store, ended=len(cat.store.partitions))

    def test_who_is_removed_without_having_been_in_the_room_hears_nothing(self):
        self.settled(self.ben)
        dora = self.settled(self.member("dora", self.name))
        ben = self.settled(self.ben)
        self.remove(self.user("dora"))
        self.quiet(ben, dora)
        self.assert_heard_nothing(dora)

    def test_what_a_removed_user_wrote_is_above_its_limit_on_both_sides(self):
        self.invite_to_room(self.user("cat"))
        ben = self.settled(self.ben)
        cat = self.settled(self.member("cat", self.name))
        self.write(cat, "n")
        self.await_documents(ben, "n", beside=cat)
        # It lists nothing of what stands.
        self.remove(self.user("cat"))
        self.quiet(ben)
        self.assertEqual((self.documents(self.ben, self.name), self.node.vector(self.name)), ({}, []))
        self.assertEqual([number for _, number, _ in self.ben.partitions[self.name].above], [1])
        ben.close()
        self.assert_is_level(self.ben)

    def test_the_node_hears_that_its_user_is_removed(self):
        for is_live in (True, False):
            with self.subTest(is_live):
                if not is_live:
                    self.make_room(ANN)
                ben = self.settled(self.ben)
                self.node.put(self.name, "Vessel", "before", {"by": "node"})
                self.quiet(ben)
                if not is_live:
                    ben.close()
                chain = [list(entry) for entry in self.ben.partitions[self.name].vector]
                self.remove(ANN, ends=[[self.name, chain]])
                if not is_live:
                    ben = self.settled(self.ben)
                    ben.count("a removal told to a node, later")
                self.quiet(ben)
                done = self.node.ask("put", self.name, "Vessel", "after", stdin="{}")
                self.assertEqual(done.returncode, 4, done.stderr)
                self.write(ben, "later")
                self.assertIsNone(self.shown("later"))
                ben.close()

    def test_who_leaves_tells_it(self):
        self.invite_to_room(self.user("cat"))
        store = self.member("cat", self.name)
        for is_live in (True, False):
            with self.subTest(is_live):
                if not is_live:
                    self.make_room(ANN, self.user("cat"))
                    store.want(self.name)
                ben = self.settled(self.ben)
                cat = self.settled(store)
                self.quiet(ben)
                if not is_live:
                    cat.close()
                left = store.sign(statements.leave(store.membership().id, self.user("cat")), self.name)
                if not is_live:
                    cat = self.settled(store)
                    cat.count("a leave told to a node, later")
                self.quiet(cat, ben, until=lambda: left.id in self.held(self.ben))
                self.assertFalse(self.ben.may_carry(store.device, self.name))
                self.invite_to_room("x")
                self.write(ben, "m")
                self.quiet(cat)
                self.assertEqual(self.held(self.ben) - self.held(store), {self.ben.room(self.name)[-1].id})
                cat.close(), ben.close()
                self.assert_is_level(store, ended=len(cat.store.partitions))

    # Bad forms

    def test_what_is_of_no_room_or_of_an_unwanted_one_ends_no_session(self):
        session = self.settled(self.ben)
        self.assertTrue(session.peer_wants(self.name))
        start = len(session.said)
        for scope in ("conversation=1", "agency=Gabon", "x" * 255, self.name.upper(), self.name + "0", self.name[:-1] + "G"):
            for number, items in self.messages_of_a_room():
                session.send(number, scope, *items)
            self.assert_lives(session)
        self.assert_silence(session, start)

    def messages_of_a_room(self) -> list[tuple]:
        tips = [[self.ben.device, [[9, bytes(16)]]]]
        return [
            (STEP, [0, bytes(512)]), (STEP, [1, b"\xff" * 8, tips]), (STEP, [1, bytes(8), tips]), (STEP, [2, tips]),
            (SOME, [[b"no statement"]]), (messages.STATEMENTS_COMPLETE, [])]

    def assert_silence(self, session: Listening, start: int):
        heard = [(number, items) for is_ours, number, items, _ in session.said[start:] if not is_ours]
        self.assertEqual([item for item in heard if item[0] in OF_SCOPES], [])

    def test_a_room_that_the_node_does_not_want_is_passed_over_unread(self):
        self.node.command("unsubscribe", "conversation=*")
        self.addCleanup(self.node.command, "subscribe", "conversation=*")
        session = self.settled(self.ben)
        for number, items in self.messages_of_a_room():
            session.send(number, self.name, *items)
        session.send(SOME, self.name, [item.encoded for item in self.ben.room(self.name)])
        self.assert_lives(session)
        self.assert_silence(session, 0)

    def test_steps_that_a_room_does_not_have_or_that_answer_nothing_end_no_session(self):
        session = self.settled(self.ben)
        start = len(session.said)
        for number, items in [
            (STEP, [0, bytes(512)]), (messages.STATEMENTS_COMPLETE, []), (STEP, [2, [[self.ben.device, []]]]),
            (STEP, [2, []])]:
            session.send(number, self.name, *items)
            self.assert_lives(session)
        self.assert_silence(session, start)

    def test_what_is_no_message_ends_the_session_of_whatever_scope(self):
        step, all, tip = STEP, b"\xff" * 8, [1, bytes(16)]
        for scope, number, items in [
            (self.name, step, [3]), (self.name, step, [0, b"short"]), (self.name, step, [2]),
            (self.name, step, [1, all, [[b"b" * 32, [tip]], [b"a" * 32, [tip]]]]), ("conversation=1", step, [1, all, 5]),
            (self.name, messages.STATEMENTS_COMPLETE, [1]), ("x" * 256, messages.STATEMENTS_COMPLETE, [])]:
            with self.subTest(f"{number} {items}"):
                session = self.connect(self.ben)
                session.send(number, scope, *items)
                self.assert_is_refused(session)

    def assert_is_refused(self, session: Listening):
        with self.assertRaises(Refused) as refused:
            session.until(lambda: False, SOON)
        self.assertEqual(refused.exception.reason, messages.PROTOCOL_ERROR)
        session.close()

    def test_tips_are_answered_once_in_a_comparison(self):
        session = self.settled(self.ben)
        session.ask()
        session.until(lambda: session.is_compared)
        start = len(session.said)
        for _ in range(3):
            session.send(STEP, self.name, exchange.TIPS, b"\xff" * 8, [[self.ben.device, [[9, bytes(16)]]]])
            self.assert_lives(session)
        self.assertEqual([item for item in session.of(self.name) if not item[0]][1:], [(False, 2)])
        self.assertGreater(len(session.said), start)

    def test_statements_are_given_once_for_each_time_that_tips_were_told(self):
        self.invite_to_room(self.user("cat"))
        self.settled(self.ben)
        cat = self.settled(self.member("cat", self.name))
        given = [item for item in cat.of(self.name) if item == (False, [3])]
        self.assertEqual(len(given), 1)
        for _ in range(3):
            cat.send(STEP, self.name, exchange.WANTED, [[self.ben.device, []]])
        self.assert_lives(cat)
        self.assertEqual([item for item in cat.of(self.name) if item == (False, [3])], given)

    def test_statements_of_a_room_that_break_a_rule_end_the_session(self):
        other = self.member("other")
        other_room = other.make_room()
        for wrong in (other.room(other_room)[0].encoded, self.ben.membership().encoded, b"no statement"):
            session = self.settled(self.ben)
            session.send(SOME, self.name, [wrong])
            self.assert_is_refused(session)


class Outside(RoomCase):
    """The node's user is not invited, and nothing lets it carry rooms."""

    def test_a_node_that_is_not_invited_is_told_nothing_and_asks_for_nothing(self):
        session = self.settled(self.ben)
        self.write(session, "m")
        self.assertEqual(session.of(self.name), [])
        named = {messages.HAVE, messages.RUNS, messages.PULL}
        self.assertEqual(named & {number for is_ours, number, _, _ in session.said if not is_ours}, set())
        self.assertIsNone(self.shown("m"))

    def test_what_a_node_hears_of_a_room_that_it_may_not_carry_it_keeps_and_passes_on(self):
        self.invite_to_room(self.user("cat"))
        cat = self.settled(self.member("cat", self.name))
        ben = self.settled(self.ben)
        ben.send(SOME, self.name, [item.encoded for item in self.ben.room(self.name)])
        self.level(ben, cat)

    def test_an_invitation_of_the_nodes_user_comes_later(self):
        ben = self.settled(self.ben)
        self.write(ben, "m")
        self.invite_to_room(ANN)
        self.quiet(ben, until=lambda: self.shown("m") == {"_id": "m", "by": "outside"})
        # All of it, ahead of the run.
        self.assertEqual(ben.of(self.name)[0], (True, [2]))
        ben.count("a node is let in on a session, with one run")


class Relay(RoomCase):
    """The node may carry every room, and is in none."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node.command("grant", "device:node", "carry", "conversation=*", "--yes")

    def test_a_relay_brings_a_room_and_what_is_in_it_to_who_is_in(self):
        self.invite_to_room(self.user("cat"))
        ben = self.settled(self.ben)
        self.assertEqual(ben.of(self.name), [(True, 1), (False, 2), (True, [2])])
        self.write(ben, "m")
        self.quiet(ben, until=lambda: self.node.vector(self.name))
        ben.close()
        cat = self.settled(self.member("cat", self.name))
        self.await_documents(cat, "m")
        self.assertEqual(self.held(cat.store), self.held(self.ben))
        self.write(cat, "n")
        left = cat.store.sign(statements.leave(cat.store.membership().id, self.user("cat")), self.name)
        self.quiet(cat)
        ben = self.settled(self.ben)
        self.await_documents(ben, "m", "n", beside=cat)
        self.assertIn(left.id, self.held(self.ben))

    def test_a_relay_says_nothing_to_who_is_not_in(self):
        ben = self.settled(self.ben)
        self.write(ben, "m")
        dora = self.settled(self.member("dora", self.name))
        self.invite_to_room("x")
        self.quiet(ben, dora)
        self.assertEqual((dora.of(self.name), self.held(dora.store)), ([], set()))
        self.remove(self.user("dora"))
        self.quiet(ben, dora)
        self.assertEqual((dora.of(self.name), self.held(dora.store)), ([], set()))

    def test_a_relay_brings_a_removal_to_who_was_removed(self):
        self.invite_to_room(self.user("cat"))
        ben = self.settled(self.ben)
        cat = self.settled(self.member("cat", self.name))
        self.write(cat, "n")
        self.quiet(ben, cat, until=lambda: self.documents(self.ben, self.name))
        chain = [list(entry) for entry in self.ben.partitions[self.name].vector]
        cat.close()
        removal = self.remove(self.user("cat"), ends=[[self.name, chain]])
        self.quiet(ben)
        cat = self.settled(cat.store)
        self.quiet(cat, until=lambda: removal.id in self.held(cat.store))
        # What he wrote before stays, and what he writes now is not taken.
        self.write(cat, "late")
        ben.close()
        ben = self.settled(self.ben)
        self.await_documents(ben, "n")


if __name__ == "__main__":
    unittest.main()
