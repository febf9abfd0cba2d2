# Spans: of requests, of the calls of services that these waited for, of connections that are passed on.

include "telemetry/span.pyx"
include "telemetry/authspan.pyx"
include "telemetry/stream_span.pyx"
