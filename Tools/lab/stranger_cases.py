"""Strangers on the LAN: what they send, and what they pretend to be (faults.md N14, W2, W4)."""

from fleets import PARTITION, add_node, await_equal, await_meeting, make_fleet
from intruders import intrude
from runner import Bench, case
from waiting import expect, wait_for

@case("garbage, other protocols and idle handshakes on the mesh port hold nobody up")
def garbage(bench: Bench):
    network = bench.network
    a, b = nodes = make_fleet(network, "ab", "--listen", "7000")
    await_meeting(nodes)
    stranger = network.host("x")
    intruder = intrude(
        stranger, "disturb", a.host.addresses[0], "7000", str(bench.random.randrange(1 << 30)), "12")  # fmt: skip
    written = 0
    while intruder.is_running:
        b.put(PARTITION, "Lab", f"b-{written:05}", {"n": written})
        written += 1
        wait_for(10, "what b wrote reaches a", lambda: a.changes(PARTITION) >= written, 0.01)
    expect(intruder.status == 0, f"the intruder ended with {intruder.status}")
    with open(f"{stranger.directory}/intruder.out") as file:
        tried = int(file.read())
    bench.note(f"{tried} strangers, {written} writes meanwhile")
    expect(tried > 50, f"only {tried} strangers came through")
    for node in nodes:
        node.expect_alive()
    # A member still gets in at once.
    c = add_node(network, "c", a)
    c.start("--no-discovery", "--peer", f"{a.host.addresses[0]}:7000")
    c.subscribe(PARTITION)
    await_equal([a, b, c], written, 30)


@case("N14: another service answers at a peer's address")
def captive_portal(bench: Bench):
    network = bench.network
    portal = network.host("x")
    heard = f"{portal.directory}/heard"
    server = intrude(portal, "pretend", "7000", heard)
    try:
        nodes = make_fleet(network, "ab", "--peer", f"{portal.addresses[0]}:7000")
        await_meeting(nodes)
        for node in nodes:
            address = f"{portal.addresses[0]}:7000"
            found = wait_for(30, f"{node.name} calls the portal unreachable",
                             lambda: [peer for peer in node.peers("unreachable") if peer["address"] == address], 0.3)  # fmt: skip
            expect(found[0]["detail"], "no reason is given")
        nodes[0].put_many(PARTITION, "a", 5)
        await_equal(nodes, 5)
        with open(heard) as file:
            first = set(file.read().split())
        expect(first and all(line.startswith("1603") for line in first), f"something other than TLS was sent: {first}")
    finally:
        server.kill()
