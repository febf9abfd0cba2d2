"""The stream that hands every fleet its tables: who may read, what differs, who has taken in what.

It must never know what is in a table, nor send a fleet's table to anybody whose credential does not name that fleet.
"""
