"""A backlog brought to an empty ledger, beside COPY of the same rows, and the memory that it takes."""

import json
import statistics
import subprocess
import time

from figures import Figures
from ledger_copy import LedgerCopy
from machine import Machine, peak_memory, processor_seconds
from node import Node
from postgres import Server

_LONGEST_SECONDS = 3_600


class Backlog:
    """A relay with so many changes of about 250 bytes, each of a document of its own, in four partitions."""

    def __init__(self, machine: Machine, changes: int):
        self.changes = changes
        self.relay = Node(machine, "backlog")
        self.relay.init()
        self.relay.start("--listen", "127.0.0.1:0", "--no-discovery")
        words = self.relay.words("import", "--partition-by=agency", "Figures", "-")
        reading = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=machine.environment, text=True)
        for number in range(changes):
            document = {"_id": f"{number * 7919 % changes:08}", "agency": f"Agency {number % 4}", "number": number, "text": "x" * 190}
            reading.stdin.write(json.dumps(document) + "\n")
        reading.stdin.close()
        if reading.wait() != 0:
            raise SystemExit("the changes could not be imported")
        self.bytes = self.relay.ask("/v1/status")["logBytes"]
        self.relay.stop()

    def idle_memory(self) -> int:
        """Bytes at its highest, of a node that does nothing."""
        self.relay.start()
        time.sleep(5)
        memory = peak_memory(self.relay.process.pid)
        self.relay.stop()
        return memory

    def forward(self, server: Server) -> tuple[float, float, float, int]:
        """Seconds from the node's start until an empty ledger has everything, those of the processor of node and server,
        and the node's memory at its highest."""
        server.ask("DROP DATABASE fleet", "postgres")
        server.ask("CREATE DATABASE fleet", "postgres")
        server.set_up(self.relay)
        server.ask("CHECKPOINT", "postgres")
        used, began = processor_seconds(server.pid, True), time.monotonic()
        options = self.relay.options
        self.relay.start(*options, f"--forward={server.socket_url('relay')}")
        self.relay.options = options
        self.relay.verb("forward", "--wait", seconds=_LONGEST_SECONDS)
        seconds = time.monotonic() - began
        process = self.relay.process.pid
        node, memory = processor_seconds(process), peak_memory(process)
        self.relay.stop()
        return seconds, node, server.used_since(used), memory


def measure_backlog(machine: Machine, server: Server, changes: int, pairs: int, figures: Figures):
    backlog = Backlog(machine, changes)
    idle = backlog.idle_memory()
    figures.note(f"{changes:,} changes of {backlog.bytes / changes:.0f} bytes lie in a relay's store")
    copy, forwarded, copied, peaks = None, [], [], []
    for pair in range(pairs):
        seconds, node, at_server, peak = backlog.forward(server)
        copy = copy or LedgerCopy(server)
        forwarded.append(seconds)
        peaks.append(peak)
        copied_seconds, at_copy = copy.run()
        copied.append(copied_seconds)
        figures.note(
            f"pair {pair + 1}: forwarded in {seconds:.1f} s (processor: node {node:.1f} s, server {at_server:.1f} s), "
            f"COPY {copied_seconds:.1f} s (server {at_copy:.1f} s), share {copied_seconds / seconds:.2f}")  # fmt: skip
    held = ", ".join(f"{number:,} of {table}" for table, number in copy.rows.items() if number)
    figures.note(f"the rows, in {copy.batches} transactions: {held}")
    basis = f"median of {pairs}, {copy.batches} batches, from the node's start on"
    figures.add("forwarded", changes / statistics.median(forwarded), "changes/s", basis)
    figures.add("copied", changes / statistics.median(copied), "changes/s", "COPY of the same rows in as many transactions")
    shares = [copy_seconds / seconds for copy_seconds, seconds in zip(copied, forwarded)]
    figures.add("forwarded, share of COPY", statistics.median(shares), "",
                f"median of the pairs, {min(shares):.2f} to {max(shares):.2f}; goal 0.5", least=0.3)  # fmt: skip
    figures.add("a relay's memory above idle", (max(peaks) - idle) / 2**20, "MiB",
                f"{max(peaks) / 2**20:.1f} at its highest with {changes:,} changes waiting, {idle / 2**20:.1f} without a backend",
                most=64)  # fmt: skip
