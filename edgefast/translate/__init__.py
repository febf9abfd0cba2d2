"""Translation: Gateway API objects -> the IR of the data plane and the statuses of the objects.

In: a Snapshot and Settings. Out: `Translation` (IR, infrastructure, statuses, problems). Start with
`pipeline.py`; then `gateway`, `route`, `backend` and `virtual_host`. `deps` makes translation
incremental.
Must never: do I/O, read a clock, or change its input.
"""

from edgefast.translate.conditions.status import Statuses
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import FleetState, Settings, settings_from
from edgefast.translate.translation import Translation, Work

__all__ = [
    "FleetState",
    "Settings",
    "Statuses",
    "Translation",
    "Work",
    "settings_from",
    "translate",
]
