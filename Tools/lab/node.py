"""A node: a data directory on a host, the process that runs on it, and its local interface."""

import http.client
import json
import signal
import socket
import subprocess
from urllib.parse import quote

from network import Host
from processes import Process
from waiting import Failed, expect, wait_for


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """One connection to a node's local interface, opened anew when it broke. For one thread."""

    def __init__(self, path: str, timeout: float = 30):
        self._path, self._timeout, self._connection = path, timeout, None

    def request(self, method: str, target: str, body=None) -> tuple[int, dict]:
        """Status and answer. OSError or HTTPException where the node went away: then nobody knows what became of it."""
        content = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if content else {}
        try:
            self._connection = self._connection or _UnixConnection(self._path, self._timeout)
            self._connection.request(method, target, content, headers)
            answer = self._connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text.startswith(b"{") else {}
        except Exception:
            self.close()
            raise

    def events(self, method: str, target: str):
        """Lines of an answer that goes on, from its beginning."""
        connection = _UnixConnection(self._path, self._timeout)
        connection.request(method, target)
        answer = connection.getresponse()
        expect(answer.status == 200, f"{target} answered {answer.status}")
        return answer

    def close(self):
        if self._connection:
            self._connection.close()
        self._connection = None


def documents_path(partition: str, collection: str, identifier: str = "") -> str:
    path = f"/v1/partitions/{quote(partition, safe='')}/collections/{quote(collection, safe='')}/documents"
    return f"{path}/{quote(identifier, safe='')}" if identifier else path


