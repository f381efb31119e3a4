"""Where tasks of one class fit and which node is best, computed once per class and repaired for changed nodes."""

from collections.abc import Sequence

import msgspec
import numpy as np

from scheduler_core.algorithms.fit import card_fit, resource_fit
from scheduler_core.algorithms.node_search import NodeSearch
from scheduler_core.framework.combine import Hooks
from scheduler_core.framework.plugin import Plugin
from scheduler_core.model.resources import MILLI
from scheduler_core.state.card_table import choose_cards
from scheduler_core.state.cluster import Cluster
from scheduler_core.state.status import Bools, Floats
from scheduler_core.state.task_class import TaskClass

# With more changed nodes than this share, everything is computed anew instead of repaired.
_REPAIR_SHARE = 4


class Spot(msgspec.Struct, frozen=True, gc=False):
    """A place for one task; ``now`` is False when it must wait for what is leaving."""

    node: int
    card: int
    indices: tuple[int, ...]
    now: bool


class ClassView:
    """What is known of one class; arrays over nodes.

    Attributes:
        allowed: bool (N,), the predicates hold once what leaves has left. refused: refused nodes by predicate.
        allowed_now: bool (N,), they hold at once; the very same array where no predicate distinguishes the two.
        curable: bool (N,), nothing but other pods prevents it; ``allowed`` is a part of it.
        now, future: bool (options, N), fits at once / once what leaves has left, by card option (one row when the
            class asks for no card).
        score: float64 (N,)."""

    def __init__(
        self, cls: TaskClass, allowed: Bools, allowed_now: Bools, curable: Bools, refused: dict[str, int]
    ) -> None:
        self.cls, self.allowed, self.refused = cls, allowed, refused
        self.allowed_now, self.curable = allowed_now, curable
        self.place = -1
        options = max(1, len(cls.cards))
        self.now: Bools = np.zeros((options, len(allowed)), dtype=np.bool_)
        self.future: Bools = self.now.copy()
        self.score: Floats = np.zeros(len(allowed), dtype=np.float64)


