"""What a pod says of other pods: affinity, anti-affinity and topology spread constraints."""

import msgspec

from scheduler_core.model.selector import LabelSelector


class PodSubject(msgspec.Struct, frozen=True, gc=False):
    """Which pods a term speaks of. ``namespaces``: those of the term, or the pod's own where the term names none and
    selects none. ``namespace_selector``: labels of further namespaces; None = no further ones. ``selector``: labels of
    the pods; None matches none."""

    namespaces: tuple[str, ...]
    namespace_selector: LabelSelector | None
    selector: LabelSelector | None


class PodTerm(msgspec.Struct, frozen=True, gc=False):
    """Pods, and the node label whose equal values make "the same place"."""

    subject: PodSubject
    topology_key: str


class PreferredPodTerm(msgspec.Struct, frozen=True, gc=False):
    """A wish; negative ``weight`` for anti-affinity."""

    weight: int
    term: PodTerm


class SpreadConstraint(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One entry of ``topologySpreadConstraints``.

    Attributes:
        hard: ``DoNotSchedule``; else ``ScheduleAnyway``, which only counts in scores.
        min_domains: with fewer places than this the least loaded one counts as empty; 1 where the pod says nothing.
        honor_affinity: nodes that the pod's selector or affinity rules out are no places (``nodeAffinityPolicy``).
        honor_taints: nor are nodes whose taints it does not tolerate (``nodeTaintsPolicy``)."""

    subject: PodSubject
    topology_key: str
    max_skew: int
    hard: bool
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


class Relations(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """All that one pod says of others. ``affinity``, ``anti_affinity``: required terms; each of them must hold.
    ``preferred``: wishes of both kinds."""

    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    preferred: tuple[PreferredPodTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
