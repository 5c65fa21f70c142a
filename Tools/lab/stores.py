"""What the stores of stopped nodes must show (faults.md K1, I6): one history for each replica, the same everywhere."""

import hashlib
import sqlite3

from node import Node
from waiting import expect


class StoredLog:
    """The runs that a store holds, by partition and replica."""

    def __init__(self, node: Node):
        self.name = node.name
        # (partition id, replica) → [(first, last, hash of the run as it was signed and sent)], ascending
        self.chains: dict[tuple[bytes, bytes], list[tuple[int, int, bytes]]] = {}
        store = sqlite3.connect(f"file:{node.directory}/seamesh.db?mode=ro", uri=True)
        try:
            expect(store.execute("PRAGMA integrity_check").fetchone() == ("ok",), f"{self.name}'s store is damaged")
            rows = store.execute(
                "SELECT p.hash, c.replica, r.first, r.last, r.body FROM runs r JOIN chains c ON c.id = r.chain "
                "JOIN partitions p ON p.id = c.partition ORDER BY p.hash, c.replica, r.first, r.last")  # fmt: skip
            for partition, replica, first, last, body in rows:
                self.chains.setdefault((partition, replica), []).append((first, last, hashlib.sha256(body).digest()))
            found = store.execute("SELECT value FROM meta WHERE key = 'replica'").fetchone()
            self.replica: bytes | None = found and found[0]
        finally:
            store.close()

    def expect_unbroken(self):
        """Every chain is held from its first change on, each change once."""
        for (_, replica), runs in self.chains.items():
            reached = 0
            for first, last, _ in runs:
                expect(first == reached + 1, f"{self.name}: {replica.hex()} goes from {reached} to {first}")
                reached = last

    def reached(self, replica: bytes) -> int:
        return max((runs[-1][1] for (_, author), runs in self.chains.items() if author == replica), default=0)


def expect_one_history(logs: list[StoredLog]):
    """Whatever two stores hold of a chain is the same, byte for byte."""
    known: dict[tuple[bytes, bytes, int], tuple[int, bytes, str]] = {}
    for log in logs:
        for (partition, replica), runs in log.chains.items():
            for first, last, digest in runs:
                place = (partition, replica, first)
                other = known.setdefault(place, (last, digest, log.name))
                expect(other[:2] == (last, digest),
                       f"{replica.hex()} has two changes {first}: {log.name}'s and {other[2]}'s")  # fmt: skip


def sidecar_replica(node: Node) -> str:
    with open(f"{node.directory}/replica.state") as file:
        fields = dict(line.split(maxsplit=1) for line in file if len(line.split(maxsplit=1)) == 2)
    return next((value.strip() for key, value in fields.items() if key.rstrip(":=") == "replica"), "")
