"""Certificates: which one a name is served with, and whether a host "has a certificate" for ssl-redirect."""

from __future__ import annotations

from cryptography import x509

from ingress.naive.hosts import CATCH_ALL, Host, Hosts
from ingress.naive.objects import Objects

DEFAULT = "default"


def certificate_table(hosts: Hosts) -> dict[str, str]:
    """Names with a certificate: hosts, aliases and names that from-to-www redirects."""
    table: dict[str, str] = {}
    for name in sorted(hosts.hosts):
        if name == CATCH_ALL:
            continue
        host = hosts.hosts[name]
        found = certificate_of(host, hosts.objects)
        table.pop(name, None)
        if found:
            table[name] = found
        for alias in host.aliases:
            table.pop(alias, None)
            if found and _covers_alias(found, alias, hosts.objects):
                table[alias] = found
    for name, host in hosts.redirecting_names().items():
        table.pop(name, None)
        found = certificate_of(host, hosts.objects)
        if found and _covers_alias(found, name, hosts.objects):
            table[name] = found
    return table


def certificate_of(host: Host, objects: Objects) -> str:
    """Certificate by `spec.tls` host, else by a Secret in `spec.tls` that covers it, else (or when it does not cover the host) the
    default certificate. "" if no Ingress of the host has any `tls`."""
    if host.secured_by is None:
        return ""
    ingress = host.secured_by.ingress
    space = ingress["metadata"].get("namespace", "default")
    name = ""
    listed = [one for one in ingress["spec"]["tls"] if _lists(one, host.name)]
    if listed:
        name = listed[0].get("secretName") or ""
    else:
        for one in ingress["spec"]["tls"]:
            secret = one.get("secretName") or ""
            if secret and covers(f"{space}/{secret}", host.name, objects):
                name = secret
                break
    if name and covers(f"{space}/{name}", host.name, objects):
        return f"{space}/{name}"
    return DEFAULT


def _lists(entry: dict[str, list[str]], name: str) -> bool:
    return name.lower() in [one.lower() for one in entry.get("hosts") or []]


def names_of(secret: str, objects: Objects) -> list[str]:
    """DNS names of the certificate of a Secret; empty without a Secret or a certificate."""
    pem = objects.secret_value(secret, "tls.crt")
    if not pem or not objects.secret_value(secret, "tls.key"):
        return []
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (ValueError, x509.ExtensionNotFound):
        return []
    return [name.lower() for name in names.value.get_values_for_type(x509.DNSName)]


def covers(secret: str, name: str, objects: Objects) -> bool:
    """A certificate covers a name: equal, or by a wildcard for one label."""
    wildcard = "" if name.startswith("*.") else "*." + name.partition(".")[2]
    return any(one in (name.lower(), wildcard.lower()) for one in names_of(secret, objects))


def _covers_alias(certificate: str, alias: str, objects: Objects) -> bool:
    """An alias or www name has one only if the Secret covers it."""
    return certificate != DEFAULT and covers(certificate, alias, objects)


def find_certificate(table: dict[str, str], name: str) -> str:
    """The name, then the wildcard just above; "" for a name without one."""
    name = name.lower().removesuffix(".")
    return table.get(name) or table.get("*." + name.partition(".")[2], "")


def chosen_certificate(table: dict[str, str], sni: str) -> str:
    """Chosen by SNI: name, then the wildcard just above; else the default certificate."""
    return find_certificate(table, sni) or DEFAULT
