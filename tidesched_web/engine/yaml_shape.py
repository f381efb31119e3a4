from scheduler_core.serde.nesting import check_shape
from scheduler_core.serde.text import UNREADABLE

__all__ = ["UNREADABLE", "check_shape"]
