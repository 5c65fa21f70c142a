"""From a commit on a vessel until SQL shows it, and what a report and a session at rest cost over a link."""

import json
import subprocess
import time

from figures import Figures
from machine import Machine, loopback_bytes
from node import Node
from postgres import Server
from waiting import expect, wait_for

_PARTITION, _COLLECTION = "agency=Figures", "BoardingReports"
_WRITES = 200
_BULK = 100
# A link that is paid for, so that it is counted, and that does not come to its limit.
_RULE = {"class": "satellite", "bytesPerDay": 1_000_000_000}
# The relay reaches the vessel at another address of loopback than the server, so that its rule can name the server alone.
_VESSEL = "127.0.0.2"


class _Shore:
    """A vessel, a relay that dials it, and a ledger of their own behind that one."""

    def __init__(self, machine: Machine, server: Server, name: str):
        self.server = server
        server.ask("DROP DATABASE fleet", "postgres")
        server.ask("CREATE DATABASE fleet", "postgres")
        self.vessel, self.relay = Node(machine, f"{name}-vessel"), Node(machine, f"{name}-relay")
        self.vessel.init()
        self.vessel.start("--listen", f"{_VESSEL}:0", "--no-discovery")
        code = self.vessel.invite("office@lab.example", role="relay")
        self.relay.verb("join", code, "--label", "relay", "--peer", self._vessel_address)
        server.set_up(self.relay)

    @property
    def _vessel_address(self) -> str:
        return f"{_VESSEL}:{self.vessel.port}"

    def start(self, forward: str, *vessel: str, relay: tuple[str, ...] = ()):
        self.vessel.stop()
        self.vessel.start("--listen", self._vessel_address, "--no-discovery", *vessel)
        self.relay.start(
            "--listen", "127.0.0.1:0", "--no-discovery", "--relay", "--peer", self._vessel_address, forward, *relay)

    def end(self):
        self.relay.stop()
        self.vessel.stop()


