"""Requests as bytes, and answers as they came."""

import dataclasses
import json
import socket

_SECONDS = 30


@dataclasses.dataclass
class Request:
    operation: "object"
    method: str
    target: str
    headers: list = dataclasses.field(default_factory=list)
    body: bytes | None = None
    #: What is wrong with it; nothing: it is as the description has it.
    flaw: str = ""
    over_tcp: bool = False
    #: For imports: which lines fit.
    lines: list = dataclasses.field(default_factory=list)

    def bytes(self, host: str) -> bytes:
        names = {name.lower() for name, _ in self.headers}
        headers = list(self.headers)
        if "host" not in names:
            headers.append(("Host", host))
        if self.body is not None and "content-length" not in names:
            headers.append(("Content-Length", str(len(self.body))))
        lines = [f"{self.method} {self.target} HTTP/1.1"] + [f"{name}: {value}" for name, value in headers]
        return ("\r\n".join(lines) + "\r\nConnection: close\r\n\r\n").encode() + (self.body or b"")

    def __str__(self) -> str:
        shown = self.bytes("localhost")
        text = shown[:1500].decode(errors="backslashreplace")
        return text + (f"… ({len(shown)} bytes)" if len(shown) > 1500 else "")


@dataclasses.dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").split(";")[0].strip()

    @property
    def json(self):
        return json.loads(self.body)


class Cut(Exception):
    """The connection ended before an answer was whole."""


class Doors:
    """The two ways to one node."""

    def __init__(self, path: str, port: int, token: str):
        self.path, self.port, self.token = path, port, token

    def ask(self, request: Request, stops=None) -> Answer:
        """`stops`: whether what came of the body will do, for answers without an end."""
        with self._open(request.over_tcp) as connection:
            connection.settimeout(_SECONDS)
            host = f"127.0.0.1:{self.port}" if request.over_tcp else "localhost"
            try:
                connection.sendall(request.bytes(host))
            except OSError:
                # Refused before all of it was sent: the answer is there all the same.
                pass
            return _answer(connection, request.method, stops)

    def send(self, raw: bytes) -> bytes:
        """What comes back until the other end closes, or nothing more comes for a while."""
        with self._open(False) as connection:
            connection.settimeout(1)
            came = b""
            try:
                connection.sendall(raw)
                while piece := connection.recv(65536):
                    came += piece
            except OSError:
                pass
            return came

    def _open(self, over_tcp: bool) -> socket.socket:
        if over_tcp:
            return socket.create_connection(("127.0.0.1", self.port), _SECONDS)
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.path)
        return connection


def _answer(connection: socket.socket, method: str, stops) -> Answer:
    came = b""

    def more():
        nonlocal came
        try:
            piece = connection.recv(1 << 16)
        except OSError as error:
            raise Cut(f"{error} after {came[-200:]!r}") from error
        if not piece:
            raise Cut(f"closed after {came[-200:]!r}")
        came += piece

    while b"\r\n\r\n" not in came:
        more()
    head, _, came = came.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    status = int(first.split(" ")[1])
    if status == 100:
        return _answer(connection, method, stops)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if method == "HEAD" or status in (204, 304):
        return Answer(status, headers, b"")
    if headers.get("transfer-encoding") != "chunked":
        while len(came) < int(headers.get("content-length", 0)):
            more()
        return Answer(status, headers, came)
    body = b""
    while not (stops and status == 200 and stops(body)):
        while b"\r\n" not in came:
            more()
        size, _, came = came.partition(b"\r\n")
        count = int(size, 16)
        while len(came) < count + 2:
            more()
        body, came = body + came[:count], came[count + 2 :]
        if count == 0:
            break
    return Answer(status, headers, body)
