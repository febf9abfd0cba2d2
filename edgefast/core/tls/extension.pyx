# TLS: what lies between the bytes of a session and the descriptor.

include "imports.pxi"
include "cold.pxi"
include "core/consts.pxi"
include "net/consts.pxi"
include "tls/consts.pxi"
include "stream/consts.pxi"
include "cells.pxi"
include "head/hashes.pxi"

_log = logging.getLogger("edgefast.engine")

include "tls/library.pyx"
include "tls/crypto.pyx"
include "tls/context.pyx"
include "tls/backendsessions.pyx"
include "tls/handshakes.pyx"
include "tls/tlswire.pyx"
include "tls/tlsacceptor.pyx"
