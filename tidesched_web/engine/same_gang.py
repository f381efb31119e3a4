"""Which PodGroup goes on from an earlier one, by the scheduler's own rule."""

from scheduler_core.model.same_gang import goes_on, lasting_name

__all__ = ["goes_on", "lasting_name"]
