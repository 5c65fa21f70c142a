"""A PostgreSQL server of a case's own, and what befalls servers."""

import os
import secrets
import shutil
import signal
import subprocess
import time

from machine import processor_seconds
from network import Host, run
from node import Node
from processes import Process
from waiting import Skip, wait_for

_PROGRAMS = "/usr/lib/postgresql/15/bin"
# It does not run as root, and the laboratory may be root in a namespace of users that has nobody else.
_AS_NOBODY = ("unshare", "--user", "--map-user=1000", "--") if os.geteuid() == 0 else ()
# No machine dies in the laboratory, only processes.
_HASTY = "shared_buffers = 16MB\nfsync = off\nfull_page_writes = off\n"


class Server:
    """Takes relays by TLS on its host's address, and its owner over a socket. It ends with its host."""

    def __init__(self, host: Host, listen: str = "*", port: int = 5432, settings: str = _HASTY):
        for program in (f"{_PROGRAMS}/postgres", "/usr/bin/psql", "/usr/bin/openssl"):
            if not os.path.exists(program):
                raise Skip(f"{program} is not installed")
        self.host, self.directory, self.port = host, f"{host.directory}/pg", port
        self.data, self.log = f"{self.directory}/data", f"{self.directory}/log"
        self.password = secrets.token_hex(8)
        self._process: Process | None = None
        os.makedirs(self.directory)
        host.strangers.append(self)
        run(*_AS_NOBODY, f"{_PROGRAMS}/initdb", "-D", self.data, "-A", "trust", "-U", "owner", "--no-sync", "-E", "UTF8",
            "--locale=C.UTF-8")  # fmt: skip
        self._make_certificate()
        self._configure(listen, settings)
        self.start()
        self.ask(f"CREATE ROLE relay LOGIN PASSWORD '{self.password}'", "postgres")
        self.ask("CREATE DATABASE fleet", "postgres")

    def _make_certificate(self):
        address = f"subjectAltName=IP:{self.host.addresses[0]}"
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", "/CN=laboratory", "-addext", address, "-keyout", f"{self.directory}/server.key",
            "-out", f"{self.directory}/server.crt")  # fmt: skip

    def _configure(self, listen: str, settings: str):
        with open(f"{self.data}/pg_hba.conf", "w") as file:
            file.write("local all all trust\nhostssl all relay 0.0.0.0/0 scram-sha-256\n")
        with open(f"{self.data}/postgresql.conf", "w") as file:
            file.write(
                f"listen_addresses = '{listen}'\nport = {self.port}\nunix_socket_directories = '{self.directory}'\n"
                f"max_connections = 20\nssl = on\nssl_cert_file = '{self.directory}/server.crt'\n"
                f"ssl_key_file = '{self.directory}/server.key'\n{settings}")  # fmt: skip

    # For nodes

    def set_up(self, node: Node, *grants: str):
        """Makes the tables of the node's fleet."""
        node.verb("forward", "--set-up", "--grant-to=relay", *grants, f"--forward={self.socket_url('owner')}")

    def option(self, relay: Node) -> str:
        """Has a node forward to it, as the role with the least rights."""
        relay.environment["PGPASSWORD"] = self.password
        address = f"{self.host.addresses[0]}:{self.port}"
        return f"--forward=postgresql://relay@{address}/fleet?sslrootcert={self.directory}/server.crt"

    def socket_url(self, role: str) -> str:
        return f"postgresql://{role}@/fleet?host={self.directory}&port={self.port}"

    def psql(self, database: str = "fleet") -> list[str]:
        """The owner's own, to which commands are added."""
        return ["psql", "-h", self.directory, "-p", str(self.port), "-U", "owner", "-d", database, "-X", "-q", "-A", "-t",
                "-F", "\t", "-v", "ON_ERROR_STOP=1"]  # fmt: skip

    def ask(self, sql: str, database: str = "fleet") -> list[list[str]]:
        return [line.split("\t") for line in run(*self.psql(database), "-c", sql).splitlines()]

    # What befalls it

    def start(self):
        """Until it takes connections; it may have to wait for what the last one left."""
        wait_for(30, lambda: f"PostgreSQL starts: {self._tail()}", self._try_start, 0.05)

    def _try_start(self) -> bool:
        if not (self._process and self._process.is_running):
            words = self.host.command(*_AS_NOBODY, f"{_PROGRAMS}/postgres", "-D", self.data)
            self._process = Process(words, self.host.environment, self.log, self.log)
        words = [f"{_PROGRAMS}/pg_isready", "-q", "-h", self.directory, "-p", str(self.port)]
        return subprocess.run(words).returncode == 0

    def _tail(self) -> str:
        with open(self.log, errors="replace") as file:
            return "".join(file.readlines()[-5:])

    def stop_at_once(self):
        """As `pg_ctl stop -m immediate` does."""
        self._process.signal(signal.SIGQUIT)
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def used_since(self, used: float) -> float:
        """Seconds of the processor that its processes used which have ended since then, those of all connections among them."""
        wait_for(30, "connections end", lambda: self.ask(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'", "postgres") == [["1"]])  # fmt: skip
        return processor_seconds(self.pid, True) - used

    def end(self):
        """As a machine's operator ends it."""
        if self._process and self._process.is_running:
            self.stop_at_once()

    def kill(self):
        """All of its processes, as the kernel ends them where memory is short."""
        if self._process and self._process.is_running:
            # Running, it would begin others in place of those that end, which nobody would kill.
            self._process.signal(signal.SIGSTOP)
            for child in self._children():
                _kill(child)
            self._process.kill()

    def keep_copy(self):
        """Of all that it has now, as of a machine beside it."""
        self.stop_at_once()
        shutil.copytree(self.data, f"{self.directory}/copy")
        self.start()

    def fail_over(self):
        """It is lost, and its copy takes its place."""
        self.kill()
        shutil.rmtree(self.data)
        os.rename(f"{self.directory}/copy", self.data)
        self.start()

    def _children(self) -> list[int]:
        with open(f"/proc/{self._process.pid}/task/{self._process.pid}/children") as file:
            return [int(word) for word in file.read().split()]

    def kill_one_of_relays(self):
        """A process that serves a relay: then the server ends all others itself, and recovers."""
        for (process,) in self.ask("SELECT pid FROM pg_stat_activity WHERE usename = 'relay' LIMIT 1"):
            _kill(int(process))
            time.sleep(0.05)
        wait_for(30, lambda: f"PostgreSQL recovers: {self._tail()}", self._try_start, 0.05)

    def end_connections(self):
        self.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'relay'")


def _kill(process: int):
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


class SmallDisk:
    """A disk of so many megabytes, for the tables of a server alone: its log has room elsewhere, as has its start."""

    def __init__(self, server: Server, megabytes: int):
        self.directory = f"{server.directory}/tables"
        os.makedirs(self.directory)
        run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "none", self.directory)
        server.ask(f"CREATE TABLESPACE small LOCATION '{self.directory}'", "postgres")
        server.ask("ALTER DATABASE fleet SET TABLESPACE small", "postgres")

    def grow(self, megabytes: int):
        run("mount", "-o", f"remount,size={megabytes}m", self.directory)
