"""Monitoring: what proxies and controllers measure, and how operators look at it.

One catalogue of metric families (`family.py`, `proxy_metrics.py`, `controller_metrics.py`), and what follows from it: the page
docs/reference/metrics.md, dashboards and alerts. `python -m edgefast.monitoring.generate --write` writes all of them.
"""
