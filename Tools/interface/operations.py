"""The operations of a description, and requests to them: as they are described, or with one flaw."""

import dataclasses
import json
import random
import re
import urllib.parse

import drawing
import schemas
from exchange import Request

_METHODS = ["get", "put", "post", "patch", "delete"]
#: Names that come back, so that requests meet what others left.
_POOLS = {
    "partition": ["agency=Gabon", "agency=Ghana", "p", "Ölfahrt 漢"],
    "collection": ["reports", "crew"],
    "id": ["r1", "r2", "a/b", '{"$oid":"0123456789abcdef01234567"}'],
    "pattern": ["agency=*", "agency=Gabon"],
}
#: Members that would end the node's own device, or write where nobody expects it.
_TAMED = {"revoke": {"dryRun": True}, "retire": {"dryRun": True}, "promote": {"dryRun": True}}


@dataclasses.dataclass
class Operation:
    method: str
    template: str
    described: dict

    @property
    def name(self) -> str:
        return self.described["operationId"]

    @property
    def parameters(self) -> list:
        return self.described.get("parameters", [])

    @property
    def bodies(self) -> dict:
        return self.described.get("requestBody", {}).get("content", {})

    @property
    def needs_socket(self) -> bool:
        return self.described["security"] == []

    def content(self, status: int) -> dict | None:
        answer = self.described["responses"].get(str(status))
        return None if answer is None else answer.get("content", {})


def all_of(description: dict) -> list[Operation]:
    return [
        Operation(method.upper(), template, item[method])
        for template, item in description["paths"].items()
        for method in _METHODS
        if method in item
    ]


