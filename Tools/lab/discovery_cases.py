"""How nodes find one another, and what becomes of them when the network or its daemons come and go."""

from fleets import PARTITION, add_node, await_equal, await_meeting, enrol, make_fleet
from node import Node
from responder import Responder
from runner import Bench, case
from waiting import expect, wait_for


@case("three nodes on one LAN find one another and hold the same")
def discovery(bench: Bench):
    nodes = make_fleet(bench.network, "abc")
    await_meeting(nodes)
    for node in nodes:
        node.put_many(PARTITION, node.name, 30)
    await_equal(nodes, 90)
    shown = {node.verb("partitions", "--json").stdout for node in nodes}
    digests = {text.split('"digest":"')[1].split('"')[0] for text in shown}
    expect(len(digests) == 1, f"the command shows different digests: {digests}")


@case("nodes without a responder find one another by beacon")
def beacon(bench: Bench):
    nodes = make_fleet(bench.network, "ab", responder=False)
    await_meeting(nodes)
    nodes[0].put_many(PARTITION, "a", 5)
    await_equal(nodes, 5)


@case("a relay between two LANs passes changes on, both ways")
def relay(bench: Bench):
    network = bench.network
    network.add_bridge("lan1")
    middle = network.host("r")
    middle.plug("lan1")
    Responder(middle)
    relay = enrol(Node(middle), None)
    relay.start("--relay")
    left, right = add_node(network, "a", relay), add_node(network, "b", relay, bridge="lan1")
    for node in (left, right):
        node.start()
        node.subscribe(PARTITION)
    left.put_many(PARTITION, "left", 25)
    right.put_many(PARTITION, "right", 25)
    await_equal([left, right, relay], 50)
    left.put(PARTITION, "Lab", "right-00000", {"seen": "on the left"})
    await_equal([left, right, relay], 51)
    for node in (left, right):
        expect(len(node.peers()) == 1, f"{node.name} is connected to others than the relay")


@case("a network split by the switch's filter heals")
def split_by_filter(bench: Bench):
    _split(bench, lambda network, sides: network.split(*sides), lambda network, lone: network.heal())


@case("a network split by a silent port heals")
def split_by_port(bench: Bench):
    def cut(network, sides):
        sides[1][0].port("nomaster")
    _split(bench, cut, lambda network, lone: lone.port("master", "lan"))


def _split(bench: Bench, cut, heal):
    network = bench.network
    a, b, c = nodes = make_fleet(network, "abc")
    await_meeting(nodes)
    for node in nodes:
        node.put_many(PARTITION, f"before-{node.name}", 5)
    await_equal(nodes, 15)
    cut(network, ([a.host, b.host], [c.host]))
    for node in nodes:
        node.put_many(PARTITION, f"during-{node.name}", 20)
        node.put(PARTITION, "Lab", "before-a-00000", {"by": node.name, "n": -1})
    await_equal([a, b], 57)
    expect(c.changes(PARTITION) == 36, f"something passed the split: c holds {c.changes(PARTITION)} changes")
    heal(network, c.host)
    # Peers that fell silent are dead after 45 s at the latest.
    await_equal(nodes, 78, 75)
    await_meeting(nodes, 75)


@case("the responder is restarted and killed under running nodes")
def responder_restarts(bench: Bench):
    a, b = nodes = make_fleet(bench.network, "ab")
    await_meeting(nodes)
    a.host.responder.stop()
    a.host.responder.start()
    b.host.responder.kill()
    wait_for(20, "b notices that its responder is gone", lambda: "no-responder" in b.findings(), 0.3)
    b.host.responder.start()
    wait_for(30, "b has its responder again", lambda: "no-responder" not in b.findings(), 0.3)
    for node in nodes:
        node.expect_alive()
    # Whom nobody has met yet is found through what came back.
    c = add_node(bench.network, "c", a)
    c.start()
    c.subscribe(PARTITION)
    await_meeting([a, b, c])
    c.put_many(PARTITION, "c", 5)
    await_equal([a, b, c], 5)


@case("a responder that appears late is used")
def responder_appears(bench: Bench):
    network = bench.network
    a = enrol(Node(network.host("a")), None)
    a.start()
    wait_for(20, "a says that there is no responder", lambda: "no-responder" in a.findings(), 0.3)
    Responder(a.host)
    wait_for(30, "a uses the responder", lambda: "no-responder" not in a.findings(), 0.3)
    wait_for(30, "a is announced by mDNS", lambda: a.ask("/v1/status")["discovery"] == "mDNS", 0.3)
    b = add_node(network, "b", a)
    b.start()
    await_meeting([a, b])
