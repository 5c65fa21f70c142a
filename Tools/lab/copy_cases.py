"""How often what one device writes travels to each of many that are linked with one another."""

import json
import math
import os
import sqlite3
import time

from fleets import PARTITION, add_node, await_equal, await_meeting, make_fleet
from link_cases import shape
from network import run
from node import Node
from runner import Bench, case
from waiting import Skip, expect, wait_for

_REST_SECONDS = 30
_CHANGES = 400
_CHANGES_A_SECOND = 20
_NEWCOMERS_CHANGES = 1_000
# Until all of them are linked with a newcomer: less than the two seconds for which they leave to him what he brings, since
# they have to hear of the links, too.
_LINKING_SECONDS = 1.6
_LOAD_OF_ONE_CORE = 1.5


@case("E4: of ten linked nodes each receives at most 1.6 times a change")
def live_copies(bench: Bench):
    nodes = make_fleet(bench.network, "abcdefghij")
    for node in nodes:
        # Above six nodes each makes five links, and takes those of others.
        wait_for(60, f"{node.name} has five links", lambda: len(node.peers()) >= 5, 0.2)
    writer, others = nodes[0], nodes[1:]
    writer.put_many(PARTITION, "first", 5)
    await_equal(nodes, 5)
    # What a meeting leaves to be said is said.
    time.sleep(_REST_SECONDS)
    multicast = _multicast(others)
    rest = _rates(others, _REST_SECONDS)
    found = [(now - then) / _REST_SECONDS for now, then in zip(_multicast(others), multicast)]
    sessions = [max(0, rate - part) for rate, part in zip(rest, found)]
    bench.note(f"at rest {_span(sessions)} bytes a second, and {_span(found)} of discovery")
    before, held, began = _received(others), _run_bytes(writer), time.monotonic()
    client = writer.client()
    for number in range(_CHANGES):
        status, answer = client.request("PUT", f"/v1/partitions/agency%3DLaboratory/collections/Lab/documents/live-{number}", {
            "number": number, "text": "x" * 160})  # fmt: skip
        expect(status == 201, f"a write answered {status}: {answer}")
        time.sleep(max(0, began + (number + 1) / _CHANGES_A_SECOND - time.monotonic()))
    await_equal(nodes, 5 + _CHANGES)
    time.sleep(2)
    seconds = time.monotonic() - began
    size = _run_bytes(writer) - held
    shares = [
        (now - then - seconds * rate) / size for now, then, rate in zip(_received(others), before, rest)]
    bench.note(f"{_span(shares)} times a change of {size / _CHANGES:.0f} bytes")
    links = [len(node.peers()) for node in nodes]
    bench.note(f"{min(links)} to {max(links)} links each")
    expect(max(shares) <= 1.6, f"at rest {_span(sessions)} bytes a second, of a change {_span(shares)} times its bytes")


@case("E1: what a newcomer brings reaches each of seven linked nodes once")
def newcomer(bench: Bench):
    _bring(bench, "")


@case("E1: what a newcomer brings over 5 Mbit/s reaches each of seven linked nodes once")
def slow_newcomer(bench: Bench):
    _bring(bench, "5mbit")


def _bring(bench: Bench, rate: str):
    nodes = make_fleet(bench.network, "abcdefg")
    strangers = [add_node(bench.network, name, nodes[0]) for name in "hij"]
    await_meeting(nodes)
    nodes[0].put_many(PARTITION, "first", 1)
    await_equal(nodes, 1)
    held = 1
    for stranger in strangers:
        copies, linking = _brought(bench, nodes, stranger, rate, held)
        held += _NEWCOMERS_CHANGES
        if max(copies) <= 1.3:
            return
        counts = ", ".join(f"{count:.2f}" for count in copies)
        found = f"what was brought came {counts} times; the links took {linking:.1f} s"
        # What the stranger brings waits two seconds, from his first link on, to be passed on to who is not linked with him. On
        # a machine that takes nearly as long for the others he is not the neighbour of all of them, and another one comes.
        # Nor does a machine that has more to do than it has cores for bring all within the time after which it is asked of others.
        load = os.getloadavg()[0]
        expect(linking > _LINKING_SECONDS or load > _LOAD_OF_ONE_CORE * (os.cpu_count() or 1), f"{found}; load {load:.1f}")
        bench.note(found)
        stranger.stop()
    raise Skip("this machine is too slow, or has too much to do, to link a newcomer with seven nodes in time")


