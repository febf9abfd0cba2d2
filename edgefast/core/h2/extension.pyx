# HTTP/2: connections of clients and of backends.

include "imports.pxi"
include "cold.pxi"
include "core/consts.pxi"
include "net/consts.pxi"
include "cells.pxi"
include "head/hashes.pxi"

_log = logging.getLogger("edgefast.engine")

include "h2/outflow.pyx"
include "h2/frames.pyx"
include "h2/callbacks.pyx"
include "h2/responder.pyx"
include "h2/stream.pyx"
include "h2/servercallbacks.pyx"
include "h2/session.pyx"
include "h2/stall_detection.pyx"
include "h2/memory_budget.pyx"
include "h2/protocol_switch.pyx"
include "h2/requester.pyx"
include "h2/backend_cancels.pyx"
include "h2/call.pyx"
include "h2/clientcallbacks.pyx"
include "h2/client.pyx"
include "h2/http2.pyx"
