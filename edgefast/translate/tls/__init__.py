"""TLS of listeners, and the certificates and keys of all TLS.

In: Secrets, ConfigMaps, fields of Gateways. Out: what was parsed (`certificate.py`), once (`keyring.py`), and a listener's
TLS (`tls.py`). Must never: show a key.
"""
