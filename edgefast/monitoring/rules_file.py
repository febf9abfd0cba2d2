"""The rules file of Prometheus, and the page about monitoring with every alert, made from the alerts.

In: `ALERTS`. Out: the texts of docs/monitoring/rules.yaml and docs/monitoring/README.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from edgefast.monitoring.alerts import ALERTS, RECORDED, Alert

__all__ = ["list_groups", "render_guide", "render_rules"]

_MADE = "Made from edgefast/monitoring by `python -m edgefast.monitoring.generate --write`; do not edit."
_GROUPS = {"proxies": "Proxies", "limits": "Rate limits", "control-plane": "Control plane"}

_GUIDE = f"""\
<!-- {_MADE} -->
# Monitoring

Proxies and controllers have their [metrics](../reference/metrics.md) on port 19001. These files use them:

| file | for | shows |
|---|---|---|
| [traffic.json](traffic.json) | Grafana | requests, errors and latency by route, connections, backends, log lines and spans |
| [limits.json](limits.json) | Grafana | what rate limits count and refuse, their store |
| [control-plane.json](control-plane.json) | Grafana | from objects to tables to proxies, statuses |
| [rules.yaml](rules.yaml) | Prometheus | the alerts below, and the series they record |

**Prometheus.** Pods of proxies have the `prometheus.io` annotations, controllers the Service `edge-gateway-metrics-service`.
On a separate machine, with `rule_files: [rules.yaml]`:

```yaml
scrape_configs:
  - job_name: edgefast
    static_configs:
      - targets: ["localhost:19001"]
```

These commands check the metrics (for `make run`) and the rules:

```sh quickstart
curl -s http://localhost:19001/metrics | grep '^edgefast_ready '
```

```text
edgefast_ready 1
```

```sh
promtool check rules docs/monitoring/rules.yaml
```

```text
Checking docs/monitoring/rules.yaml
  SUCCESS: ... rules found
...
```

**Grafana.** Import the files (Dashboards, New, Import), or put them into a folder that it provisions. Each has a choice of the
Prometheus, of jobs and of instances.

**In a cluster** the [chart](../reference/chart.md#values) has all of it, of the same version as the controller: ConfigMaps with
the label by which the sidecar of Grafana's chart finds dashboards, and, where the Prometheus operator is, a PrometheusRule with the
groups of rules.yaml, a ServiceMonitor for controllers and a PodMonitor for proxies. All are off by default:

```yaml
monitoring:
  dashboards: {{enabled: true}}
  rules: {{enabled: true, labels: {{release: prometheus}}}} # what the operator's ruleSelector asks for
  serviceMonitor: {{enabled: true, labels: {{release: prometheus}}}}
  podMonitor: {{enabled: true, labels: {{release: prometheus}}}}
```

With several releases in a cluster, only one needs dashboards and rules, which include all releases. The same is true for the PodMonitor in
Gateway Namespace mode.

Every name in these files is checked against the catalogue of metrics, and the rules by `promtool`, when edgefast is tested.
The thresholds are only a start; change them in a copy.
"""


def list_groups() -> list[dict[str, Any]]:
    """Return the groups of rules, as Prometheus and its operator have them."""
    recorded = [{"record": name, "expr": expr} for name, expr in RECORDED.items()]
    groups: list[dict[str, Any]] = [{"name": "edgefast-recorded", "rules": recorded}]
    for group in _GROUPS:
        rules = [_rule(one) for one in ALERTS if one.group == group]
        groups.append({"name": f"edgefast-{group}", "rules": rules})
    return groups


def render_rules() -> str:
    """Return the text of rules.yaml."""
    groups = {"groups": list_groups()}
    text = yaml.safe_dump(groups, sort_keys=False, allow_unicode=True, width=120)
    return f"# {_MADE}\n{text}"


def render_guide() -> str:
    """Return the text of docs/monitoring/README.md."""
    return "\n".join((_GUIDE, *_sections()))


def _rule(one: Alert) -> dict[str, Any]:
    waits = {} if one.lasts == "0m" else {"for": one.lasts}
    return {
        "alert": one.name,
        "expr": one.expr,
        **waits,
        "labels": {"severity": one.severity},
        "annotations": {
            "summary": one.summary,
            "description": one.todo,
            "runbook": f"docs/monitoring/README.md#{one.name.lower()}",
        },
    }


def _sections() -> Iterator[str]:
    for group, title in _GROUPS.items():
        yield from (f"## {title}", "")
        for one in ALERTS:
            if one.group == group:
                when = "immediately" if one.lasts == "0m" else f"after {one.lasts}"
                yield from (f"### {one.name}", "")
                yield from (f"*{one.severity}*, {when}:", "", "```promql", one.expr, "```", "")
                yield from (one.todo, "")
