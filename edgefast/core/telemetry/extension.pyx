# Telemetry: access log lines and spans.

include "imports.pxi"
include "cold.pxi"
include "core/consts.pxi"
include "net/consts.pxi"
include "stream/consts.pxi"
include "cells.pxi"
include "head/hashes.pxi"

_log = logging.getLogger("edgefast.engine")

include "telemetry/accesslog.pyx"
include "telemetry/logprogram.pyx"
include "telemetry/response_flags.pyx"
include "telemetry/logvalue.pyx"
include "telemetry/span.pyx"
include "telemetry/authspan.pyx"
include "telemetry/stream_span.pyx"
include "telemetry/stream_log.pyx"
include "telemetry/observer.pyx"
