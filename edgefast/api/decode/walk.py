"""Walk: the strict decoder: a raw document against its shape, every mistake found at once.

In: plain values and a Struct class. Out: the built Struct, or violations with their paths. Lenient
is for objects of an API server, which has validated them by CRDs that may be newer. It skips
limits, and only an object that cannot be built is a violation. The object records fields that are
not served (unsupported_fields.py): in lenient mode all unknown ones, else those that an API release
has.
Must never: stop at the first mistake, or show a value of a Secret or one that is a credential.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from edgefast.api.limits import MAX_SHOWN_VALUE, MAX_UNSERVED
from edgefast.api.loaded import Path, render_path
from edgefast.api.model.fields import Element
from edgefast.api.model.reference import BackendObjectReference
from edgefast.api.model.shape import FieldShape, Shape, shape_of
from edgefast.api.model.unsupported_fields import (
    IN_PLACE,
    PLACES,
    UnsupportedField,
    check_supported,
    named_field,
)
from edgefast.api.validation.rule import Violation
from edgefast.api.validation.rules import rules_of
from edgefast.diagnostics.problem import did_you_mean, supported_text
from edgefast.diagnostics.reasons.word import Word
from edgefast.diagnostics.redact import hide, is_credential, is_token


class _Broken:
    """What stands for a value with a mistake in it; `built` is as much of it as could be."""

    def __init__(self, built: Any = None, tainted: frozenset[str] = frozenset()) -> None:
        self.built = built
        self.tainted = tainted


_BAD: Any = _Broken()

_EXPECTED = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "bytes": "base64 text",
    "list": "a list",
    "map": "an object",
    "struct": "an object",
}


class Walk:
    """One walk over one document; `violations` is what was found."""

    def __init__(self, kind: str = "", *, lenient: bool = False, redact: bool = False) -> None:
        self.violations: list[Violation] = []
        self.references: list[tuple[Path, Element]] = []  # sound ones, wherever they are
        self.late: list[Violation] = []  # of late rules: they are told when anything else is wrong
        self._kind = kind
        self._lenient = lenient
        self._redact = redact
        self._unserved: list[UnsupportedField] = []

    def build(self, struct: type[Element], raw: object) -> Any:
        """Return the Struct, or None when there are violations."""
        built = self._value(shape_of(struct), raw, ())
        if isinstance(built, _Broken) or self.violations:
            return None
        if self._unserved:
            return msgspec.structs.replace(built, unserved=tuple(self._unserved))
        return built

    def _report(self, path: Path, reason: Word, message: str, hint: str = "") -> Any:
        self.violations.append(Violation(path, reason, message, hint))
        return _BAD

    def _value(self, shape: Shape, raw: Any, path: Path) -> Any:
        match shape.kind:
            case "struct":
                return self._struct(shape, raw, path)
            case "list":
                return self._list(shape, raw, path)
            case "map":
                return self._map(shape, raw, path)
            case "string":
                return self._string(shape, raw, path)
            case "integer" | "number":
                return self._number(shape, raw, path)
            case "boolean":
                return raw if isinstance(raw, bool) else self._wrong_type(shape, raw, path)
            case "bytes":
                return self._bytes(shape, raw, path)
            case "choice":
                return self._choice(shape, raw, path)
            case _:
                return raw

    # --- containers

    def _struct(self, shape: Shape, raw: Any, path: Path) -> Any:
        if not isinstance(raw, dict):
            return self._wrong_type(shape, raw, path)
        assert shape.struct is not None
        sound = self._check_known(shape, raw, path)
        secret = shape.struct.hides_values or _is_credential(raw)
        redact, self._redact = self._redact, self._redact or secret
        values: dict[str, Any] = {}
        tainted: set[str] = set()
        for field in shape.fields:
            value = self._field(field, raw, path)
            if isinstance(value, _Broken):
                tainted.add(field.attr)
                value = None if field.required else field.default
            values[field.attr] = value
        self._redact = redact
        built = shape.struct(**values)
        if not self._lenient:
            sound &= self._check_rules(shape.struct, built, tainted, path)
        if not sound or tainted:
            return _Broken(built, frozenset(tainted))
        if isinstance(built, BackendObjectReference):
            self.references.append((path, built))
        return built

    def _check_known(self, shape: Shape, raw: dict[str, Any], path: Path) -> bool:
        if self._lenient and self._kind not in PLACES:
            return True
        names = [field.name for field in shape.fields]
        sound = True
        for key in raw:
            if key not in names and key not in shape.unread:
                if self._lenient or named_field(self._kind, (*path, key)):
                    self._note_unserved((*path, key), raw[key])
                    continue
                served = sorted(field.name for field in shape.fields if field.served)
                self._report(
                    (*path, key),
                    "NotSupported",
                    f"unknown field (supported: {', '.join(served)})",
                    did_you_mean(key, served),
                )
                sound = False
        return sound

    def _note_unserved(self, path: Path, raw: Any) -> None:
        """Note a field that is not served; null and an empty text say as much as no field."""
        if raw is None or raw == "" or len(self._unserved) > MAX_UNSERVED:
            return
        if len(self._unserved) == MAX_UNSERVED:
            path = path[:1]  # the whole object, because of all the rest of them
        found = check_supported(self._kind, path, render_path(path))
        if found is not None:
            self._unserved.append(found)

    def _field(self, field: FieldShape, raw: dict[str, Any], path: Path) -> Any:
        value = raw.get(field.name)
        below = (*path, field.name)
        if value is not None:
            return self._value(field.shape, value, below)
        # null is as good as absent: API servers prune it.
        if not field.required:
            return field.default
        for other, hint in IN_PLACE.get(field.name, {}).items():
            if raw.get(other) is not None and named_field(self._kind, (*path, other)):
                message = f"is not supported; use {field.name}"
                return self._report((*path, other), "NotSupported", message, hint)
        return self._report(below, "Required", "field is missing")

    def _check_rules(
        self, struct: type[Element], built: Element, tainted: set[str], path: Path
    ) -> bool:
        before = len(self.violations)
        for rule in rules_of(struct):
            if tainted.isdisjoint(rule.reads):
                found = self.late if rule.late else self.violations
                for one in rule.check(built):
                    found.append(msgspec.structs.replace(one, path=(*path, *one.path)))
        return len(self.violations) == before

    def _list(self, shape: Shape, raw: Any, path: Path) -> Any:
        if not isinstance(raw, list | tuple):
            return self._wrong_type(shape, raw, path)
        assert shape.item is not None
        sound = self._check_count(shape, raw, path, "item", "items")
        items = [self._value(shape.item, one, (*path, at)) for at, one in enumerate(raw)]
        if not self._lenient:
            sound &= self._check_unique(shape, items, path)
        return tuple(items) if sound and not _any_broken(items) else _BAD

    def _check_unique(self, shape: Shape, items: Sequence[Any], path: Path) -> bool:
        if not shape.list_set and not shape.list_map_keys:
            return True
        assert shape.item is not None
        fields = [shape.item.field(name) for name in shape.list_map_keys]
        keys = [(one.name, one.attr) for one in fields if one is not None]
        seen = set()
        sound = True
        for at, value in enumerate(items):
            item = value
            if isinstance(item, _Broken):
                if (
                    not keys
                    or item.built is None
                    or not item.tainted.isdisjoint(dict(keys).values())
                ):
                    continue
                item = item.built  # a mistake elsewhere in it does not hide its key
            key = tuple(getattr(item, attr) for _, attr in keys) if keys else item
            if key in seen:
                where: Path = (*path, at, keys[0][0]) if keys else (*path, at)
                shown = ", ".join(map(self._show, key)) if keys else self._show(item)
                self._report(where, "Duplicate", shown)
                sound = False
            seen.add(key)
        return sound

    def _map(self, shape: Shape, raw: Any, path: Path) -> Any:
        if not isinstance(raw, dict):
            return self._wrong_type(shape, raw, path)
        assert shape.item is not None
        sound = self._check_count(shape, raw, path, "entry", "entries")
        if shape.key is not None:
            keys = [self._value(shape.key, key, (*path, key)) for key in raw]
            sound &= not _any_broken(keys)
        entries = {key: self._value(shape.item, one, (*path, key)) for key, one in raw.items()}
        return entries if sound and not _any_broken(entries.values()) else _BAD

    def _check_count(self, shape: Shape, raw: Any, path: Path, one: str, many: str) -> bool:
        if self._lenient:
            return True
        count = len(raw)
        if shape.max_length is not None and count > shape.max_length:
            self._report(path, "TooMany", f"{count} {many} (at most {shape.max_length})")
            return False
        if shape.min_length is not None and count < shape.min_length:
            what = one if shape.min_length == 1 else many
            self._report(path, "Required", f"at least {shape.min_length} {what}")
            return False
        return True

    # --- scalars

    def _string(self, shape: Shape, raw: Any, path: Path) -> Any:
        if isinstance(raw, bool) and ("on" if raw else "off") in shape.enum:
            return "on" if raw else "off"  # an unquoted off is a boolean to YAML 1.1
        if not isinstance(raw, str):
            return self._wrong_type(shape, raw, path)
        if self._lenient:
            return raw
        if shape.enum and raw not in shape.enum:
            words = list(shape.words)
            if self._redact:
                return self._report(path, "NotSupported", f"(supported: {', '.join(words)})")
            shown = raw[:MAX_SHOWN_VALUE]
            hint = did_you_mean(shown, words)
            if (
                "TCP" in words
                and "HTTP" not in words
                and shown.lower().startswith(("http", "grpc", "ws"))
            ):
                hint = f"write appProtocol: {shown.lower()}"
            return self._report(path, "NotSupported", supported_text(shown, words), hint)
        if shape.max_length is not None and len(raw) > shape.max_length:
            return self._report(
                path, "TooLong", f"{len(raw)} characters (at most {shape.max_length})"
            )
        if shape.min_length is not None and len(raw) < shape.min_length:
            return self._report(path, "Required", "must not be empty")
        if shape.pattern is not None and not re.search(shape.pattern, raw):
            expects = shape.expects or f"text that matches {shape.pattern}"
            # A query may hold a token: of a path its place is enough.
            before, mark, _ = raw.partition("?") if expects.startswith("a path") else (raw, "", "")
            shown = self._show(f"{before}?..." if mark else raw)
            return self._report(path, "Invalid", f"{shown} (expected {expects})")
        return raw

    def _number(self, shape: Shape, raw: Any, path: Path) -> Any:
        fits = isinstance(raw, int) if shape.kind == "integer" else isinstance(raw, int | float)
        if not fits or isinstance(raw, bool):
            return self._wrong_type(shape, raw, path)
        if self._lenient:
            return raw
        if shape.enum and raw not in shape.enum:
            return self._report(
                path, "NotSupported", f"{raw} (supported: {', '.join(map(str, shape.enum))})"
            )
        low, high = shape.minimum, shape.maximum
        # Written so that "not a number" is outside as well.
        inside = (low is None or raw >= low) and (high is None or raw <= high)
        if not inside:
            wide = high is None or high >= 2**31 - 1
            expected = f"at least {low}" if wide and raw < (low or 0) else f"{low} to {high}"
            return self._report(path, "Invalid", f"{self._show(raw)} (expected {expected})")
        return raw

    def _bytes(self, shape: Shape, raw: Any, path: Path) -> Any:
        if not isinstance(raw, str):
            return self._wrong_type(shape, raw, path)
        try:
            return base64.b64decode(raw.replace("\n", "").replace("\r", ""), validate=True)
        except (binascii.Error, ValueError):
            pem = raw.lstrip().startswith("-----BEGIN ")
            message = "PEM text (expected base64 of it)" if pem else "not base64"
            hint = "write it under stringData" if self._redact else "write it under data"
            return self._report(path, "Invalid", message, hint if pem else "")

    def _choice(self, shape: Shape, raw: Any, path: Path) -> Any:
        for one in shape.choices:
            if _fits(one, raw):
                return self._value(one, raw, path)
        return self._wrong_type(shape, raw, path)

    # --- words

    def _wrong_type(self, shape: Shape, raw: Any, path: Path) -> Any:
        kinds = [one.kind for one in shape.choices] or [shape.kind]
        expected = " or ".join(dict.fromkeys(_EXPECTED[kind] for kind in kinds))
        scalar = isinstance(raw, bool | int | float)
        if shape.kind == "string" and shape.enum:
            expected = " or ".join(shape.words)
        elif shape.kind == "string" and scalar and not _would_fit(shape, _plain(raw)):
            expected = shape.expects or expected
        elif "string" in kinds and scalar:
            hint = f"write {'it' if self._redact else repr(_plain(raw))} in quotes"
            return self._report(path, "Invalid", f"{self._show(raw)} (expected {expected})", hint)
        # What is written in the place of a reference to a Secret may be the secret.
        part = shape.item if shape.kind in ("list", "map") and shape.item is not None else shape
        hidden = part.kind == "struct" and isinstance(raw, str | int | float)
        shown = "a value" if hidden else self._show(raw)
        return self._report(path, "Invalid", f"{shown} (expected {expected})")

    def _show(self, raw: Any) -> str:
        if raw is None:
            return "null"
        if isinstance(raw, dict):
            return "an object"
        if isinstance(raw, list | tuple):
            return "a list"
        if self._redact:
            return "a value"
        if isinstance(raw, str):
            if is_token(raw):
                return hide(raw)
            shown = raw if len(raw) <= MAX_SHOWN_VALUE else f"{raw[:MAX_SHOWN_VALUE]}..."
            return '"' + shown.encode("unicode_escape").decode() + '"'
        return _plain(raw)


def _is_credential(raw: dict[str, Any]) -> bool:
    """Tell whether it is a header, a parameter or a variable with a credential for its value."""
    valued = "value" in raw or "values" in raw
    return valued and isinstance(name := raw.get("name"), str) and is_credential(name)


def _any_broken(values: Iterable[Any]) -> bool:
    return any(isinstance(one, _Broken) for one in values)


def _would_fit(shape: Shape, text: str) -> bool:
    return shape.pattern is None or re.search(shape.pattern, text) is not None


def _plain(raw: bool | int | float) -> str:
    if isinstance(raw, bool):
        return "true" if raw else "false"
    return str(raw)


def _fits(shape: Shape, raw: Any) -> bool:
    match shape.kind:
        case "string":
            return isinstance(raw, str)
        case "integer":
            return isinstance(raw, int) and not isinstance(raw, bool)
        case "number":
            return isinstance(raw, int | float) and not isinstance(raw, bool)
        case _:
            return False
