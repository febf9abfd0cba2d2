# HTTP/2: what the HTTP/2 connections of one worker share.

cdef class Http2(Http2Hooks):
    cdef H2MemoryBudget memory


cdef inline H2MemoryBudget memory_of(Engine engine):
    return (<Http2>engine.http2).memory
