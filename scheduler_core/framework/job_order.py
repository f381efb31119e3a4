"""The order of gangs in words: columns that are compared one after the other, the first first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scheduler_core.framework.forms import Form, GangShare, ReadyKey, StaticKey, dense_ranks
from scheduler_core.state.status import Floats, Ints

if TYPE_CHECKING:
    from scheduler_core.framework.session import Session

Word = Ints | Floats | ReadyKey | GangShare


class JobOrder:
    """How the gangs of a session are ordered. ``words``: a column over the gangs, which nothing in a session changes,
    or what changes: whether a gang can run, its dominant share. The last one is another for each gang."""

    def __init__(self, session: Session, forms: list[Sequence[Form]]) -> None:
        self._session, size = session, len(session.gangs)
        self.words: list[Word] = []
        static: list[Ints | Floats] = []
        for form in (form for parts in forms for form in parts):
            if isinstance(form, StaticKey):
                static.append(form.values)
            elif isinstance(form, ReadyKey | GangShare):
                if static:
                    self.words.append(dense_ranks(static, size))
                self.words.append(form)
                static = []
        last = np.empty(size, dtype=np.int64)
        columns = session.columns
        last[np.lexsort((columns.name_rank, columns.since, *reversed(static)))] = np.arange(size)
        self.words.append(last)

    def place(self, kind: type[ReadyKey | GangShare]) -> int:
        """Which word is of a kind, -1 = none."""
        return next((at for at, word in enumerate(self.words) if isinstance(word, kind)), -1)

    def keys(self, gangs: Ints) -> list[Ints | Floats]:
        """The words of some gangs as they are now."""
        found: list[Ints | Floats] = []
        for word in self.words:
            if isinstance(word, ReadyKey):
                found.append(self._session.columns.ready(gangs).astype(np.int64))
            else:
                found.append(word.values()[gangs] if isinstance(word, GangShare) else word[gangs])
        return found
