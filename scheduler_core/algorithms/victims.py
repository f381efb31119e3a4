"""Something that can be taken from those who run, as a record of the session speaks of it. The search for the best of
them works on tables, see :mod:`scheduler_core.algorithms.victims_search`."""

import msgspec


class Unit(msgspec.Struct, frozen=True, gc=False):
    """Something that can be taken: a whole gang, or one member of a gang's surplus.

    Attributes:
        name: of the gang, or of the gang and the pod; unique. gang: of the gang.
        level: queue priority, gang priority. work: work lost.
        size: milli-cards (milli-cores without cards) freed in all.
        members: ids of the tasks that leave, for the caller.
        spare: 0 for a whole gang, else how many single members of the gang may go."""

    name: str
    gang: str
    level: tuple[int, int]
    work: int
    size: int
    members: tuple[int, ...]
    spare: int = 0
