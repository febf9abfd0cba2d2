"""Translation of Gateway API objects into what the data plane serves and what statuses say.

In: a Snapshot and Settings. Out: `Translation` (IR, infrastructure, statuses, problems).
Begin with `pipeline.py`; then the floors `gateway`, `route`, `backend` and `virtualhost`. `deps` explains what makes it
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
