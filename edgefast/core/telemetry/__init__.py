"""What is told of a request when it has ended: lines of the access log, spans, the words for how it ended.

Must never: block, or change what happens to the request.
"""
