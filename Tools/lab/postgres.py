"""A PostgreSQL server of a case's own, and what befalls servers."""

import os
import secrets
import signal
import subprocess
import time

from network import Host, run
from node import Node
from processes import Process
from waiting import Skip, wait_for

_PROGRAMS = "/usr/lib/postgresql/15/bin"
# It does not run as root, and the laboratory may be root in a namespace of users that has nobody else.
_AS_NOBODY = ("unshare", "--user", "--map-user=1000", "--")


class Server:
    """Takes relays by TLS on its host's address, and its owner over a socket. It ends with its host."""

    def __init__(self, host: Host):
        for program in (f"{_PROGRAMS}/postgres", "/usr/bin/psql", "/usr/bin/openssl"):
            if not os.path.exists(program):
                raise Skip(f"{program} is not installed")
        self.host, self.directory = host, f"{host.directory}/pg"
        self.data, self.log = f"{self.directory}/data", f"{self.directory}/log"
        self.password = secrets.token_hex(8)
        self._process: Process | None = None
        os.makedirs(self.directory)
        host.strangers.append(self)
        run(*_AS_NOBODY, f"{_PROGRAMS}/initdb", "-D", self.data, "-A", "trust", "-U", "owner", "--no-sync", "-E", "UTF8",
            "--locale=C.UTF-8")  # fmt: skip
        self._make_certificate()
        self._configure()
        self.start()
        self.ask(f"CREATE ROLE relay LOGIN PASSWORD '{self.password}'", "postgres")
        self.ask("CREATE DATABASE fleet", "postgres")

    def _make_certificate(self):
        address = f"subjectAltName=IP:{self.host.addresses[0]}"
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", "/CN=laboratory", "-addext", address, "-keyout", f"{self.directory}/server.key",
            "-out", f"{self.directory}/server.crt")  # fmt: skip

    def _configure(self):
        with open(f"{self.data}/pg_hba.conf", "w") as file:
            file.write("local all owner trust\nhostssl all relay 0.0.0.0/0 scram-sha-256\n")
        with open(f"{self.data}/postgresql.conf", "w") as file:
            file.write(
                f"listen_addresses = '*'\nunix_socket_directories = '{self.directory}'\nmax_connections = 20\n"
                f"shared_buffers = 16MB\nssl = on\nssl_cert_file = '{self.directory}/server.crt'\n"
                # No machine dies here, only processes.
                f"ssl_key_file = '{self.directory}/server.key'\nfsync = off\nfull_page_writes = off\n")  # fmt: skip

    # For nodes

    def set_up(self, node: Node, *grants: str):
        """Makes the tables of the node's fleet."""
        owner = f"postgresql://owner@/fleet?host={self.directory}"
        node.verb("forward", "--set-up", "--grant-to=relay", *grants, f"--forward={owner}")

    def option(self, relay: Node) -> str:
        """Has a node forward to it, as the role with the least rights."""
        relay.environment["PGPASSWORD"] = self.password
        url = f"postgresql://relay@{self.host.addresses[0]}/fleet?sslrootcert={self.directory}/server.crt"
        return f"--forward={url}"

    def ask(self, sql: str, database: str = "fleet") -> list[list[str]]:
        words = ["psql", "-h", self.directory, "-U", "owner", "-d", database, "-X", "-q", "-A", "-t", "-F", "\t",
                 "-v", "ON_ERROR_STOP=1", "-c", sql]  # fmt: skip
        return [line.split("\t") for line in run(*words).splitlines()]

    # What befalls it

    def start(self):
        """Until it takes connections; it may have to wait for what the last one left."""
        wait_for(30, lambda: f"PostgreSQL starts: {self._tail()}", self._try_start, 0.05)

    def _try_start(self) -> bool:
        if not (self._process and self._process.is_running):
            words = self.host.command(*_AS_NOBODY, f"{_PROGRAMS}/postgres", "-D", self.data)
            self._process = Process(words, self.host.environment, self.log, self.log)
        words = [f"{_PROGRAMS}/pg_isready", "-q", "-h", self.directory]
        return subprocess.run(words).returncode == 0

    def _tail(self) -> str:
        with open(self.log, errors="replace") as file:
            return "".join(file.readlines()[-5:])

    def stop_at_once(self):
        """As `pg_ctl stop -m immediate` does."""
        self._process.signal(signal.SIGQUIT)
        self._process.wait()

    def kill(self):
        """All of its processes, as the kernel ends them where memory is short."""
        if self._process and self._process.is_running:
            for child in self._children():
                _kill(child)
            self._process.kill()

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
