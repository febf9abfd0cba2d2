"""The same policies in Envoy, as a static configuration: the same requests get the same answers, but for a table of deliberate differences.

Must never be made to agree by leaving a question out: what differs stands in differences.py, with why.
"""
