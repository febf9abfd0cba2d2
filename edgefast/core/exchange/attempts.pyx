# Attempts: what happens to one request at its backends: connections, response events, deadlines.
#
# In: a connection or why it failed, response events from an upstream codec, deadlines: Exchange passes them here.
# Out: calls on the client's stream (inbound.pyx), or one of the three ends of Exchange (answer, fail, abort). Retry rules: RFC 9110 9.2.2,
# docs/reference/http1.md and retry_state.pyx. Timeouts: HTTPRouteTimeouts. Without one, the default bounds the time from the complete request
# to the response head.

# --- a connection -------------------------------------------------------------------------------------------------------

cdef int begin_attempt(Exchange ex, Outbound up) except -1:
    """Write the request to this connection."""
    cdef Body body = ex.body
    cdef iovec kept
    ex.up = up
    ex.retry.tries += 1
    ex.retry.enter(TRY_CONNECTED)
    ex.note_tried()
    up.begin(ex, ex.method, body.unsized, body.announced, ex.asked, ex.takes_trailers)
    ex.up_protocol = up.protocol
    if ex.down.peer.port.log_wants_upstream:
        ex.engine.observer.keep_upstream(ex, up)
    if ex.rule.backend_timeout:
        ex.retry.deadline = ex.engine.wheel.now + ex.rule.backend_timeout
        ex.rearm()
    if ex.timeout_at:
        write_timeout(ex)
    if body.kept.size:
        kept.iov_base = body.kept.data
        kept.iov_len = body.kept.size
        ex.write(&kept, 1, body.kept.size, body.done)
    elif body.done or ex.retry.tries > 1:
        ex.write(NULL, 0, 0, body.done)
    elif not ex.down.handing:
        ex.flush()
    ex.set_out()
    if ex.up is not None and not ex.up.write_paused:
        ex.down.resume()
    if body.borrowed and ex.up is not None:  # all of it was written
        if body.kept.size > REPLAY_LIMIT:
            body.forget()
        if not ex.up.write_paused:  # else it waits to be sent
            ex.engine.body_buffer.give_back(ex)
    return 0


cdef int fail_connect(Exchange ex, UpFailure why) except -1:
    """No connection could be made. Try another endpoint, or answer."""
    cdef RetryState retry = ex.retry
    ex.failure = why
    if why == UP_NO_ENDPOINT:
        return ex.fail(503, F_NO_ENDPOINT)
    if why == UP_OVERFLOW or why == UP_REQUESTS or why == UP_SHUT:
        return ex.fail(503, F_OVERFLOW)
    retry.tries += 1
    ex.note_tried()
    # nothing was sent: any method may go to another endpoint, each at most once
    if retry.tries < 4 and ex.has_untried(ex.backend.cluster) and retry.in_budget(ex):
        return retry.again(ex, 0, 0, F_CONNECT)
    if not retry.starved and ex.rule.has_retry and retry.tries <= <uint32_t>ex.rule.attempts and retry.in_budget(ex):
        return retry.again(ex, retry.backoff(ex, ex.rule.backoff), 0, F_CONNECT)
    if ex.grpc and grpc_repeats(ex, GRPC_UNAVAILABLE):
        return retry.again(ex, retry.backoff(ex, ex.settings.grpc_backoff), 0, F_CONNECT)
    return ex.fail(503, F_CONNECT)


cdef int resume_sending(Exchange ex) except -1:
    """The backend takes the request again: from now on its client has to send."""
    if ex.body.borrowed:
        ex.engine.body_buffer.give_back(ex)
    ex.send_deadline = 0
    ex.progress_until = ex.trusted_until = ex.engine.wheel.now + BODY_GRACE_MS
    ex.held_at = ex.engine.wheel.now
    ex.brought = 0
    return ex.down.resume()


cdef int on_backend_closed(Exchange ex, int why) except -1:
    """The connection ended before the response did."""
    cdef Outbound up = ex.up
    cdef RetryState retry = ex.retry
    ex.up = None
    if ex.override is not None:
        return end_override(ex)
    if retry.state == TRY_ANSWERED:
        if ex.tunnel:
            ex.down.refuse_more()
            return ex.finish()
        report_loss(ex)
        return ex.abort(F_PROTOCOL if why == LOST_PROTOCOL else F_RESET)
    if why == LOST_SWITCHED:
        ex.upstream_us = ex.engine.reactor.now_us() - retry.sent
        return ex.fail(502, F_PROTOCOL)
    if why == LOST_PROTOCOL:
        report_loss(ex)
        return ex.fail(502, F_PROTOCOL)
    if not up.got_bytes:
        if up.unprocessed:
            if retry.may_go_again(ex, up):
                return retry.again(ex, 0, 0, F_RESET)
        elif up.served and idempotent(ex.method) and retry.may_retry(ex, 3):
            return retry.again(ex, 0, 0, F_RESET)
        elif ex.rule.has_retry and idempotent(ex.method) and retry.may_retry(ex, ex.rule.attempts):
            report_loss(ex)
            return retry.again(ex, retry.backoff(ex, ex.rule.backoff), 0, F_RESET)
        if ex.grpc and grpc_repeats(ex, GRPC_UNAVAILABLE):
            report_loss(ex)
            return retry.again(ex, retry.backoff(ex, ex.settings.grpc_backoff), 0, F_RESET)
    report_loss(ex)
    # A route that retries knows that its backends may be away: 503, as without a connection (conformance HTTPRouteRetryConnectionError).
    return ex.fail(503 if retry.starved or (ex.rule.has_retry and not up.got_bytes) else 502, F_RESET)


