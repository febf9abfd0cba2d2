"""Alerts: conditions that page an operator, or that an operator reads later.

In: nothing.
Out: `ALERTS`, the source of the rules file and its page. In tests/monitoring, names are checked
against the catalogue, and promtool checks expressions. Thresholds are initial values; operators
adapt them in a copy.
Must never: depend on job names, which differ for each Prometheus.
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
        summary="No proxy of {{ $labels.job }} is ready; no traffic is served.",
        todo="Check the pods or the service, then `GET /ready` (19003) and `edgefast dump`, "
        "which name the missing worker or port. Without any series, Prometheus does not "
        "scrape or no proxy runs.",
    ),
    Alert(
        group="proxies",
        name="EdgefastProxyNotReady",
        expr="edgefast_ready == 0 and edgefast_draining == 0",
        lasts="5m",
        severity="warning",
        summary="{{ $labels.instance }} runs and is not ready.",
        todo="`GET /ready` (19003) gives the cause; usually the proxy has no table, or cannot "
        "bind a port.",
    ),
    Alert(
        group="proxies",
        name="EdgefastWorkersMissing",
        expr="edgefast_workers_alive < edgefast_workers",
        lasts="2m",
        severity="warning",
        summary="{{ $labels.instance }} has {{ $value }} serving workers, fewer than configured.",
        todo="The log has the cause. For a lack of memory or descriptors, raise the limit or "
        "run fewer workers.",
    ),
    Alert(
        group="proxies",
        name="EdgefastWorkerRestarts",
        expr="increase(edgefast_worker_restarts_total[15m]) > 2",
        lasts="0m",
        severity="warning",
        summary="Workers of {{ $labels.instance }} restart repeatedly.",
        todo="The requests of an ended worker fail. The log has the signal or exit status of each.",
    ),
    Alert(
        group="proxies",
        name="EdgefastProxyRestarts",
        expr="changes(edgefast_start_timestamp_seconds[30m]) > 2",
        lasts="0m",
        severity="warning",
        summary="The proxy {{ $labels.instance }} restarts repeatedly.",
        todo="Find the cause of the end of the previous process: `kubectl logs --previous`, "
        "`journalctl -u edgefast`.",
    ),
    Alert(
        group="proxies",
        name="EdgefastErrorShare",
        expr="edgefast:errors:rate5m / edgefast:requests:rate5m > 0.05 and edgefast:requests:rate5m > 0.1",
        lasts="5m",
        severity="critical",
        summary="{{ $value | humanizePercentage }} of the requests of {{ $labels.route }} end with 5xx.",
        todo="In the access log, `flags` and `endpoint` distinguish failing backends (UF, UR, "
        "UT) from the configuration (CFG, NE). `edgefast explain` shows the answer to a "
        "request and its cause.",
    ),
    Alert(
        group="proxies",
        name="EdgefastSlow",
        expr="edgefast:request_duration_seconds:p99_5m > 1 and edgefast:requests:rate5m > 0.1",
        lasts="10m",
        severity="warning",
        summary="1 % of the requests of {{ $labels.route }} take longer than {{ $value | humanizeDuration }}.",
        todo="Compare with `edgefast_upstream_seconds_total`: usually the backend is slow. "
        "Requests of more than 10 s are shown as 10 s.",
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
        summary="{{ $labels.instance }} refuses client connections.",
        todo="The limit of connections or descriptors is reached: add proxies, or raise the "
        "limit of connections and of open files.",
    ),
    Alert(
        group="proxies",
        name="EdgefastWorkerFaults",
        expr="rate(edgefast_worker_faults_total[5m]) > 0",
        lasts="1m",
        severity="warning",
        summary="{{ $labels.instance }} closes connections because of a bug of edgefast.",
        todo="Report the bug with the traceback from the log.",
    ),
    Alert(
        group="proxies",
        name="EdgefastCertificateExpires",
        expr="edgefast_certificate_expiry_timestamp_seconds - time() < 14 * 86400",
        lasts="1h",
        severity="warning",
        summary="The certificate {{ $labels.secret }} expires in {{ $value | humanizeDuration }}.",
        todo="Renew it. New handshakes use a changed Secret immediately.",
    ),
    Alert(
        group="proxies",
        name="EdgefastCertificateExpiresSoon",
        expr="edgefast_certificate_expiry_timestamp_seconds - time() < 2 * 86400",
        lasts="5m",
        severity="critical",
        summary="The certificate {{ $labels.secret }} expires in {{ $value | humanizeDuration }}.",
        todo="Renew it now; the automatic renewal has failed.",
    ),
    Alert(
        group="proxies",
        name="EdgefastStaleTable",
        expr="edgefast_xds_connected == 0",
        lasts="5m",
        severity="warning",
        summary="{{ $labels.instance }} has no connection to its controller and serves its present "
        "table.",
        todo="Its log has the cause. Changes of objects and endpoints are delayed; traffic "
        "continues.",
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
        summary="{{ $labels.instance }} refuses {{ $value }} resources of its table; the previous "
        "versions stay in use.",
        todo="`edgefast dump` lists them with the cause: a bug of edgefast, or a lack of memory.",
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
        summary="{{ $labels.instance }} cannot store its table on disk.",
        todo="The state directory is full or not writable. Traffic continues; the next start "
        "needs a controller or complete files.",
    ),
    Alert(
        group="proxies",
        name="EdgefastAccessLogDropped",
        expr="increase(edgefast_access_log_dropped_total[10m]) > 0",
        lasts="0m",
        severity="warning",
        summary="{{ $labels.instance }} has lost {{ $value | humanize }} lines of its access log.",
        todo="The reader of its standard output is too slow. Requests do not wait for it.",
    ),
    Alert(
        group="proxies",
        name="EdgefastKeysNotFetched",
        expr="max by (job, policy, provider) (edgefast_jwks_fetch_failing) > 0",
        lasts="5m",
        severity="warning",
        summary="A proxy of {{ $labels.job }} cannot fetch the keys of provider {{ $labels.provider }} of SecurityPolicy {{ $labels.policy }}.",
        todo="The previous keys stay in use for 24 h. After that, or without any, requests with a token of the provider get 503. The "
        "condition `KeysAvailable` of the policy has the reason: see `edgefast problem KeysNotFetched`.",
    ),
    Alert(
        group="proxies",
        name="EdgefastSpansLost",
        expr="rate(edgefast_spans_lost_total[10m]) + rate(edgefast_spans_dropped_total[10m]) > 0",
        lasts="10m",
        severity="warning",
        summary="{{ $labels.instance }} loses the spans of {{ $value | humanize }} requests a second.",
        todo="Traces have gaps; requests do not wait. The log has the collector's error; "
        "without an error the collector is too slow: trace a smaller share (EdgeProxy "
        "`tracing.sampling`).",
    ),
    Alert(
        group="proxies",
        name="EdgefastMetricRowsFull",
        expr="edgefast_metric_rows_used / edgefast_metric_rows > 0.9",
        lasts="15m",
        severity="warning",
        summary="{{ $labels.instance }} has used {{ $value | humanizePercentage }} of its rows for routes.",
        todo="Rules and limits beyond that are counted together, in the row `overflow`; they "
        "are served normally.",
    ),
    Alert(
        group="limits",
        name="EdgefastLimitStoreErrors",
        expr="rate(edgefast_ratelimit_store_errors_total[5m]) + rate(edgefast_ratelimit_store_timeouts_total[5m]) > 0",
        lasts="5m",
        severity="warning",
        summary="{{ $labels.instance }} cannot count requests in the rate-limit store.",
        todo="Requests pass uncounted, or get 500 if `failClosed` is set. `edgefast dump` shows "
        "the state of the store for each worker.",
    ),
    Alert(
        group="limits",
        name="EdgefastLimitsNotCounted",
        expr='sum by (job, route, limit) (rate(edgefast_ratelimit_requests_total{result="error"}[5m])) / '
        "sum by (job, route, limit) (rate(edgefast_ratelimit_requests_total[5m])) > 0.01",
        lasts="5m",
        severity="critical",
        summary="{{ $value | humanizePercentage }} of the requests of {{ $labels.limit }} are not counted.",
        todo="The limit has no effect, or denies all requests (`failClosed`). See "
        "EdgefastLimitStoreErrors.",
    ),
    Alert(
        group="limits",
        name="EdgefastLimitStoreFull",
        expr="increase(edgefast_ratelimit_store_full_total[10m]) > 0",
        lasts="0m",
        severity="warning",
        summary="{{ $labels.instance }} had no room for counters in shared memory.",
        todo="The store in shared memory has too many values; use Redis, or limit by fewer values.",
    ),
    Alert(
        group="limits",
        name="EdgefastLimitStoreEvicts",
        expr='max by (job, store, trouble) (edgefast_ratelimit_store_troubles{trouble!="down"}) > 0',
        lasts="5m",
        severity="warning",
        summary="{{ $labels.store }} can delete rate-limit counters: its memory policy is {{ "
        "$labels.trouble }}.",
        todo="Set `maxmemory-policy noeviction`, and use a separate Redis for limits: see `edgefast problem EvictingStore`.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastNoLeader",
        expr=f"sum by (job) ({_CONTROLLERS}leader) == 0",
        lasts="1m",
        severity="critical",
        summary="No controller of {{ $labels.job }} is the leader: statuses are not written, and "
        "fleets are not changed.",
        todo="Tables are still sent. Check the Lease, and the controllers' right to write to "
        "the API server.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastControllerGone",
        expr=f"absent({_CONTROLLERS}leader) and on() count(edgefast_xds_connected) > 0",
        lasts="5m",
        severity="critical",
        summary="Prometheus has proxies of a controller, but no controller.",
        todo="No controller runs, or Prometheus does not scrape it (Service "
        "`edge-gateway-metrics-service`, port 19001). Proxies serve their present table.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastControllerNotSynced",
        expr=f"{_CONTROLLERS}synced == 0",
        lasts="5m",
        severity="critical",
        summary="{{ $labels.instance }} has not read all objects.",
        todo="`/readyz` (8081) lists the missing kinds. Check rights, CRDs and the API server.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastControllerRestarts",
        expr=f"changes({_CONTROLLERS}start_timestamp_seconds[30m]) > 2",
        lasts="0m",
        severity="warning",
        summary="The controller {{ $labels.instance }} restarts repeatedly.",
        todo="`kubectl logs --previous` has the cause.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastFleetWithoutProxies",
        expr=f"max by (job, fleet) ({_CONTROLLERS}proxies) == 0",
        lasts="5m",
        severity="critical",
        summary="Fleet {{ $labels.fleet }} has no ready proxy.",
        todo="Check its Deployment and pods; `edgefast status` shows the progress.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastProxiesBehind",
        expr=f"max by (job, fleet) ({_CONTROLLERS}proxies_behind) > 0",
        lasts="10m",
        severity="warning",
        summary="{{ $value }} proxies of {{ $labels.fleet }} do not follow.",
        todo="They serve an older table. `edgefast status` names them; their logs have the cause.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastNacks",
        expr=f"sum by (job) (increase({_CONTROLLERS}partial_acks_total[10m])) > 0",
        lasts="0m",
        severity="warning",
        summary="Proxies refuse a part of their tables.",
        todo="`edgefast_controller_nacks_total` has the types. Statuses with the reason "
        "RefusedByProxies name the objects. The cause is a bug of edgefast, or a lack of "
        "memory.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastSlowPropagation",
        expr=f"histogram_quantile(0.99, sum by (job, le) (rate({_CONTROLLERS}ack_seconds_bucket[10m]))) > 5",
        lasts="10m",
        severity="warning",
        summary="Changes take {{ $value | humanizeDuration }} to be served.",
        todo="The dashboard shows whether controllers (stages) or proxies (answers) are slow.",
    ),
    Alert(
        group="control-plane",
        name="EdgefastStatusWritesFail",
        expr=f"sum by (job, reason) (rate({_CONTROLLERS}status_write_failures_total[10m])) > 0",
        lasts="15m",
        severity="warning",
        summary="Statuses cannot be written: {{ $labels.reason }}.",
        todo="The controller retries. Check rights, webhooks and quotas of the API server; the "
        "log has its answers.",
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
        todo="Objects that were read before stay in use. The log lists the failures with the "
        "cause.",
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
        summary="The configuration of {{ $labels.instance }} is refused; the previous one is in "
        "force.",
        todo="The log lists the problems; the file is `edge-gateway.yaml` of the ConfigMap `edge-gateway-config`.",
    ),
)
