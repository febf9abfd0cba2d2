"""Exchange: one request in flight: match, filters, body, attempts, mirrors, and its single end.

In: a scanned head and body bytes. Out: a request at a backend, an answer, counters and a line of
the log.
"""
