"""What is wrong with one object while it is translated, sorted by what that means to its status.

In: field paths, reasons, what rules and the decoder of the resources found. Out: Problems; begin with `report.py`.
Must never: know a kind.
"""
