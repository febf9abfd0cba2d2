"""`PYTHONPATH=tests python -m wire.soak [--seconds 1200] [--kill 60]`: the long soak, with what it saw every half a minute."""

from __future__ import annotations

import argparse
import sys

from wire.soak.soak import KILL, run


def say(text: str) -> None:
    """To standard output, at once."""
    sys.stdout.write(f"{text}\n\n")
    sys.stdout.flush()


def main() -> int:
    """Exit 0 when nothing is wrong."""
    parser = argparse.ArgumentParser(prog="python -m wire.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1200.0, help="how long (default 1200)")
    parser.add_argument("--kill", type=float, default=KILL, help="between two kills (default 60)")
    options = parser.parse_args()
    report = run(options.seconds, options.kill, say)
    say(report.text())
    return 1 if report.judge() else 0


if __name__ == "__main__":
    sys.exit(main())