class Candidates:
    def __init__(
        self, cluster: Cluster, hooks: Hooks, tiers: Sequence[Sequence[tuple[Plugin, dict[str, bool]]]] = ()
    ) -> None:
        self._cluster, self._hooks = cluster, hooks
        self._views: dict[int, ClassView] = {}
        plugins = [plugin for tier in tiers for plugin, _ in tier]
        self._voicers = [plugin for plugin in plugins if type(plugin).volatile is not Plugin.volatile]
        self._volatile: dict[int, bool] = {}
        self._scored: ClassView | None = None
        search = NodeSearch(len(cluster.nodes))
        self._search = search if hooks.compat and search.samples else None

    @property
    def samples(self) -> bool:
        """True where not every node is looked at, as upstream does it in a large cluster."""
        return self._search is not None

    def volatile(self, cls: TaskClass) -> bool:
        """True when some plugin's answers for the class depend on placements beyond the node's own rows."""
        known = self._volatile.get(cls.index)
        if known is None:
            known = self._volatile[cls.index] = any(plugin.volatile(cls) for plugin in self._voicers)
        return known

    def masks(self, cls: TaskClass) -> tuple[Bools, Bools]:
        """bool (N,) twice: the predicates hold at once, and once what leaves has left; for classes that are not
        volatile."""
        view = self._views.get(cls.index)
        if view is None:
            view = self._views[cls.index] = ClassView(cls, *self._predicates(cls))
        return view.allowed_now, view.allowed

    def view(self, cls: TaskClass) -> ClassView:
        """The class's view, up to date. O(N) the first time, then O(changed nodes)."""
        view = self._views.get(cls.index)
        log = self._cluster.nodes.log
        if view is None or (view.place != len(log) and self.volatile(cls)):
            view = self._views[cls.index] = ClassView(cls, *self._predicates(cls))
        if view.place == len(log):
            return view
        changed = sorted(set(log[view.place :])) if view.place >= 0 else None
        if changed is None or len(changed) * _REPAIR_SHARE > len(view.allowed):
            self._compute(view, None)
        else:
            self._compute(view, np.array(changed, dtype=np.intp))
        view.place = len(log)
        return view

    def best(
        self, cls: TaskClass, options: Sequence[bool], *, now: bool, future: bool = True, task: int = -1
    ) -> Spot | None:
        """The best node for one task of the class, O(N).

        Nodes where it fits at once go before nodes where it has to wait; then the highest score, then the first name.
        With ``compatibility: volcano`` a large cluster is not looked at in full.

        Args:
            options: for each card option whether the quota allows it (one entry when the class asks for no card).
            now: consider nodes where it fits at once. future: and those where it fits later.
            task: whose place it is, for what plugins say of single tasks; -1 = any task of the class."""
        view = self.view(cls)
        only, extra = self.looked_at(cls, options, task)
        stages = [(view.now, True)] if now else []
        if future:
            stages.append((view.future, False))
        for fits, at_once in stages:
            rows = [fits[i] for i, ok in enumerate(options) if ok]
            if not rows:
                return None
            mask = rows[0] if len(rows) == 1 else np.logical_or.reduce(rows)
            if only is not None:
                mask = mask & only
            if not mask.any():
                continue
            score = view.score if extra is None else view.score + extra
            node = int(np.where(mask, score, -np.inf).argmax())
            return self._spot(cls, node, options, fits, at_once)
        return None

    def feasible(self, cls: TaskClass, options: Sequence[bool], task: int) -> tuple[Bools, Floats]:
        """Nodes where a task fits now, and the score of every node; bool (N,), float64 (N,)."""
        view = self.view(cls)
        only, extra = self.of_task(task)
        mask = np.logical_or.reduce([view.now[i] for i, ok in enumerate(options) if ok])
        if only is not None:
            mask = mask & only
        return mask, view.score.copy() if extra is None else view.score + extra

    def feasible_nodes(self, cls: TaskClass) -> Bools:
        """bool (N,): where the class whose score is being made fits now, or else once what leaves has left. All nodes
        where no view is being made (preemption looks at every node)."""
        view = self._scored
        if view is None or view.cls is not cls:
            return np.ones(len(self._cluster.nodes), dtype=np.bool_)
        now: Bools = np.logical_or.reduce(view.now)
        later: Bools = np.logical_or.reduce(view.future)
        return now if now.any() else later

    def allows(self, task: int, node: int) -> bool:
        """Whether every filter lets the task on the node, room aside."""
        view = self.view(self._cluster.class_of(task))
        only, _ = self.of_task(task)
        return bool(view.allowed[node] and (only is None or only[node]))

    def said_of(self, task: int) -> list[tuple[str, Bools] | tuple[str, Bools, Bools]]:
        """What plugins say of one task beyond its class: label, mask, and what will hold later where that differs."""
        answers = (call(task) for _, call in self._hooks.flat("task_predicate"))
        return [answer for answer in answers if answer is not None]

    def looked_at(self, cls: TaskClass, options: Sequence[bool], task: int) -> tuple[Bools | None, Floats | None]:
        """Nodes that are looked at for a task, and what is added to their score; None = all, nothing."""
        only, extra = self.of_task(task)
        if self._search is not None:
            view = self.view(cls)
            fitting = np.logical_or.reduce([view.now[i] | view.future[i] for i, ok in enumerate(options) if ok])
            only = self._search.looked_at(fitting if only is None else fitting & only)
        return only, extra

    def of_task(self, task: int) -> tuple[Bools | None, Floats | None]:
        """Mask and score that plugins add for one task; None where they add nothing."""
        only: Bools | None = None
        extra: Floats | None = None
        if task >= 0:
            for _, mask, *_ in self.said_of(task):
                only = mask if only is None else only & mask
            for _, call in self._hooks.flat("task_node_order"):
                score = call(task)
                if score is not None:
                    extra = score if extra is None else extra + score
        return only, extra

    def spot_on(self, cls: TaskClass, node: int, options: Sequence[bool], *, now: bool) -> Spot | None:
        view = self.view(cls)
        fits = view.now if now else view.future
        return self._spot(cls, node, options, fits, now)

    def _spot(self, cls: TaskClass, node: int, options: Sequence[bool], fits: Bools, now: bool) -> Spot | None:
        if not cls.milli:
            return Spot(node, -1, (), now) if fits[0, node] else None
        cards = self._cluster.cards
        for i, card in enumerate(cls.cards):
            if options[i] and fits[i, node]:
                free = cards.free_now(card, node) if now else cards.free_future(card, node)
                chosen = choose_cards(free, cls.whole, cls.share)
                if chosen is not None:
                    return Spot(node, card, self.wished(cls, card, node, free) or chosen, now)
        return None

    def wished(self, cls: TaskClass, card: int, node: int, free: list[int]) -> tuple[int, ...] | None:
        """The cards that a plugin asks for, if they have room."""
        need = cls.share or MILLI
        for _, call in self._hooks.flat("card_choice"):
            wish: tuple[int, ...] | None = call(cls, card, node)
            if wish is not None and all(free[i] >= need for i in wish):
                return wish
        return None

    def first_refusals(self, task: int) -> list[str]:
        """For each node the label of the first mask that refuses it, empty where none does; for explanations."""
        labels = [""] * len(self._cluster.nodes)
        cls = self._cluster.class_of(task)
        of_class = (one for _, call in self._hooks.flat("predicate") for one in call(cls))
        said = [(label, masks[-1]) for label, *masks in of_class]
        for label, mask in [*said, *((label, mask) for label, mask, *_ in self.said_of(task))]:
            for node in np.flatnonzero(~mask).tolist():
                labels[node] = labels[node] or label
        return labels

    def _predicates(self, cls: TaskClass) -> tuple[Bools, Bools, Bools, dict[str, int]]:
        """``allowed``, ``allowed_now``, ``curable`` and ``refused`` of a view. A predicate yields ``(label, mask)``, or
        ``(label, now, later)`` where other pods decide: what holds at once, and what holds once what leaves has
        left."""
        count = len(self._cluster.nodes)
        allowed: Bools = np.ones(count, dtype=np.bool_)
        now = curable = allowed
        alike = True
        refused: dict[str, int] = {}
        for tier in self._hooks.tiers("predicate"):
            for _, call in tier:
                for label, mask, *later in call(cls):
                    at_last = later[0] if later else mask
                    lost = int(np.count_nonzero(allowed & ~at_last))
                    if lost:
                        refused[label] = refused.get(label, 0) + lost
                        allowed = allowed & at_last
                    alike = alike and not later
                    if alike:
                        now = curable = allowed
                        continue
                    now = now & mask
                    if not later:
                        curable = curable & mask
        return allowed, now, curable, refused

    def _compute(self, view: ClassView, at: np.ndarray[tuple[int], np.dtype[np.intp]] | None) -> None:
        cls, nodes, cards = view.cls, self._cluster.nodes, self._cluster.cards
        where: slice | np.ndarray[tuple[int], np.dtype[np.intp]] = slice(None) if at is None else at
        allowed = view.allowed[where]
        at_once = allowed if view.allowed_now is view.allowed else view.allowed_now[where]
        fits_now = at_once & resource_fit(nodes.now[:, where], cls.request, cls.rows)
        fits_future = allowed & resource_fit(nodes.future[:, where], cls.request, cls.rows)
        if cls.missing or cls.oversize_share:
            fits_now = fits_future = np.zeros_like(allowed)
        if not cls.milli:
            view.now[0, where], view.future[0, where] = fits_now, fits_future
        for i, card in enumerate(cls.cards):
            view.now[i, where] = fits_now & card_fit(
                cards.whole_now[card, where], cards.best_now[card, where], cls.whole, cls.share
            )
            view.future[i, where] = fits_future & card_fit(
                cards.whole_future[card, where], cards.best_future[card, where], cls.whole, cls.share
            )
        # A score is only read where the class fits, and where that changes the node is looked at again.
        if not (view.now[:, where].any() or view.future[:, where].any()):
            return
        self._scored = view
        score: Floats = np.zeros(allowed.shape[0], dtype=np.float64)
        for _, call in self._hooks.flat("node_order"):
            score = score + call(cls, where)
        view.score[where], self._scored = score, None
