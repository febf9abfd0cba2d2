"""Alerts: what an operator wants to be woken for, or to read in the morning.

In: nothing. Out: `ALERTS`, from which the rules file and its page are made. Names are checked against the catalogue, and
expressions by promtool, in tests/monitoring. Thresholds are for a start: whoever has better ones changes them in a copy.
Must never: depend on names of jobs, which are those of each Prometheus.
"""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["ALERTS", "RECORDED", "Alert"]


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One alert; `lasts` is how long the expression must hold, `todo` what to do then."""

    group: Literal["proxies", "limits", "control-plane"]
    name: str
    expr: str
    lasts: str
    severity: Literal["critical", "warning"]
    summary: str
    todo: str


#: Recorded series: what alerts and people ask for again and again.
RECORDED = {
    "edgefast:requests:rate5m": "sum by (job, route) (rate(edgefast_requests_total[5m]))",
    "edgefast:errors:rate5m": 'sum by (job, route) (rate(edgefast_requests_total{code_class="5xx"}[5m]))',
    "edgefast:request_duration_seconds:p99_5m": "histogram_quantile(0.99, sum by (job, route, le) "
    "(rate(edgefast_request_duration_seconds_bucket[5m])))",
}

_CONTROLLERS = "edgefast_controller_"

ALERTS = (
    Alert(
        group="proxies",
        name="EdgefastNoReadyProxy",
        expr="sum by (job) (edgefast_ready) == 0 or absent(edgefast_ready)",
        lasts="1m",
        severity="critical",
        summary="No proxy of {{ $labels.job }} is ready: nobody serves.",
        todo="Look at the pods or the service, then at `GET /ready` (19003) and `edgefast dump`: it says which worker or port is missing. "
        "Without any series Prometheus does not scrape, or nothing runs.",
    ),
    Alert(
        group="proxies",
        name="EdgefastProxyNotReady",
        expr="edgefast_ready == 0 and edgefast_draining == 0",
        lasts="5m",
        severity="warning",
        summary="{{ $labels.instance }} runs and is not ready.",
        todo="`GET /ready` (19003) says why; mostly no table has come, or a port cannot be bound.",
    ),
    Alert(
        group="proxies",
        name="EdgefastWorkersMissing",
        expr="edgefast_workers_alive < edgefast_workers",
        lasts="2m",
        severity="warning",
        summary="{{ $labels.instance }} has {{ $value }} workers that serve, fewer than wanted.",
        todo="The log says why they ended. Out of memory or descriptors: raise the limit, or run fewer workers.",
    ),
    Alert(
        group="proxies",
        name="EdgefastWorkerRestarts",
        expr="increase(edgefast_worker_restarts_total[15m]) > 2",
        lasts="0m",
        severity="warning",
        summary="Workers of {{ $labels.instance }} were replaced again and again.",
        todo="Each one takes its requests along. The log has the signal or exit status of each.",
    ),
    Alert(
        group="proxies",
        name="EdgefastProxyRestarts",
        expr="changes(edgefast_start_timestamp_seconds[30m]) > 2",
        lasts="0m",
        severity="warning",
        summary="The proxy {{ $labels.instance }} was started again and again.",
        todo="Look at why the previous one ended: `kubectl logs --previous`, `journalctl -u edgefast`.",
    ),
    Alert(
        group="proxies",
        name="EdgefastErrorShare",
        expr="edgefast:errors:rate5m / edgefast:requests:rate5m > 0.05 and edgefast:requests:rate5m > 0.1",
        lasts="5m",
        severity="critical",
        summary="{{ $value | humanizePercentage }} of the requests of {{ $labels.route }} end with 5xx.",
        todo="`flags` and `endpoint` of the access log tell backends that fail (UF, UR, UT) from the configuration (CFG, NE); "
        "`edgefast explain` says what a request gets, and why.",
    ),
    Alert(
        group="proxies",
        name="EdgefastSlow",
        expr="edgefast:request_duration_seconds:p99_5m > 1 and edgefast:requests:rate5m > 0.1",
        lasts="10m",
        severity="warning",
        summary="1 % of the requests of {{ $labels.route }} take longer than {{ $value | humanizeDuration }}.",
        todo="Compare with `edgefast_upstream_seconds_total`: mostly it is the backend. Requests that go over 10 s are shown as 10 s.",
    ),
    Alert(
        group="proxies",
        name="EdgefastBackendsUnreachable",
        expr="rate(edgefast_upstream_connect_failures_total[5m]) / "
        "(rate(edgefast_upstream_connects_total[5m]) + rate(edgefast_upstream_connect_failures_total[5m])) > 0.1 "
        "and rate(edgefast_upstream_connect_failures_total[5m]) > 0.1",
        lasts="5m",
        severity="warning",
        summary="{{ $value | humanizePercentage }} of the connections of {{ $labels.instance }} to backends fail.",
        todo="`edgefast dump` lists endpoints with their health; `endpoint` of log lines with the flag UF names them.",
    ),
    Alert(
        group="proxies",
        name="EdgefastConnectionsRefused",
        expr="rate(edgefast_connections_refused_total[5m]) > 0",
        lasts="5m",
        severity="warning",
        summary="{{ $labels.instance }} turns clients away.",
        todo="The cap on connections or descriptors is reached: add proxies, or raise the cap and the limit of open files.",
    ),
    Alert(
        group="proxies",
        name="EdgefastWorkerFaults",
        expr="rate(edgefast_worker_faults_total[5m]) > 0",
        lasts="1m",
        severity="warning",
        summary="{{ $labels.instance }} ends connections because of a mistake of its own.",
        todo="Its log has a traceback for each of them: report it.",
    ),
    Alert(
        group="proxies",
        name="EdgefastCertificateExpires",
        expr="edgefast_certificate_expiry_timestamp_seconds - time() < 14 * 86400",
        lasts="1h",
        severity="warning",
        summary="The certificate {{ $labels.secret }} expires in {{ $value | humanizeDuration }}.",
        todo="Renew it. A changed Secret is in use at once, for new handshakes.",
    ),
    Alert(
        group="proxies",
        name="EdgefastCertificateExpiresSoon",
        expr="edgefast_certificate_expiry_timestamp_seconds - time() < 2 * 86400",
        lasts="5m",
        severity="critical",
        summary="The certificate {{ $labels.secret }} expires in {{ $value | humanizeDuration }}.",
        todo="Renew it now; whoever renews it by itself has failed.",
    ),
    Alert(
        group="proxies",
        name="EdgefastStaleTable",
        expr="edgefast_xds_connected == 0",
        lasts="5m",
        severity="warning",
        summary="{{ $labels.instance }} has not heard its controller: it serves the table it has.",
        todo="Its log says why the stream ends. Changes wait, endpoints of backends too; traffic goes on.",
    ),
    Alert(
        group="proxies",
        name="EdgefastTableFromDisk",
        expr="edgefast_xds_last_good_served == 1",
        lasts="5m",
        severity="warning",
        summary="{{ $labels.instance }} serves the last good table from disk.",
        todo="No controller has confirmed it since the start: see EdgefastStaleTable.",
    ),
    Alert(
        group="proxies",
        name="EdgefastTableRefused",
        expr="edgefast_table_refused > 0",
        lasts="5m",
        severity="warning",
        summary="{{ $labels.instance }} refuses {{ $value }} resources of its table; older versions serve.",
        todo="`edgefast dump` says which and why. It is a fault of ours, or a want of memory.",
    ),
    Alert(
        group="proxies",
        name="EdgefastConfigProblems",
        expr="edgefast_config_problems > 0",
        lasts="15m",
        severity="warning",
        summary="{{ $labels.instance }} has {{ $value }} problems in its configuration.",
        todo="`edgefast dump` and the log list them; `edgefast check -f` finds them before they are served.",
    ),
    Alert(
        group="proxies",
        name="EdgefastTableNotKept",
        expr="increase(edgefast_last_good_failures_total[15m]) > 0",
        lasts="0m",
        severity="warning",
        summary="{{ $labels.instance }} cannot keep its table on disk.",
        todo="The state directory is full or not writable. Traffic goes on; the next start needs a controller or whole files.",
    ),
    Alert(
        group="proxies",
        name="EdgefastAccessLogDropped",
        expr="increase(edgefast_access_log_dropped_total[10m]) > 0",
        lasts="0m",
        severity="warning",
        summary="{{ $labels.instance }} has lost {{ $value | humanize }} lines of its access log.",
        todo="Whoever reads its standard output is too slow. Requests do not wait for it.",
    ),
    Alert(
        group="proxies",
        name="EdgefastSpansLost",
        expr="rate(edgefast_spans_lost_total[10m]) + rate(edgefast_spans_dropped_total[10m]) > 0",
        lasts="10m",
        severity="warning",
        summary="{{ $labels.instance }} loses the spans of {{ $value | humanize }} requests a second.",
        todo="Traces have gaps; requests do not wait. The log has the collector's error; without one it is too slow: trace a smaller share (EdgeProxy `tracing.sampling`).",
    ),
    Alert(
        group="proxies",
        name="EdgefastMetricRowsFull",
        expr="edgefast_metric_rows_used / edgefast_metric_rows > 0.9",
        lasts="15m",
        severity="warning",
        summary="{{ $labels.instance }} has used {{ $value | humanizePercentage }} of its rows for routes.",
        todo="Rules and limits beyond that are counted together, in the row `overflow`; they are served all the same.",
    ),
    Alert(
        group="limits",
        name="EdgefastLimitStoreErrors",
        expr="rate(edgefast_ratelimit_store_errors_total[5m]) + rate(edgefast_ratelimit_store_timeouts_total[5m]) > 0",
        lasts="5m",
        severity="warning",
        summary="{{ $labels.instance }} cannot count in the store of rate limits.",
        todo="Requests pass uncounted, or get 500 where a limit fails closed. `edgefast dump` says how each worker gets on with the store.",
    ),
    Alert(
        group="limits",
        name="EdgefastLimitsNotCounted",
        expr='sum by (job, route, limit) (rate(edgefast_ratelimit_requests_total{result="error"}[5m])) / '
        "sum by (job, route, limit) (rate(edgefast_ratelimit_requests_total[5m])) > 0.01",
        lasts="5m",
        severity="critical",
        summary="{{ $value | humanizePercentage }} of the requests of {{ $labels.limit }} are not counted.",
        todo="The limit does not limit, or refuses all (`failClosed`). See EdgefastLimitStoreErrors.",
    ),
    Alert(
        group="limits",
        name="EdgefastLimitStoreFull",
        expr="increase(edgefast_ratelimit_store_full_total[10m]) > 0",
        lasts="0m",
        severity="warning",
        summary="{{ $labels.instance }} had no room for counters in shared memory.",
        todo="Too many values are counted at once for the store in memory; use Redis, or limit by fewer values.",
    ),
    Alert(
        group="limits",
        name="EdgefastLimitStoreEvicts",
        expr='max by (job, store, trouble) (edgefast_ratelimit_store_troubles{trouble!="down"}) > 0',
        lasts="5m",
        severity="warning",
        summary="{{ $labels.store }} may forget counters of rate limits: its memory policy is {{ $labels.trouble }}.",
        todo="Set `maxmemory-policy noeviction`, and use a separate Redis for limits: see `edgefast problem EvictingStore`.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastNoLeader",
        expr=f"sum by (job) ({_CONTROLLERS}leader) == 0",
        lasts="1m",
        severity="critical",
        summary="No controller of {{ $labels.job }} leads: no status is written, no fleet is changed.",
        todo="Tables are still sent. Look at the Lease, and whether the API server takes writes of the controllers.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastControllerGone",
        expr=f"absent({_CONTROLLERS}leader) and on() count(edgefast_xds_connected) > 0",
        lasts="5m",
        severity="critical",
        summary="Prometheus knows proxies of a controller, and no controller.",
        todo="No controller runs, or none is scraped (Service `edge-gateway-metrics-service`, port 19001). Proxies serve the table they have.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastControllerNotSynced",
        expr=f"{_CONTROLLERS}synced == 0",
        lasts="5m",
        severity="critical",
        summary="{{ $labels.instance }} has not read all objects.",
        todo="`/readyz` (8081) says which kinds are missing: rights, CRDs, or the API server.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastControllerRestarts",
        expr=f"changes({_CONTROLLERS}start_timestamp_seconds[30m]) > 2",
        lasts="0m",
        severity="warning",
        summary="The controller {{ $labels.instance }} was started again and again.",
        todo="`kubectl logs --previous` says why the one before ended.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastFleetWithoutProxies",
        expr=f"max by (job, fleet) ({_CONTROLLERS}proxies) == 0",
        lasts="5m",
        severity="critical",
        summary="Fleet {{ $labels.fleet }} has no proxy that is ready.",
        todo="Look at its Deployment and pods; `edgefast status` says how far it got.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastProxiesBehind",
        expr=f"max by (job, fleet) ({_CONTROLLERS}proxies_behind) > 0",
        lasts="10m",
        severity="warning",
        summary="{{ $value }} proxies of {{ $labels.fleet }} do not follow.",
        todo="They serve an older table. `edgefast status` names them; their logs say why.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastNacks",
        expr=f"sum by (job) (increase({_CONTROLLERS}partial_acks_total[10m])) > 0",
        lasts="0m",
        severity="warning",
        summary="Proxies refuse a part of their tables.",
        todo="`edgefast_controller_nacks_total` has the types. Statuses with the reason RefusedByProxies name the objects. It is a fault of ours, or a want of memory.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastSlowPropagation",
        expr=f"histogram_quantile(0.99, sum by (job, le) (rate({_CONTROLLERS}ack_seconds_bucket[10m]))) > 5",
        lasts="10m",
        severity="warning",
        summary="Changes take {{ $value | humanizeDuration }} to be served.",
        todo="The dashboard tells whether controllers (stages) or proxies (answers) are slow.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastStatusWritesFail",
        expr=f"sum by (job, reason) (rate({_CONTROLLERS}status_write_failures_total[10m])) > 0",
        lasts="15m",
        severity="warning",
        summary="Statuses cannot be written: {{ $labels.reason }}.",
        todo="They are tried again. Rights, webhooks or quotas of the API server; the log has its answers.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastFleetsFail",
        expr=f"sum by (job) (rate({_CONTROLLERS}infra_failures_total[10m])) > 0",
        lasts="15m",
        severity="warning",
        summary="Objects of fleets cannot be applied.",
        todo="Events of the Gateways (FleetFailed) have the answers of the API server.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastWatchProblems",
        expr=f"{_CONTROLLERS}watch_problems > 0",
        lasts="5m",
        severity="warning",
        summary="{{ $labels.instance }} cannot read {{ $value }} collections or objects.",
        todo="What was read before stays in use. The log says which and why.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastKindRemoved",
        expr=f"max by (job, kind) ({_CONTROLLERS}retained_objects) > 0",
        lasts="0m",
        severity="critical",
        summary="The CRD of {{ $labels.kind }} was deleted; {{ $value }} objects stay in force as last seen.",
        todo="Install the CRD and the objects again before a controller restarts: a restart drops the objects (`edgefast problem KindRemoved`).",
    ),
    Alert(
        group="control-plane",
        name="EdgefastControllerConfigProblems",
        expr=f"{_CONTROLLERS}config_problems > 0",
        lasts="5m",
        severity="warning",
        summary="The configuration of {{ $labels.instance }} is refused; the one before is in force.",
        todo="The log lists the problems; the file is `edge-gateway.yaml` of the ConfigMap `edge-gateway-config`.",
    ),
)