class Requests:
    def __init__(self, description: dict, known: schemas.Schemas, chance: random.Random, directory: str):
        self._description, self._known, self._chance = description, known, chance
        self._draw = drawing.Drawing(known, chance)
        self._directory = directory
        #: ETags of answers, so that conditions hold now and then.
        self.etags: list[str] = []
        self._flaws = [
            self._misfit_body, self._misfit_body, self._broken_body, self._media_type, self._stray_query, self._query,
            self._path, self._header, self._method, self._stranger, self._useless_body, self._framing, self._too_long,
        ]

    def fitting(self, operation: Operation) -> Request:
        request = Request(operation, operation.method, self._path_of(operation))
        query = [(one["name"], self._text(one)) for one in operation.parameters if one["in"] == "query" and self._sometimes()]
        if query:
            request.target += "?" + urllib.parse.urlencode(query)
        for one in operation.parameters:
            if one["in"] == "header" and self._sometimes():
                request.headers.append((one["name"], self._tag() or self._text(one)))
        if operation.bodies:
            self._add_body(request, *self._chance.choice(sorted(operation.bodies.items())))
        request.over_tcp = not operation.needs_socket and self._chance.random() < 0.3
        if operation.method == "GET" and not operation.name.startswith("watch") and self._chance.random() < 0.05:
            request.method = "HEAD"
        return request

    def flawed(self, operation: Operation) -> Request:
        while True:
            request = self.fitting(operation)
            request.method = operation.method
            request.flaw = self._chance.choice(self._flaws)(request) or ""
            if request.flaw:
                return request

    def _sometimes(self) -> bool:
        return self._chance.random() < 0.4

    def _tag(self) -> str | None:
        return f'"{self._chance.choice(self.etags)}"' if self.etags and self._sometimes() else None

    def _text(self, parameter: dict) -> str:
        if "content" in parameter:
            return json.dumps(self._draw.value(parameter["content"]["application/json"]["schema"]))
        drawn = self._draw.value(parameter["schema"])
        return drawn if isinstance(drawn, str) else json.dumps(drawn)

    def _path_of(self, operation: Operation, spoiled: dict | None = None) -> str:
        def segment(match: re.Match) -> str:
            name = match.group(1)
            if spoiled and name in spoiled:
                return spoiled[name]
            pool = _POOLS.get(name, [])
            parameter = next(one for one in operation.parameters if one["in"] == "path" and one["name"] == name)
            known = pool and self._chance.random() < 0.8
            return urllib.parse.quote(self._chance.choice(pool) if known else self._text(parameter), safe="")

        return re.sub(r"\{(\w+)\}", segment, operation.template)

    def _add_body(self, request: Request, media_type: str, content: dict):
        request.headers.append(("Content-Type", media_type))
        if "x-itemSchema" in content:
            self._add_lines(request, content["x-itemSchema"])
            return
        drawn = self._tamed(request.operation, self._draw.value(content["schema"]))
        request.body = json.dumps(drawn, ensure_ascii=self._sometimes()).encode()

    def _add_lines(self, request: Request, schema: dict):
        lines = []
        for _ in range(self._chance.randint(0, 6)):
            kind = self._chance.random()
            if kind < 0.15:
                lines.append(self._chance.choice(["", "  ", "\r"]))
            elif kind < 0.35 and (misfit := self._draw.misfit(schema)) is not None:
                lines.append(json.dumps(misfit))
                request.lines.append((len(lines), False))
            else:
                lines.append(json.dumps(self._draw.value(schema)))
                request.lines.append((len(lines), True))
        request.body = "\n".join(lines).encode()

    def _tamed(self, operation: Operation, body):
        if operation.name == "backUp" and isinstance(body, dict) and str(body.get("path", "")).startswith("/"):
            body["path"] = f"{self._directory}/backup-{self._chance.getrandbits(64):x}"
        if operation.name in _TAMED and isinstance(body, dict):
            body.update(_TAMED[operation.name])
        return body

    # One flaw each: what is wrong then, in words, or nothing where this request cannot have it.

    def _misfit_body(self, request: Request):
        contents = [(kind, content) for kind, content in request.operation.bodies.items() if "x-itemSchema" not in content]
        if not contents:
            return None
        media_type, content = self._chance.choice(sorted(contents))
        misfit = self._tamed(request.operation, self._draw.misfit(content["schema"]))
        fault = self._known.fault(misfit, content["schema"])
        if fault is None:
            return None
        request.headers = [("Content-Type", media_type)]
        request.body = json.dumps(misfit).encode()
        return f"the body: {fault}"

    def _broken_body(self, request: Request):
        if request.body is None or request.lines or "x-ndjson" in str(request.headers):
            return None
        request.body = self._chance.choice([
            b"", b"{", b"nul", b"[1,]", b'{"a":1}x', b'{"a":1,"a":2}', b'{"a":"\\ud800"}', b'{"a":"\xff"}', b"\x00", b"NaN",
            b'{"a":01}', b"[" * 100_000, b'{"a":' * 5_000, request.body[:-1], b'{"a":1e400}', b"// {}",
        ])
        return "the body is no JSON"

    def _media_type(self, request: Request):
        if request.body is None:
            return None
        request.headers = [header for header in request.headers if header[0] != "Content-Type"]
        for wrong in self._chance.choice([[], ["text/plain"], ["application/json", "text/csv"], ["application/json; charset=latin-1"]]):
            request.headers.append(("Content-Type", wrong))
        return "the content type"

    def _stray_query(self, request: Request):
        stray = self._chance.choice(["stray=1", "limt=3", "%zz=1", "a=%ff", "a=%00", "a%", "=", "a&a"])
        request.target = request.target.split("?")[0] + "?" + stray
        return "a query parameter that is not described"

    def _query(self, request: Request):
        known = [one for one in request.operation.parameters if one["in"] == "query" and one["schema" if "schema" in one else "content"] != {"type": "string"}]
        if not known:
            return None
        one = self._chance.choice(known)
        if self._chance.random() < 0.2:
            text = urllib.parse.quote(self._text(one))
            request.target = request.target.split("?")[0] + f"?{one['name']}={text}&{one['name']}={text}"
            return "a query parameter that stands twice"
        wrong = self._chance.choice(["", "x", "-1", "1.5", "maybe", "[", "{", "null", "[1]", "99999999999999999999", "\u0001", "{\"$x\":1}"])
        schema = one["content"]["application/json"]["schema"] if "content" in one else one["schema"]
        if self._known.fault(_read(wrong, schema, "content" in one), schema) is None:
            return None
        request.target = request.target.split("?")[0] + f"?{one['name']}={urllib.parse.quote(wrong)}"
        return f"the query parameter {one['name']} is {wrong!r}"

    def _path(self, request: Request):
        names = re.findall(r"\{(\w+)\}", request.operation.template)
        if not names:
            return None
        name = self._chance.choice(names)
        wrong = self._chance.choice(["", "%00", "%ff", "%zz", "%", "x" * 3000, "%0A", "%7b%22$oid%22:%22x%22%7d", "%22", "{}"])
        parameter = next(one for one in request.operation.parameters if one["in"] == "path" and one["name"] == name)
        plain = urllib.parse.unquote(wrong, errors="surrogateescape")
        is_encoded = not re.search(r"%(?![0-9a-fA-F]{2})", wrong) and "\udcff" not in plain
        if is_encoded and self._known.fault(_read(plain, parameter["schema"], False), parameter["schema"]) is None:
            return None
        # A conflict's id is any text.
        if request.operation.name == "resolveConflict" and name == "id" and is_encoded and plain not in ("", "\0"):
            return None
        request.target = self._path_of(request.operation, {name: wrong})
        return f"the {name} in the path"

    def _header(self, request: Request):
        names = [one["name"] for one in request.operation.parameters if one["in"] == "header" and one["name"] != "Last-Event-ID"]
        if not names or request.operation.method == "GET":
            return None
        name = self._chance.choice(names)
        wrong = {"Idempotency-Key": ["", '""', "x" * 300]}.get(name, ["", "x", '"', '"a" "b"', "*, *", '"a"x'])
        request.headers = [header for header in request.headers if header[0] != name] + [(name, self._chance.choice(wrong))]
        return f"the header {name}"

    def _method(self, request: Request):
        there = self._description["paths"][request.operation.template]
        others = ["PUT", "POST", "PATCH", "DELETE", "GET", "OPTIONS", "TRACE", "BREW", "get"]
        request.method = self._chance.choice([name for name in others if name.lower() not in there or name == "get"])
        return "the method"

    def _stranger(self, request: Request):
        if request.operation.needs_socket:
            request.over_tcp = True
            return "over TCP"
        request.over_tcp = True
        request.headers.append(
            self._chance.choice([
                ("Host", "example.org"), ("Host", "127.0.0.1:1"), ("Origin", "http://localhost"), ("Origin", "null"),
                ("Authorization", "Bearer "), ("Authorization", "Bearer " + "0" * 64), ("Authorization", "Basic eDp5"),
            ])
        )
        return "who asks"

    def _useless_body(self, request: Request):
        if request.operation.bodies:
            return None
        request.body = b"{}"
        return "a body that nobody wants"

    def _framing(self, request: Request):
        request.headers += self._chance.choice([
            [("Content-Length", "2"), ("Content-Length", "3")], [("Content-Length", "2"), ("Transfer-Encoding", "chunked")],
            [("Transfer-Encoding", "gzip"), ("Content-Length", "2")], [("Content-Length", "9223372036854775807")],
            [("Content-Encoding", "gzip"), ("Content-Length", "0")],
        ])
        request.body = None
        return "the framing"

    def _too_long(self, request: Request):
        if self._sometimes():
            request.target += ("&" if "?" in request.target else "?") + "x=" + "y" * 20_000
        else:
            request.headers.append(("X-Long", "y" * 40_000))
        return "the length"


def _read(text: str, schema: dict, is_json: bool):
    """What a parameter's text stands for."""
    if is_json or schema.get("type") in ("integer", "number", "boolean"):
        try:
            return json.loads(text)
        except ValueError:
            return object()
    return text
