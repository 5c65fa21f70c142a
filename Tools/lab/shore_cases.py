"""A day between deck and office: what is written at sea comes to the backend, and what the office writes comes to sea."""

import json
import shutil

from fleets import PARTITION, add_node
from network import Network
from node import Node
from postgres import Server
from responder import Responder
from runner import Bench, case
from waiting import expect, wait_for

REPORTS = "BoardingReports"
_EDIT = (
    "SET ROLE clerk; SET seamesh.by_user = 'eve@office.example'; SET seamesh.why = 'checked with the harbour master'; "
    "UPDATE seamesh_office.documents SET body = body || '{\"open\": false}' WHERE collection = 'BoardingReports' "
    "AND id = '\"r-1\"'"
)  # fmt: skip


@case("a day of duty: tablet, boat, relay, PostgreSQL, by chance meetings; the office's edit comes back, and the tablet can go")
def duty_day(bench: Bench):
    network = bench.network
    server = Server(network.host("db"))
    tablet, boat, relay = _fleet(network, server)
    port = [relay.host, server.host]

    # At sea alone, then with the boat.
    network.split([tablet.host], [boat.host], port)
    tablet.put(PARTITION, "DutyChange", "d-1", {"status": "On Duty", "user": {"email": "ann@lab.example"}})
    tablet.put(PARTITION, REPORTS, "r-1", {"open": True, "vessel": {"name": "Águila"}, "crew": ["Ann", "Bo"]})
    _expect_receipt(tablet, localDurable=True, peers=0, backend=False)
    _expect_unsafe(tablet, 2)
    _meet(network, [tablet.host, boat.host], port)
    wait_for(60, "the boat has the report", lambda: boat.changes(PARTITION) >= 2, 0.2)
    _expect_receipt(tablet, peers=1, relays=0, backend=False)

    # The boat is in port, the tablet at sea.
    _meet(network, [tablet.host], [boat.host, *port])
    wait_for(60, "the report is in the backend", lambda: _body(server) is not None, 0.2)
    expect(_body(server)["vessel"]["name"] == "Águila", f"the backend shows {_body(server)}")
    _expect_receipt(boat, relays=1, backend=True)
    server.ask(_EDIT)
    wait_for(60, "the office's edit is on the boat", lambda: _is_closed(boat), 0.2)
    wait_for(60, "the office sees its edit done", lambda: server.ask("SELECT state FROM seamesh_office.edits") == [["applied"]], 0.2)
    wait_for(60, "the backend shows the edit", lambda: _body(server)["open"] is False, 0.2)
    # Of the edit, too, before it leaves.
    _expect_receipt(boat, backend=True)

    # The boat comes back to the tablet, with the edit and the relay's word.
    _meet(network, [tablet.host, boat.host], port)
    wait_for(60, "the office's edit is on the tablet", lambda: _is_closed(tablet), 0.2)
    _expect_receipt(tablet, backend=True)
    tablet.verb("safe-to-wipe", "--send", "--timeout=60s", seconds=90)
    before = boat.digests()
    tablet.stop()
    shutil.rmtree(tablet.directory)
    network.heal()
    wait_for(60, "nothing is missing", lambda: boat.digests() == before == relay.digests(), 0.3)


def _fleet(network: Network, server: Server) -> tuple[Node, Node, Node]:
    """The relay is the office's; all have met."""
    tablet = add_node(network, "tablet", None)
    tablet.start("--listen", "7000")
    boat = add_node(network, "boat", tablet)
    boat.start("--listen", "7000")
    relay = Node(network.host("relay"))
    Responder(relay.host)
    relay.verb("join", tablet.invite("office", role="relay"), "--label", "relay")
    server.ask("CREATE ROLE clerk LOGIN", "postgres")
    server.set_up(relay, "--home-bound-to=relay", "--office-to=clerk")
    relay.start("--relay", "--listen", "7000", server.option(relay), "--home-bound")
    for node in (tablet, boat):
        node.subscribe(PARTITION)
    return tablet, boat, relay


def _meet(network: Network, *sides):
    network.heal()
    network.split(*sides)


def _expect_receipt(node: Node, **rungs):
    """Of the report, asking whoever is in reach."""
    def told() -> dict:
        answer = json.loads(node.verb("receipts", PARTITION, REPORTS, "r-1", "--ask", "--json").stdout)["rungs"]
        return {name: answer[name] for name in rungs}
    wait_for(60, lambda: f"{node.name} says {rungs} of the report; it says {told()}", lambda: told() == rungs, 0.5)


def _expect_unsafe(node: Node, changes: int):
    done = node.verb("safe-to-wipe", "--json", check=False)
    answer = json.loads(done.stdout)
    expect(done.returncode == 1 and not answer["safe"], f"a tablet whose work is nowhere else: {answer}")
    expect(answer["lostChanges"] == changes, f"{answer['lostChanges']} changes would be lost, not {changes}")


def _body(server: Server) -> dict | None:
    rows = server.ask("SELECT body FROM seamesh_office.documents WHERE collection = 'BoardingReports'")
    return json.loads(rows[0][0]) if rows else None


def _is_closed(node: Node) -> bool:
    return '"open":false' in node.verb("get", PARTITION, REPORTS, "r-1", "--json").stdout.replace(" ", "")
