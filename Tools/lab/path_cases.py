"""Paths between nodes that are one-way, translated, narrow or slow (faults.md N3, N9, N10, N11), and floods (N6)."""

import os
import sys
import time

from fleets import PARTITION, add_node, await_equal, await_meeting, enrol, make_fleet
from network import inside, run
from node import Node
from processes import Process
from responder import Responder
from runner import Bench, case
from waiting import Skip, expect, wait_for

_HERE = os.path.dirname(os.path.abspath(__file__))


@case("N3: a peer that can be dialled from one side only")
def one_way(bench: Bench):
    network = bench.network
    a, b = add_node(network, "a", None), network.host("b")
    a.start("--listen", "7000")
    Responder(b)
    b = enrol(Node(b), a)
    network.drop('iifname "b0" oifname "a0" tcp flags & (syn | ack) == syn')
    b.start("--listen", "7000")
    for node in (a, b):
        node.subscribe(PARTITION)
    await_meeting([a, b])
    a.put_many(PARTITION, "a", 10)
    b.put_many(PARTITION, "b", 10)
    await_equal([a, b], 20)


@case("N9: a node behind address translation reaches the others, and is reached through its own connection")
def translated(bench: Bench):
    network = bench.network
    network.add_bridge("lan1")
    a, b = make_fleet(network, "ab", "--listen", "7000")
    router = network.host("router")
    router.plug("lan1")
    run(*router.command("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"))
    run(*router.command("nft", "-f", "-"), text=(
        "add table ip lab\nadd chain ip lab out { type nat hook postrouting priority 100; }\n"
        "add rule ip lab out oifname eth0 masquerade\n"))  # fmt: skip
    inner = network.host("c", "lan1")
    inner.ip("route", "add", "default", "via", router.addresses[1])
    c = enrol(Node(inner), a)
    c.start("--listen", "7000", "--peer", f"{a.host.addresses[0]}:7000")
    c.subscribe(PARTITION)
    c.put_many(PARTITION, "c", 10)
    a.put_many(PARTITION, "a", 10)
    await_equal([a, b, c], 20)
    expect(len(c.peers()) == 1, "the inner node is connected to more than the peer that it was told")


@case("N11: packets above 1,300 bytes vanish on the way")
def black_hole(bench: Bench):
    network = bench.network
    a, b = nodes = make_fleet(network, "ab")
    await_meeting(nodes)
    for node in nodes:
        node.stop()
        # Otherwise the kernel hands several packets over as one, which is then too large for the filter.
        node.host.ip("link", "set", "eth0", "gso_max_segs", "1", "gso_max_size", "1514")
    network.drop("ip length > 1300")
    network.drop("ip6 length > 1260")
    for node in nodes:
        node.start()
    a.put_many(PARTITION, "a", 20, size=20_000)
    await_equal(nodes, 20, 90)


@case("N10: a satellite link: 1.2 s there and back, 64 kbit/s, one packet in twenty lost")
def satellite(bench: Bench):
    network = bench.network
    network.add_bridge("lan1")
    output = f"{network.directory}/satellite.log"
    link = Process(
        inside(network.switch) + [sys.executable, f"{_HERE}/satellite.py", "lan", "lan1", "0.6", "64000", "0.05",
                                  str(bench.random.randrange(1 << 30))],
        dict(os.environ), output, output)  # fmt: skip
    try:
        wait_for(10, "the satellite link", lambda: _is_up(link, output))
        a, far = add_node(network, "a", None), network.host("b", "lan1", ipv4=False)
        a.start("--listen", "7000")
        far.ip("addr", "add", "10.77.0.99/24", "brd", "+", "dev", "eth0")
        Responder(far)
        b = enrol(Node(far), a)
        b.start("--listen", "7000")
        for node in (a, b):
            node.subscribe(PARTITION)
        began = time.monotonic()
        a.put_many(PARTITION, "a", 150)
        b.put_many(PARTITION, "b", 50)
        await_equal([a, b], 200, 150)
        bench.note(f"200 changes both ways in {time.monotonic() - began:.0f} s")
    finally:
        link.kill()


def _is_up(link: Process, output: str) -> bool:
    if not link.is_running:
        raise Skip("no TAP device can be made here")
    with open(output) as file:
        return "up" in file.read()


@case("N6: a flood of made-up beacons hides nobody")
def flood(bench: Bench):
    network = bench.network
    a = add_node(network, "a", None, responder=False)
    a.start()
    a.subscribe(PARTITION)
    stranger = network.host("x")
    output = f"{stranger.directory}/intruder.out"
    intruder = Process(
        stranger.command(sys.executable, f"{_HERE}/intruder.py", "flood", "10.77.0.255", "15"),
        stranger.environment, output, output)  # fmt: skip
    b = add_node(network, "b", a, responder=False)
    wait_for(10, "a hears the flood", lambda: any(":9000" in peer["address"] for peer in a.ask("/v1/peers")["peers"]))
    began = time.monotonic()
    b.start()
    b.subscribe(PARTITION)
    await_meeting([a, b])
    bench.note(f"met after {time.monotonic() - began:.1f} s")
    expect(intruder.is_running, "the flood ended before the two had met")
    a.put_many(PARTITION, "a", 5)
    await_equal([a, b], 5)
    intruder.kill()
