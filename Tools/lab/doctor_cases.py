"""Each of the doctor's findings, provoked: what is wrong is named, and so is the remedy."""

import base64
import contextlib
import hashlib
import os
import signal

from clocks import YEAR, wrong_clock
from fleets import PARTITION, add_node, await_meeting, enrol, make_fleet
from network import run
from node import Node, documents_path
from responder import Responder
from runner import Bench, case
from waiting import expect, wait_for

# Multicast DNS, and the beacon that stands in for it.
_DISCOVERY_PORTS = "udp dport { 5353, 21063 }"


def expect_finding(node: Node, code: str, *words: str, seconds: float = 40):
    """The doctor comes to name it, with a remedy that has these words, and the command shows both."""
    finding = wait_for(seconds, lambda: f"{node.name}'s doctor says {code}; it says {sorted(node.findings())}",
                       lambda: node.findings().get(code), 0.3)  # fmt: skip
    for word in words:
        expect(word in finding["remedy"], f"the remedy of {code} does not speak of {word}: {finding['remedy']}")
    # A figure may be another between the two questions, as that of a clock is with every connection.
    wait_for(10, lambda: f"the command shows: {node.findings().get(code)}", lambda: _shows(node, code), 0.3)


def _shows(node: Node, code: str) -> bool:
    finding, shown = node.findings().get(code), node.verb("doctor", check=False)
    if not finding or finding["level"] == "problem" and shown.returncode != 1:
        return False
    return all(text and text in shown.stdout for text in (finding["message"], finding["remedy"]))


def expect_gone(node: Node, code: str, seconds: float = 40):
    wait_for(seconds, f"{node.name}'s doctor no longer says {code}", lambda: code not in node.findings(), 0.3)


@case("doctor: all is well")
def healthy(bench: Bench):
    nodes = make_fleet(bench.network, "ab")
    await_meeting(nodes)
    for node in nodes:
        expect(set(node.findings()) == {"healthy"}, f"{node.name}'s doctor says {sorted(node.findings())}")


@case("doctor: the responder hangs")
def responder_hangs(bench: Bench):
    a = add_node(bench.network, "a", None)
    a.host.responder.signal(signal.SIGSTOP)
    a.start()
    expect_finding(a, "no-responder", "avahi-daemon")
    a.host.responder.signal(signal.SIGCONT)
    expect_gone(a, "no-responder", 60)
    a.expect_alive()


@case("doctor: multicast is not heard")
def multicast_is_dropped(bench: Bench):
    network = bench.network
    a = add_node(network, "a", None)
    network.drop(_DISCOVERY_PORTS)
    a.start()
    Responder(network.host("b"))
    expect_finding(a, "multicast-not-heard", "--peer", "isolation")
    network.heal()
    b = enrol(Node(network.hosts["b"]), a)
    b.start()
    expect_gone(a, "multicast-not-heard")


@case("doctor: a peer is seen but cannot be reached")
def peer_is_unreachable(bench: Bench):
    network = bench.network
    a, b = add_node(network, "a", None), network.host("b")
    a.start("--listen", "7000")
    Responder(b)
    b = enrol(Node(b), a)
    network.drop("tcp dport 7000")
    b.start("--listen", "7000")
    expect_finding(a, "peer-unreachable", "firewall", "isolation")
    expect_finding(b, "peer-unreachable", "firewall")
    network.heal()
    await_meeting([a, b], 90)
    expect_gone(a, "peer-unreachable")


@case("isolated clients of one access point meet through a relay")
def isolated_clients(bench: Bench):
    nodes = make_fleet(bench.network, "rab")
    relay, a, b = nodes
    await_meeting(nodes)
    for node in (a, b):
        node.host.isolate()
    a.put_many(PARTITION, "a", 5)
    wait_for(30, "what a wrote reaches b through the relay", lambda: b.changes(PARTITION) == 5, 0.3)


@case("doctor: another fleet is on the LAN, and nothing is exchanged with it")
def other_fleet(bench: Bench):
    network = bench.network
    a, b = add_node(network, "a", None), add_node(network, "b", None)
    for node in (a, b):
        node.start("--relay")
        node.put(PARTITION, "Lab", f"of-{node.name}", {"by": node.name})
    for node in (a, b):
        expect_finding(node, "other-fleet", "join", seconds=60)
    for node in (a, b):
        expect(node.changes(PARTITION) == 1, f"{node.name} took something from another fleet")
        expect(len(node.ask("/v1/devices")["devices"]) == 1, f"{node.name} knows devices of another fleet")
        expect(not node.peers(), f"{node.name} is connected to another fleet's node")


