"""One node from which forty others load all that it holds, while somebody writes on it."""

import json
import math
import os
import subprocess
import threading
import time

from fleets import PARTITION, add_node, enrol
from machine import peak_memory
from node import Node, documents_path
from runner import Bench, case
from waiting import expect, wait_for

_HOSTS = "bcdefghi"
_PER_HOST = 5
_CHANGES = 40_000
_PAUSE = 0.02
# Of the disk's own p99; the second is what a small batch of something else may take before a write.
_SYNC_FACTOR, _SLACK_SECONDS = 20, 0.03
_STATUS_SECONDS = 0.05
# Beside what the node takes before anybody loads: send queues of two MiB at the most each would be 80.
_MORE_BYTES = 96 * 1024 * 1024


@case("forty sessions load from one node: all get everything, and who writes there waits no longer than beside two",
      is_long=True, open="status after 57 ms, p99, where all forty run on the two cores of the node")  # fmt: skip
def forty(bench: Bench):
    writer = add_node(bench.network, "a", None, responder=False)
    writer.start("--no-discovery")
    _fill(writer)
    loaders = _loaders(bench, writer)
    before = peak_memory(writer.process.pid)
    watch = _Watch(writer)
    watch.start()
    peer = f"{writer.host.addresses[0]}:{writer.port}"
    for loader in loaders:
        # They have one machine here, and would have forty: whatever time it has is the writer's first.
        loader.prefix = ["nice", "-n", "19"]
        loader.options = ["--no-discovery", "--peer", peer]
        loader.launch()
    began, most = time.monotonic(), 0
    for loader in loaders:
        loader.await_ready(120)
    while not all(loader.changes(PARTITION) >= _CHANGES for loader in loaders):
        expect(time.monotonic() - began < 300, f"loaded: {sorted(loader.changes(PARTITION) for loader in loaders)}")
        most = max(most, len(writer.peers()))
        time.sleep(0.5)
    seconds = time.monotonic() - began
    watch.finish()
    more = peak_memory(writer.process.pid) - before
    written = _CHANGES + len(watch.writes)
    wait_for(120, "all have what was written meanwhile", lambda: all(node.changes(PARTITION) == written for node in loaders), 0.5)
    sync, write, status = (_p99(each) for each in (watch.syncs, watch.writes, watch.statuses))
    found = (
        f"{most} sessions, {_CHANGES} changes each within {seconds:.0f} s; p99 of {len(watch.writes)} writes {write * 1e3:.0f} ms, "
        f"of a sync {sync * 1e3:.1f} ms, of status {status * 1e3:.0f} ms; {more / 2**20:.0f} MiB more")
    bench.note(found)
    expect(most == len(loaders), f"not all were connected at once: {found}")
    expect(write <= _SYNC_FACTOR * sync + _SLACK_SECONDS, f"a write waited too long: {found}")
    expect(status <= _STATUS_SECONDS, f"status waited too long: {found}")
    expect(more <= _MORE_BYTES, f"the loads take too much memory: {found}")


def _fill(writer: Node):
    lines = "".join(
        json.dumps({"_id": f"d-{number:05}", "number": number, "text": "x" * 190}) + "\n" for number in range(_CHANGES))
    subprocess.run(
        writer.words("import", PARTITION, "Lab", "-"), input=lines, text=True, check=True, stdout=subprocess.DEVNULL)
    wait_for(60, "the writer holds all", lambda: writer.changes(PARTITION) == _CHANGES)


def _loaders(bench: Bench, writer: Node) -> list[Node]:
    """Members of the fleet which want the partition and have met nobody, several on each of a few hosts."""
    hosts = [bench.network.host(name) for name in _HOSTS]
    loaders = [enrol(Node(host, f"{host.name}{number}"), writer) for host in hosts for number in range(_PER_HOST)]
    for loader in loaders:
        loader.start("--no-discovery")
        loader.subscribe(PARTITION)
        loader.stop()
    return loaders


def _p99(values: list[float]) -> float:
    return sorted(values)[math.ceil(len(values) * 0.99) - 1]


class _Watch:
    """Writes on a node, asks for its status, and has the disk sync, again and again; seconds of each."""

    def __init__(self, node: Node):
        self.writes: list[float] = []
        self.statuses: list[float] = []
        self.syncs: list[float] = []
        self._node, self._is_over, self._failure = node, False, None
        self._threads = [threading.Thread(target=self._repeat, args=work) for work in (
            (self._write(), self.writes), (self._ask(), self.statuses), (self._sync(), self.syncs))]

    def start(self):
        for thread in self._threads:
            thread.start()

    def finish(self):
        self._is_over = True
        for thread in self._threads:
            thread.join()
        expect(not self._failure, str(self._failure))

    def _repeat(self, work, seconds: list[float]):
        try:
            while not self._is_over:
                began = time.monotonic()
                next(work)
                seconds.append(time.monotonic() - began)
                time.sleep(_PAUSE)
        except Exception as failure:  # told by whoever waits
            self._failure = failure

    def _write(self):
        client, number = self._node.client(), 0
        while True:
            status, answer = client.request("PUT", documents_path(PARTITION, "Lab", f"live-{number}"), {"number": number})
            expect(status == 201, f"a write answered {status}: {answer}")
            number += 1
            yield

    def _ask(self):
        client = self._node.client()
        while True:
            status, answer = client.request("GET", "/v1/status")
            expect(status == 200, f"status answered {status}: {answer}")
            yield

    def _sync(self):
        with open(f"{self._node.directory}.sync", "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
                os.fdatasync(file.fileno())
                yield
