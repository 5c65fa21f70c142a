"""Processes that are killed in the middle of their work (faults.md K1)."""

import random
import threading
import time

from fleets import PARTITION, add_node, await_equal, enrol
from node import Node
from responder import Responder
from runner import Bench, case
from stores import StoredLog, expect_one_history, sidecar_replica
from waiting import expect
from workload import Workload


class Killer:
    """Kills nodes at chosen points of a workload's progress, and starts each again at once."""

    def __init__(self, nodes: list[Node], workload: Workload, kills: int, choice: random.Random):
        self._nodes, self._workload, self._random = nodes, workload, choice
        self._points = sorted(choice.randrange(workload.writes) for _ in range(kills))
        self.kills = {node.name: 0 for node in nodes}
        self.failure: str | None = None
        self._thread = threading.Thread(target=self._work)

    def start(self):
        self._thread.start()

    def finish(self):
        self._thread.join()

    def _work(self):
        for point in self._points:
            while self._workload.acknowledged < point and not self._workload.is_done:
                time.sleep(0.005)
            time.sleep(self._random.uniform(0, 0.05))
            victim = self._random.choice(self._nodes)
            if not victim.process.is_running:
                self.failure = f"{victim.name} ended by itself with {victim.process.status}"
                return
            victim.kill()
            self.kills[victim.name] += 1
            victim.launch()


@case("a hundred kills of writer, relay and receiver during 20,000 changes lose nothing")
def kills(bench: Bench):
    _kill_during_writes(bench, writes=20_000, kills=100)


@case("a thousand kills of writer, relay and receiver during 200,000 changes lose nothing", is_long=True)
def many_kills(bench: Bench):
    _kill_during_writes(bench, writes=200_000, kills=1_000)


def _kill_during_writes(bench: Bench, writes: int, kills: int):
    network = bench.network
    network.add_bridge("lan1")
    middle = network.host("relay")
    middle.plug("lan1")
    Responder(middle)
    relay = enrol(Node(middle), None)
    relay.start("--relay", "--listen", "7000")
    writer, receiver = add_node(network, "writer", relay), add_node(network, "receiver", relay, bridge="lan1")
    nodes = [writer, relay, receiver]
    for node in (writer, receiver):
        node.start("--listen", "7000")
        node.subscribe(PARTITION)
    workload = Workload(writer, PARTITION, writes, 4_000, bench.random.randrange(1 << 30))
    killer = Killer(nodes, workload, kills, bench.random)
    began = time.monotonic()
    workload.start()
    killer.start()
    workload.finish()
    killer.finish()
    bench.note(f"{writes} writes in {time.monotonic() - began:.0f} s, {workload.repeated} asked again")
    bench.note("kills: " + ", ".join(f"{name} {count}" for name, count in killer.kills.items()))
    expect(not workload.failure, str(workload.failure))
    expect(not killer.failure, str(killer.failure))
    for node in nodes:
        node.await_ready()
    written = time.monotonic()
    await_equal(nodes, workload.writes, 120)
    bench.note(f"equal {time.monotonic() - written:.1f} s after the last write")
    expect_kept(nodes, workload)
    for node in nodes:
        node.stop()
    expect_sound(nodes, writer, workload)


def expect_kept(nodes: list[Node], workload: Workload):
    for node in nodes:
        missing = workload.missing(node)
        expect(not missing, f"{node.name} lacks {len(missing)} acknowledged writes, such as {missing[:3]}")


def expect_sound(nodes: list[Node], writer: Node, workload: Workload):
    """The stores of stopped nodes: one history everywhere, under one replica, with every acknowledged dot in it."""
    logs = [StoredLog(node) for node in nodes]
    for log in logs:
        log.expect_unbroken()
        for replica, sequence in workload.dots.items():
            reached = log.reached(bytes.fromhex(replica))
            expect(reached >= sequence, f"{log.name} ends at {reached}, before the acknowledged change {sequence}")
    expect_one_history(logs)
    replicas = {replica.hex() for log in logs for _, replica in log.chains}
    expect(len(replicas) == 1, f"one node wrote, under {len(replicas)} replicas: {sorted(replicas)}")
    noted = sidecar_replica(writer)
    expect({noted} == replicas, f"the sidecar names replica {noted}, the store {sorted(replicas)}")


@case("K8: a second process on one directory ends, saying why, and the first goes on")
def second_process(bench: Bench):
    node = enrol(Node(bench.network.host("a")), None)
    node.start("--no-discovery")
    second = node.verb("run", "--no-discovery", check=False, seconds=20)
    expect(second.returncode == 1 and "another seamesh node" in second.stderr,
           f"the second process ended with {second.returncode}: {second.stderr}")  # fmt: skip
    node.put(PARTITION, "Lab", "one", {"n": 1})
    node.kill()
    node.start()
    expect(node.changes(PARTITION) == 1, "what was acknowledged is gone")
