"""Twenty nodes on one LAN that all write while some are killed: what a change costs each of them."""

import json
import random
import sqlite3
import threading
import time

from fleets import PARTITION, await_equal, make_fleet
from machine import processor_seconds
from node import Node, documents_path
from runner import Bench, case
from traffic import Traffic
from waiting import expect, wait_for
from workload import COLLECTION, Workload

_NAMES = "abcdefghijklmnopqrst"
_DOCUMENTS = 20_000
_KILLS, _STOPS = 20, 10
# The longest pause of each writer: about a hundred documents a second over all.
_PAUSE = 0.35
# One document in so many is timed until the watches of the two nodes that nobody kills show it.
_PROBE_EVERY = 20
_WATCHERS = 2
_REST_SECONDS = 40


@case("twenty nodes on one LAN write 20,000 documents under kills: equal, at most 1.6 copies and 250 µs a change and node",
      is_long=True, open="2.5 copies and 1,000 µs on a busy machine of two cores")  # fmt: skip
def twenty(bench: Bench):
    nodes = make_fleet(bench.network, _NAMES)
    for node in nodes:
        # What is said for people is not part of the cost.
        node.stop()
        node.log_level = "info"
        node.start()
    for node in nodes:
        wait_for(60, f"{node.name} has five links", lambda: len(node.peers()) >= 5, 0.2)
    nodes[0].put_many(PARTITION, "first", 1)
    await_equal(nodes, 1)
    traffic = [Traffic(node.host) for node in nodes]
    watched = bench.random.sample(nodes, _WATCHERS)
    shown = [_Shown(node) for node in watched]
    time.sleep(10)
    load = _Load(nodes, bench.random)
    disturbance = _Disturbance([node for node in nodes if node not in watched], load, bench.random)
    before, used, began = [each.read() for each in traffic], [_used(node) for node in nodes], time.monotonic()
    received_before = [node.received_bytes() for node in watched]
    load.start()
    disturbance.start()
    load.finish()
    disturbance.finish()
    written = time.monotonic()
    expect(not load.failure, str(load.failure))
    expect(not disturbance.failure, str(disturbance.failure))
    for node in nodes:
        node.await_ready()
    wait_for(120, lambda: f"all hold {_DOCUMENTS + 1} changes; now {[node.changes(PARTITION) for node in nodes]}",
             lambda: all(node.changes(PARTITION) == _DOCUMENTS + 1 for node in nodes), 0.2)  # fmt: skip
    equal = time.monotonic()
    passed = [each.read()["sessions"] - then["sessions"] for each, then in zip(traffic, before)]
    processor = [_used(node) + disturbance.used[node.name] - then for node, then in zip(nodes, used)]
    await_equal(nodes, _DOCUMENTS + 1, 120)
    expect(not (missing := load.missing(nodes[0])), f"{len(missing)} acknowledged writes are missing, such as {missing[:3]}")
    bench.note(f"{_DOCUMENTS} documents in {written - began:.0f} s, {disturbance.kills} kills, {disturbance.stops} stops, "
               f"{load.repeated} asked again; all hold them {equal - written:.1f} s later")  # fmt: skip
    others = _run_bytes(nodes[0]) * (len(nodes) - 1) / len(nodes)
    copies = [each.received / others for each in passed]
    bench.note(f"received {_span(copies)} times one copy of the others' runs, {others / _DOCUMENTS * len(nodes) / (len(nodes) - 1):.0f} bytes a change")
    _note_kinds(bench, watched, received_before, others)
    costs = [1e6 * seconds / _DOCUMENTS for seconds in processor]
    bench.note(f"processor {_span(costs)} µs a change and node")
    _note_waits(bench, load, shown)
    idle, rest, links = _at_rest(nodes, traffic)
    bench.note(f"then at rest: {links}; processor {_span(idle)} %; sessions received {_span(rest)} bytes a second")
    bars = {
        "copies": max(copies) <= 1.6, "processor": sum(costs) / len(costs) <= 250, "idle": max(idle) <= 0.5}  # fmt: skip
    missed = [name for name, holds in bars.items() if not holds]
    expect(not missed, f"{', '.join(missed)} above the bar: " + "; ".join(bench.notes))


class _Writer(Workload):
    """One client of one node, each write a document of its own."""

    def __init__(self, node: Node, count: int, seed: int):
        super().__init__(node, PARTITION, count, count, seed, clients=1, pause=_PAUSE)
        self.answered: dict[str, float] = {}

    def _work(self, client: int, count: int, choice: random.Random):
        connection = self.node.client(10)
        for number in range(count):
            identifier, is_probe = f"{self.node.name}-{number:05}", number % _PROBE_EVERY == 0
            body = {"by": self.node.name, "n": number, "text": f"{choice.randrange(1 << 60):015x}" * 12} | ({"probe": 1} if is_probe else {})
            if not self._write(connection, identifier, body):
                return
            if is_probe:
                self.answered[identifier] = time.monotonic()
            time.sleep(choice.uniform(0, self._pause))
        connection.close()

    def missing(self, node: Node) -> list[str]:
        only = "--filter=" + json.dumps({"by": self.node.name})
        found = node.verb("find", PARTITION, COLLECTION, only, "--limit=0", "--json").stdout
        return sorted(self.latest.keys() - {json.loads(line)["_id"] for line in found.splitlines()})


