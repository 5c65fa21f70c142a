"""Edits of the office under kills: each is done once or refused with its reason, and every node shows it."""

import json
import random
import threading
import time

from fleets import PARTITION, add_node, await_meeting
from forward_cases import forwarding, misfortunes_of
from ledgers import differences
from network import Network
from node import Node, documents_path
from postgres import Server
from responder import Responder
from runner import Bench, case
from waiting import expect, wait_for
from workload import COLLECTION, Workload

_OFFICE = "Office"
_DOCUMENTS = 12
# At once.
_MANY = 60


class Clerk:
    """Edits one after the other, as the office does, whatever becomes of the server; which of them were made says the server."""

    def __init__(self, server: Server, choice: random.Random):
        self._server, self._random = server, choice
        self.asked = self.lost = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def end(self):
        self._is_over.set()
        self._thread.join()

    def _work(self):
        while not self._is_over.wait(self._random.uniform(0, 0.4)):
            self.asked += 1
            try:
                self._server.ask(f"SET ROLE clerk; SET seamesh.why = 'number {self.asked}'; " + self._edit(self.asked))
            except Exception:
                # The server is away, or went away with the answer.
                self.lost += 1

    def _edit(self, number: int) -> str:
        """Of a field that nobody else writes; of one that the vessels write; new documents, one or many, so that a relay dies in the
        midst of them; or what cannot be done."""
        update = "UPDATE seamesh_office.documents SET body = body || "
        document = f"'\"o-{self._random.randrange(_DOCUMENTS)}\"'"
        match self._random.randrange(10):
            case 0 | 1 | 2 | 3 | 4:
                return f"{update} '{{\"e{number}\": {number}}}' WHERE collection = '{_OFFICE}' AND id = {document}"
            case 5 | 6:
                chosen = f"SELECT id FROM seamesh_office.documents WHERE collection = '{COLLECTION}' ORDER BY random() LIMIT 1"
                return f"{update} '{{\"n\": {-number}}}' WHERE collection = '{COLLECTION}' AND id = ({chosen})"
            case 7 | 8:
                body = f"'{{\"e{number}\": {number}, \"list\": [1, 2]}}'"
                many = self._random.choice((1, _MANY))
                return (f"INSERT INTO seamesh_office.documents (partition, collection, id, body) SELECT '{PARTITION}', "
                        f"'{_OFFICE}', to_jsonb('new-{number}-' || i), {body} FROM generate_series(1, {many}) i")  # fmt: skip
            case _:
                return f"SELECT seamesh_office.edit('{PARTITION}', '{_OFFICE}', '\"o-0\"', NULL, '{{\"never\": {number}}}')"


@case("the office edits while relays, server and connections are killed: each edit is done once or refused, and all show it")
def office_edits(bench: Bench):
    _edit_under_kills(bench, 25)


@case("the office edits for 5 min while relays, server and connections are killed", is_long=True)
def office_edits_long(bench: Bench):
    _edit_under_kills(bench, 300)


def _edit_under_kills(bench: Bench, seconds: int):
    network = bench.network
    server = Server(network.host("db"))
    vessels, relays = _fleet(network, server)
    for number in range(_DOCUMENTS):
        vessels[0].put(PARTITION, _OFFICE, f"o-{number}", {"list": [1], "number": number})
    wait_for(30, "the office sees its documents", lambda: len(_shown(server)) == _DOCUMENTS, 0.2)
    workloads = [
        Workload(vessel, PARTITION, seconds * 10, 40, bench.random.randrange(1 << 30), pause=0.8) for vessel in vessels
    ]
    for workload in workloads:
        workload.start()
    misfortunes = misfortunes_of(bench.random.randrange(1 << 30), relays, server)
    clerk = Clerk(server, random.Random(bench.random.randrange(1 << 30)))
    time.sleep(seconds)
    clerk.end()
    for workload in workloads:
        workload.finish()
    for misfortune in misfortunes:
        misfortune.end()
    for work in [*workloads, *misfortunes]:
        expect(not work.failure, str(work.failure))
    bench.note(", ".join(f"{name} {count}" for each in misfortunes for name, count in each.counts.items()))
    _expect_done(bench, server, vessels + relays, relays, clerk)


