"""A real node in a temporary directory, driven by its command, and tests with devices that enter its fleet."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

from nacl.signing import SigningKey
from seamesh_peer import hashing, joining, messages, payloads
from seamesh_peer.channel import Closed
from seamesh_peer.payloads import Operation, Write
from seamesh_peer.session import Session, Store

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 20
PARTITION = "agency=Gabon"


def executable() -> str:
    """`SEAMESH` in the environment, else what `swift build` has made. Skips the test where neither is there."""
    path = os.environ.get("SEAMESH")
    if path is None and shutil.which("swift"):
        build = ["swift", "build", "--show-bin-path", "--package-path", str(ROOT)]
        path = subprocess.run(build, capture_output=True, text=True, timeout=60).stdout.strip() + "/seamesh"
    if path is None or not os.access(path, os.X_OK):
        raise unittest.SkipTest(f"no node: build it first, or name it in SEAMESH ({path} is none)")
    return path


class Node:
    def __init__(self, seamesh: str):
        self.seamesh = seamesh
        # Short, because a socket's path may have 107 bytes only.
        self.directory = tempfile.mkdtemp(prefix="seamesh-", dir="/tmp")
        self.command("init", "--fleet", "interop", "--user", "ann@example.org", "--label", "node")
        self.start()

    def start(self):
        command = [self.seamesh, "run", "--data", self.directory, "--listen", "127.0.0.1:0", "--no-discovery", "--json"]
        # It logs every refusal, which here are what is asked for.
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        guard = threading.Timer(SECONDS, self.process.kill)
        guard.start()
        ready = json.loads(self.process.stdout.readline())
        guard.cancel()
        host, port = ready["listen"][0].rsplit(":", 1)
        self.address = host, int(port)
        self.fleet, self.device = bytes.fromhex(ready["fleet"]), bytes.fromhex(ready["device"])

    def restart(self):
        """The same device on the same data, at another address."""
        self.end()
        self.start()

    def stop(self):
        self.end()
        shutil.rmtree(self.directory)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(SECONDS)
        self.process.stdout.close()
        if status:
            raise AssertionError(f"the node ended with {status}")

    def ask(self, verb: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess:
        return self.ask_people(verb, "--json", *arguments, stdin=stdin)

    def ask_people(self, verb: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess:
        """The answer is meant for people."""
        command = [self.seamesh, verb, "--data", self.directory, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=SECONDS)

    def command(self, verb: str, *arguments: str, stdin: str = "") -> dict:
        done = self.ask(verb, *arguments, stdin=stdin)
        if done.returncode:
            raise AssertionError(f"seamesh {verb} ended with {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def put(self, partition: str, collection: str, id: str, document: dict) -> dict:
        return self.command("put", partition, collection, id, stdin=json.dumps(document))

    def get(self, partition: str, collection: str, id: str) -> dict | None:
        done = self.ask("get", partition, collection, id)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def vector(self, partition: str) -> list:
        """As the node shows it: (replica, sequence, tip) ascending."""
        listed = self.command("partitions")["partitions"]
        entries = next((item["vector"] for item in listed if item["name"] == partition), [])
        return sorted((bytes.fromhex(item["replica"]), item["sequence"], bytes.fromhex(item["tip"])) for item in entries)


def key(name: str) -> SigningKey:
    return SigningKey(hashing.sha256(name.encode()))


def creation(id: str, **fields) -> list[Write]:
    return [Write("Vessel", id, payloads.CREATE, 1, [Operation(payloads.SET, [name], fields[name]) for name in fields])]


class LiveCase(unittest.TestCase):
    #: What sessions are of.
    session = Session

    @classmethod
    def setUpClass(cls):
        cls.node = Node(executable())
        cls.addClassCleanup(cls.node.stop)

    def invite(self, *options: str) -> dict:
        """What the code of a new invitation says; it is good for one device."""
        user = [] if "--user" in options else ["--user", "ben@example.org"]
        role = [] if "--role" in options else ["--role", "crew"]
        answer = self.node.command("invite", *user, *role, *options)
        return joining.read_code(answer["code"])

    def enter(self, *names: str, role: str = "crew") -> Store:
        """A new device that has joined; its key is the test's name's."""
        store = Store(self.node.fleet, key(self.id()), list(names) or [PARTITION])
        self.join(store, self.invite("--role", role))
        return store

    def copy(self, store: Store, device: SigningKey) -> Store:
        """Another device with the same statements."""
        other = Store(store.fleet, device, list(store.partitions))
        other.keep_all([item.encoded for item in store.statements.values()])
        return other

    def join(self, store: Store, code: dict):
        session = self.dial(store)
        request = messages.JoinRequest(code["fleet"], code["inviter"], code["serial"], store.device, "outside peer")
        try:
            session.join(request, code["secret"])
        finally:
            self.assertEqual({number for is_ours, number, _ in session.trace if is_ours}, {messages.JOIN_REQUEST})
            with self.assertRaises(Closed):
                session.step()

    def dial(self, store: Store, **options) -> Session:
        session = self.session.dial(store, *self.node.address, **options)
        self.addCleanup(session.close)
        return session

    def connect(self, store: Store) -> Session:
        session = self.dial(store)
        session.start()
        return session

    def pull(self, session: Session, name: str = PARTITION):
        session.until(lambda: session.store.partitions[name].vector == self.node.vector(name))

    def documents(self, store: Store, name: str = PARTITION) -> dict:
        return {item.id: item.body for item in store.partitions[name].documents() if item.body is not None}