class _Question:
    """One SQL connection that asks without a pause how many documents there are."""

    def __init__(self, server: Server):
        self._process = subprocess.Popen(
            server.psql(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def documents(self) -> int:
        self._process.stdin.write("SELECT count(*) FROM seamesh.documents WHERE body IS NOT NULL;\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def await_documents(self, number: int, seconds: float = 60):
        wait_for(seconds, f"{number} documents at the backend", lambda: self.documents() >= number, 0)

    def end(self):
        self._process.stdin.close()
        self._process.wait()


def measure_latency(machine: Machine, server: Server, figures: Figures):
    shore = _Shore(machine, server, "latency")
    shore.start(f"--forward={server.socket_url('relay')}")
    question, client, milliseconds = _Question(server), shore.vessel.client(), []
    target = f"/v1/partitions/agency%3DFigures/collections/{_COLLECTION}/documents"
    for number in range(_WRITES + 1):
        status, _ = client.request("PUT", f"{target}/{number}", {"number": number, "text": "x" * 250})
        expect(status == 201, f"a write answered {status}")
        began = time.monotonic()
        question.await_documents(number + 1)
        milliseconds.append((time.monotonic() - began) * 1_000)
        time.sleep(0.05)
    client.close()
    question.end()
    shore.end()
    # The first one waits for the connections.
    ordered = sorted(milliseconds[1:])
    basis = f"{_WRITES} writes of 250 bytes, one at a time; vessel, relay and server on this machine"
    figures.add("committed on a vessel until visible by SQL, p50", ordered[_WRITES // 2], "ms", basis)
    figures.add("committed on a vessel until visible by SQL, p99", ordered[_WRITES * 99 // 100], "ms",
                f"the same; at most {ordered[-1]:.1f}")  # fmt: skip


# Bytes


class _Accounts:
    """Bytes that the two links have carried: from vessel to relay as the vessel counts them, from there as the relay does."""

    names = ("vessel to relay", "relay to PostgreSQL")

    def __init__(self, shore: _Shore):
        self._nodes = (shore.vessel, shore.relay)

    def read(self) -> list[int]:
        return [self._of(node) for node in self._nodes]

    @staticmethod
    def _of(node: Node) -> int:
        links = json.loads(node.verb("links", "--json").stdout)["links"]
        return sum(link["bytesToday"] or 0 for link in links if link["class"] == _RULE["class"])


def measure_link(machine: Machine, server: Server, count: int, rest_seconds: int, is_alone: bool, figures: Figures):
    reports = _reports(count + 1 + _BULK)
    shore = _Shore(machine, server, "link")
    shore.start(
        server.option(shore.relay), "--link=" + json.dumps({**_RULE, "interfaces": ["lo"]}),
        relay=("--link=" + json.dumps({**_RULE, "routes": ["127.0.0.1/32"]}),))  # fmt: skip
    question, accounts = _Question(server), _Accounts(shore)
    # The partition is known, and the sessions are there.
    _put(shore.vessel, reports[0])
    question.await_documents(1)
    time.sleep(5)
    start, interface = accounts.read(), loopback_bytes()
    rest = _measure_rest(accounts, rest_seconds, figures)

    single = reports[1 : count + 1]
    before, began = accounts.read(), time.monotonic()
    for number, report in enumerate(single):
        _put(shore.vessel, report)
        question.await_documents(number + 2)
        time.sleep(1)
    _tell("a report by itself", single, before, began, accounts, rest, figures)

    bulk = reports[count + 1 :]
    before, began = accounts.read(), time.monotonic()
    lines = "".join(json.dumps(report, ensure_ascii=False) + "\n" for report in bulk)
    subprocess.run(shore.vessel.words("import", _PARTITION, _COLLECTION, "-"), input=lines, text=True, check=True,
                   stdout=subprocess.DEVNULL, env=machine.environment)  # fmt: skip
    question.await_documents(count + 1 + _BULK, 120)
    time.sleep(5)
    _tell(f"a report of {_BULK} at once", bulk, before, began, accounts, rest, figures)
    figures.note("of each report the backend holds " + server.ask(
        "SELECT format('%s bytes of its run, %s of JSON and %s of merge state', "
        "(SELECT sum(length(body)) FROM seamesh.runs) / count(*), avg(length(body::text))::integer, "
        "avg(length(state))::integer) FROM seamesh.documents WHERE body IS NOT NULL")[0][0])  # fmt: skip
    if is_alone:
        counted, carried = sum(accounts.read()) - sum(start), loopback_bytes() - interface
        figures.add("counted, share of what loopback carried", counted / carried, "",
                    f"{counted:,} of {carried:,} bytes, from rest to the last report")  # fmt: skip
    question.end()
    shore.end()


def _reports(count: int) -> list[dict]:
    made = subprocess.run([Node.seamesh, "sample", f"--count={count}"], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in made.splitlines()]


def _put(vessel: Node, report: dict):
    vessel.put(_PARTITION, _COLLECTION, report["_id"]["$oid"], {key: value for key, value in report.items() if key != "_id"})


def _measure_rest(accounts: _Accounts, seconds: int, figures: Figures) -> list[float]:
    """Bytes a second of both links where nothing is written."""
    before, began = accounts.read(), time.monotonic()
    time.sleep(seconds)
    after, passed = accounts.read(), time.monotonic() - began
    rates = [(late - early) / passed for early, late in zip(before, after)]
    for name, rate in zip(accounts.names, rates):
        figures.add(f"at rest, {name}", rate, "bytes/s", f"{passed:.0f} s, by the node's account")
    return rates


def _tell(what: str, reports: list[dict], before: list[int], began: float, accounts: _Accounts, rest: list[float],
          figures: Figures):  # fmt: skip
    passed = time.monotonic() - began
    size = sum(len(json.dumps(report, ensure_ascii=False, separators=(",", ":")).encode()) for report in reports) / len(reports)
    for name, early, late, rate in zip(accounts.names, before, accounts.read(), rest):
        cost = (late - early - rate * passed) / len(reports)
        figures.add(f"{what}, {name}", cost, "bytes",
                    f"mean of {len(reports)}, without what rest costs; {cost / size:.2f} for each of {size:,.0f} bytes of JSON")  # fmt: skip
