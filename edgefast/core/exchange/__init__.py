"""One request in flight: match, filters, body, tries, copies for mirrors, and its one end.

In: a scanned head and body bytes. Out: a request at a backend, an answer, numbers and a line of the log.
"""
