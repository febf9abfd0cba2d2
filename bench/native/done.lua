-- Makes wrk end with one JSON line in the shape of load.c; nothing here runs per request.
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '{"requests": %d, "errors": %d, "seconds": %.6f, "unsent": 0, "latency_us": ' ..
    '{"p50": %.1f, "p99": %.1f, "p999": %.1f}}\n',
    summary.requests, e.connect + e.read + e.write + e.status + e.timeout,
    summary.duration / 1e6,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))
end
