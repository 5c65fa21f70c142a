"""This machine as it is, where a laboratory's host would be a namespace of its own."""

import os
import socket


class Machine:
    """Nodes and a server on loopback, which end with it."""

    def __init__(self, directory: str):
        self.name, self.directory = "machine", directory
        self.addresses = ["127.0.0.1"]
        self.nodes, self.strangers = [], []

    def command(self, *words) -> list[str]:
        return list(words)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": self.directory, "NO_COLOR": "1"}

    def close(self):
        for node in self.nodes:
            node.end()
        for stranger in self.strangers:
            stranger.end()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def peak_memory(pid: int) -> int:
    """Bytes that a process had at its highest."""
    with open(f"/proc/{pid}/status") as file:
        line = next(line for line in file if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def processor_seconds(pid: int, ended_children: bool = False) -> float:
    """What a process used, or those that it started and that have ended."""
    with open(f"/proc/{pid}/stat") as file:
        words = file.read().rsplit(")", 1)[1].split()
    first = 13 if ended_children else 11
    return (int(words[first]) + int(words[first + 1])) / os.sysconf("SC_CLK_TCK")


def loopback_bytes() -> int:
    """What the interface `lo` of this namespace has carried, each byte once."""
    # /sys may show another namespace.
    with open("/proc/net/dev") as file:
        line = next(line for line in file if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[0])
