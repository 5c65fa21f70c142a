"""Draws values that fit a schema, and values that do not. Everything follows from the generator that is handed in."""

import copy
import random
import re
import re._parser

import schemas

_LETTERS = "abcdefgh XYZ019-_.:=*é漢😀ß\"\\'{}[]$%&/?#+;\u007f\u0085\u00a0\u2028"
_INTEGERS = [0, 1, -1, 2, 7, 100, 1000, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
_DOUBLES = [0.5, -0.0, 1.0, 2.5e-8, -1e300, 5e-324, 1.7976931348623157e308]
_DEPTH = 4


class Drawing:
    def __init__(self, known: schemas.Schemas, chance: random.Random):
        self.known, self.chance = known, chance

    def value(self, schema: dict, depth: int = 0, needed: tuple = ()):
        """One that fits."""
        for _ in range(400):
            drawn = self._value(self.known.resolved(schema), depth, needed)
            if self.known.fault(drawn, schema) is None:
                return drawn
        raise AssertionError(f"nothing was found that fits {schema}")

    def _value(self, schema: dict, depth: int, needed: tuple):
        chance, needed = self.chance, tuple(schema.get("required", ())) + needed
        if "const" in schema:
            return copy.deepcopy(schema["const"])
        if "enum" in schema:
            return chance.choice(schema["enum"])
        if "anyOf" in schema:
            choices = schema["anyOf"]
            if depth >= _DEPTH:
                choices = [one for one in choices if not self._nests(one)] or choices
            return self._value(self.known.resolved(chance.choice(choices)), depth, needed)
        kind = schema.get("type") or chance.choice(["null", "boolean", "integer", "string"])
        return getattr(self, "_" + kind)(schema, depth, needed)

    def _nests(self, schema: dict) -> bool:
        schema = self.known.resolved(schema)
        return "anyOf" in schema or schema.get("type") in ("array", "object")

    def _null(self, *_):
        return None

    def _boolean(self, *_):
        return self.chance.random() < 0.5

    def _integer(self, schema: dict, *_):
        least, greatest = schema.get("minimum", -(2**63)), schema.get("maximum", 2**63 - 1)
        fitting = [number for number in _INTEGERS + [least, greatest] if least <= number <= greatest]
        if self.chance.random() < 0.5:
            fitting = [number for number in fitting if abs(number) <= 1000] or fitting
        return self.chance.choice(fitting)

    def _number(self, *_):
        return self.chance.choice(_DOUBLES) if self.chance.random() < 0.7 else self.chance.uniform(-1e6, 1e6)

    def _string(self, schema: dict, *_):
        if schema.get("format") == "date-time":
            return self._time()
        if "pattern" in schema:
            return self.matching(schema["pattern"])
        least, greatest = schema.get("minLength", 0), schema.get("maxLength", 40)
        length = greatest if self.chance.random() < 0.02 else self.chance.randint(least, max(least, min(greatest, 12)))
        return "".join(self.chance.choice(_LETTERS) for _ in range(length))

    def _time(self) -> str:
        draw = self.chance.randint
        date = f"{draw(1, 9999):04}-{draw(1, 12):02}-{draw(1, 28):02}T{draw(0, 23):02}:{draw(0, 59):02}:{draw(0, 59):02}"
        return date + self.chance.choice(["", ".5", ".123"]) + self.chance.choice(["Z", "+02:00", "-11:30"])

    def _array(self, schema: dict, depth: int, _):
        least, greatest = schema.get("minItems", 0), schema.get("maxItems", 3)
        count = self.chance.randint(least, max(least, min(greatest, 3 if depth < _DEPTH else 0)))
        return [self.value(schema.get("items", {}), depth + 1) for _ in range(count)]

    def _object(self, schema: dict, depth: int, needed: tuple):
        drawn, properties = {}, schema.get("properties", {})
        for name, member in properties.items():
            if name in needed or self.chance.random() < (0.4 if depth < _DEPTH else 0):
                drawn[name] = self.value(member, depth + 1)
        if properties and len(drawn) < schema.get("minProperties", 0):
            plain = [name for name in properties if not self._nests(properties[name])]
            name = self.chance.choice(plain or list(properties))
            drawn[name] = self.value(properties[name], depth + 1)
        others = schema.get("additionalProperties", {})
        if others is not False and depth < _DEPTH:
            for _ in range(self.chance.randint(schema.get("minProperties", 0), 3)):
                name = self.value(schema.get("propertyNames", {"type": "string", "pattern": "^[a-z]{1,5}$"}))
                drawn.setdefault(name, self.value(others, depth + 1))
        return drawn

    def matching(self, pattern: str) -> str:
        """A text that the expression describes; looking ahead is left to whoever checks it."""
        return "".join(self._pieces(re._parser.parse(pattern)))

    def _pieces(self, parsed):
        for kind, what in parsed:
            name = str(kind)
            if name == "LITERAL":
                yield chr(what)
            elif name == "NOT_LITERAL":
                yield self.chance.choice([letter for letter in _LETTERS if ord(letter) != what])
            elif name == "ANY":
                yield self.chance.choice(_LETTERS)
            elif name == "IN":
                yield self._of_set(what)
            elif name == "BRANCH":
                yield from self._pieces(self.chance.choice(what[1]))
            elif name == "SUBPATTERN":
                yield from self._pieces(what[-1])
            elif name in ("MAX_REPEAT", "MIN_REPEAT"):
                least, greatest, inner = what
                for _ in range(self.chance.randint(least, max(least, min(int(greatest), least + 10)))):
                    yield from self._pieces(inner)
            elif name not in ("AT", "ASSERT", "ASSERT_NOT"):
                raise AssertionError(f"a form of expressions that this tester does not know: {name}")

    def _of_set(self, items) -> str:
        is_negated = str(items[0][0]) == "NEGATE"
        singles, ranges = set(), []
        for kind, what in items:
            if str(kind) == "LITERAL":
                singles.add(what)
            elif str(kind) == "RANGE":
                ranges.append(what)
        if is_negated:
            allowed = [x for x in _LETTERS if ord(x) not in singles and not any(a <= ord(x) <= b for a, b in ranges)]
            return self.chance.choice(allowed)
        choices = [(number, number) for number in sorted(singles)] + ranges
        return chr(self.chance.randint(*self.chance.choice(choices)))

    def misfit(self, schema: dict):
        """A value that does not fit, made from one that does. Nothing where everything fits."""
        for _ in range(60):
            drawn = self._spoiled(copy.deepcopy(self.value(schema)))
            if self.known.fault(drawn, schema) is not None:
                return drawn
        return None

    def _spoiled(self, value):
        chance = self.chance
        if isinstance(value, dict) and value and chance.random() < 0.75:
            name = chance.choice(sorted(value))
            way = chance.randrange(4)
            if way == 0:
                del value[name]
            elif way == 1:
                value[chance.choice(["stray", "$stray", "", "nul\u0000", "x" * 2000])] = 1
            else:
                value[name] = self._spoiled(value[name])
            return value
        if isinstance(value, list) and value and chance.random() < 0.75:
            index = chance.randrange(len(value))
            value[index] = self._spoiled(value[index])
            return value
        return chance.choice([None, True, -1, 1.5, 2**62, "", "x", "*", "x" * 5000, "\u0001", [], [1], {}, {"$x": 1}, {"$oid": "no"}])
