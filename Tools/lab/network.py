"""Networks of this machine: hosts are network namespaces, joined by bridges that live in a namespace of their own."""

import os
import subprocess

from waiting import Failed

_CHAIN = (
    "add table bridge lab\nadd chain bridge lab part { type filter hook forward priority 0; policy accept; }")  # fmt: skip


def run(*words: str, check=True, text=None) -> str:
    """Runs a command to its end and answers what it wrote."""
    done = subprocess.run(words, input=text, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def inside(space: str) -> list[str]:
    """What comes before a command that is to run in a namespace. The process id stays the one of the command."""
    return ["nsenter", f"--net=/run/netns/{space}", "--"]


class Network:
    """Bridges in a switch, and what an operator of the switch can do to its ports."""

    def __init__(self, name: str, directory: str):
        self.name, self.directory = name, directory
        self.switch = f"{name}-switch"
        self.hosts: dict[str, Host] = {}
        run("ip", "netns", "add", self.switch)
        self.add_bridge("lan")

    def add_bridge(self, bridge: str):
        run("ip", "-n", self.switch, "link", "add", bridge, "type", "bridge", "stp_state", "0", "forward_delay", "0",
            "mcast_snooping", "0")  # fmt: skip
        run("ip", "-n", self.switch, "link", "set", bridge, "up")

    def host(self, name: str, bridge: str = "lan", ipv4: bool = True) -> "Host":
        """A host with one interface on a bridge."""
        host = Host(self, name)
        self.hosts[name] = host
        host.plug(bridge, ipv4)
        return host

    # What the switch forwards

    def drop(self, rule: str):
        # Made only now: a chain that is older than its bridge sees nothing of it.
        self._nft(f"{_CHAIN}\nadd rule bridge lab part {rule} drop")

    def _nft(self, commands: str):
        run(*inside(self.switch), "nft", "-f", "-", text=commands + "\n")

    def split(self, *sides: list["Host"]):
        """Nothing passes between hosts of different sides."""
        for one in sides:
            for other in sides:
                if one is not other:
                    self.drop(f"iifname {_ports(one)} oifname {_ports(other)}")

    def heal(self):
        self._nft(f"{_CHAIN}\nflush chain bridge lab part")

    def close(self):
        for host in self.hosts.values():
            host.close()
        run("ip", "netns", "del", self.switch, check=False)


def _ports(hosts: list["Host"]) -> str:
    return "{ " + ", ".join(f'"{port}"' for host in hosts for port in host.ports) + " }"


class Host:
    """A namespace with interfaces eth0, eth1 …, each a port of the switch."""

    def __init__(self, network: Network, name: str):
        self.network, self.name = network, name
        self.space = f"{network.name}-{name}"
        self.directory = f"{network.directory}/{name}"
        self.ports: list[str] = []
        self.addresses: list[str] = []
        self.responder = None
        self.nodes = []
        # Processes that end with the host.
        self.strangers = []
        os.makedirs(self.directory)
        run("ip", "netns", "add", self.space)
        self.ip("link", "set", "lo", "up")

    def ip(self, *words):
        run("ip", "-n", self.space, *words)

    def plug(self, bridge: str, ipv4: bool = True) -> str:
        """One more interface. Each bridge is a network of its own: 10.77.0.0/24, 10.77.1.0/24 …"""
        interface, port = f"eth{len(self.ports)}", f"{self.name}{len(self.ports)}"
        self.ports.append(port)
        switch = self.network.switch
        run("ip", "-n", switch, "link", "add", port, "type", "veth", "peer", "name", interface, "netns", self.space)
        run("ip", "-n", switch, "link", "set", port, "master", bridge, "up")
        if ipv4:
            place = list(self.network.hosts).index(self.name) + 11
            number = 0 if bridge == "lan" else int(bridge[3:])
            self.addresses.append(f"10.77.{number}.{place}")
            self.ip("addr", "add", f"{self.addresses[-1]}/24", "brd", "+", "dev", interface)
        self.ip("link", "set", interface, "up")
        return interface

    def link(self, state: str, interface: str = "eth0"):
        """`up` or `down`, as its own operator sees it."""
        self.ip("link", "set", interface, state)

    def port(self, *words):
        """Settings of the switch's first port to this host: `down`, `nomaster`, `master`, `lan` …"""
        run("ip", "-n", self.network.switch, "link", "set", self.ports[0], *words)

    def isolate(self):
        """As an access point isolates its clients: this port reaches no other isolated one."""
        self.port("type", "bridge_slave", "isolated", "on")

    def nft(self, rule: str):
        """One rule of the host's own firewall, for what comes in."""
        run(*inside(self.space), "nft", "-f", "-", text=(
            "add table inet lab\nadd chain inet lab input { type filter hook input priority 0; policy accept; }\n"
            f"add rule inet lab input {rule}\n"))  # fmt: skip

    def command(self, *words) -> list[str]:
        return inside(self.space) + list(words)

    @property
    def environment(self) -> dict[str, str]:
        known = {**os.environ, "HOME": self.directory, "NO_COLOR": "1"}
        known["DBUS_SYSTEM_BUS_ADDRESS"] = f"unix:path={self.directory}/bus"
        return known

    def close(self):
        for node in self.nodes:
            node.end()
        for stranger in self.strangers:
            stranger.kill()
        if self.responder:
            self.responder.end()
        run("ip", "netns", "del", self.space, check=False)
