"""Run in a host's namespace: behaves badly towards a node's port, or pretends to be a node."""

import os
import random
import select
import socket
import ssl
import sys
import threading
import time


def open_to(address) -> socket.socket | None:
    try:
        return socket.create_connection(address, timeout=3)
    except OSError:
        return None


def disturb(address, seed: int, seconds: float):
    """Noise, other protocols, broken and idle handshakes."""
    choice = random.Random(seed)
    ended = threading.Event()
    threading.Timer(seconds, ended.set).start()
    idle = [link for link in (open_to(address) for _ in range(80)) if link]
    hello = b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03"
    count = 0
    while not ended.is_set():
        link = open_to(address)
        if link is None:
            continue
        count += 1
        kind = choice.randrange(5)
        try:
            if kind == 0:
                link.sendall(choice.randbytes(choice.randrange(1, 40_000)))
            elif kind == 1:
                link.sendall(b"GET / HTTP/1.1\r\nHost: node\r\n\r\n")
                link.settimeout(0.2)
                link.recv(100)
            elif kind == 2:
                link.sendall(hello + choice.randbytes(choice.randrange(20_000)))
            elif kind == 3:
                _handshake(link, choice)
            else:
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        except (OSError, ssl.SSLError):
            pass
        link.close()
    for link in idle:
        link.close()
    print(count)


def _handshake(link: socket.socket, choice: random.Random):
    """TLS as a browser would begin it: without a certificate, with another protocol, or with rubbish inside."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([choice.choice(["http/1.1", "seamesh/1", "seamesh/9"])])
    link.settimeout(1)
    with context.wrap_socket(link) as wrapped:
        wrapped.sendall(choice.randbytes(choice.randrange(1, 5_000)))
        wrapped.recv(100)


def pretend(port: int, path: str):
    """Answers a node's dials as a captive portal does, and keeps the first bytes of each."""
    server = socket.create_server(("0.0.0.0", port))
    while True:
        link, _ = server.accept()
        link.settimeout(2)
        try:
            first = link.recv(64)
            with open(path, "ab") as file:
                file.write(first[:3].hex().encode() + b"\n")
            link.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://portal/\r\nContent-Length: 0\r\n\r\n")
        except OSError:
            pass
        link.close()


def hold(address, count: int, again: bool):
    """So many connections that say nothing; perhaps each is made anew as soon as it is closed."""
    held = [link for link in (open_to(address) for _ in range(count)) if link]
    while True:
        while again and len(held) < count:
            link = open_to(address)
            if link:
                held.append(link)
        for link in select.select(held, [], [], 0.05)[0]:
            held.remove(link)
            link.close()


def witness(port: int, address, path: str):
    """Passes connections on, and notes for each what came from either side, in order: > of who called, < of who answered."""
    server = socket.create_server(("0.0.0.0", port))
    number = 0
    while True:
        caller, _ = server.accept()
        number += 1
        threading.Thread(target=_pass, args=(caller, address, number, path), daemon=True).start()


def _pass(caller: socket.socket, address, number: int, path: str):
    called = open_to(address)
    ends = {caller: (called, ">"), called: (caller, "<")}
    while True:
        for end in select.select(list(ends), [], [])[0]:
            other, way = ends[end]
            try:
                chunk = end.recv(65_536)
                other.sendall(chunk)
            except OSError:
                chunk = b""
            with open(path, "a") as file:
                file.write(f"{number} {way} {len(chunk)}\n")
            if not chunk:
                caller.close()
                called.close()
                return


def flood(address: str, seconds: float):
    """Beacons of nodes that are not there, at addresses where nobody listens."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for _ in range(200):
            name = os.urandom(8).hex().encode()
            packet = b"seamesh\1" + (9_000).to_bytes(2, "big") + os.urandom(8) + bytes([len(name)]) + name
            sender.sendto(packet, (address, 21_063))
        time.sleep(0.02)


if __name__ == "__main__":
    if sys.argv[1] == "disturb":
        disturb((sys.argv[2], int(sys.argv[3])), int(sys.argv[4]), float(sys.argv[5]))
        # Timers and sockets of a test need no tidy end.
        sys.stdout.flush()
        os._exit(0)
    if sys.argv[1] == "flood":
        flood(sys.argv[2], float(sys.argv[3]))
        sys.exit(0)
    if sys.argv[1] == "hold":
        hold((sys.argv[2], int(sys.argv[3])), int(sys.argv[4]), "again" in sys.argv)
    if sys.argv[1] == "witness":
        witness(int(sys.argv[2]), (sys.argv[3], int(sys.argv[4])), sys.argv[5])
    pretend(int(sys.argv[2]), sys.argv[3])
