"""Console: a read-only web page about one process: what is served, live numbers, problems, explanations, changes.

In: a `Source`, which a proxy or a controller fills. Out: routes for an HttpServer: the page's files and bounded JSON.
Must never: change anything, ask for anything from elsewhere, or hold up the loop: work is done in threads.
"""

from edgefast.console.console import Console
from edgefast.console.numbers import Counters, make_row
from edgefast.console.past import Past, Room
from edgefast.console.source import Member, Source, Table

__all__ = ["Console", "Counters", "Member", "Past", "Room", "Source", "Table", "make_row"]
