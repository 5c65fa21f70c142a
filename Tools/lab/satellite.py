"""Run in the switch's namespace: joins two bridges as a slow link would, with delay, loss and a rate, both ways.

The kernel's own tool for it (netem) is absent from many kernels; this needs no more than /dev/net/tun.
"""

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

_SET_INTERFACE, _TAP_WITHOUT_HEADER = 0x400454CA, 0x1002
# A modem keeps so much before it drops; at 64 kbit/s four seconds.
_QUEUE_BYTES = 32 * 1024


class Way:
    """One direction: frames leave one after another at the link's rate, and arrive after its delay."""

    def __init__(self, target: int, rate: float):
        self.target, self._rate, self._free = target, rate, 0.0
        self.waiting = 0

    def departure(self, now: float, size: int) -> float:
        self._free = max(self._free, now) + size * 8 / self._rate
        return self._free


def tap(name: str, bridge: str) -> int:
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, _SET_INTERFACE, struct.pack("16sH", name.encode(), _TAP_WITHOUT_HEADER))
    subprocess.run(["ip", "link", "set", name, "master", bridge, "up"], check=True)
    return file


def carry(bridges: list[str], delay: float, rate: float, loss: float, seed: int):
    choice = random.Random(seed)
    ends = [tap(f"sat{place}", bridge) for place, bridge in enumerate(bridges)]
    ways = {ends[0]: Way(ends[1], rate), ends[1]: Way(ends[0], rate)}
    under_way: list[tuple[float, int, int, Way, bytes]] = []
    number = 0
    print("up", flush=True)
    while True:
        patience = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        for end in select.select(ends, [], [], patience)[0]:
            frame = os.read(end, 65_536)
            way = ways[end]
            if choice.random() < loss or way.waiting + len(frame) > _QUEUE_BYTES:
                continue
            way.waiting += len(frame)
            number += 1
            arrival = way.departure(time.monotonic(), len(frame)) + delay
            heapq.heappush(under_way, (arrival, number, way.target, way, frame))
        while under_way and under_way[0][0] <= time.monotonic():
            _, _, target, way, frame = heapq.heappop(under_way)
            way.waiting -= len(frame)
            try:
                os.write(target, frame)
            except OSError:
                pass


if __name__ == "__main__":
    carry(sys.argv[1:3], float(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]))
