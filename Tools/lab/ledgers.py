"""Whether a backend has what a node has: each change once and byte for byte, what counts, and the documents."""

import hashlib
import sqlite3

from node import Node
from postgres import Server


def differences(server: Server, node: Node) -> list[str]:
    """One line for each kind of thing that is not the same; empty where the ledger is the mesh."""
    store = sqlite3.connect(f"file:{node.directory}/seamesh.db?mode=ro", uri=True)
    try:
        store.execute("BEGIN")
        pairs = [(name, stored(store), ledger(server)) for name, stored, ledger in _KINDS]
        pairs.append(("marks", _accepted(node, store), _ledger(_LEDGER_MARKS)(server)))
    finally:
        store.close()
    return [f"{name}: {_difference(here, there)}" for name, here, there in pairs if here != there]


def _difference(here: list[tuple], there: list[tuple]) -> str:
    lacking, more = sorted(set(here) - set(there)), sorted(set(there) - set(here))
    twice = len(there) - len(set(there))
    return (f"the backend lacks {len(lacking)} such as {lacking[:1]}, has {len(more)} more such as {more[:1]}, "
            f"and {twice} more than once")  # fmt: skip


def _rows(store: sqlite3.Connection, sql: str) -> list[tuple]:
    return sorted(
        tuple(_digest(value) if isinstance(value, bytes) else str(value) for value in row) for row in store.execute(sql))


def _digest(value: bytes) -> str:
    """Ids as they are, and of what is long its hash."""
    return value.hex() if len(value) <= 32 else hashlib.sha256(value).hexdigest()


def _ledger(sql: str):
    return lambda server: sorted(tuple(row) for row in server.ask(sql))


def _hashed(column: str) -> str:
    return f"CASE WHEN length({column}) <= 32 THEN encode({column}, 'hex') ELSE encode(sha256({column}), 'hex') END"


def _stored(sql: str):
    return lambda store: _rows(store, sql)


def _stored_changes(store: sqlite3.Connection) -> list[tuple]:
    """One row per change, as its run says."""
    rows = _rows(store, "SELECT p.hash, c.replica, r.first, r.last FROM runs r JOIN chains c ON c.id = r.chain "
                 "JOIN partitions p ON p.id = c.partition")  # fmt: skip
    return sorted((partition, replica, str(sequence)) for partition, replica, first, last in rows
                  for sequence in range(int(first), int(last) + 1))  # fmt: skip


_KINDS = [
    ("statements", _stored("SELECT id, encoded FROM statements"),
     _ledger(f"SELECT encode(id, 'hex'), {_hashed('encoded')} FROM seamesh.statements")),
    ("runs",
     _stored("SELECT p.hash, c.replica, r.first, r.last, r.body FROM runs r JOIN chains c ON c.id = r.chain "
             "JOIN partitions p ON p.id = c.partition"),
     _ledger(f"SELECT encode(partition, 'hex'), encode(replica, 'hex'), first, last, {_hashed('body')} FROM seamesh.runs")),
    ("changes", _stored_changes,
     _ledger("SELECT encode(partition, 'hex'), encode(replica, 'hex'), sequence FROM seamesh.changes")),
    ("documents",
     # What one change has written lies in its run.
     _stored("SELECT p.hash, c.name, d.key, CAST(d.state || ifnull(substr(r.body, d.start + 1, d.length), x'') AS BLOB) "
             "FROM documents d JOIN collections c ON c.id = d.collection JOIN partitions p ON p.id = d.partition "
             "LEFT JOIN runs r ON r.arrival = d.run WHERE d.alive"),
     _ledger(f"SELECT encode(partition, 'hex'), collection, {_hashed('id')}, {_hashed('state')} FROM seamesh.documents "
             "WHERE alive")),
]  # fmt: skip


_LEDGER_MARKS = ("SELECT encode(partition, 'hex'), encode(replica, 'hex'), sequence, encode(tip, 'hex') "
                 "FROM seamesh.accepted WHERE sequence > 0")


def _accepted(node: Node, store: sqlite3.Connection) -> list[tuple]:
    """As the node tells it: its store marks only up to where nothing was ever held."""
    ids = {name: digest for digest, name in _rows(store, "SELECT hash, name FROM partitions")}
    return sorted((ids[item["name"]], entry["replica"], str(entry["sequence"]), entry["tip"])
                  for item in node.ask("/v1/partitions")["partitions"] for entry in item["vector"])  # fmt: skip


def reached(server: Server, replica: str) -> int:
    """How far a replica's chain counts at the backend."""
    rows = server.ask(f"SELECT coalesce(max(sequence), 0) FROM seamesh.accepted WHERE replica = '\\x{replica}'")
    return int(rows[0][0])