def _fleet(network: Network, server: Server) -> tuple[list[Node], list[Node]]:
    """Two vessels that write, and two relays of the office."""
    vessels: list[Node] = []
    for name in ("boat-1", "boat-2"):
        node = add_node(network, name, vessels[0] if vessels else None)
        node.start("--listen", "7000")
        node.subscribe(PARTITION)
        vessels.append(node)
    server.ask("CREATE ROLE clerk LOGIN", "postgres")
    relays: list[Node] = []
    for name in ("relay-1", "relay-2"):
        relay = Node(network.host(name))
        Responder(relay.host)
        relay.verb("join", vessels[0].invite("office", role="relay"), "--label", name)
        if not relays:
            server.set_up(relay, "--home-bound-to=relay", "--office-to=clerk")
        relay.start("--relay", "--listen", "7000", server.option(relay), "--home-bound")
        relays.append(relay)
    await_meeting(vessels + relays)
    return vessels, relays


def _expect_done(bench: Bench, server: Server, nodes: list[Node], relays: list[Node], clerk: Clerk):
    for relay in relays:
        relay.await_ready()
    began = time.monotonic()
    states: dict[str, int] = {}

    def are_settled() -> bool:
        for relay in relays:
            relay.verb("forward", "--now", check=False)
        states.clear()
        states.update({state: int(count) for state, count in server.ask(
            "SELECT state, count(*) FROM seamesh_office.edits GROUP BY 1")})  # fmt: skip
        return not states.keys() & {"waiting", "claimed"}

    wait_for(120, lambda: f"every edit is settled: {states}, {[forwarding(relay) for relay in relays]}", are_settled, 0.5)
    edits = server.ask("SELECT id, state, coalesce(reason, ''), collection, document, body FROM seamesh_office.edits")
    bench.note(f"{clerk.asked} edits asked for, {clerk.lost} without an answer: {states}")
    for made, state, reason, collection, document, _ in edits:
        expect(state in ("applied", "refused"), f"the edit {made} of {collection} {document} is {state}: {reason}")
        expect(state == "applied" or reason, f"the edit {made} was refused without a reason")
    twice = server.ask("SELECT edit FROM seamesh.edit_changes GROUP BY 1 HAVING count(*) > 1")
    expect(not twice, f"edits were written more than once: {twice}")
    written = server.ask(
        "SELECT count(*) FILTER (WHERE c.edit IS NULL) FROM seamesh_office.edits e "
        "LEFT JOIN seamesh.edit_changes c ON c.edit = e.id WHERE e.state = 'applied'")  # fmt: skip
    expect(written == [["0"]], f"{written} edits are said to be applied and have no change")
    _expect_shown(server, nodes, [edit for edit in edits if edit[1] == "applied" and edit[3] == _OFFICE])
    _expect_equal(bench, server, nodes, relays, began)


def _expect_shown(server: Server, nodes: list[Node], edits: list[list[str]]):
    """What the office wrote and nobody else, on every node."""
    fields: dict[str, dict[str, int]] = {}
    for _, _, _, _, document, body in edits:
        wanted = {name: value for name, value in json.loads(body).items() if name[0] == "e"}
        fields.setdefault(json.loads(document), {}).update(wanted)
    for node in nodes:
        def lacking() -> list[str]:
            found = []
            for document, wanted in fields.items():
                status, answer = node.client().request("GET", documents_path(PARTITION, _OFFICE, document))
                shown = answer if status == 200 else {}
                found += [f"{document}.{name}" for name, value in wanted.items() if shown.get(name) != value]
            return found
        wait_for(60, lambda: f"{node.name} shows what the office wrote; it lacks {lacking()[:5]}", lambda: not lacking(), 0.5)


def _expect_equal(bench: Bench, server: Server, nodes: list[Node], relays: list[Node], began: float):
    """Every node shows the same, which is what the ledger has, and tells the same conflicts as the office's table."""
    found: list[str] = []

    def is_equal() -> bool:
        for relay in relays:
            relay.verb("forward", "--now", check=False)
        found[:] = [line for node in nodes for line in differences(server, node)]
        return not found and all(forwarding(relay)["state"] == "caught-up" for relay in relays)

    wait_for(90, lambda: f"the ledger is the mesh: {found}", is_equal, 1)
    told = sorted((row[0], row[1]) for row in server.ask("SELECT id #>> '{}', value FROM seamesh_office.conflicts"))
    for node in nodes:
        answer = json.loads(node.verb("conflicts", PARTITION, "--limit=100000", "--json").stdout)
        listed = sorted((conflict["document"], json.dumps(value.get("value")))
                        for conflict in answer["conflicts"] for value in conflict["values"])  # fmt: skip
        expect(listed == told, f"{node.name} lists the conflicts {listed}, and the office {told}")
    bench.note(f"{len(told)} conflicts; equal {time.monotonic() - began:.1f} s after the last edit")


def _shown(server: Server) -> list[list[str]]:
    return server.ask(f"SELECT id FROM seamesh_office.documents WHERE collection = '{_OFFICE}'")
