# Sweep: ejects endpoints by failure percentage (BackendTrafficPolicy healthCheck.passive.failurePercentageThreshold).
#
# In: answers of rules with such a policy; each worker counts them in its share of the endpoint's record.
# Out: at the end of an interval, endpoints at or above the percentage over all workers are ejected, the worst first. An endpoint needs at
# least FAILURE_ANSWERS of them, and FAILURE_ENDPOINTS endpoints must have as many. Intervals end at the same times in all workers
# (CLOCK_MONOTONIC): each checks for itself, and the second finds that it is done. It exists while answers come, and rules without such a
# policy count nothing. Source: Envoy's outlier detection.

cdef int note_answer(Outlier how, Endpoint endpoint, uint32_t what, bint bad) except -1:
    """One more: EF_SHARE_ANSWERS, or EF_SHARE_LOST where there was none."""
    cdef Cluster cluster = endpoint.cluster
    if cluster.sweeps is None or how not in cluster.sweeps:
        begin_sweep(how, cluster)
    endpoint.record.own[what] += 1
    if bad:
        endpoint.record.own[EF_SHARE_BAD] += 1
    return 0


cdef int begin_sweep(Outlier how, Cluster cluster) except -1:
    cdef Sweep sweep = Sweep.__new__(Sweep)
    sweep.cluster, sweep.how = cluster, how
    if cluster.sweeps is None:
        cluster.sweeps = {}
    cluster.sweeps[how] = sweep
    sweep.before = counts_of(how, cluster)
    return arm_sweep(sweep)


cdef int arm_sweep(Sweep sweep) except -1:
    """Until the end of the interval that it is."""
    cdef int64_t now = sweep.cluster.engine.wheel.now, interval = sweep.how.interval
    return sweep.cluster.engine.wheel.arm(sweep, now - now % interval + interval)


cdef dict counts_of(Outlier how, Cluster cluster):
    """Answers and bad ones of each endpoint, of all workers, since ever."""
    cdef Endpoint endpoint
    cdef HealthRecord record
    cdef uint64_t answers, bad, lost
    cdef dict found = {}
    for endpoint in cluster.endpoints:
        record = endpoint.record
        answers = ef_share_sum(record.at, record.seats, EF_SHARE_ANSWERS)
        bad = ef_share_sum(record.at, record.seats, EF_SHARE_BAD)
        lost = 0 if how.apart else ef_share_sum(record.at, record.seats, EF_SHARE_LOST)
        found[endpoint] = (<uint32_t>(answers + lost), <uint32_t>(bad + lost))
    return found


cdef inline uint32_t grown(uint32_t before, uint32_t now) noexcept:
    """Of counts that go round; one whose worker is gone has lost some, and tells nothing until the next interval."""
    cdef uint32_t more = now - before
    return more if more < 0x80000000 else 0


cdef class Sweep(Timer):
    cdef int on_deadline(self, int64_t now) except -1:
        cdef Cluster cluster = self.cluster
        cdef Outlier how = self.how
        cdef dict counts = counts_of(how, cluster)
        cdef uint32_t all_of, bad
        cdef bint any_came = False
        cdef list known = []
        cdef Endpoint endpoint
        for endpoint, (answers, failed) in counts.items():
            answers_before, failed_before = self.before.get(endpoint, (answers, failed))
            all_of, bad = grown(answers_before, answers), grown(failed_before, failed)
            any_came = any_came or all_of != 0
            if all_of >= FAILURE_ANSWERS:
                known.append((<double>bad / <double>all_of, -endpoint.index, endpoint, <uint64_t>bad * 100 >= <uint64_t>all_of * how.threshold))
        if len(known) >= FAILURE_ENDPOINTS:
            for _, _, endpoint, fails in sorted(known, reverse=True):
                if fails:
                    how.eject(endpoint)
        self.before = counts
        if any_came:
            return arm_sweep(self)
        del cluster.sweeps[how]  # whoever has the next answer begins anew
        if not cluster.sweeps:
            cluster.sweeps = None
        return 0