@case("doctor: a device asks to join with a wrong code")
def wrong_code(bench: Bench):
    network = bench.network
    a = add_node(network, "a", None)
    a.start()
    b = Node(network.host("b"))
    asked = b.verb("join", _with_other_secret(a.invite("b@lab.example")), check=False)
    expect(asked.returncode == 4 and "seamesh invite" in asked.stderr,
           f"join with a wrong code ended with {asked.returncode}: {asked.stderr}")  # fmt: skip
    mistyped = a.invite("b@lab.example")[:-9] + "A" * 9
    refused = b.verb("join", mistyped, check=False)
    expect(refused.returncode != 0 and "mistyped" in refused.stderr, f"a mistyped code: {refused.stderr}")
    expect_finding(a, "wrong-join-code", "seamesh invite")
    b.join(a)


def _with_other_secret(code: str) -> str:
    """The same code with another secret: 87 01, 58 20 fleet, 58 20 inviter, serial below 24, 58 20 secret …, check."""
    content = bytearray(base64.b32decode(code + "=" * (-len(code) % 8)))[:-4]
    content[73] ^= 0xFF
    checked = bytes(content) + hashlib.sha256(content).digest()[:4]
    return base64.b32encode(checked).decode().rstrip("=")


@case("doctor: clocks are off by twenty years, and the last write wins none the less")
def clocks_are_off(bench: Bench):
    a = add_node(bench.network, "a", None)
    nodes = [a]
    a.start()
    for name, years in (("behind", -20), ("ahead", 20)):
        host = bench.network.host(name)
        Responder(host)
        node = Node(host)
        node.environment = wrong_clock(bench, years * YEAR)
        enrol(node, a).start()
        nodes.append(node)
    await_meeting(nodes)
    for node in nodes:
        expect_finding(node, "clock-off", "Set the wrong one")
        node.subscribe(PARTITION)
    for turn, node in enumerate(nodes[::-1] + nodes):
        node.put(PARTITION, "Lab", "one", {"by": node.name, "n": turn})
        for other in nodes:
            wait_for(20, f"{other.name} shows what {node.name} wrote upon what it saw", lambda: _shown(other) == turn)


def _shown(node: Node):
    status, document = node.client().request("GET", documents_path(PARTITION, "Lab", "one"))
    return document.get("n") if status == 200 else None


@case("doctor: the disk is nearly full, then full")
def disk_is_full(bench: Bench):
    node = Node(bench.network.host("a"))
    with _mounted(node, "-t", "tmpfs", "-o", "size=24m,mode=700", "none"):
        enrol(node, None)
        node.start("--no-discovery")
        expect_finding(node, "disk-low", "Free some space")
        node.put(PARTITION, "Lab", "before", {"a": 1})
        _fill(node)
        expect(node.ask(documents_path(PARTITION, "Lab", "before"))["a"] == 1, "reads go on with a full disk")
        os.remove(f"{node.directory}/ballast")
        wait_for(20, "writes succeed again", lambda: _write(node, "after") in (200, 201), 0.3)
        node.stop()


@case("doctor: the disk is read-only")
def disk_is_read_only(bench: Bench):
    node = enrol(Node(bench.network.host("a")), None)
    node.start("--no-discovery")
    # Files that are open stay writable: all that can be done to a running node without breaking a real disk.
    with _mounted(node, "--bind", node.directory):
        run("mount", "-o", "remount,bind,ro", node.directory)
        expect_finding(node, "disk-read-only", "mount")
        node.process.kill()
        node.launch()
        wait_for(20, "a node that cannot write its directory ends", lambda: not node.process.is_running)
        with open(node.log) as file:
            last = file.readlines()[-1]
        expect("read-only" in last or "cannot be written" in last, f"it does not say why: {last}")
    node.start()


@contextlib.contextmanager
def _mounted(node: Node, *options: str):
    """Something else lies on the node's directory meanwhile."""
    os.makedirs(node.directory, mode=0o700, exist_ok=True)
    run("mount", *options, node.directory)
    try:
        yield
    finally:
        node.end()
        run("umount", "--lazy", node.directory, check=False)


def _write(node: Node, identifier: str) -> int:
    target = documents_path(PARTITION, "Lab", identifier)
    return node.client().request("PUT", target, {"text": "x" * 100_000, "id": identifier})[0]


def _fill(node: Node):
    with open(f"{node.directory}/ballast", "wb") as file:
        try:
            while True:
                file.write(bytes(65_536))
                file.flush()
        except OSError:
            pass
    statuses = [_write(node, f"big-{number}") for number in range(30)]
    expect(507 in statuses, f"writes to a full disk are answered {sorted(set(statuses))}, never 507")
