"""Strangers on a host: intruder.py, run there."""

import os
import sys

from network import Host
from processes import Process

_INTRUDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "intruder.py")


def intrude(host: Host, *words: str) -> Process:
    output = f"{host.directory}/intruder.out"
    host.strangers.append(Process(host.command(sys.executable, _INTRUDER, *words), host.environment, output, output))
    return host.strangers[-1]
