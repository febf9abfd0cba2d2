"""Decode: the strict decoder: text of files and objects of an API server into Structs, every mistake with its line.

In: bytes, or plain values. Out: `Loaded` objects and Problems; start with `decode.py`, then
`document.py` and `walk.py`.
Must never: stop at the first mistake, or read a file.
"""