# --- a response ---------------------------------------------------------------------------------------------------------

cdef int relay_head(Exchange ex, const uint8_t *base, ef_head *head) except -1:
    """As UpstreamUser.on_response_head: 1 drops the response and its connection."""
    cdef RetryState retry = ex.retry
    cdef int64_t now = ex.engine.reactor.now_us(), wait
    if retry.state == TRY_CONNECTED:  # an answer to nothing
        ex.engine.count(G_UPSTREAM_PROTOCOL_ERRORS)
        ex.fail(502, F_PROTOCOL)
        return 1
    ex.upstream_us = now - retry.sent
    report_head(ex, base, head)
    if ex.rule.has_retry and head.response_status in ex.rule.retry_codes and retry.may_retry(ex, ex.rule.attempts):
        return repeat_attempt(ex, retry.backoff(ex, ex.rule.backoff), head.response_status)
    if ex.grpc and ex.settings.grpc_codes:
        wait = grpc_repeats_after(ex, base, head)
        if wait >= 0:
            return repeat_attempt(ex, wait, head.response_status)
    if retry.starved:  # "additional retries MUST return a 503 response" (XBackendTrafficPolicy retryConstraint)
        ex.fail(503, F_OVERFLOW)
        return 1
    if ex.rule.traffic is not None and override_backend(ex, head):
        if head.body == EF_BODY_NONE or (head.body == EF_BODY_LENGTH and head.content_length <= REPLAY_LIMIT):
            return 0  # its connection is worth so many bytes
        end_override(ex)
        return 1
    if ex.rule.response_rewrite is not None and not rewrite_response(ex, base, head):
        ex.engine.count(G_UPSTREAM_PROTOCOL_ERRORS)
        ex.fail(502, F_PROTOCOL)
        return 1
    ex.status = head.response_status
    retry.enter(TRY_ANSWERED)
    if ex.grpc:
        note_grpc_head(ex, base, head)
    if ex.request_timeout <= 0 and ex.route_deadline:
        ex.route_deadline = 0
    ex.idle_deadline = ex.engine.wheel.now + ex.idle_timeout
    if ex.up.tunnel:
        ex.tunnel = True
        ex.route_deadline = retry.deadline = 0
        ex.engine.count(G_TUNNELS_ACTIVE)
    else:
        if ex.lasts:
            leave_streams(ex)
        if may_last(head):
            ex.long_at = ex.engine.wheel.now + STREAM_AFTER_MS
    ex.rearm()
    if ex.web is not None:
        ex.web.begin_answer(base, head)
    elif ex.rule.traffic is not None and ex.rule.traffic.compression is not None:
        ex.compressor = ex.rule.traffic.compression.begin(ex, base, head)
    if ex.rule.traffic is not None and ex.rule.traffic.bandwidth is not None and head.body != EF_BODY_NONE and not ex.tunnel:
        ex.bandwidth = limit_response(ex, ex.rule.traffic.bandwidth)
    if ex.session is not None:
        ex.session.policy.write_session(ex)
    ex.down.response_head(base, head)
    return 0


cdef int repeat_attempt(Exchange ex, int64_t wait, int status) except -1:
    """Not this answer: 1, as on_response_head has it."""
    ex.up.drop(CUT_CANCEL)
    ex.up = None
    ex.retry.again(ex, wait, status, 0)
    return 1


cdef int relay_body(Exchange ex, const uint8_t *data, size_t n) except -1:
    ex.idle_deadline = ex.engine.wheel.now + ex.idle_timeout
    if ex.compressor is not None and ex.compressor.encoder is not None:
        return ex.compressor.put(ex, data, n)
    ex.bytes_out += n
    return ex.down.response_body(data, n) if ex.web is None else ex.web.answer_body(ex.down, data, n)


cdef int relay_flush(Exchange ex) except -1:
    if ex.override is not None:
        return 0
    hand_over(ex, False)
    ex.down.response_flush()
    handed_over(ex)
    if ex.bandwidth is not None and ex.bandwidth.waits():
        ex.bandwidth.wait()
    if ex.down.write_paused and ex.up is not None:
        ex.up.pause()
        if ex.slow is None and not ex.tunnel and not ex.up.shares and ex.settings.answer_rate:
            return ex.backend.cluster.slow_answers().hold(ex)
    return 0


