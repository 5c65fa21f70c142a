"""Links that fail, change or stall (faults.md N2, N7, N8, N12, N13)."""

import threading
import time

from fleets import PARTITION, add_node, await_equal, await_meeting, enrol, make_fleet
from network import run
from node import Node
from responder import Responder
from runner import Bench, case
from waiting import Failed, expect, wait_for
from workload import Workload


@case("N2: a peer that vanishes in the middle of a batch is dead within 45 s, and the batch is sent again")
def vanished_peer(bench: Bench):
    a, b = nodes = make_fleet(bench.network, "ab", "--listen", "7000")
    await_meeting(nodes)
    workload = Workload(a, PARTITION, 4_000, 1_000, bench.random.randrange(1 << 30))
    workload.start()
    wait_for(60, "b holds the first changes", lambda: b.changes(PARTITION) > 200, 0.02)
    b.host.port("nomaster")
    cut = time.monotonic()
    for node in nodes:
        # Both ends notice by themselves; half a second for asking.
        wait_for(cut + 45.5 - time.monotonic(), f"{node.name} takes its silent peer for dead",
                 lambda: not node.peers(), 0.2)  # fmt: skip
    bench.note(f"dead after {time.monotonic() - cut:.0f} s")
    workload.finish()
    expect(not workload.failure, str(workload.failure))
    b.host.port("master", "lan")
    healed = time.monotonic()
    await_equal(nodes, workload.writes, 90)
    bench.note(f"equal {time.monotonic() - healed:.0f} s after the link was back")


@case("N7: nodes with nothing but link-local IPv6 addresses find and join one another")
def link_local(bench: Bench):
    network, nodes = bench.network, []
    for name in "abc":
        host = network.host(name, ipv4=False)
        Responder(host, ipv4=False)
        nodes.append(enrol(Node(host), nodes[0] if nodes else None))
        nodes[-1].start()
        nodes[-1].subscribe(PARTITION)
    await_meeting(nodes)
    for node in nodes:
        node.put_many(PARTITION, node.name, 10)
    await_equal(nodes, 30)
    for peer in nodes[0].peers():
        expect("fe80:" in peer["address"] and "%" in peer["address"], f"a peer at {peer['address']}")


@case("N8: an address changes, and another interface appears, under running nodes")
def addresses_change(bench: Bench):
    network = bench.network
    network.add_bridge("lan1")
    a = add_node(network, "a", None)
    a.start()
    # Without IPv6 no address stays the same.
    b = add_node(network, "b", a)
    for node in (a, b):
        run(*node.host.command("sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6"))
    b.start()
    for node in (a, b):
        node.subscribe(PARTITION)
    await_meeting([a, b])
    b.host.ip("addr", "del", f"{b.host.addresses[0]}/24", "dev", "eth0")
    b.host.ip("addr", "add", "10.77.0.99/24", "brd", "+", "dev", "eth0")
    changed = time.monotonic()
    wait_for(75, "a is connected to b's new address",
             lambda: any("10.77.0.99" in peer["address"] for peer in a.peers()) or _dialled_from(b, "10.77.0.11"), 0.2)
    b.put_many(PARTITION, "b", 10)
    await_equal([a, b], 10, 75)
    bench.note(f"met again {time.monotonic() - changed:.0f} s after the address changed")
    c = add_node(network, "c", a)
    c.start()
    c.subscribe(PARTITION)
    await_equal([a, b, c], 10)
    c.stop()
    # c moves to another LAN, and a gets an interface there.
    c.host.port("master", "lan1")
    a.host.plug("lan1")
    c.host.ip("addr", "flush", "dev", "eth0", "scope", "global")
    c.host.ip("addr", "add", "10.77.1.77/24", "brd", "+", "dev", "eth0")
    c.start()
    c.put_many(PARTITION, "c", 10)
    await_equal([a, b, c], 20, 75)


def _dialled_from(node: Node, host: str) -> bool:
    """Connected to that host after the address changed: sessions from before have died with it."""
    return any(host in peer["address"] and (peer.get("lastContactMilliseconds") or 0) < 1_000 for peer in node.peers())


@case("N12: a peer that reads nothing does not hold up the others")
def stalled_peer(bench: Bench):
    a, b, c = nodes = make_fleet(bench.network, "abc")
    await_meeting(nodes)
    c.pause()
    workload = Workload(a, PARTITION, 3_000, 1_000, bench.random.randrange(1 << 30))
    workload.start()
    slowest = 0.0
    while not workload.is_done:
        known = workload.acknowledged
        began = time.monotonic()
        wait_for(10, "what a wrote reaches b", lambda: b.changes(PARTITION) >= known, 0.02)
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.05)
    workload.finish()
    expect(not workload.failure, str(workload.failure))
    await_equal([a, b], workload.writes)
    bench.note(f"b was behind by {slowest:.1f} s at most")
    c.resume()
    await_equal(nodes, workload.writes, 75)


@case("N13: a link that is up for 2 s and down for 2 s makes progress")
def flapping_link(bench: Bench):
    a, b = nodes = make_fleet(bench.network, "ab", "--listen", "7000")
    await_meeting(nodes)
    b.host.port("down")
    workload = Workload(a, PARTITION, 5_000, 2_000, bench.random.randrange(1 << 30))
    workload.start()
    workload.finish()
    expect(not workload.failure, str(workload.failure))
    behind = b.changes(PARTITION)
    shaped = shape(a, "4mbit")
    ended = threading.Event()
    flaps = 0

    def flap():
        nonlocal flaps
        while not ended.is_set():
            b.host.port("up")
            ended.wait(2)
            b.host.port("down")
            ended.wait(2)
            flaps += 1

    thread = threading.Thread(target=flap)
    thread.start()
    try:
        wait_for(120, lambda: f"b catches up on a flapping link; it holds {b.changes(PARTITION)} of {workload.writes}",
                 lambda: b.changes(PARTITION) >= workload.writes, 0.2)  # fmt: skip
    finally:
        ended.set()
        thread.join()
        b.host.port("up")
    bench.note(f"{workload.writes - behind} changes over {flaps} flaps{' at 4 Mbit/s' if shaped else ''}")
    await_equal(nodes, workload.writes, 75)


def shape(node: Node, rate: str) -> bool:
    """Limits what the node's host sends; not every kernel can."""
    try:
        run("tc", "-n", node.host.space, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "16kb",
            "latency", "400ms")  # fmt: skip
        return True
    except (Failed, FileNotFoundError):
        return False
