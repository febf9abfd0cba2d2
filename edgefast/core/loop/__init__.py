"""What every turn of a worker's loop gives to all connections: deadlines on one wheel, the time as text.

Must never: know who waits for a deadline, or why.
"""
