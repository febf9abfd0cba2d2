"""Report: the problems of one object during translation, sorted by their effect on its status.

In: field paths, reasons, results of validation rules and of the decoder. Out: Problems; start with
`report.py`.
Must never: know a kind.
"""