class _Links:
    """When a node had no link yet, and when it had so many: the looks at it may lie far apart."""

    def __init__(self, node: Node, count: int):
        self._node, self._count, self._none, self._all = node, count, time.monotonic(), math.inf

    def look(self):
        if self._all < math.inf:
            return
        asked, links = time.monotonic(), len(self._node.peers())
        if not links:
            self._none = asked
        if links >= self._count:
            self._all = time.monotonic()

    @property
    def seconds(self) -> float:
        """From its first link to the last, and at most as long as the looks lie apart more."""
        return self._all - self._none


def _brought(bench: Bench, nodes: list[Node], stranger: Node, rate: str, held: int) -> tuple[list[float], float]:
    """How often what a stranger brings to nodes that hold so many changes came to each of them, and how long his links took."""
    stranger.host.port("nomaster")
    stranger.start()
    stranger.subscribe(PARTITION)
    stranger.put_many(PARTITION, f"brought-{stranger.name}", _NEWCOMERS_CHANGES, 300)
    size, all_changes = _run_bytes(stranger), held + _NEWCOMERS_CHANGES
    if rate and not shape(stranger, rate):
        bench.note(f"not at {rate}: no such queue here")
    before, began = _received(nodes), time.monotonic()
    stranger.host.port("master", "lan")
    links = _Links(stranger, len(nodes))

    def is_brought() -> bool:
        links.look()
        return all(node.changes(PARTITION) == all_changes for node in nodes)

    wait_for(120, lambda: f"all hold what was brought: {[node.changes(PARTITION) for node in nodes]}", is_brought, 0.1)
    bench.note(f"all hold it after {time.monotonic() - began:.1f} s")
    await_equal([*nodes, stranger], all_changes)
    wait_for(30, f"{stranger.name} is linked with all", lambda: links.look() or math.isfinite(links.seconds), 0.1)
    copies = [(now - then) / size for now, then in zip(_received(nodes), before)]
    bench.note(f"{_span(copies)} times the {size} bytes; the links took {links.seconds:.1f} s")
    return copies, links.seconds


def _received(nodes: list[Node]) -> list[int]:
    """Bytes that came to each host, with all headers, and with what is multicast."""
    def total(node: Node) -> int:
        link = json.loads(run(*node.host.command("ip", "-s", "-j", "link", "show", "dev", "eth0")))[0]
        return link["stats64"]["rx"]["bytes"]

    return [total(node) for node in nodes]


def _multicast(nodes: list[Node]) -> list[int]:
    """Of these bytes what is multicast, with the headers of Ethernet: names that are looked for, and neighbour discovery."""
    def total(node: Node) -> int:
        four = run(*node.host.command("cat", "/proc/net/netstat")).split("\n")
        names, values = [line.split() for line in four if line.startswith("IpExt:")]
        counts = dict(zip(names, values))
        six = dict(line.split() for line in run(*node.host.command("cat", "/proc/net/snmp6")).splitlines())
        packets = int(counts["InMcastPkts"]) + int(six["Ip6InMcastPkts"])
        return int(counts["InMcastOctets"]) + int(six["Ip6InMcastOctets"]) + 14 * packets

    return [total(node) for node in nodes]


def _rates(nodes: list[Node], seconds: float) -> list[float]:
    before, began = _received(nodes), time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    return [(now - then) / passed for now, then in zip(_received(nodes), before)]


def _run_bytes(node: Node) -> int:
    """What the runs that a node holds take as they are sent."""
    store = sqlite3.connect(f"file:{node.directory}/seamesh.db?mode=ro", uri=True)
    try:
        return store.execute("SELECT sum(length(body) + length(context)) FROM runs").fetchone()[0] or 0
    finally:
        store.close()


def _span(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"
