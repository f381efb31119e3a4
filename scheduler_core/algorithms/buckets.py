"""Buckets of a gang's tasks: those that want to be on one node together. Source: volcano-semantics 4.12
(task-topology). Where Volcano walks a hash map, the order here is that of the names."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

# What a role's wishes are worth when tasks are put into buckets: the dearest to break first.
KEEPS_APART, WITH_OTHERS, TOGETHER, AWAY_FROM_OTHERS = 4, 3, 2, 1


class Wishes(msgspec.Struct, frozen=True):
    """Which roles want to be together or apart. ``near``, ``apart``: roles by role, a role itself among them when its
    own tasks are meant. ``rank``: worth of each role's dearest wish. ``order``: place of each role in the order given,
    higher goes first."""

    near: dict[str, dict[str, None]]
    apart: dict[str, dict[str, None]]
    rank: dict[str, int]
    order: dict[str, int]


def wishes(near: Iterable[Sequence[str]], apart: Iterable[Sequence[str]], order: Sequence[str]) -> Wishes:
    """Sets of roles to what each role wants; a set of one role speaks of that role's own tasks."""
    rank: dict[str, int] = {}
    pairs: list[dict[str, dict[str, None]]] = []
    for sets, alone, others in ((near, TOGETHER, WITH_OTHERS), (apart, KEEPS_APART, AWAY_FROM_OTHERS)):
        found: dict[str, dict[str, None]] = {}
        for roles in sets:
            for role in roles:
                rank[role] = max(rank.get(role, 0), alone if len(roles) == 1 else others)
                mates = [role] if len(roles) == 1 else [other for other in roles if other != role]
                found.setdefault(role, {}).update(dict.fromkeys(mates))
        pairs.append(found)
    return Wishes(pairs[0], pairs[1], rank, {role: len(order) - i for i, role in enumerate(order)})


class Member(msgspec.Struct, frozen=True):
    """One task: its role, where it is (-1 = nowhere yet), its weight for balance, its name for ties."""

    task: int
    role: str
    node: int
    size: int
    name: str


class Bucket(msgspec.Struct):
    """Tasks in the order in which they came, how many of each role, and the weight of those without a node."""

    members: list[Member]
    roles: dict[str, int]
    size: int = 0

    def add(self, member: Member) -> None:
        self.members.append(member)
        self.roles[member.role] = self.roles.get(member.role, 0) + 1
        if member.node < 0:
            self.size += member.size


def attraction(wanted: Wishes, role: str, roles: Mapping[str, int], *, only_apart: bool = False) -> int:
    """Tasks among ``roles`` that the role wants to be near, less those it wants to be away from."""
    near, apart = wanted.near.get(role, {}), wanted.apart.get(role, {})
    total = 0
    for other, count in roles.items():
        if not only_apart and other in near:
            total += count
        if other in apart:
            total -= count
    return total


def fill(wanted: Wishes, members: Iterable[Member]) -> list[Bucket]:
    """Buckets of the tasks whose role wants anything. Tasks that have a node make one bucket a node. Then the others by
    order and rank of their roles: each goes where it is attracted most, of equal ones to the lightest; where it is only
    repelled it opens a new bucket."""
    buckets: list[Bucket] = []
    on_node: dict[int, Bucket] = {}
    for member in sorted(members, key=lambda one: _turn(wanted, one)):
        if member.role not in wanted.rank:
            continue
        chosen = on_node.get(member.node) if member.node >= 0 else _best(wanted, member, buckets)
        if chosen is None:
            chosen = Bucket([], {})
            buckets.append(chosen)
            if member.node >= 0:
                on_node[member.node] = chosen
        chosen.add(member)
    return buckets


def _turn(wanted: Wishes, member: Member) -> tuple[bool, int, int, int, str]:
    return (
        member.node < 0, member.node, -wanted.order.get(member.role, 0), -wanted.rank.get(member.role, 0), member.name,
    )  # fmt: skip


def _best(wanted: Wishes, member: Member, buckets: list[Bucket]) -> Bucket | None:
    best: Bucket | None = None
    most = 0
    for bucket in buckets:
        pull = attraction(wanted, member.role, bucket.roles)
        if pull < 0:
            continue
        if best is None or pull > most or (pull == most and bucket.size < best.size):
            best, most = bucket, pull
    return best
