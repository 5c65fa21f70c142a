"""What one hostile member costs a real node that spends every allowance on it: memory and disk after each kind of it.

    SEAMESH=.build/release/seamesh /usr/bin/python3 Tests/Interop/hostile_member.py [SHARE]

SHARE is a part of each allowance, 1 where it is left out. The node is one process of its own, wants everything, and holds
nothing before. The limit is 64 MiB of memory, while he spends it and after (Docs/BENCHMARKS.md).
"""

import json
import os
import pathlib
import subprocess
import sys
import time

from live_node import Node, executable, key
from nacl.signing import SigningKey
from seamesh_peer import chains, hashing, joining, messages, payloads, statements
from seamesh_peer.messages import message
from seamesh_peer.payloads import Operation, Write
from seamesh_peer.session import Session, Store

SHARE = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
STATEMENTS, STATEMENT_BYTES, REPLICAS = int(1_024 * SHARE), int(4_194_304 * SHARE), max(4, int(600 * SHARE))
PARTITIONS, CHAINS_EACH = int(4_096 * SHARE), 4
HELD, HELD_OF_A_RUN = int(65_536 * SHARE), 64
AWAITED, WANTED = int(65_536 * SHARE), int(100_000 * SHARE)
PIECES, PIECE_BYTES, PAYLOAD_PIECES = int(256 * SHARE), 64 * 1024, 63
AHEAD = int(250 * SHARE)
#: Of one statement each, of 4,096 that are kept of one device; some 20 ms of the node's engine.
ROOMS = int(os.environ.get("ROOMS", "0"))
LIMIT_KB = 64 * 1024
# A node gives back what it has freed when it has done little for 30 s; looked at 30 s apart.
REST_SECONDS = 75
#: Documents of the node's own before it is measured, so that its caches and the heap that it keeps are as with any node.
OWN = int(os.environ.get("OWN", "20000"))


class Member:
    def __init__(self, node: Node):
        self.node, self.key = node, key("hostile member")
        code = joining.read_code(node.command("invite", "--user", "eve@example.org", "--role", "crew")["code"])
        self.store = Store(node.fleet, self.key, [])
        request = messages.JoinRequest(code["fleet"], code["inviter"], code["serial"], self.store.device, "hostile")
        session = Session.dial(self.store, *node.address)
        session.join(request, code["secret"])
        session.close()
        self.session = Session.dial(self.store, *node.address)
        self.session.start()
        self.say(messages.INTEREST_CHANGE, [], [""], [], [])
        self.last, self.replicas, self.heads, self.words = None, [], {}, 0

    def say(self, *items):
        self.session.channel.send(message(*items))

    def until(self, number: int, count: int = 1) -> list:
        """So many messages of a kind, whatever else comes."""
        found = []
        while len(found) < count:
            kind, items = messages.read(self.session.channel.receive(60))
            if kind == messages.PING:
                self.say(messages.PONG, *items)
            if kind == messages.GOODBYE:
                time.sleep(8)
                findings = self.node.ask("doctor").stdout
                raise SystemExit(f"the node said goodbye: {items}; {findings[:2_000]}")
            if kind == number:
                found.append(items)
        return found

    def settle(self):
        """Until the node has worked off what was said before."""
        self.say(messages.PING, 77)
        self.until(messages.PONG)

    # What it spends

    def statements(self):
        membership, said, size = self.store.membership().id, [], 0
        for number in range(STATEMENTS):
            if number < REPLICAS:
                body = statements.replica(self.store.device, hashing.u(number, 16), membership)
            else:
                ends = [[hashing.u(place, 16), 1 << 40, hashing.u(place, 16)] for place in range(240)]
                body = statements.grant(statements.EVERYONE, statements.READ, f"x{number}", ends=[["x=1", ends]])
            if size > STATEMENT_BYTES:
                break
            self.last = statements.make(self.store.fleet, self.key, self.last, body)
            if number < REPLICAS:
                self.replicas.append(self.last.body[0])
            said.append(self.last.encoded)
            size += len(self.last.encoded)
        for place in range(0, len(said), 20):
            self.say(messages.STATEMENTS, "", said[place : place + 20])
        self.settle()
        return f"{len(said)} statements, {size} bytes"

    def rooms(self):
        for number in range(ROOMS):
            body = statements.room(self.store.membership().id, number)
            made = statements.make(self.store.fleet, self.key, None, body)
            self.say(messages.STATEMENTS, made.place, [made.encoded])
            if number % 200 == 199:
                self.settle()
        self.settle()
        return f"{ROOMS} rooms"

    def run(self, name: str, replica: bytes, count: int = 1, context=(), size: int = 0, **options) -> chains.Run:
        chain = chains.Chain(self.store.fleet, hashing.partition_id(self.store.fleet, name), replica)
        first, before = self.heads.get(chain, (1, chain.genesis))
        changes = []
        for sequence in range(first, first + count):
            self.words += 1
            write = Write("C", f"d{self.words}", payloads.CREATE, 1, [Operation(payloads.SET, ["f"], "x" * size or 1)])
            changes.append(chains.plain_change(chain, sequence, self.words, 0, [write], **options))
        run = chains.Run(chain, first, before, list(context), changes)
        self.heads[chain] = first + count, run.hashes[-1]
        return run

    def offer(self, runs: dict):
        """By partition. They are announced, asked for, and sent."""
        for name, run in runs.items():
            entry = run.chain.replica, run.last, run.hashes[-1][:16]
            self.say(messages.HAVE, messages.partition_vector(name, [entry]))
        missing = set(runs)
        while missing:
            [[number, [name, *_], *_]] = self.until(messages.PULL)
            if name in missing:
                missing.remove(name)
                self.say(messages.RUNS, name, number, False, [[[0, []], runs[name].encode(self.key)]])

    def partitions(self):
        names = [f"begun={number}" for number in range(PARTITIONS - 1)]
        numbers = {}
        for place in range(0, len(names), 50):
            self.offer({name: self.run(name, self.replicas[0]) for name in names[place : place + 50]})
        self.settle()
        for replica in self.replicas[1:CHAINS_EACH]:
            # As evidence: no stream has to be asked for.
            for name in names:
                run = self.run(name, replica)
                self.say(messages.RUNS, name, 0, True, [[[0, []], run.encode(self.key)]])
            self.settle()
        return f"{len(names)} partitions, {CHAINS_EACH} chains in each"

    def held(self):
        replica, left = self.replicas[0], HELD
        name = "begun=0"
        while left > 0:
            run = self.run(name, replica, min(left, HELD_OF_A_RUN), codec=7)
            self.say(messages.RUNS, name, 0, True, [[[0, []], run.encode(self.key)]])
            left -= HELD_OF_A_RUN
            self.settle()
        return f"{HELD} changes of an unknown codec"

    def announcements(self):
        left, number = AWAITED, 0
        while left > 0:
            entries = [(replica, 7, bytes(16)) for replica in self.replicas[: min(left, len(self.replicas))]]
            self.say(messages.HAVE, messages.partition_vector(f"flood={number}", entries))
            left, number = left - len(entries), number + 1
        self.settle()
        return f"{AWAITED} chains in {number} partitions"

    def interest(self):
        items = sorted(hashing.sha256(hashing.u(number, 8)) for number in range(WANTED))
        self.say(messages.INTEREST_CHANGE, items, [], [], [])
        self.settle()
        return f"{WANTED} partitions wanted"

    def pieces(self):
        hash, sent = b"", 0
        for number in range(PIECES):
            # Each payload but for its end.
            place = number % (PAYLOAD_PIECES - 1)
            if place == 0:
                hash = os.urandom(32)
            total, offset = PAYLOAD_PIECES * PIECE_BYTES, place * PIECE_BYTES
            self.say(messages.PAYLOAD_PIECE, "begun=0", 0, hash, total, offset, bytes(PIECE_BYTES))
            sent += 1
        self.settle()
        return f"{sent} pieces of 64 KiB"

    def ahead(self):
        for number in range(AHEAD):
            context = [(self.replicas[1], 1 << 30, bytes(16))]
            run = self.run("begun=1", self.replicas[-1], context=context, size=14_000)
            content = [[0, [list(entry) for entry in context]], run.encode(self.key)]
            self.say(messages.RUNS, "begun=1", 0, True, [content])
        self.settle()
        return f"{AHEAD} runs of 14 kB ahead of what they stand on"


