"""Telemetry: reports of an ended request: lines of the access log, spans, response flags.

Must never: block, or change what happens to the request.
"""
