"""How long a device takes to join a fleet whose members have filled it with statements: up to 10,000 of 16 kB.

    SEAMESH=.build/release/seamesh /usr/bin/python3 Tests/Interop/full_fleet.py [MEMBERS]

Each member, 36 where no number is given, signs 256 statements of a kind that nobody knows: all that it may by bytes. Then a real
device joins by code, starts, and has a document written that it is shown. The Python peers say nothing of what they hear.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from live_node import Node, executable, key
from seamesh_peer import joining, messages, statements
from seamesh_peer.handshake import EXCHANGING
from seamesh_peer.messages import message
from seamesh_peer.session import Session, Store

MEMBERS = int(sys.argv[1]) if len(sys.argv) > 1 else 36
EACH, BODY_BYTES, UNKNOWN_KIND = 256, 16_000, 60_000


def enter(node: Node, name: str) -> Store:
    code = joining.read_code(node.command("invite", "--user", f"{name}@example.org", "--role", "crew")["code"])
    store = Store(node.fleet, key(name), [])
    session = Session.dial(store, *node.address)
    session.join(
        messages.JoinRequest(code["fleet"], code["inviter"], code["serial"], store.device, name), code["secret"])
    session.close()
    return store


def fill(node: Node, store: Store, number: int):
    session = Session.dial(store, *node.address)
    session.greet()
    last, said = None, []
    for _ in range(EACH):
        last = statements.make(node.fleet, store.key, last, (UNKNOWN_KIND, os.urandom(BODY_BYTES)))
        said.append(last.encoded)
    # What others said is not listened to: the exchange stops here.
    session.until(lambda: session.handshake.phase >= EXCHANGING, 60)
    for place in range(0, EACH, 15):
        session.send_frame(message(messages.STATEMENTS, "", said[place : place + 15]))
    session.send(messages.PING, 9)
    while messages.read(session.channel.receive(60))[0] != messages.PONG:
        pass
    session.close()


def memory(process) -> str:
    lines = pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return ", ".join(" ".join(line.split()) for line in lines if line.startswith(("VmRSS", "VmHWM")))


def main():
    node = Node(executable())
    directory = tempfile.mkdtemp(prefix="seamesh-", dir="/tmp")
    try:
        node.command("subscribe", "*")
        began = time.monotonic()
        stores = [enter(node, f"member {number}") for number in range(MEMBERS)]
        for number, store in enumerate(stores):
            fill(node, store, number)
        held = node.command("status")
        print(f"{MEMBERS} members filled it in {time.monotonic() - began:.0f} s; {memory(node.process)}", flush=True)
        print({name: held[name] for name in held if "tatement" in name}, flush=True)
        code = node.command("invite", "--user", "ann@example.org")["code"]
        shutil.rmtree(directory)
        began = time.monotonic()
        host, port = node.address
        joined = subprocess.run(
            [node.seamesh, "join", code, "--data", directory, "--label", "late", "--peer", f"{host}:{port}"],
            capture_output=True, text=True, timeout=600)
        took = time.monotonic() - began
        size = sum(item.stat().st_size for item in pathlib.Path(directory).iterdir() if item.is_file())
        print(f"join ended with {joined.returncode} after {took:.1f} s, {size >> 20} MiB on disk; {joined.stderr[-300:]}")
        print(f"the inviting node: {memory(node.process)}")
        print(json.dumps(node.ask("doctor").stdout[:600]))
        return joined.returncode
    finally:
        node.stop()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
