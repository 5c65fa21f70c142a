"""Pages of a store that a disk has spoiled (faults.md K3)."""

import shutil
import sqlite3

from fleets import PARTITION, add_node
from node import Node
from runner import Bench, case
from waiting import expect, wait_for

_STORE = "seamesh.db"
_DOCUMENTS = 1_000
_STORE_FAILED = 7


@case("K3: with a spoiled page of each table and index in turn a node answers what is so, or ends and says why")
def spoiled_pages(bench: Bench):
    node = add_node(bench.network, "a", None, responder=False)
    node.start("--no-discovery")
    node.put_many(PARTITION, "d", _DOCUMENTS, size=300)
    node.put(PARTITION, "Large", "one", {"text": "x" * 100_000})
    node.stop()
    whole = f"{node.directory}.whole"
    shutil.move(node.directory, whole)
    pages, ended = _pages(f"{whole}/{_STORE}"), 0
    for name, number, size in pages:
        shutil.rmtree(node.directory, ignore_errors=True)
        shutil.copytree(whole, node.directory)
        with open(f"{node.directory}/{_STORE}", "r+b") as store:
            store.seek((number - 1) * size)
            store.write(b"\xa5" * size)
        ended += _has_ended(node, name)
        node.end()
    bench.note(f"{len(pages)} pages; with {ended} of them it ended")


def _pages(path: str) -> list[tuple[str, int, int]]:
    """Name, number and size of each root but that of the schema, without which nothing is known of the others, and of a leaf."""
    database = sqlite3.connect(path)
    size = database.execute("PRAGMA page_size").fetchone()[0]
    roots = database.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0").fetchall()
    try:
        roots += database.execute("SELECT name, max(pageno) FROM dbstat WHERE pagetype = 'leaf' GROUP BY name").fetchall()
    except sqlite3.OperationalError:
        pass  # This SQLite does not tell of pages.
    database.close()
    expect(len(roots) > 20, f"there are {len(roots)} tables and indices")
    return sorted({(name, number, size) for name, number in roots if name != "sqlite_schema" and number > 1})


def _has_ended(node: Node, page: str) -> bool:
    node.launch()
    wait_for(30, f"a node with a spoiled page of {page} is ready or ends", lambda: node.ready_line or not node.process.is_running, 0.02)
    for number in (0, _DOCUMENTS // 2, _DOCUMENTS - 1):
        _expect_true(node.verb("get", PARTITION, "Lab", f"d-{number:05}", check=False), f'"n":{number}', page)
    found = node.verb("find", PARTITION, "Lab", check=False)
    if found.returncode == 0:
        expect(found.stdout.count("\n") == _DOCUMENTS, f"{page}: {found.stdout.count(chr(10))} of {_DOCUMENTS} were found")
    written = node.verb("patch", PARTITION, "Lab", "d-00001", "--set=again=1", check=False)
    if written.returncode == 0:
        _expect_true(node.verb("get", PARTITION, "Lab", "d-00001", check=False), '"again":1', page)
    if node.process.is_running:
        node.verb("doctor", check=False)
    if node.process.is_running:
        return False
    with open(node.log) as log:
        said = log.read()
    expect(node.process.status == _STORE_FAILED, f"{page}: it ended with {node.process.status}")
    expect("the store is damaged" in said and "seamesh restore" in said, f"{page}: it ended without a word: {said[-300:]}")
    return True


def _expect_true(answer, words: str, page: str):
    expect(answer.returncode != 0 or words in answer.stdout, f"{page}: a document was shown as {answer.stdout!r}")
    expect(answer.returncode != 3, f"{page}: a document that is there was said not to be: {answer.stderr}")