class _Load:
    def __init__(self, nodes: list[Node], choice: random.Random):
        self._writers = [_Writer(node, _DOCUMENTS // len(nodes), choice.randrange(1 << 30)) for node in nodes]
        self.writes = _DOCUMENTS

    def start(self):
        for writer in self._writers:
            writer.start()

    def finish(self):
        for writer in self._writers:
            writer.finish()

    @property
    def is_done(self) -> bool:
        return all(writer.is_done for writer in self._writers)

    @property
    def acknowledged(self) -> int:
        return sum(writer.acknowledged for writer in self._writers)

    @property
    def repeated(self) -> int:
        return sum(writer.repeated for writer in self._writers)

    @property
    def failure(self) -> str | None:
        return next((writer.failure for writer in self._writers if writer.failure), None)

    @property
    def answered(self) -> dict[str, tuple[str, float]]:
        return {name: (writer.node.name, at) for writer in self._writers for name, at in writer.answered.items()}

    def missing(self, node: Node) -> list[str]:
        return [name for writer in self._writers for name in writer.missing(node)]


class _Disturbance:
    """Kills some nodes (-9), stops others, and starts each again at once."""

    def __init__(self, nodes: list[Node], load: _Load, choice: random.Random):
        self._nodes, self._load, self._random = nodes, load, choice
        kinds = ["kill"] * _KILLS + ["stop"] * _STOPS
        choice.shuffle(kinds)
        points = sorted(choice.randrange(_DOCUMENTS * 9 // 10) for _ in kinds)
        self._plan = list(zip(points, kinds))
        self.kills = self.stops = 0
        # What processes used that have ended.
        self.used = {name: 0.0 for name in _NAMES}
        self.failure: str | None = None
        self._thread = threading.Thread(target=self._work)

    def start(self):
        self._thread.start()

    def finish(self):
        self._thread.join()

    def _work(self):
        try:
            for point, kind in self._plan:
                while self._load.acknowledged < point and not self._load.is_done:
                    time.sleep(0.02)
                self._disturb(self._random.choice(self._nodes), kind)
        except Exception as error:
            self.failure = f"while one was disturbed: {error}"

    def _disturb(self, victim: Node, kind: str):
        victim.await_ready()
        self.used[victim.name] += _used(victim)
        if kind == "kill":
            victim.kill()
            self.kills += 1
        else:
            victim.stop()
            self.stops += 1
        victim.launch()


class _Shown:
    """When a watch first told of each document that is timed."""

    def __init__(self, node: Node):
        self.node, self.at = node, {}
        path = documents_path(PARTITION, COLLECTION).removesuffix("/documents")
        query = "filter=" + '{"probe":1}'.translate({ord(c): f"%{ord(c):02X}" for c in '{}":'})
        self._events = node.client(600).events("GET", f"{path}/watch?{query}")
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for line in self._events:
                if line.startswith(b"data: "):
                    now, data = time.monotonic(), json.loads(line[6:])
                    self.at.setdefault(data.get("document", {}).get("_id", ""), now)
        except (OSError, ValueError):
            # The node has ended.
            return


def _note_kinds(bench: Bench, watched: list[Node], before: list[dict[str, int]], others: float):
    """Which kinds of messages made up what came to nodes that nobody killed."""
    for node, then in zip(watched, before):
        grown = {name: count - then.get(name, 0) for name, count in node.received_bytes().items()}
        most = sorted(grown.items(), key=lambda row: -row[1])[:5]
        shares = ", ".join(f"{name} {count / others:.2f}" for name, count in most)
        bench.note(f"of that, without TLS, at {node.name}: {shares}; all messages {sum(grown.values()) / others:.2f}")


def _note_waits(bench: Bench, load: _Load, shown: list[_Shown]):
    answered = load.answered
    wanted = {each.node.name: [name for name, (writer, _) in answered.items() if writer != each.node.name] for each in shown}
    for each in shown:
        wait_for(30, f"{each.node.name} shows all that are timed",
                 lambda: all(name in each.at for name in wanted[each.node.name]))  # fmt: skip
    waits = sorted(max(0, each.at[name] - answered[name][1]) for each in shown for name in wanted[each.node.name])
    bench.note(f"shown elsewhere after p50 {waits[len(waits) // 2] * 1_000:.0f}, p99 {waits[len(waits) * 99 // 100] * 1_000:.0f}, "
               f"worst {waits[-1] * 1_000:.0f} ms")  # fmt: skip


def _at_rest(nodes: list[Node], traffic: list[Traffic]) -> tuple[list[float], list[float], str]:
    time.sleep(_REST_SECONDS / 2)
    before, used, began = [each.read() for each in traffic], [_used(node) for node in nodes], time.monotonic()
    time.sleep(_REST_SECONDS)
    seconds = time.monotonic() - began
    rest = [(each.read()["sessions"] - then["sessions"]).received / seconds for each, then in zip(traffic, before)]
    idle = [100 * (_used(node) - then) / seconds for node, then in zip(nodes, used)]
    links = [len(node.peers()) for node in nodes]
    return idle, rest, f"{min(links)} to {max(links)} links each"


def _used(node: Node) -> float:
    return processor_seconds(node.process.pid)


def _run_bytes(node: Node) -> int:
    """What the runs that a node holds take as they are sent."""
    store = sqlite3.connect(f"file:{node.directory}/seamesh.db?mode=ro", uri=True)
    try:
        return store.execute("SELECT sum(length(body) + length(context)) FROM runs").fetchone()[0] or 0
    finally:
        store.close()


def _span(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}, mean {sum(values) / len(values):.2f},"
