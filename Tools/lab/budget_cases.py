"""Links that cost: what is charged, what passes at a limit, and what goes first."""

import json
import os
import sys
import time

from fleets import PARTITION, add_node, await_equal, await_meeting
from network import Host, inside, run
from node import Node
from postgres import Server
from processes import Process
from rights import await_end, await_level, sign
from runner import Bench, case
from waiting import Skip, expect, wait_for

_HERE = os.path.dirname(os.path.abspath(__file__))
_PORT = "7000"


@case("links: what is charged for a link is what its interface counts, within 5 %, at both ends")
def charged(bench: Bench):
    a, b = _pair(bench, _rule("mobile", bytesPerDay=1_000_000_000))
    _expect_charged(bench, a, b, [("a to b", a, 200), ("b to a", b, 50)])


@case("links: what is charged for a link that loses 3 % of its packets is what its interface counts, within 5 %")
def charged_with_loss(bench: Bench):
    far = SatelliteLink(bench, delay=0.01, rate=20_000_000, loss=0.03)
    try:
        a, b = _pair(bench, _rule("mobile", bytesPerDay=1_000_000_000), far)
        _expect_charged(bench, a, b, [("a to b", a, 150)])
    finally:
        far.end()


@case("links: what a relay spends on its backend is what its interface counts, within 5 %")
def charged_for_backend(bench: Bench):
    server = Server(bench.network.host("db"))
    relay = add_node(bench.network, "relay", None, responder=False)
    for host in (server.host, relay.host):
        _count_packets(host)
    server.set_up(relay)
    before = _counted(relay.host)
    relay.start("--relay", "--no-discovery", server.option(relay), _rule("mobile", bytesPerDay=1_000_000_000))
    relay.put_many(PARTITION, "document", 100, size=20_000)
    wait_for(60, lambda: f"all is forwarded: {relay.ask('/v1/status')['forwarding']}",
             lambda: server.ask("SELECT count(*) FROM seamesh.changes")[0][0] == "100", 0.2)  # fmt: skip
    time.sleep(1.5)
    charged, counted = _link(relay)["bytesToday"], _counted(relay.host) - before
    bench.note(f"{charged / counted - 1:+.1%} of {counted / 1e6:.1f} MB")
    expect(counted > 2_000_000, f"the interface counted {counted} bytes")
    expect(abs(charged - counted) <= counted * 0.05, f"{charged} bytes were charged for {counted}")


@case("links: at a limit in the middle of a backlog nothing but authority passes within 10 s, also after kill -9")
def limit(bench: Bench):
    far = SatelliteLink(bench, delay=0.05, rate=4_000_000, loss=0)
    try:
        _expect_limit(bench, far)
    finally:
        far.end()


@case("links: class none by command ends connections and dials nobody; auto brings them back, and all converges")
def none(bench: Bench):
    a, b = _pair(bench, _rule("mobile"))
    a.put_many(PARTITION, "before", 5)
    await_equal([a, b], 5)
    # What a asks for: a connection's first packet.
    b.host.nft(f"ip saddr {a.host.addresses[0]} tcp flags & (syn | ack) == syn counter")
    a.verb("links", "--use=none")
    # One that a had begun before, as the two had only just met, is no matter.
    begun = _packets(b.host)
    for node in (a, b):
        wait_for(5, f"{node.name} has no connection any more", lambda: not node.peers(), 0.05)
    before = _counted(a.host)
    for node in (a, b):
        node.put_many(PARTITION, f"meanwhile-{node.name}", 5, size=5_000)
    _kill_and_restart(a)
    time.sleep(3)
    expect(not a.peers() and not b.peers(), "they met over a link of class none")
    expect(a.changes(PARTITION) == 10 and b.changes(PARTITION) == 10, "changes passed over a link of class none")
    dials, byte_count = _packets(b.host) - begun, _counted(a.host) - before
    bench.note(f"{byte_count} bytes for b's attempts")
    expect(dials == 0 and byte_count < 10_000, f"over a link of class none: {dials} dials, {byte_count} bytes")
    a.verb("links", "--use=auto")
    await_equal([a, b], 15, 30)


