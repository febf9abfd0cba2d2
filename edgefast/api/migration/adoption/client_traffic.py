"""Client traffic: a ClientTrafficPolicy of Envoy Gateway as an EdgeProxy, client certificates and options of TLS.

In: a plain document. Out: an AdoptedDocument; edgefast/translate/adoption gives it to its Gateways.
Must never: pass over a field that is not in the table, or leave out a check of client certificates.
"""

from __future__ import annotations

from typing import Any

from edgefast.api.kinds import EDGE_GROUP
from edgefast.api.loaded import Path
from edgefast.api.migration.adoption.adopted_document import AdoptedDocument, Note
from edgefast.api.migration.adoption.client_fields import CLIENT_FIELDS, ClientField
from edgefast.api.migration.adoption.fields import Fields, is_parent, pair_paths, put_field
from edgefast.api.migration.adoption.policy_targets import Targets, take_targets
from edgefast.api.model.policy_target import PolicyTarget

__all__ = ["adopt_client_traffic"]

_MIN_VERSION = "gateway.edge.io/tls-min-version"
_CLIENT_CA = "gateway.edge.io/client-ca"
_CLIENT_MODE = "gateway.edge.io/client-certificate"
_PLACES = pair_paths({name: one.at for name, one in CLIENT_FIELDS.items() if one.at})
_EVERYONE = ["0.0.0.0/0", "::/0"]
#: Modes of client validation that are `optional` or not.
_MODES = {"RequireAndVerify": False, "VerifyIfGiven": True}


def adopt_client_traffic(raw: dict[str, Any]) -> AdoptedDocument | None:
    """Return the EdgeProxy of a ClientTrafficPolicy; None: its targets cannot be read."""
    fields = Fields(raw.get("spec"))
    targets = take_targets(fields)
    if targets is None:
        return None
    reader = _Reader(fields)
    reader.read()
    metadata = raw.get("metadata")
    return AdoptedDocument(
        raw={
            "apiVersion": f"{EDGE_GROUP}/v1alpha1",
            "kind": "EdgeProxy",
            "metadata": metadata if isinstance(metadata, dict) else {},
            "spec": reader.spec,
        },
        notes=tuple(reader.notes),
        client=True,
        places=_PLACES,
        targets=_list_targets(targets),
        validation=reader.validation,
        options=reader.options,
        decides=tuple(
            ".".join(map(str, one.path[1:])) for one in reader.notes if one.effect == "closes"
        ),
    )


def _list_targets(targets: Targets) -> tuple[PolicyTarget, ...]:
    named = (
        PolicyTarget(
            path=("spec", "targetRefs", at),
            kind=str(one.get("kind")),
            name=str(one.get("name")),
            section=str(one.get("sectionName") or ""),
        )
        for at, one in enumerate(targets.refs)
    )
    return (*named, *targets.selectors)


