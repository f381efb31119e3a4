"""One session: open, actions in order, close. ``run_session`` is a pure function of its arguments: no clock, no
network, no randomness of its own. A workspace only makes it faster."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec

from scheduler_core.actions import ACTIONS
from scheduler_core.actions.support.admission import count_elastic, renew_promises
from scheduler_core.actions.support.assumed_pods import apply_assumed
from scheduler_core.actions.support.pod_cycle import cluster_events
from scheduler_core.actions.support.reservations import apply_reservations, kept_places, standing
from scheduler_core.framework import explanations, profiles, remedies
from scheduler_core.framework.close import close
from scheduler_core.framework.conflicts import find_conflict
from scheduler_core.framework.disruption_budgets import DisruptionBudgets
from scheduler_core.framework.events import quota_events
from scheduler_core.framework.extender_client import ExtenderClient
from scheduler_core.framework.own_plugins import names_own_plugins
from scheduler_core.framework.plugin import Plugin
from scheduler_core.framework.queue_places import kept_owners, without_strangers
from scheduler_core.framework.reasons import Reasons
from scheduler_core.framework.registry import Registry, with_entry_points
from scheduler_core.framework.rests import lay_over, standing_rests
from scheduler_core.framework.session import Session
from scheduler_core.model.decision import Result
from scheduler_core.model.errors import BadInput
from scheduler_core.model.explanation import Explanation
from scheduler_core.model.memory import Memory
from scheduler_core.model.pod import ServiceType
from scheduler_core.model.policy import Policy
from scheduler_core.model.reason import Reason
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.plugins import PLUGINS
from scheduler_core.state import invariants
from scheduler_core.state.workspace import Workspace

_tables: Registry | None = None


def registered() -> Registry:
    """Plugins and actions by name, built in and installed by entry points (looked up once per process)."""
    global _tables  # noqa: PLW0603 - the set of installed packages is fixed for a process
    if _tables is None:
        _tables = with_entry_points(PLUGINS, ACTIONS)
    return _tables


@names_own_plugins
def run_session(
    snapshot: Snapshot,
    policy: Policy,
    *,
    now: float,
    seed: int = 0,
    memory: Memory | None = None,
    workspace: Workspace | None = None,
    timer: Callable[[], float] | None = None,
    explain: Iterable[str] | bool = False,
    check: bool = False,
    reasons: bool = True,
    explain_to: dict[str, Explanation] | None = None,
    extenders: ExtenderClient | None = None,
) -> tuple[Result, Memory]:
    """Decide what one session of the policy does to the snapshot.

    Args:
        snapshot: the cluster. policy: actions in order and plugins in tiers. now: seconds since the epoch.
        seed: for policies that draw lots; the same seed decides the same. memory: what the session before returned.
        workspace: keeps decoded rows between sessions of one cluster; changes speed, never the result.
        timer: monotonic seconds, for ``timings_ms``; None = no timings.
        explain: gangs whose reason gets a verified remedy; True = the first waiting ones.
        check: test the conservation of every table after each action.
        reasons: say why gangs wait. Without, the result has no reasons, no places in line and no quota events, and
            no condition says why: for simulations that only count what is placed.
        explain_to: gets everything that is known about the gangs named in ``explain``, by name.
        extenders: asks services outside for the plugin ``extender``; what they answer is part of the input.

    Returns:
        The result and the memory for the next session.

    Raises:
        BadInput: the policy names an action or a plugin that does not exist, or plugins that exclude each other.
        BrokenInvariant: the tables do not add up (a bug)."""
    if policy.profiles:
        return _run_profiles(
            snapshot, policy, now=now, seed=seed, memory=memory, timer=timer, explain=explain, check=check,
            reasons=reasons, explain_to=explain_to, extenders=extenders,
        )  # fmt: skip
    known = registered()
    tiers = [
        [(_lookup(known, "plugin", option.name)(option.arguments), option.switches) for option in tier]
        for tier in policy.tiers
    ]
    for tier in tiers:
        for plugin, _ in tier:
            plugin.connect(extenders)
    conflict = find_conflict((type(plugin), switches) for tier in tiers for plugin, switches in tier)
    if conflict is not None:
        raise BadInput("plugin_conflict", conflict[1], value=conflict[0], hint="leave one of them out")
    steps = [_lookup(known, "action", name)(policy.action_arguments.get(name, {})) for name in policy.actions]
    clock = timer or float  # without a clock it is always 0
    timings: dict[str, float] = {}

    start = clock()
    memory = without_strangers(memory or Memory(), snapshot.pod_groups)
    snapshot = lay_over(snapshot, memory, now)
    session = Session(snapshot, policy, tiers, now=now, seed=seed, memory=memory, workspace=workspace or Workspace())
    guarded = any(plugin.name == "pdb" for tier in tiers for plugin, _ in tier)
    if snapshot.disruption_budgets and not session.compat and not guarded:
        session.hooks.keep(DisruptionBudgets(session))
    apply_assumed(session)
    apply_reservations(session)
    timings["open"] = (clock() - start) * 1000
    for step in steps:
        start = clock()
        step.execute(session)
        timings[step.name] = (clock() - start) * 1000
        if check:
            invariants.check(session.cluster, step.name)
    start = clock()
    count_elastic(session)
    renew_promises(session)
    found, positions, told = dict[int, Reason](), dict[int, int](), session.memory.told
    if reasons:
        found, positions = Reasons(session).all()
        if explain:
            wanted = None if explain is True else set(explain)
            again = partial(
                run_session,
                policy=policy,
                now=now,
                seed=seed,
                memory=memory,
                workspace=Workspace(),
                extenders=extenders,
            )
            _explain(session, found, wanted, lambda changed: again(changed)[0])
        if explain_to is not None and not isinstance(explain, bool):
            wanted = set(explain)
            for gang, name in enumerate(session.gangs.names):
                if name in wanted and not session.group(gang).elsewhere:
                    explain_to[name] = explanations.explain(session, gang, found.get(gang))
        events, told = quota_events(session, found)
        session.trace.events += events
    timings["reasons"] = (clock() - start) * 1000
    start = clock()
    result = close(session, found, positions, timings if timer else {})
    timings["close"] = (clock() - start) * 1000
    spared, backing_off = standing_rests(session)
    places = kept_places(session)
    after = Memory(
        reservations=standing(session),
        spared=spared,
        backing_off=backing_off,
        submitted=places,
        owners=kept_owners(session, [*places, *(rest.gang for rest in spared if rest.cools)]),
        told=told,
        admitted=_admitted(session),
        acted=_acted(tiers),
        election=session.election,
        assumed=session.pod_cache.dump(),
        **_queued(session),
    )
    session.let_go()
    return result, after


def _run_profiles(
    snapshot: Snapshot, policy: Policy, *, memory: Memory | None, **options: Any
) -> tuple[Result, Memory]:
    """One profile after the other over the same cluster, see :mod:`scheduler_core.framework.profiles`."""
    results = []
    kept, told = memory or Memory(), dict[str, str]()
    current = snapshot
    for part, gangs in profiles.parts(policy, snapshot):
        result, after = run_session(profiles.only(current, gangs), part, memory=kept, **options)
        told |= {gang: text for gang, text in after.told.items() if gang in gangs}
        kept = profiles.remembered(kept, after, told)
        current = profiles.carried_out(current, result)
        results.append((result, gangs))
    return profiles.merged(results), kept


def _queued(session: Session) -> dict[str, Any]:
    """What the per-pod cycle leaves behind; nothing where it did not run."""
    queue = session.scheduling_queue
    if queue is None:
        return {}
    return {
        "queue": queue.entries(),
        "cycle": queue.cycle,
        "move_cycle": queue.move_cycle,
        "events": cluster_events(session),
    }


def _explain(session: Session, reasons: dict[int, Reason], wanted: set[str] | None, run: remedies.Run) -> None:
    """Look for remedies of the wanted gangs (None = of all, the first by name), a bounded number of them."""
    chosen = [gang for gang in sorted(reasons) if wanted is None or reasons[gang].podgroup in wanted]
    names = session.gangs.names
    inference = range(len(session.gangs)) if chosen else ()
    endless = {names[gang] for gang in inference if session.service_type(gang) is ServiceType.INFERENCE}
    for gang in chosen[: remedies.MOST_GANGS]:
        remedy = remedies.find(session.snapshot, reasons[gang], run, endless=endless)
        if remedy is not None:
            reasons[gang] = msgspec.structs.replace(reasons[gang], remedy=remedy)


def _admitted(session: Session) -> dict[str, float]:
    """Since when gangs are promised what they have not got yet."""
    names = session.gangs.names
    return {names[gang]: session.promised_since(gang) for gang in sorted(session.promised)}


def _acted(tiers: Sequence[Sequence[tuple[Plugin, dict[str, bool]]]]) -> dict[str, float]:
    """What the plugins want to be reminded of, by key."""
    said = {key: at for tier in tiers for plugin, _ in tier for key, at in plugin.remember().items()}
    return dict(sorted(said.items()))


def _lookup(known: Registry, kind: str, name: str) -> Any:
    table = known.plugins if kind == "plugin" else known.actions
    if name not in table:
        unknown = BadInput(f"unknown_{kind}", f"there is no {kind} {name!r}", hint=f"known: {', '.join(sorted(table))}")
        fault = known.broken.get((kind, name), unknown)
        raise BadInput(fault.code, fault.message, value=name, hint=fault.hint)
    return table[name]
