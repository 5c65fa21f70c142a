"""A real node in a temporary directory, driven by its command."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 20


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
        command = [seamesh, "run", "--data", self.directory, "--listen", "127.0.0.1:0", "--no-discovery", "--json"]
        # It logs every refusal, which here are what is asked for.
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        guard = threading.Timer(SECONDS, self.process.kill)
        guard.start()
        ready = json.loads(self.process.stdout.readline())
        guard.cancel()
        host, port = ready["listen"][0].rsplit(":", 1)
        self.address = host, int(port)
        self.fleet, self.device = bytes.fromhex(ready["fleet"]), bytes.fromhex(ready["device"])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(SECONDS)
        self.process.stdout.close()
        shutil.rmtree(self.directory)
        if status:
            raise AssertionError(f"the node ended with {status}")

    def ask(self, verb: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess:
        command = [self.seamesh, verb, "--data", self.directory, "--json", *arguments]
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