cdef int relay_trailers(Exchange ex, const uint8_t *lines, size_t n) except -1:
    cdef Out *kept = &ex.engine.trailers
    if ex.override is not None:
        return 0
    if ex.grpc:
        note_grpc_trailers(ex, lines, n)
    keep_trailers(kept, lines, n, ex.backend.response_ops, True)
    if ex.web is not None and ex.web.translates:
        return ex.web.answer_trailers(kept.data, kept.size)
    if ex.compressor is not None:  # they come behind the last of it
        hand_over(ex, True)
        ex.compressor.end(ex)
    return ex.down.response_trailers(kept.data, kept.size) if kept.size else 0


cdef int relay_end(Exchange ex) except -1:
    ex.up = None
    report_end(ex)
    if ex.override is not None:
        return end_override(ex)
    return end_answer(ex)


cdef int end_answer(Exchange ex) except -1:
    try:
        hand_over(ex, True)
        ex.down.response_end()
        return ex.finish()
    except BaseException:
        ex.down.abort(CUT_INTERNAL)  # nobody else has this exchange in hand: its client would wait for ever
        raise


# --- deadlines ----------------------------------------------------------------------------------------------------------

cdef int process_deadlines(Exchange ex, int64_t now) except -1:
    cdef AuthFlow auth
    if ex.finished:
        return 0
    if ex.ask_at and ex.ask_at <= now:
        ex.ask_at = 0
        ex.rearm()
        auth = ex.auth
        if auth is not None:
            return auth.advance(AUTH_TIMER)
        return ex.body.gather(ex) if ex.body.state == BODY_GATHERING else ex.retry.ask(ex)
    if ex.long_at and ex.long_at <= now:
        ex.long_at = 0
        begin_lasting(ex)
        if ex.finished:
            return 0
    if ex.client_deadline and ex.client_deadline <= now:
        return time_out_client(ex)
    if ex.route_deadline and ex.route_deadline <= now:
        return ex.on_timeout(F_TIMEOUT)
    if ex.retry.deadline and ex.retry.deadline <= now:
        return time_out_attempt(ex)
    if ex.send_deadline and ex.send_deadline <= now and not still_takes(ex, now):
        return ex.on_timeout(F_TIMEOUT)
    if ex.idle_deadline and ex.idle_deadline <= now:
        return ex.on_timeout(F_IDLE)
    return ex.rearm()


cdef int time_out(Exchange ex, uint32_t flag) except -1:
    """End the request: 408 if the client is late, else 504."""
    if ex.rule is not None and ex.rule.row != NULL:
        ef_stat_add(&ex.rule.row.cells[C_TIMEOUTS], 1)
    if ex.retry.state == TRY_ANSWERED:
        return ex.abort(flag)
    if not ex.body.done and (ex.up is not None or ex.body.state == BODY_GATHERING) and not ex.down.paused():
        ex.down.refuse_more()
        return ex.fail(408, flag)
    if ex.endpoint is not None and ex.up is not None:
        report_loss(ex)
    return ex.fail(503 if ex.retry.starved else 504, flag)


cdef int time_out_attempt(Exchange ex) except -1:
    """The attempt has used its time (HTTPRouteTimeouts.backendRequest): retry, or answer."""
    cdef RetryState retry = ex.retry
    retry.deadline = 0
    if (
        retry.state != TRY_ANSWERED and ex.rule.has_retry and idempotent(ex.method)
        and (504 in ex.rule.retry_codes or not ex.rule.retry_codes) and retry.may_retry(ex, ex.rule.attempts)
    ):
        report_loss(ex)
        ex.drop_upstream(CUT_TIMEOUT)
        ex.rearm()
        return retry.again(ex, retry.backoff(ex, ex.rule.backoff), 0, F_TIMEOUT)
    return ex.on_timeout(F_TIMEOUT)


cdef int time_out_client(Exchange ex) except -1:
    """As long as its client would wait. No fault of the backend's: whoever asks for a moment only would have it ejected."""
    if ex.rule is not None and ex.rule.row != NULL:
        ef_stat_add(&ex.rule.row.cells[C_TIMEOUTS], 1)
    return ex.abort(F_TIMEOUT) if ex.retry.state == TRY_ANSWERED else ex.fail(504, F_TIMEOUT)


cdef bint still_takes(Exchange ex, int64_t now) except -1:
    """A backend that has something to take has taken a part of it since it was looked at last."""
    cdef size_t left = ex.up.unsent() if ex.up is not None else 0
    if left >= ex.send_left and ex.up is not None:
        return False
    ex.send_left = left
    ex.send_deadline = now + ex.send_timeout if left else 0
    return True
