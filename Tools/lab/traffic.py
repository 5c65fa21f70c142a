"""What passes a host's interface, counted in its own namespace by what it is, both ways."""

import json
from dataclasses import dataclass

from network import Host, inside, run

_ETHERNET_HEADER = 14
_KINDS = {
    "sessions": "meta l4proto tcp", "sessions over IPv6": "meta nfproto ipv6 meta l4proto tcp", "names": "udp dport 5353",
    "beacons": "udp dport 21063"}  # fmt: skip
_WAYS = {"input": "iifname", "output": "oifname"}


@dataclass(frozen=True)
class Count:
    """Bytes as Ethernet carries them, without its checksum, and packets."""

    received: int = 0
    sent: int = 0
    packets: int = 0

    def __sub__(self, other: "Count") -> "Count":
        return Count(self.received - other.received, self.sent - other.sent, self.packets - other.packets)


class Traffic:
    """Counts from its beginning on: TCP, multicast DNS, beacons."""

    def __init__(self, host: Host):
        self._host = host
        text = "add table inet traffic\n"
        for way, interface in _WAYS.items():
            text += f"add chain inet traffic {way} {{ type filter hook {way} priority -300; policy accept; }}\n"
            for kind, match in _KINDS.items():
                counter = _counter(kind, way)
                text += f"add counter inet traffic {counter}\n"
                text += f'add rule inet traffic {way} {interface} != "lo" {match} counter name {counter}\n'
        run(*inside(host.space), "nft", "-f", "-", text=text)

    def read(self) -> dict[str, Count]:
        text = run(*inside(self._host.space), "nft", "-j", "list", "counters", "table", "inet", "traffic")
        rows = [row["counter"] for row in json.loads(text)["nftables"] if "counter" in row]
        found = {row["name"]: (row["bytes"] + _ETHERNET_HEADER * row["packets"], row["packets"]) for row in rows}
        return {
            kind: Count(received, sent, packets_in + packets_out)
            for kind in _KINDS
            for (received, packets_in), (sent, packets_out) in [[found[_counter(kind, way)] for way in _WAYS]]
        }


def _counter(kind: str, way: str) -> str:
    return f"{kind}-{way}".replace(" ", "-")