class Node:
    seamesh = "seamesh"
    log_level = "debug"

    def __init__(self, host: Host, name: str = ""):
        self.host, self.name = host, name or host.name
        self.directory = f"{host.directory}/{self.name}"
        self.output, self.log = f"{self.directory}.out", f"{self.directory}.log"
        self.process: Process | None = None
        self.options: list[str] = []
        self.environment: dict[str, str] = {}
        # Words before the command that runs it.
        self.prefix: list[str] = []
        self.begun: list[subprocess.Popen] = []
        host.nodes.append(self)

    # Verbs

    def begin(self, *words: str) -> subprocess.Popen:
        """A verb that goes on while the case does something else."""
        self.begun.append(subprocess.Popen(
            self.words(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**self.host.environment, **self.environment}))  # fmt: skip
        return self.begun[-1]

    def words(self, *words: str) -> list[str]:
        return self.host.command(self.seamesh, words[0], "--data", self.directory, *words[1:])

    def verb(self, *words: str, check: bool = True, seconds: float = 60) -> subprocess.CompletedProcess:
        done = subprocess.run(
            self.words(*words), timeout=seconds, capture_output=True, text=True,
            env={**self.host.environment, **self.environment})  # fmt: skip
        if check and done.returncode != 0:
            raise Failed(f"seamesh {words[0]} on {self.name} ended with {done.returncode}: {done.stderr.strip()}")
        return done

    def init(self, *options: str, fleet: str = "laboratory", agency: str = "Laboratory"):
        profile = json.dumps({"agency": agency})
        self.verb("init", "--fleet", fleet, "--user", f"{self.name}@lab.example", "--label", self.name,
                  "--profile", profile, *options)  # fmt: skip

    def invite(self, user: str, agency: str = "Laboratory", role: str = "") -> str:
        words = ["--profile", json.dumps({"agency": agency})] + (["--role", role] if role else [])
        return json.loads(self.verb("invite", "--user", user, *words, "--json").stdout)["code"]

    def join(self, inviter: "Node", agency: str = "Laboratory", role: str = ""):
        self.verb("join", inviter.invite(f"{self.name}@lab.example", agency, role), "--label", self.name)

    # The process

    def start(self, *options: str, seconds: float = 30):
        """Runs it with these options, or with those of the last time."""
        self.options = list(options) or self.options
        self.launch()
        self.await_ready(seconds)

    def launch(self):
        open(self.output, "w").close()
        self.process = Process(
            self.host.command(
                *self.prefix, self.seamesh, "run", "--data", self.directory, "--json", "--log-level", self.log_level, *self.options),
            {**self.host.environment, **self.environment}, self.output, self.log)  # fmt: skip

    def await_ready(self, seconds: float = 30):
        def is_ready():
            if not self.process.is_running:
                raise Failed(f"node {self.name} ended with {self.process.status} at its start")
            return self.ready_line
        wait_for(seconds, f"node {self.name} is ready", is_ready, 0.02)

    @property
    def ready_line(self) -> dict | None:
        with open(self.output) as file:
            lines = [line for line in file if '"ready"' in line and line.endswith("\n")]
        return json.loads(lines[-1]) if lines else None

    @property
    def port(self) -> int:
        return int(self.ready_line["listen"][0].rsplit(":", 1)[1])

    def stop(self):
        status = self.process.stop()
        expect(status == 0, f"node {self.name} ended with {status} when it was asked to stop")

    def kill(self):
        self.process.kill()

    def pause(self):
        self.process.signal(signal.SIGSTOP)

    def resume(self):
        self.process.signal(signal.SIGCONT)

    def expect_alive(self):
        expect(self.process.is_running, f"node {self.name} ended by itself with {self.process.status}")

    def end(self):
        for verb in self.begun:
            verb.kill()
        if self.process:
            self.process.kill()

    # The local interface

    def client(self, timeout: float = 30) -> Client:
        return Client(f"{self.directory}/api.sock", timeout)

    def ask(self, target: str) -> dict:
        # A connection of its own: one that is kept is closed by the node while the case waits for something else.
        client = self.client()
        status, answer = client.request("GET", target)
        client.close()
        expect(status == 200, f"{target} on {self.name} answered {status}: {answer}")
        return answer

    def received_bytes(self) -> dict[str, int]:
        """Of messages of peers since the start, by kind."""
        client, prefix = self.client(), 'seamesh_received_bytes_total{message="'
        answer = client.events("GET", "/metrics")
        lines = answer.read().decode().splitlines()
        client.close()
        rows = [line.removeprefix(prefix).split('"} ') for line in lines if line.startswith(prefix)]
        return {name: int(value) for name, value in rows}

    def put(self, partition: str, collection: str, identifier: str, body: dict):
        client = self.client()
        status, answer = client.request("PUT", documents_path(partition, collection, identifier), body)
        client.close()
        expect(status in (200, 201), f"a write on {self.name} answered {status}: {answer}")

    def put_many(self, partition: str, prefix: str, count: int, size: int = 40):
        for number in range(count):
            self.put(partition, "Lab", f"{prefix}-{number:05}", {"by": self.name, "n": number, "text": "x" * size})

    def subscribe(self, pattern: str):
        self.verb("subscribe", pattern)

    def partitions(self, digests: bool = True) -> dict[str, dict]:
        rows = self.ask(f"/v1/partitions?digests={'true' if digests else 'false'}")["partitions"]
        return {row["name"]: row for row in rows}

    def changes(self, partition: str) -> int:
        return self.partitions(digests=False).get(partition, {}).get("changes", 0)

    def digests(self) -> dict[str, str]:
        """Of the partitions that hold anything, once they are computed."""
        rows: dict[str, dict] = {}

        def are_computed() -> bool:
            rows.update({name: row for name, row in self.partitions().items() if row["changes"]})
            return all(row["digestState"] == "computed" for row in rows.values())

        wait_for(60, lambda: f"{self.name} knows its state digests: {rows}", are_computed, 0.2)
        return {name: row["digest"] for name, row in rows.items()}

    def peers(self, state: str = "connected") -> list[dict]:
        return [peer for peer in self.ask("/v1/peers")["peers"] if peer["state"] == state]

    def findings(self) -> dict[str, dict]:
        return {finding["code"]: finding for finding in self.ask("/v1/doctor")["findings"]}