@case("links: on a thin link the partition that is named first is whole before the next has more than a little")
def order(bench: Bench):
    # The reverse of what would be without an order.
    names = ["room=3", "room=2", "room=1"]
    bench.random.shuffle(names)
    far = SatelliteLink(bench, delay=0.2, rate=1_000_000, loss=0)
    try:
        a, b = _pair(bench, _rule("satellite", carries=names), far, meets=False, wanted="room=*")
        for name in sorted(names):
            a.put_many(name, "backlog", 60, size=4_000)
        began = time.monotonic()
        b.start()
        seen = [[0] * len(names)]
        while min(seen[-1]) < 60:
            expect(time.monotonic() < began + 60, f"b has {seen[-1]} of 60 each")
            rows = b.partitions(digests=False)
            counts = [rows.get(name, {}).get("changes", 0) for name in names]
            if counts != seen[-1]:
                seen.append(counts)
        bench.note(f"all in {time.monotonic() - began:.0f} s")
        for counts in seen:
            later = [sum(counts[place + 1:]) for place, count in enumerate(counts) if count < 60]
            expect(not later or later[0] <= 4, f"b held of {names}, one after the other: {seen}")
    finally:
        far.end()


# Nodes on such links


def _rule(link_class: str, **members) -> str:
    where = {} if "routes" in members else {"interfaces": ["eth*"]}
    return "--link=" + json.dumps({"class": link_class, **where, **members})


class SatelliteLink:
    """A second bridge, which reaches the first through a process that delays, loses and bounds."""

    def __init__(self, bench: Bench, delay: float, rate: float, loss: float):
        bench.network.add_bridge("lan1")
        output = f"{bench.network.directory}/satellite.log"
        words = [sys.executable, f"{_HERE}/satellite.py", "lan", "lan1", str(delay), str(rate), str(loss),
                 str(bench.random.randrange(1 << 30))]  # fmt: skip
        self._process = Process(inside(bench.network.switch) + words, dict(os.environ), output, output)
        wait_for(10, "the satellite link", lambda: self._is_up(output))

    def _is_up(self, output: str) -> bool:
        if not self._process.is_running:
            raise Skip("no TAP device can be made here")
        with open(output) as file:
            return "up" in file.read()

    def end(self):
        self._process.kill()


def _pair(
    bench: Bench, rule: str, far: SatelliteLink | None = None, *init: str, meets: bool = True, wanted: str = PARTITION
) -> tuple[Node, Node]:
    """Two nodes that know one another's address, the first with this rule, the second behind the far link. Nothing but
    their connections uses the network."""
    a = add_node(bench.network, "a", None, responder=False, init=init)
    host = bench.network.host("b", "lan1" if far else "lan", ipv4=not far)
    if far:
        host.addresses.append("10.77.0.99")
        host.ip("addr", "add", "10.77.0.99/24", "brd", "+", "dev", "eth0")
    b = Node(host)
    for node in (a, b):
        _count_packets(node.host)
    a.start("--listen", _PORT, "--no-discovery", f"--peer={host.addresses[0]}:{_PORT}", rule)
    b.join(a)
    b.start("--listen", _PORT, "--no-discovery", f"--peer={a.host.addresses[0]}:{_PORT}", *([rule] if meets else []))
    for node in (a, b):
        node.subscribe(wanted)
    await_meeting([a, b])
    if not meets:
        b.stop()
        wait_for(10, "a has no peer", lambda: not a.peers(), 0.05)
    return a, b


def _count_packets(host: Host):
    """The kernel would count one that it hands over whole where the link has many."""
    host.ip("link", "set", "eth0", "gso_max_segs", "1", "gso_max_size", "1514")


def _kill_and_restart(node: Node):
    node.kill()
    node.start()


# What they say, and what the kernel says


def _link(node: Node) -> dict:
    """The class that has a rule."""
    return [link for link in node.ask("/v1/links")["links"] if link["class"] != "harbour"][0]


