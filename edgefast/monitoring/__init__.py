"""Monitoring: the metrics of proxies and controllers, with dashboards and alerts.

One catalogue of metric families (`family.py`, `proxy_metrics.py`, `controller_metrics.py`) is the
source of the page docs/reference/metrics.md, dashboards and alerts. `python -m
edgefast.monitoring.generate --write` writes all of them.
"""
