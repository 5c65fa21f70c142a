"""Asks a node for the description of its interface, and then for everything that stands in it: as described, and with one
flaw in each of half of the requests. Started by Tools/check-interface."""

import argparse
import contextlib
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading

import answers
import operations
import schemas
import watching
from exchange import Cut, Doors, Request

_READY_SECONDS = 60
_FINDINGS = 20
#: Answered by libmicrohttpd before the node is asked: refused, or cut off, and never taken.
_MALFORMED = [
    b"\x00\x01\x02\r\n\r\n", b"GET /v1/status\r\n\r\n", b"GET /v1/status HTTP/2.0\r\nHost: x\r\n\r\n",
    b"GET /v1/status FOO/1.1\r\nHost: x\r\n\r\n", b"GET /v1/status HTTP/1.1\r\nno colon\r\n\r\n",
    b"PUT /v1/subscriptions/a HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"PUT /v1/subscriptions/a HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    b"GET /v1/" + b"x" * 300_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /v1/status HTTP/1.1\r\nX-Long: " + b"x" * 300_000 + b"\r\n\r\n",
    b"GET /v1/status?" + b"&".join(b"a%d" % number for number in range(20_000)) + b" HTTP/1.1\r\n\r\n",
    b"POST /v1/partitions/p/collections/c/documents HTTP/1.1\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
]


class Node:
    def __init__(self, seamesh: str, directory: pathlib.Path):
        self.directory = directory
        self._run(seamesh, "init", f"--data={directory}", "--fleet=interface", "--user=ann", "--label=tested")
        command = [seamesh, "run", f"--data={directory}", "--listen=127.0.0.1:0", "--api=127.0.0.1:0", "--no-discovery"]
        self._log = open(f"{directory}.log", "wb")
        self.process = subprocess.Popen(command + ["--json"], stdout=subprocess.PIPE, stderr=self._log, text=True)
        guard = threading.Timer(_READY_SECONDS, self.process.kill)
        guard.start()
        ready = json.loads(self.process.stdout.readline())
        guard.cancel()
        token = (directory / "api.token").read_text().strip()
        self.doors = Doors(ready["api"]["socket"], int(ready["api"]["url"].rsplit(":", 1)[1]), token)

    def _run(self, *command: str):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=_READY_SECONDS)

    def memory(self) -> str:
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return re.search(r"VmHWM:\s+(\d+)", status).group(1)

    def stop(self):
        self.process.terminate()
        self.process.wait(_READY_SECONDS)
        self.process.stdout.close()
        self._log.close()


class Findings:
    def __init__(self):
        self.count = 0

    def add(self, number: int, request, fault: str):
        self.count += 1
        if self.count <= _FINDINGS:
            what = f" (flaw: {request.flaw})" if getattr(request, "flaw", "") else ""
            print(f"-- case {number}{what}: {fault}\n{request}\n", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="Tools/check-interface", description=__doc__)
    parser.add_argument("--seamesh", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--only", default="", help="names of operations, with commas between")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        # Short, because a socket's path may have 107 bytes only.
        place = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="seamesh-", dir="/tmp")))
        node = Node(options.seamesh, place / "n")
        stack.callback(node.stop)
        findings = check(node, options, str(place))
        print(f"{options.count} cases from seed {options.seed}, {findings.count} findings; the node used {node.memory()} kB at most")
        return 1 if findings.count else 0


def check(node: Node, options, directory: str) -> Findings:
    chance, findings = random.Random(options.seed), Findings()
    description = node.doors.ask(Request(None, "GET", "/v1/openapi.json")).json
    known = schemas.Schemas(description)
    wanted = [one for one in operations.all_of(description) if not options.only or one.name in options.only.split(",")]
    for operation in wanted:
        check_words(operation, known)
    requests = operations.Requests(description, known, chance, directory)
    judge, seen = answers.Judge(known), {}
    for fault in watching.faults(node.doors, {one.name: one for one in operations.all_of(description)}, judge):
        findings.add(0, "a watch", fault)
    for number in range(options.count):
        operation = wanted[number % len(wanted)]
        request = requests.flawed(operation) if chance.random() < 0.5 else requests.fitting(operation)
        if request.over_tcp and not any(name in ("Authorization",) for name, _ in request.headers):
            request.headers.append(("Authorization", f"Bearer {node.doors.token}"))
        try:
            answer = node.doors.ask(request, stops=answers.has_an_event)
        except Cut as cut:
            findings.add(number, request, f"no whole answer: {cut}")
            continue
        seen.setdefault(operation.name, {}).setdefault(answer.status, 0)
        seen[operation.name][answer.status] += 1
        if fault := judge.fault(request, answer):
            findings.add(number, request, fault)
        if tag := answer.headers.get("etag"):
            requests.etags = (requests.etags + [tag.strip('"')])[-8:]
        if number % 250 == 249:
            check_alive(node, number, chance, findings)
    check_alive(node, options.count, chance, findings)
    for name, statuses in seen.items():
        print(f"  {name}: " + ", ".join(f"{status} × {count}" for status, count in sorted(statuses.items())))
        # Whoever never gets through shows little of what is behind.
        if options.count >= 100 * len(wanted) and not any(status < 300 for status in statuses) and name not in _HARD:
            findings.add(options.count, name, "no request was ever taken")
    return findings


#: What takes more than one node, or a conflict.
_HARD = {"resolveConflict", "sendForwarding", "cancelInvitation", "raise", "revoke", "retire", "promote"}


def check_words(operation: operations.Operation, known: schemas.Schemas):
    """Every schema of an operation is one that can be judged by."""
    contents = list(operation.bodies.values())
    for status in operation.described["responses"].values():
        contents += status.get("content", {}).values()
    for one in operation.parameters:
        contents += one.get("content", {}).values()
        known.check(one.get("schema", {}))
    for content in contents:
        known.check(content["schema"])
        known.check(content.get("x-itemSchema", {}))
        for schema in content.get("x-eventSchemas", {}).values():
            known.check(schema)


def check_alive(node: Node, number: int, chance: random.Random, findings: Findings):
    raw = chance.choice(_MALFORMED)
    came = node.doors.send(raw)
    shown = raw[:80].decode(errors="backslashreplace")
    if came.startswith(b"HTTP/1.1 2"):
        findings.add(number, shown, f"taken, although it is malformed: {came[:80]!r}")
    if node.process.poll() is not None:
        raise SystemExit(f"the node ended with {node.process.returncode} before case {number}")
    if node.doors.ask(Request(None, "GET", "/v1/status")).status != 200:
        findings.add(number, shown, "the node does not tell its status")


if __name__ == "__main__":
    sys.exit(main())