def _counted(host: Host) -> int:
    """Bytes on the host's interface, both ways, as the kernel counts them."""
    files = [f"/sys/class/net/eth0/statistics/{way}_bytes" for way in ("rx", "tx")]
    # A view of /sys for this namespace.
    script = "mount -t sysfs none /sys && cat " + " ".join(files)
    return sum(int(line) for line in run(*host.command("unshare", "-m", "sh", "-c", script)).split())


def _packets(host: Host) -> int:
    """What the counter of the host's own rule says."""
    listed = run(*host.command("nft", "-j", "list", "table", "inet", "lab"))
    return int(listed.split('"packets": ')[1].split(",")[0].rstrip("}"))


def _expect_limit(bench: Bench, far: SatelliteLink):
    bytes_per_day = 1_500_000
    a, b = _pair(bench, _rule("satellite", routes=["10.77.0.0/24"], bytesPerDay=bytes_per_day), far, "--closed", meets=False)
    sign(a, "grant", "device:b", "write", PARTITION)
    # A device that is to be ended at the limit.
    Node(bench.network.host("c")).join(a)
    a.put_many(PARTITION, "backlog", 200, size=20_000)
    b.start()
    wait_for(30, lambda: f"the limit is reached: {_link(a)}", lambda: _link(a)["passes"] == "authority", 0.05)
    reached, rounds = time.monotonic(), 0
    while time.monotonic() < reached + 10:
        for node in (a, b):
            node.put_many(PARTITION, f"{node.name}-{rounds}", 2, size=5_000)
        rounds += 1
        time.sleep(0.5)
    written = {a: 200 + 2 * rounds, b: 2 * rounds}
    fetched = [node.changes(PARTITION) - written[node] for node in (a, b)]
    spent, count = _link(a)["bytesToday"], _counted(a.host)
    bench.note(f"{spent / bytes_per_day - 1:+.1%} of the limit after 10 s")
    expect(fetched[0] == 0 and 0 < fetched[1] < 150, f"a and b fetched {fetched} changes")
    expect(spent < bytes_per_day * 1.1, f"{spent} bytes of {bytes_per_day} were spent")
    await_meeting([a, b], 30)
    sign(a, "grant", "device:b", "read", "room=*")
    await_level([b], "b", "read", seconds=20)
    sign(a, "revoke", "c")
    await_end([b], "c", seconds=20)
    waiting = _link(a)
    expect(waiting["waitingChanges"] >= 2 * rounds - 10 and waiting["waitingMilliseconds"] > 0, f"links tells {waiting}")
    _kill_and_restart(a)
    expect(_link(a)["bytesToday"] >= spent, f"{spent} bytes were spent before the restart, {_link(a)} after it")
    await_meeting([a, b], 45)
    sign(a, "grant", "device:b", "write", "room=*")
    await_level([b], "b", "write", seconds=20)
    expect(_link(a)["passes"] == "authority", f"after the restart passes more: {_link(a)}")
    now = [node.changes(PARTITION) - written[node] for node in (a, b)]
    expect(now == fetched, f"changes passed at the limit: {fetched} before, {now} after")
    more = _counted(a.host) - count
    bench.note(f"since then {more / 1000:.0f} KB of authority, sessions and a restart")
    expect(more < 60_000, f"{more} bytes passed at the limit")


def _expect_charged(bench: Bench, a: Node, b: Node, ways: list[tuple[str, Node, int]]):
    changes = 0
    for title, writer, count in ways:
        before = [(_link(node)["bytesToday"], _counted(node.host)) for node in (a, b)]
        writer.put_many(PARTITION, title, count, size=20_000)
        changes += count
        await_equal([a, b], changes)
        # What is charged may be a second late.
        time.sleep(1.5)
        for node, (charged, counted) in zip((a, b), before):
            charged, counted = _link(node)["bytesToday"] - charged, _counted(node.host) - counted
            expect(counted > count * 20_000, f"the interface of {node.name} counted {counted} bytes")
            bench.note(f"{title}, {node.name}: {charged / counted - 1:+.1%} of {counted / 1e6:.1f} MB")
            expect(abs(charged - counted) <= counted * 0.05, f"{node.name} was charged {charged} for {counted}")
