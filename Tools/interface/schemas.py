"""Whether a value fits a JSON Schema: the words of 2020-12 that the node's description uses, and no other."""

import datetime
import re

_TYPES = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_KNOWN = set(
    "type enum const anyOf not $ref format description pattern minLength maxLength minimum maximum items minItems maxItems "
    "properties additionalProperties propertyNames required dependentRequired minProperties maxProperties".split()
)


class Schemas:
    def __init__(self, description: dict):
        self._named = description["components"]["schemas"]
        for schema in self._named.values():
            self.check(schema)

    def resolved(self, schema: dict) -> dict:
        while "$ref" in schema:
            schema = self._named[schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def check(self, schema: dict):
        """Raises where a schema uses a word that is not understood here, or names one that is not there."""
        if unknown := set(schema) - _KNOWN:
            raise AssertionError(f"words of JSON Schema that this tester does not know: {sorted(unknown)}")
        if "$ref" in schema:
            self.resolved(schema)
        inner = list(schema.get("anyOf", [])) + list(schema.get("properties", {}).values())
        inner += [schema[word] for word in ("items", "additionalProperties", "propertyNames", "not") if word in schema]
        for each in inner:
            if isinstance(each, dict):
                self.check(each)

    def fault(self, value, schema: dict, at: str = "$") -> str | None:
        """What about the value does not fit; nothing where it does."""
        schema = self.resolved(schema)
        if "type" in schema and not _TYPES[schema["type"]](value):
            return f"{at} is no {schema['type']}: {_short(value)}"
        if "const" in schema and not _same(value, schema["const"]):
            return f"{at} is not {schema['const']!r}: {_short(value)}"
        if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
            return f"{at} is none of those listed: {_short(value)}"
        if "not" in schema and self.fault(value, schema["not"], at) is None:
            return f"{at} is what it must not be: {_short(value)}"
        if "anyOf" in schema:
            faults = [self.fault(value, one, at) for one in schema["anyOf"]]
            if None not in faults:
                return f"{at} fits none of {len(faults)}: {_short(value)} ({faults[0]} …)"
        if isinstance(value, str):
            return _text_fault(value, schema, at)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _number_fault(value, schema, at)
        if isinstance(value, list):
            return self._array_fault(value, schema, at)
        return self._object_fault(value, schema, at) if isinstance(value, dict) else None

    def _array_fault(self, value: list, schema: dict, at: str) -> str | None:
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return f"{at} has {len(value)} items"
        faults = (self.fault(item, schema.get("items", {}), f"{at}[{index}]") for index, item in enumerate(value))
        return next((fault for fault in faults if fault), None)

    def _object_fault(self, value: dict, schema: dict, at: str) -> str | None:
        if not schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", len(value)):
            return f"{at} has {len(value)} members"
        if missing := [name for name in schema.get("required", []) if name not in value]:
            return f"{at} lacks {missing[0]}"
        for name, needed in schema.get("dependentRequired", {}).items():
            if name in value and not all(other in value for other in needed):
                return f"{at} has {name} without {needed}"
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name, member in value.items():
            if fault := self.fault(name, schema.get("propertyNames", {}), f"the name {name!r} in {at}"):
                return fault
            if name not in properties and others is False:
                return f"{at} has the member {name!r}, which is not described"
            if fault := self.fault(member, properties.get(name, others), f"{at}.{name}"):
                return fault
        return None


def _text_fault(value: str, schema: dict, at: str) -> str | None:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return f"{at} has {len(value)} characters"
    if "pattern" in schema and not re.search(anchored(schema["pattern"]), value):
        return f"{at} is not of the form {schema['pattern']}: {_short(value)}"
    if schema.get("format") == "date-time" and not _is_time(value):
        return f"{at} is no time: {_short(value)}"
    return None


def anchored(pattern: str) -> str:
    """In ECMA's expressions $ is the end of the text, in Python's there may be a line break behind it."""
    return re.sub(r"(?<!\\)\$$", r"\\Z", pattern)


def _number_fault(value, schema: dict, at: str) -> str | None:
    if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return f"{at} is out of its range: {value}"
    if schema.get("format") == "int64" and not -(2**63) <= value < 2**63:
        return f"{at} has more than 64 bits: {value}"
    return None


def _is_time(value: str) -> bool:
    try:
        datetime.datetime.fromisoformat(value)
    except ValueError:
        return False
    return "T" in value


def _same(one, other) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _short(value) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:120] + "…"
