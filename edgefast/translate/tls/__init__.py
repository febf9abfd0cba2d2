"""TLS: of listeners, and the certificates and keys of all TLS.

In: Secrets, ConfigMaps, fields of Gateways.
Out: parsed certificates (`certificate.py`), each parsed once (`keyring.py`), and a listener's TLS
(`tls.py`).
Must never: show a key.
"""
