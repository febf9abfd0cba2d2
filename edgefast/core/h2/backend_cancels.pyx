# Backend cancels: cancelled requests on a backend's connection. Too many resets look like an attack and would cost all users of the connection.
#
# In: requests that no client waits for any more.
# Out: their RST_STREAM, at once while the connection's budget lasts (EF_H2_CANCELS). Then another connection takes new requests. With too
# many such connections, the resets wait for the budget and keep their streams.
# Must never take more than a share: of a cluster's connections (H2_RETIRING), of a connection's streams (H2_PACED).

cdef bint h2_retire(H2Client session) except -1:
    """Another connection takes the requests to come. False: there may be no other, or as many as may be are on their way out already: each
    is one of the cluster's for as long as the last of its requests likes."""
    cdef Cluster cluster = session.cluster
    if (
        session.draining or session.used_up or not may_replace(cluster, session.endpoint)
        or cluster.retiring >= max(min(cluster.max_connections, cluster.tightest or cluster.max_connections) // H2_RETIRING, <uint32_t>1)
    ):
        return False
    session.retired = True
    cluster.retiring += 1
    session.engine.count(G_UPSTREAM_H2_RETIRED)
    session.drain()
    return True


cdef int h2_cancel(H2Call call, uint32_t code) except -1:
    """RST_STREAM, now or when the budget has room. What the backend has not heard of yet costs nothing; nor is anything kept for a
    connection that takes no more requests."""
    cdef H2Client session = call.session
    cdef int64_t now = session.engine.wheel.now
    if not call.unprocessed and not session.draining:
        if not session.paced and ef_h2_guard_reset(&session.guard, now) == EF_H2_CALM:
            call.counted = True
        elif not h2_retire(session) and <uint32_t>len(session.paced) < max(session.room // H2_PACED, <uint32_t>1):
            session.paced[call.id] = (call, code)
            if not session.pace_at:
                session.pace_at = now + H2_PACE_MS
            return session.mark()
    nghttp2_submit_rst_stream(session.frames, NGHTTP2_FLAG_NONE, call.id, code)
    return session.mark()


cdef int h2_look_at_paced(H2Client session, int64_t now) except -1:
    """Those whose time has come; all of them, where it takes no more requests. One that its backend has ended meanwhile needs none."""
    cdef H2Call call
    session.pace_at = 0
    while session.paced and (session.draining or ef_h2_guard_reset(&session.guard, now) == EF_H2_CALM):
        call, code = session.paced.pop(next(iter(session.paced)))
        call.counted = not session.draining
        nghttp2_submit_rst_stream(session.frames, NGHTTP2_FLAG_NONE, call.id, code)
    if session.paced:
        session.pace_at = now + H2_PACE_MS
    return 0