class _Reader:
    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self.spec: dict[str, Any] = {}
        self.notes: list[Note] = []
        self.validation: dict[str, Any] | None = None
        self.options: dict[str, str] = {}

    def read(self) -> None:
        """Read all fields."""
        self._read_proxy_protocol()
        self._read_validation()
        self._read_tls()
        self._read_others()
        for name, one in CLIENT_FIELDS.items():
            if one.at:
                self._copy(name, one)
        while (path := next(self._fields.left(), None)) is not None:
            self._tell(path)

    def _copy(self, name: str, one: ClientField) -> None:
        value = self._fields.take(name)
        if value is None:
            return
        if one.note and not isinstance(value, list) and (not one.noted or value in one.noted):
            self._note(name, one.note)
        if isinstance(value, str) and value in one.words:
            value = one.words[value]
        if isinstance(value, list) and "Chain" in value:
            self._note(name, one.note)
            value = [part for part in value if part != "Chain"]
        if value is not None:
            put_field(self.spec, one.at, value)

    def _note(self, name: str, message: str, *, closes: bool = False, hint: str = "") -> None:
        path: Path = ("spec", *name.split("."))
        self.notes.append(Note(path, message, hint, "closes" if closes else "named"))

    def _refuse(self, name: str, message: str) -> None:
        path: Path = ("spec", *name.split("."))
        self.notes.append(Note(path, message, "", "closes", "Invalid"))

    def _tell(self, path: tuple[Any, ...]) -> None:
        """Name a field that remains, by the row of the table for it or for what is above it."""
        names = [str(one) for one in path]
        for end in range(len(path), 0, -1):
            # A key with a dot is no field, although its name may look like the path of one.
            known = not any("." in one for one in names[:end])
            one = CLIENT_FIELDS.get(".".join(names[:end])) if known else None
            if one is not None:
                closes = one.effect == "closes"
                self._note(".".join(names[:end]), f"not applied: {one.said}", closes=closes)
                self._fields.take(path[:end])
                return
        if not (self._fields.is_empty(path) and is_parent(names, CLIENT_FIELDS)):
            self.notes.append(Note(("spec", *names), "the field is not known", "", "closes"))
        self._fields.take(path)

    def _take_flag(self, name: str) -> bool:
        """Return a field that is true or false; absent is false."""
        value = self._fields.take(name)
        if value is not None and not isinstance(value, bool):
            self._refuse(name, "not true or false")
        return value is True

    def _read_proxy_protocol(self) -> None:
        old = self._take_flag("enableProxyProtocol")
        optional = self._take_flag("proxyProtocol.optional")
        new = self._fields.take("proxyProtocol")
        if new is None and not old:
            return
        if new is not None and not isinstance(new, dict):
            self._refuse("proxyProtocol", "not an object")
        for name in new if isinstance(new, dict) else ():
            self._note(f"proxyProtocol.{name}", "the field is not known", closes=True)
        word = "optional" if optional else "required"
        put_field(self.spec, "clientAddress.proxyProtocol", word)
        # Envoy takes the header from every peer.
        put_field(self.spec, "clientAddress.proxyProtocolCIDRs", _EVERYONE)

    def _read_validation(self) -> None:
        given = self._fields.rest.get("tls")
        value = given.get("clientValidation") if isinstance(given, dict) else None
        if value is None:
            return
        where = "tls.clientValidation"
        refs = self._fields.take(f"{where}.caCertificateRefs")
        optional = self._fields.take(f"{where}.optional")
        mode = self._fields.take(f"{where}.mode")
        if mode is not None:
            if not isinstance(mode, str) or mode not in _MODES:
                message = "not applied: an unverified certificate would be accepted"
                self._note(f"{where}.mode", message, closes=True)
            else:
                optional = _MODES[mode]
        if isinstance(value, dict) and value.get("allowExpiredCertificate") is False:
            self._fields.take(f"{where}.allowExpiredCertificate")
        if not isinstance(refs, list) or not refs:
            self._note(f"{where}.caCertificateRefs", "no authority", closes=True)
            return
        if optional is not True:
            self.validation = {"caCertificateRefs": [_with_kind(one) for one in refs]}
            return
        one = refs[0] if len(refs) == 1 and isinstance(refs[0], dict) else {}
        name, namespace = one.get("name"), one.get("namespace")
        if one.get("kind", "Secret") != "Secret" or not isinstance(name, str):
            message = "optional certificates need one Secret with the authorities"
            self._note(f"{where}.optional", message, closes=True)
            return
        self.options[_CLIENT_CA] = f"{namespace}/{name}" if namespace else name
        self.options[_CLIENT_MODE] = "Optional"

    def _read_tls(self) -> None:
        version = self._fields.take("tls.minVersion")
        if version in ("1.2", "1.3"):
            self.options[_MIN_VERSION] = version
        elif version in ("1.0", "1.1"):
            self._note("tls.minVersion", "the lowest version of edgefast is 1.2")
        elif version not in (None, "Auto"):
            self._note("tls.minVersion", "the version is not known", closes=True)
        alpn = self._fields.take("tls.alpnProtocols")
        if alpn is not None and not isinstance(alpn, list):
            self._refuse("tls.alpnProtocols", "not a list")
        elif alpn is not None and "h2" not in alpn:
            put_field(self.spec, "http2.enabled", False)

    def _read_others(self) -> None:
        self._fields.take("clientIPDetection.directSourceIP")
        if self._take_flag("headers.disableRateLimitHeaders"):
            put_field(self.spec, "rateLimit.headers", False)
        if self._take_flag("headers.preserveXRequestID"):
            put_field(self.spec, "headers.requestID", "PreserveOrGenerate")
        http1 = self._fields.rest.get("http1")
        if isinstance(http1, dict) and http1.get("http10") is not None:
            put_field(self.spec, "http.http10.enabled", True)
            if not http1["http10"]:
                self._fields.take("http1.http10")


def _with_kind(one: object) -> object:
    return {"group": "", "kind": "Secret", **one} if isinstance(one, dict) else one