def kilobytes(node: Node) -> dict:
    lines = pathlib.Path(f"/proc/{node.process.pid}/status").read_text().splitlines()
    return {name: int(line.split()[1]) for line in lines for name in ("VmRSS", "VmHWM", "RssAnon") if line.startswith(name)}


def disk(node: Node) -> int:
    return sum(item.stat().st_size for item in pathlib.Path(node.directory).iterdir() if item.is_file())


def main():
    node = Node(executable())
    try:
        node.command("subscribe", "*")
        for part in range(0, OWN, 1_000):
            sample = subprocess.run(
                [node.seamesh, "sample", "--count", str(min(1_000, OWN - part)), "--seed", str(part)],
                capture_output=True, text=True, check=True)
            subprocess.run(
                [node.seamesh, "import", "--data", node.directory, f"own={part}", "Reports", "-"],
                input=sample.stdout, capture_output=True, text=True, check=True)
        member = Member(node)
        time.sleep(2)
        before, disk_before = kilobytes(node), disk(node)
        print(f"before: {before}, disk {disk_before >> 20} MiB", flush=True)
        last = before
        spends = ["statements", "partitions", "held", "announcements", "interest", "pieces", "ahead"]
        for spend in spends + ["rooms"] * (ROOMS > 0):
            began = time.monotonic()
            what = getattr(member, spend)()
            time.sleep(2)
            now = kilobytes(node)
            print(f"{spend}: {what}: +{now['RssAnon'] - last['RssAnon']} kB in {time.monotonic() - began:.0f} s; {now}", flush=True)
            last = now
        spent = last["RssAnon"] - before["RssAnon"]
        print(node.ask("doctor").stdout[:1_000])
        time.sleep(REST_SECONDS)
        cost = kilobytes(node)["RssAnon"] - before["RssAnon"]
        print(f"in all {spent / 1024:.1f} MiB of memory, and {cost / 1024:.1f} MiB once the node has rested; "
              f"{(disk(node) - disk_before) / 1048576:.1f} MiB of disk")  # fmt: skip
        return 0 if max(spent, cost) <= LIMIT_KB else 1
    finally:
        node.stop()


if __name__ == "__main__":
    sys.exit(main())
