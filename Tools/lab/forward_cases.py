"""Relays that bring what a fleet writes to one backend, while everything on the way dies (faults.md B1–B9)."""

import random
import threading
import time

from fleets import PARTITION, add_node, await_equal, await_meeting
from ledgers import differences, reached
from link_cases import shape
from node import Node
from postgres import Server, SmallDisk
from rights import next_moment, sign
from runner import Bench, case
from terminal import Terminal
from waiting import Failed, Skip, expect, wait_for
from workload import Workload


class Misfortune:
    """Things befall somebody, one after the other at random times, until it is ended."""

    def __init__(self, choice: random.Random, pauses: tuple[float, float], *deeds):
        self._random, self._pauses, self._deeds = choice, pauses, deeds
        self.counts = {deed.__name__: 0 for deed in deeds}
        self.failure: str | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def end(self):
        self._is_over.set()
        self._thread.join()

    def _work(self):
        while not self._is_over.wait(self._random.uniform(*self._pauses)):
            deed = self._random.choice(self._deeds)
            self.counts[deed.__name__] += 1
            try:
                deed(self._random)
            except Exception as error:
                self.failure = f"{deed.__name__}: {error}"
                return


@case("two relays forward one fleet for 90 s while relays, server and connections are killed: the ledger is the mesh")
def two_relays(bench: Bench):
    _forward_under_kills(bench, 90)


@case("two relays forward one fleet for 10 min while relays, server and connections are killed", is_long=True)
def two_relays_long(bench: Bench):
    _forward_under_kills(bench, 600)


@case("a full disk of the server is named in one sentence, the fleet goes on, and all goes in once there is room")
def full_disk(bench: Bench):
    server = Server(bench.network.host("db"))
    disk = SmallDisk(server, 24)
    relay = add_node(bench.network, "relay", None)
    server.set_up(relay)
    relay.start("--relay", server.option(relay))
    written = 0
    while forwarding(relay)["state"] != "refused":
        expect(written < 3_000, f"the disk does not get full: {forwarding(relay)}")
        relay.put_many(PARTITION, f"wave-{written}", 50, size=12_000)
        written += 50
    status = forwarding(relay)
    expect("disk of the server" in status["reason"] and "is full" in status["reason"], f"status says {status}")
    finding = relay.findings()["forward-refused"]
    expect("is full" in finding["message"] and "Make room" in finding["remedy"], f"doctor says {finding}")
    relay.put_many(PARTITION, "meanwhile", 20)
    bench.note(f"full after {written} documents of 12 KB")
    disk.grow(400)
    _await_forwarded(server, [relay])


@case("a server fails over to a copy that lagged: what it lacks is sent again, by whoever holds it, and that is told")
def failover(bench: Bench):
    server = Server(bench.network.host("db"))
    vessels = _vessels(bench)[:2]
    relays = [_relay(bench, name, vessels[0], server) for name in ("relay-1", "relay-2")]
    await_meeting(vessels + relays)
    _write_and_forward(server, vessels, relays, "before", 50)
    server.keep_copy()
    _write_and_forward(server, vessels, relays, "lost", 70)
    expect(all(forwarding(relay)["lostChanges"] == 0 for relay in relays), "something is said to be lost before anything is")
    server.fail_over()
    _await_forwarded(server, relays)
    # Who reads the copy behind the other may find all there again.
    told = [relay for relay in relays if forwarding(relay)["lostChanges"] > 0]
    expect(told, "nobody says that something was lost")
    for relay in told:
        status = forwarding(relay)
        expect(status["lostChanges"] <= 140, f"{relay.name} says {status}")
        expect("forward-restored" in relay.findings(), f"doctor says {relay.findings()}")
    bench.note(" and ".join(str(forwarding(relay)["lostChanges"]) for relay in relays) + " changes were told to be lost")


@case("a backlog to a server is shown on a terminal: how far it is, and how long it takes still")
def backlog_shown(bench: Bench):
    server = Server(bench.network.host("db"))
    relay = add_node(bench.network, "relay", None)
    server.set_up(relay)
    relay.start("--relay")
    relay.put_many(PARTITION, "backlog", 1_500, size=2_000)
    relay.stop()
    if not shape(relay, "5mbit"):
        raise Skip("this kernel limits no rates")
    relay.start("--relay", server.option(relay))
    terminal = Terminal(relay, "forward", "--wait")
    found = terminal.await_text(r"forwarding \[[#.]+\] \d+ %, about .* left")
    bench.note(found.group().split("] ")[1])
    expect(terminal.await_end(120) == 0, "forward --wait failed")
    expect("caught-up: " in terminal.shown, f"it ends with {terminal.shown!r}")
    expect(not differences(server, relay), f"the ledger is not the log: {differences(server, relay)}")


def _write_and_forward(server: Server, vessels: list[Node], relays: list[Node], title: str, count: int):
    before = vessels[0].changes(PARTITION)
    for vessel in vessels:
        vessel.put_many(PARTITION, f"{title}-{vessel.name}", count)
    await_equal(vessels + relays, before + count * len(vessels))
    _await_forwarded(server, relays)


def _await_forwarded(server: Server, relays: list[Node]):
    found: list[str] = []

    def has_all() -> bool:
        for relay in relays:
            relay.verb("forward", "--now", check=False)
        found[:] = [line for relay in relays for line in differences(server, relay)]
        return not found and all(forwarding(relay)["state"] == "caught-up" for relay in relays)

    wait_for(90, lambda: f"all is in the ledger: {found}; {[forwarding(relay) for relay in relays]}", has_all, 0.5)


