"""What the turns of claimants keep between two calls, and what they report."""

from __future__ import annotations

from typing import NamedTuple

from scheduler_core.state.status import Bools, Index, Ints

# What the loop comes back with.
DONE, BY_HAND, GROW, NEW_KIND, VET, SEEK, TAKE_BACK, HOLD_BACK = range(8)
# The stage of a gang's attempt.
IDLE, BEGIN, PLACE, CHOOSE, TAKE, END = range(6)
# Entries of ``Claims.control``: the gang, the stage of its attempt; tasks that have a place, how many of them on free
# room (-1 = that is being found out), how many shall have one, how many the quota allows on taken room, for how many
# victims are searched; the level that is asked, chosen units; how much of the log the single cards have seen; a count.
WHO, STAGE, PLACED, FREE, TARGET, LIMIT, WANTED, SLOT, CHOSEN, FRESH, STAMP = range(11)
CONTROLS = 11
# Columns of ``Story.claim``: the gang, kept or not, tasks placed on free room and in all; where its units and the gangs
# that were passed over begin and end; its kind, -1 = no search was made.
C_GANG, C_KEPT, C_FREE, C_PLACED, C_UNIT, C_UNITS, C_PASSED, C_PASSES, C_KIND = range(9)
# Columns of ``Story.unit``: the unit, its gang, level and work lost as it left, whether it is a single member, where
# its tasks begin and end.
U_UNIT, U_GANG, U_LEVEL, U_WORK, U_SPARE, U_TASK, U_TASKS = range(7)
# Entries of ``Story.size``.
S_CLAIM, S_UNIT, S_LEFT, S_PASSED = range(4)
NOT_YET, NEVER_HERE = -1, -2
MOST_PASSED_OVER = 10


class Leavers(NamedTuple):
    """Those in place: ``cls`` int32 (slots,), class as the session numbers it; ``charge`` int64 (3, classes);
    ``share`` int64 (classes,); ``charged`` bool (statuses,); ``valid`` int64 (G,), the gang table's; ``barred`` bool
    (G,), ``level`` int64 (G,), ``lenient`` bool (G,), ``whole`` int64 (G,): of the search for victims."""

    cls: Index
    charge: Ints
    share: Ints
    charged: Bools
    valid: Ints
    barred: Bools
    level: Ints
    lenient: Bools
    whole: Ints


class Claims(NamedTuple):
    """Kinds of claimants, and what each could gain where (own arrays).

    ``control`` int64; ``kind`` int32 (G,), -1 = by hand. By kind: ``first`` int64, its first level, ``NOT_YET`` or
    ``NEVER_HERE``; ``levels`` int64, how many. By level: ``rank`` int64; ``room`` int64 (levels, N, 1), ``sums`` int64
    (levels, 1), ``keys`` and ``current``: the heap; ``place`` int64, how much of the log it has seen, -1 = nothing.
    ``chosen`` int64 (units,); ``vetted`` bool (units,), no member of it is of the system; ``limits``, ``bounds`` int64
    (1,), ``changed``, ``mark`` int64 (N,): scratch.
    """

    control: Ints
    kind: Index
    first: Ints
    levels: Ints
    rank: Ints
    room: Ints
    sums: Ints
    keys: Ints
    current: Ints
    place: Ints
    chosen: Ints
    vetted: Bools
    limits: Ints
    bounds: Ints
    changed: Ints
    mark: Ints


class Story(NamedTuple):
    """What has happened.

    ``size`` int64 (4,), rows in use of ``claim`` int64 (any, 9), ``unit`` int64 (any, 7), of the four after it, and of
    ``passed`` int32 (any,), gangs with why they were passed over, see ``note_passed_over``. All (any,): ``left`` int32,
    tasks; ``lost`` int64, milli-cards x milliseconds;
    ``was`` int32, status before; ``taken`` bool, one of its cards is taken over. ``cost`` int64 (any, 2): of those that
    were passed over the work that they would have lost, and what they would have freed; ``room`` int64 (any, NOTE):
    what there would have been if they alone had left, see ``victims_alone``. ``alone`` bool (units,), ``fits`` int64
    (1,): scratch.
    """

    size: Ints
    claim: Ints
    unit: Ints
    left: Index
    lost: Ints
    was: Index
    taken: Bools
    passed: Index
    cost: Ints
    room: Ints
    alone: Bools
    fits: Ints
