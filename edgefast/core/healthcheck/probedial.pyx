# Probe dial: a TCP check: connects, sends a payload, expects a payload (BackendTrafficPolicy healthCheck.active.tcp).
#
# In: a Probe, an endpoint. Out: whether it connected, through TLS where its cluster has that, and received the expected bytes. The
# connection ends as soon as that is known. Must never outlive its probe's deadline.

cdef class ProbeDial(Dial):
    cdef int ask(self, Probe probe) except -1:
        cdef Endpoint target = probe.target
        cdef ProbeSession session = ProbeSession.__new__(ProbeSession)
        self.probe = session.probe = probe
        self.cluster = target.cluster
        session.came = bytearray()
        probe.session = session
        return self.begin(
            probe.engine.reactor, target.host.encode(), target.port or -1, session, probe.watch.check.spec.timeout
        )

    cdef Wire wire(self):
        cdef Cluster cluster = self.cluster
        cdef object context = cluster.stream_tls()
        cdef Probe probe = self.probe
        if context is None or probe is None:
            return None
        self.speaks = cluster.engine.handshakes.make_client_wire(context, cluster.sni.encode(), probe.target.host, probe.target.port)
        return self.speaks

    cdef int call_off(self) except -1:
        """Nobody waits for it any more."""
        self.probe = None
        return self.end(END_ABORTED, 0) if self.fd >= 0 else 0

    cdef int on_opened(self, Connection connection) except -1:
        cdef Probe probe = self.probe
        self.probe = None
        if probe is not None and probe.dial is self:
            probe.dial = None
        return 0

    cdef int on_failed(self, End why, int error) except -1:
        cdef Probe probe = self.probe
        self.probe = None
        if probe is not None and probe.dial is self:
            probe.dial = None
            probe.session = None
        else:
            probe = None
        if self.speaks is not None:
            self.speaks.forget_session()
        if probe is None or not probe.asking:
            return 0
        return probe.ask_again() if is_own_fault(error) else probe.fail("no connection")


cdef class ProbeSession(Session):
    cdef int on_open(self) except -1:
        cdef Probe probe = self.probe
        cdef bytes says
        if probe is None:
            return self.connection.shut(True)
        says = probe.watch.check.spec.sends
        if says:
            self.connection.send(PyBytes_AS_STRING(says), PyBytes_GET_SIZE(says))
        return 0 if probe.watch.check.spec.expects else self.finish(True)

    cdef ssize_t received(self, const uint8_t *data, size_t n) except -1:
        cdef Probe probe = self.probe
        cdef Py_ssize_t before
        if probe is None:
            return n
        before = len(self.came)
        self.came += data[:min(n, PROBE_ANSWER - <size_t>before)]
        expects = probe.watch.check.spec.expects
        if self.came.find(expects, max(0, before - len(expects))) >= 0:
            self.finish(True)
        elif len(self.came) >= PROBE_ANSWER:
            self.finish(False)
        return n

    cdef int finish(self, bint good) except -1:
        """It is known."""
        cdef Probe probe = self.probe
        self.leave()
        if probe is None or not probe.asking:
            return 0
        return probe.conclude(True, False) if good else probe.fail("its answer does not match the expected one")

    cdef int on_lost(self) except -1:
        return self.finish(False)

    cdef int leave(self) except -1:
        cdef Probe probe = self.probe
        self.probe = None
        if probe is not None and probe.session is self:
            probe.session = None
        if self.connection is not None and not self.connection.closed:
            self.connection.shut(False)
        return 0