def _forward_under_kills(bench: Bench, seconds: int):
    network = bench.network
    server = Server(network.host("db"))
    vessels = _vessels(bench)
    relays = [_relay(bench, name, vessels[0], server) for name in ("relay-1", "relay-2")]
    await_meeting(vessels[:1] + relays)
    lost_writes = _write_as_lost(vessels[2], relays)
    workloads = [
        Workload(vessel, PARTITION, seconds * 20, 400, bench.random.randrange(1 << 30), pause=0.4) for vessel in vessels[:2]
    ]
    misfortunes = misfortunes_of(bench.random.randrange(1 << 30), relays, server)
    for workload in workloads:
        workload.start()
    time.sleep(bench.random.uniform(0.2, 0.4) * seconds)
    sign(vessels[0], "revoke", vessels[2].name, f"--at={lost_writes}")
    time.sleep(bench.random.uniform(0.1, 0.3) * seconds)
    if bench.random.random() < 0.5:
        sign(vessels[0], "raise", vessels[2].name)
        bench.note("raised again")
    for workload in workloads:
        workload.finish()
    for misfortune in misfortunes:
        misfortune.end()
    for work in [*workloads, *misfortunes]:
        expect(not work.failure, str(work.failure))
    bench.note(", ".join(f"{name} {count}" for each in misfortunes for name, count in each.counts.items()))
    _expect_equal(bench, server, vessels[:2], relays, workloads)


def _vessels(bench: Bench) -> list[Node]:
    """The founder, one more that writes, and one that is to be lost."""
    nodes: list[Node] = []
    for name in ("boat-1", "boat-2", "lost"):
        node = add_node(bench.network, name, nodes[0] if nodes else None)
        node.start("--listen", "7000")
        node.subscribe(PARTITION)
        nodes.append(node)
    await_meeting(nodes)
    return nodes


def _relay(bench: Bench, name: str, inviter: Node, server: Server) -> Node:
    node = add_node(bench.network, name, inviter)
    if name == "relay-1":
        server.set_up(node)
    node.start("--relay", "--listen", "7000", server.option(node))
    return node


def _write_as_lost(lost: Node, relays: list[Node]) -> str:
    """Writes before and behind a moment, and answers that: what came after it is to be taken back."""
    lost.put_many(PARTITION, "lost", 20)
    moment = _after_all_have(relays, 20)
    lost.put_many(PARTITION, "taken-back", 30)
    _after_all_have(relays, 50)
    lost.stop()
    return moment


def _after_all_have(nodes: list[Node], changes: int) -> str:
    for node in nodes:
        wait_for(30, f"{node.name} has what lost wrote", lambda: node.changes(PARTITION) >= changes, 0.1)
    return next_moment()


def misfortunes_of(seed: int, relays: list[Node], server: Server) -> list[Misfortune]:
    def relays_killed(choice: random.Random):
        victims = choice.sample(relays, 1 if choice.random() < 0.8 else 2)
        for victim in victims:
            if not victim.process.is_running:
                raise Failed(f"{victim.name} ended by itself with {victim.process.status}")
            victim.kill()
        time.sleep(choice.uniform(0, 1))
        for victim in victims:
            victim.launch()

    def nudges(choice: random.Random):
        choice.choice(relays).verb("forward", "--now", check=False)

    def servers_killed(choice: random.Random):
        server.kill()
        time.sleep(choice.uniform(0, 1.5))
        server.start()

    def servers_stopped(choice: random.Random):
        server.stop_at_once()
        time.sleep(choice.uniform(0, 1.5))
        server.start()

    def backends_killed(_: random.Random):
        server.kill_one_of_relays()

    def connections_ended(_: random.Random):
        server.end_connections()

    def silences(choice: random.Random):
        server.host.link("down")
        time.sleep(choice.uniform(0.2, 4))
        server.host.link("up")

    return [
        Misfortune(random.Random(f"{seed}/relays"), (0.5, 4), relays_killed, nudges),
        Misfortune(random.Random(f"{seed}/server"), (0.3, 3), servers_killed, servers_stopped, backends_killed,
                   connections_ended, connections_ended, silences),
    ]  # fmt: skip


def _expect_equal(bench: Bench, server: Server, vessels: list[Node], relays: list[Node], workloads: list[Workload]):
    nodes = vessels + relays
    for relay in relays:
        relay.await_ready()
    began = time.monotonic()
    written = sum(sum(workload.dots.values()) for workload in workloads)
    await_equal(nodes, written + 50, 120)
    found: list[str] = []

    def is_equal() -> bool:
        for relay in relays:
            relay.verb("forward", "--now", check=False)
        found[:] = differences(server, relays[0])
        return not found and all(forwarding(relay)["state"] == "caught-up" for relay in relays)

    wait_for(90, lambda: f"the ledger is the mesh: {found}; {[forwarding(relay) for relay in relays]}", is_equal, 1)
    bench.note(f"{written + 50} changes, equal {time.monotonic() - began:.1f} s after the last write")
    for node in nodes:
        expect(not differences(server, node), f"{node.name} is not the ledger: {differences(server, node)}")
    for workload in workloads:
        for replica, sequence in workload.dots.items():
            there = reached(server, replica)
            expect(there >= sequence, f"the ledger counts {replica} up to {there}, and {sequence} was acknowledged")
    for relay in relays:
        status = forwarding(relay)
        expect(status["lostChanges"] == 0 and status["putAside"] == 0, f"{relay.name} says {status}")


def forwarding(node: Node) -> dict:
    return node.ask("/v1/status")["forwarding"]
