"""A live result from its snapshot to the last event, beside the writes that it tells of."""

import json

import answers
import exchange

_PLACE = "/v1/partitions/watched/collections/c"
_DOCUMENTS = [{"n": 1}, {"n": 2, "deep": {"list": [1, {"$date": "2026-05-31T12:00:00Z"}]}}]


def faults(doors: exchange.Doors, known: dict, judge: answers.Judge) -> list[str]:
    """Asks for one, writes, and looks at each event: all of them have to come, in this order."""
    operation = known["watchDocuments"]
    request = exchange.Request(operation, "GET", _PLACE + "/watch")
    steps = [lambda body=body: _put(doors, known, body) for body in _DOCUMENTS] + [lambda: _delete(doors, known)]
    came = []

    def stops(body: bytes) -> bool:
        events = [event for event in body.decode().split("\n\n")[:-1] if not event.startswith(":")]
        if len(events) > len(came):
            came[:] = events
            if not steps:
                return True
            steps.pop(0)()
        return False

    answer = doors.ask(request, stops=stops)
    names = [dict(line.split(": ", 1) for line in event.split("\n"))["event"] for event in came]
    found = [] if names == ["snapshot", "insert", "update", "delete"] else [f"events {names}"]
    if fault := judge.fault(request, answer):
        found.append(fault)
    return found


def _put(doors: exchange.Doors, known: dict, body: dict):
    headers = [("Content-Type", "application/json")]
    document = json.dumps(body).encode()
    doors.ask(exchange.Request(known["putDocument"], "PUT", _PLACE + "/documents/a", headers, document))


def _delete(doors: exchange.Doors, known: dict):
    doors.ask(exchange.Request(known["deleteDocument"], "DELETE", _PLACE + "/documents/a"))
