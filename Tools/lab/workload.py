"""Clients that write through the local interface and note, outside of the node, what was acknowledged to them."""

import http.client
import json
import random
import threading
import time

from node import Node, documents_path

COLLECTION = "Lab"


class Workload:
    """Several clients, each changing documents of its own; what has no answer is asked for again until it has one.

    Writing the same again makes no change, so each write becomes exactly one change however often the node dies.
    """

    def __init__(
        self, node: Node, partition: str, writes: int, documents: int, seed: int, clients: int = 4, pause: float = 0,
    ):  # fmt: skip
        """`pause`: so many seconds at the most each client waits between two writes."""
        self.node, self.partition, self._pause = node, partition, pause
        self.writes = writes - writes % clients
        self._documents = documents // clients
        self._lock = threading.Lock()
        self.acknowledged = 0
        self.repeated = 0
        # Document → number of its last acknowledged write; replica → highest acknowledged sequence.
        self.latest: dict[str, int] = {}
        self.dots: dict[str, int] = {}
        self.failure: str | None = None
        self._log = open(f"{node.directory}.acknowledged", "w", buffering=1)
        self._threads = [
            threading.Thread(target=self._work, args=(client, self.writes // clients, random.Random(f"{seed}/{client}")))
            for client in range(clients)
        ]

    def start(self):
        for thread in self._threads:
            thread.start()

    @property
    def is_done(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def finish(self):
        for thread in self._threads:
            thread.join()
        self._log.close()

    def _work(self, client: int, count: int, choice: random.Random):
        connection = self.node.client(10)
        for number in range(1, count + 1):
            identifier = f"c{client}-{choice.randrange(self._documents):05}"
            body = {"by": client, "n": number, "text": f"{number:x}" * choice.randrange(1, 40)}
            if not self._write(connection, identifier, body):
                return
            if self._pause:
                time.sleep(choice.uniform(0, self._pause))
        connection.close()

    def _write(self, connection, identifier: str, body: dict) -> bool:
        target = documents_path(self.partition, COLLECTION, identifier)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not self.failure:
            try:
                status, answer = connection.request("PUT", target, body)
            except (OSError, http.client.HTTPException):
                self.repeated += 1
                time.sleep(0.02)
                continue
            if status in (200, 201):
                self._note(identifier, body["n"], answer.get("dot"))
                return True
            if status != 503:
                self.failure = f"a write was answered {status}: {answer}"
            time.sleep(0.02)
        self.failure = self.failure or f"no answer to a write of {identifier} for 60 s"
        return False

    def _note(self, identifier: str, number: int, dot: dict | None):
        with self._lock:
            self.acknowledged += 1
            self.latest[identifier] = number
            if dot:
                self.dots[dot["replica"]] = max(self.dots.get(dot["replica"], 0), dot["sequence"])
            self._log.write(json.dumps([identifier, number, dot and [dot["replica"], dot["sequence"]]]) + "\n")

    def missing(self, node: Node) -> list[str]:
        """Documents whose last acknowledged write is not what the node shows."""
        found = node.verb("find", self.partition, COLLECTION, "--limit", str(len(self.latest) + 10), "--json").stdout
        held = {document["_id"]: document["n"] for document in _documents(found)}
        return [name for name, number in self.latest.items() if held.get(name) != number]


def _documents(text: str) -> list[dict]:
    """One JSON value, or one per line."""
    found = []
    for line in text.splitlines():
        value = json.loads(line)
        found += value["documents"] if "documents" in value else [value]
    return found
