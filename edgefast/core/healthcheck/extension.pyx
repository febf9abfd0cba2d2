# Health checks: probes of endpoints.

include "imports.pxi"
include "cold.pxi"
include "core/consts.pxi"
include "net/consts.pxi"
include "cells.pxi"
include "head/hashes.pxi"

_log = logging.getLogger("edgefast.engine")

include "healthcheck/probe.pyx"
include "healthcheck/probedial.pyx"
include "healthcheck/prober.pyx"
