# Compress: answers that are encoded on their way to the client.

cdef class Compression:
    cdef:
        tuple encodings         # in order of preference where the client has none
        size_t min_size         # bytes of answers that say their length
        dict lines              # encoding -> its header line

    cdef ResponseCompressor begin(self, Exchange ex, const uint8_t *base, ef_head *head)


cdef class ResponseCompressor:
    cdef:
        object encoder          # None: the answer goes on as it is
        Out out                 # what is handed over next
        bytes lines             # for its head
        bint streams            # of no length: what has come goes on at once
        bint dirty              # something came since the last flush

    cdef int put(self, Exchange ex, const uint8_t *data, size_t n) except -1
    cdef int add(self, Exchange ex, bytes data) except -1
    cdef int hand_over(self, Exchange ex, bint ended) except -1
    cdef int end(self, Exchange ex) except -1
