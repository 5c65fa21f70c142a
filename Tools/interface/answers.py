"""What an answer has to be, by the description and by the request that it answers."""

import json

import schemas
from exchange import Answer, Request

#: What only a request that is not as described may be told.
_OF_FORM = {400, 405, 411, 414, 415, 431}
_PROBLEM = "application/problem+json"


class Judge:
    def __init__(self, known: schemas.Schemas):
        self._known = known

    def fault(self, request: Request, answer: Answer) -> str | None:
        status = answer.status
        if status >= 500:
            return f"a failure: {status} {answer.body[:300]!r}"
        if request.flaw and status < 400:
            return f"taken with {status}, in spite of its flaw"
        if not request.flaw and status in _OF_FORM:
            return f"refused with {status}, although it is as described: {answer.body[:300]!r}"
        if status == 405:
            return None if "allow" in answer.headers else "405 without Allow"
        return self._content_fault(request, answer)

    def _content_fault(self, request: Request, answer: Answer) -> str | None:
        content = request.operation.content(answer.status)
        if content is None:
            return f"the status {answer.status} is not described: {answer.body[:300]!r}"
        if not content or request.method == "HEAD":
            return f"a body of {len(answer.body)} bytes where there is none" if answer.body else None
        described = {kind.split(";")[0]: schema for kind, schema in content.items()}
        if answer.media_type not in described:
            return f"the content type {answer.media_type!r} is not described for {answer.status}"
        schema = described[answer.media_type]
        if "x-itemSchema" in schema:
            return self._lines_fault(answer, schema["x-itemSchema"])
        if "x-eventSchemas" in schema:
            return self._events_fault(answer, schema["x-eventSchemas"])
        if not answer.media_type.endswith("json"):
            return None
        return self._json_fault(request, answer, schema["schema"])

    def _json_fault(self, request: Request, answer: Answer, schema: dict) -> str | None:
        try:
            value = answer.json
        except ValueError as error:
            return f"no JSON: {error}"
        if fault := self._known.fault(value, schema):
            return f"{answer.status}: {fault}"
        if answer.media_type == _PROBLEM and value["status"] != answer.status:
            return f"a problem of {value['status']} under {answer.status}"
        if request.operation.name == "importDocuments" and answer.status == 200:
            return _import_fault(request, value)
        return None

    def _lines_fault(self, answer: Answer, schema: dict) -> str | None:
        for line in answer.body.splitlines():
            if fault := self._known.fault(json.loads(line), schema):
                return f"a line: {fault}"
        return None

    def _events_fault(self, answer: Answer, known: dict) -> str | None:
        for event in answer.body.decode().split("\n\n")[:-1]:
            fields = dict(line.split(": ", 1) for line in event.split("\n") if not line.startswith(":"))
            if not fields:
                continue
            if fields.get("event") not in known:
                return f"an event that is not described: {event[:200]}"
            if fault := self._known.fault(json.loads(fields["data"]), known[fields["event"]]):
                return f"an event {fields['event']}: {fault}"
        return None


def _import_fault(request: Request, value: dict) -> str | None:
    told = [(result["line"], "error" not in result) for result in value["results"]]
    if [line for line, _ in told] != [line for line, _ in request.lines]:
        return f"lines {[line for line, _ in request.lines]} are answered as {[line for line, _ in told]}"
    wrong = [line for (line, fits), (_, is_taken) in zip(request.lines, told) if is_taken and not fits]
    if wrong:
        return f"line {wrong[0]} was taken, although it is no such document"
    counted = sum(is_taken for _, is_taken in told)
    return None if (value["imported"], value["failed"]) == (counted, len(told) - counted) else "counts that do not add up"


def has_an_event(body: bytes) -> bool:
    return b"\n\n" in body
