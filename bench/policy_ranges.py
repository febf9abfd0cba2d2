"""The address ranges of the row about addresses: the same for every proxy.

In: nothing. Out: ranges of which the client's is the last. Must never hold an address that a test machine has, but for that one.
"""

CLIENT = "127.0.0.1"
COUNT = 100


def list_ranges() -> list[str]:
    """Ranges that do not touch, as text."""
    return [f"10.{number}.{number}.0/24" for number in range(COUNT - 1)] + [f"{CLIENT}/32"]
