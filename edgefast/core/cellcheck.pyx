# Cell check: Cython and Python both define the numbers of counters; the import of the engine fails if they differ.

def _check_cells():
    """The numbers in cells.pxi are the places in cells.py, and its head errors are the scan's."""
    expected = {
        G_CONNECTIONS_TOTAL: "connections_total",
        G_UPSTREAM_PROTOCOL_ERRORS: "upstream_protocol_errors",
        G_TUNNELS_ACTIVE: "tunnels_active",
        G_PATH_REFUSED: "path_refused",
        G_HEAD_REFUSED: "head_refused_" + HEAD_ERRORS[0],
        G_LIMIT_BATCHES: "limit_batches",
        G_LIMIT_STORE_FULL: "limit_store_full",
        G_SPANS_DROPPED: "spans_dropped",
        G_TURN_LONGEST_US: "turn_longest_us",
        G_ANSWERS_GAVE_WAY: "answers_gave_way",
        G_HANDSHAKES_ACTIVE: "handshakes_active",
        G_HANDSHAKES_FAILED_BY: "handshakes_failed_" + HANDSHAKE_FAILURES[0],
        G_HANDSHAKES_DONE: "handshakes_done_1.2_false",
        G_HANDSHAKES_DONE + 3: "handshakes_done_1.3_true",
        G_PENDING_GAVE_WAY: "pending_gave_way",
        G_UPSTREAM_H2_CONNECTIONS: "upstream_http2_connections",
        G_UPSTREAM_H2_BREACHES: "upstream_http2_breaches",
        G_STREAM_SENT: "stream_sent_bytes",
        G_STREAM_REFUSED: "stream_refused_" + STREAM_REFUSED[0],
        G_STREAM_REFUSED + REFUSED_BACKEND: "stream_refused_" + STREAM_REFUSED[REFUSED_BACKEND],
        G_STREAM_DATAGRAMS_DROPPED: "stream_datagrams_dropped",
        G_AUTH_CALLS: "auth_calls",
        G_AUTH_CACHED: "auth_cached",
        G_FAULTS_DELAYED: "faults_delayed",
        G_FAULTS_ABORTED: "faults_aborted",
        G_COMPRESSED: "compressed",
        G_COMPRESSED_IN: "compressed_in",
        G_COMPRESSED_OUT: "compressed_out",
        G_HEALTH_CHECKS_ILL: "health_checks_ill",
        G_ZONE_OTHER: "zone_other",
        G_STREAMS_GAVE_WAY: "streams_gave_way",
        G_MIRROR_DROPS: "mirror_drops_" + MIRROR_DROPS[0],
        G_MIRROR_DROPS + MIRROR_REQUEST: "mirror_drops_" + MIRROR_DROPS[MIRROR_REQUEST],
        G_ERROR_CALLS: "error_calls",
        G_ERROR_CALLS_FAILED: "error_calls_failed",
        G_STREAM_REFUSED_POLICY: "stream_refused_policy",
    }
    rows = {C_ABORTED: "requests_aborted", C_RETRIES: "retries", C_BUCKETS: "duration_bucket_0", C_GRPC: "grpc_OK"}
    names = tuple(ef_head_error_name(i).decode() for i in range(1, EF_E_COUNT))
    if (
        any(GLOBALS[i] != name for i, name in expected.items()) or any(ROW[i] != name for i, name in rows.items())
        or LIMIT[L_STORE_US - len(ROW)] != "store_us" or POLICY[P_CACHED - len(ROW) - len(LIMIT)] != "cached"
        or BACKEND[B_TLS_FAILED - len(ROW) - len(LIMIT) - len(POLICY)] != "tls_failed"
    ):
        raise ImportError("edgefast/core/cells.pxi does not fit cells.py")
    breaches = tuple(ef_h2_breach_name(i).decode() for i in range(1, EF_H2_B_COUNT))
    if breaches != HTTP2_BREACHES or GLOBALS[G_H2_BREACH] != "http2_breach_" + HTTP2_BREACHES[0]:
        raise ImportError(f"edgefast/core/cells.py HTTP2_BREACHES does not fit csrc/h2_guard.h: {breaches}")
    if len(HANDSHAKE_FAILURES) != EF_TLS_F_COUNT:
        raise ImportError("edgefast/core/cells.py HANDSHAKE_FAILURES does not fit csrc/tls/tls.h")
    if len(BACKEND_TLS_FAILURES) != EF_TLS_B_COUNT:
        raise ImportError("edgefast/core/cells.py BACKEND_TLS_FAILURES does not fit csrc/tls/tls.h")
    if names != HEAD_ERRORS:
        raise ImportError(f"edgefast/core/cells.py HEAD_ERRORS does not fit csrc/head.h: {names}")


_check_cells()
