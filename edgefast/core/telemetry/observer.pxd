# Telemetry: the access log and the spans of one worker.

cdef class Telemetry(Observer):
    cdef:
        Engine engine
        LogBatch log
        SpanBatch spans


cdef inline LogBatch log_of(Engine engine):
    return (<Telemetry>engine.observer).log
