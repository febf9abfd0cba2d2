# Layer 4: connections and datagrams that are passed on unread.

include "imports.pxi"
include "cold.pxi"
include "core/consts.pxi"
include "net/consts.pxi"
include "tls/consts.pxi"
include "stream/consts.pxi"
include "cells.pxi"
include "head/hashes.pxi"

_log = logging.getLogger("edgefast.engine")

include "stream/streamrules.pyx"
include "stream/addressbound.pyx"
include "stream/proxyheader.pyx"
include "stream/tcp_proxy.pyx"
include "stream/streamacceptor.pyx"
include "stream/udp_session_limit.pyx"
include "stream/datagrams.pyx"
include "stream/datagramsession.pyx"
