"""Lint of a policy: what is accepted and does not do what it looks like."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from scheduler_core.algorithms.tide_window import parse_window
from scheduler_core.framework.extension_points import POINTS, points_of
from scheduler_core.model.errors import BadInput
from scheduler_core.model.finding import Finding, Severity, unreadable
from scheduler_core.model.policy import PluginOption, Policy
from scheduler_core.scheduler import registered
from scheduler_core.serde.policy import parse_policy

_OBJECT = "policy"
# Plugins that each decide what a queue may use; two of them contradict each other.
_QUOTA_PLUGINS = ("capacity-card", "capacity", "proportion")
_TAKES_BACK = "it takes room back before free room is given out"
_TOO_EARLY = {
    "elect": "it chooses a gang to keep nodes for before it is known which gangs find room",
    "reserve": "it locks nodes for a gang that allocate may give free room to",
}
# kube-scheduler's scores of a shape end here.
_HIGHEST_SCORE = 10
# What was meant by an unknown name is not known, so nothing is missing for certain.
_LEFT_OUT = (
    "unknown_plugin", "unknown_action", "bad_entry_point", "duplicate_entry_point", "unknown_extension_point",
    "bad_extension_point",
)  # fmt: skip
# Faults of the text itself are errors of the command, not findings.
_NO_POLICY = ("malformed_text", "malformed_yaml", "malformed_json", "malformed_policy", "empty_policy")


def lint_policy(text: str | bytes, file: str | None = None) -> list[Finding]:
    """Findings of a policy, in the order of the rules. Raises BadInput: the text is no policy at all."""
    faults: list[BadInput] = []
    try:
        policy = parse_policy(text, file, faults=faults)
    except BadInput as error:
        if error.code in _NO_POLICY:
            raise
        return [unreadable(fault, _OBJECT) for fault in (*faults, error)]
    plugins = {option.name: option for tier in policy.tiers for option in tier}
    found = [unreadable(fault, _OBJECT) for fault in faults]
    found += [_warning("no-effect", "", warning, "remove it") for warning in policy.warnings]
    said, broken = {fault.message for fault in faults}, registered().broken.values()
    found += [_warning(one.code, "", one.message, one.hint or "") for one in broken if one.message not in said]
    if not any(fault.code in _LEFT_OUT for fault in faults):
        found += [
            *_order(policy), *_companions(policy, plugins), *_contradictions(policy, plugins),
            *_victims(policy, plugins),
        ]  # fmt: skip
    return [*found, *_shapes(policy, plugins), *_windows(policy, plugins)]


def _order(policy: Policy) -> Iterator[Finding]:
    actions = policy.actions
    if "allocate" not in actions:
        yield _warning("nothing-allocates", "actions", "no action places gangs", "add allocate after enqueue")
    for action in ("preempt", "reclaim", "gangpreempt", "gangreclaim", "elect", "reserve"):
        if action in actions and "allocate" in actions and actions.index(action) < actions.index("allocate"):
            yield _warning(
                "before-allocate",
                "actions",
                f"{action} comes before allocate: {_TOO_EARLY.get(action, _TAKES_BACK)}",
                f"put {action} after allocate",
            )
    if "enqueue" in actions and actions[0] != "enqueue":
        yield _warning(
            "enqueue-late", "actions", "what enqueue admits is only seen by the actions after it", "put enqueue first"
        )
    for one, other in (("preempt", "gangpreempt"), ("reclaim", "gangreclaim")):
        if one in actions and other in actions:
            yield _warning("twice", "actions", f"{one} and {other} do the same work in two ways", "keep one of them")


def _companions(policy: Policy, plugins: Mapping[str, PluginOption]) -> Iterator[Finding]:
    actions = policy.actions
    for action, plugin in (("elect", "reservation"), ("reserve", "reservation")):
        if action in actions and plugin not in plugins:
            yield _warning("no-effect", "actions", f"{action} does nothing without plugin {plugin}", f"add {plugin}")
    if "reservation" in plugins and not {"elect", "reserve"} <= set(actions):
        yield _warning(
            "no-effect",
            _path(policy, "reservation"),
            "plugin reservation locks nodes only with the actions elect and reserve",
            "add elect and reserve after allocate",
        )
    if "tdm" in plugins and "shuffle" not in actions:
        yield _info(
            "stays-after-window",
            _path(policy, "tdm"),
            "without the action shuffle, what runs on revocable nodes stays when their window closes",
            "add shuffle",
        )
    for name in ("overcommit", "sla", "resourcequota"):
        if name in plugins and "enqueue" not in actions:
            yield _warning(
                "no-effect", _path(policy, name), f"plugin {name} votes on admission only, and enqueue does not run",
                "add enqueue",
            )  # fmt: skip


def _contradictions(policy: Policy, plugins: Mapping[str, PluginOption]) -> Iterator[Finding]:
    quota = [name for name in _QUOTA_PLUGINS if name in plugins]
    if len(quota) > 1:
        yield _error(
            "two-quotas",
            _path(policy, quota[1]),
            f"{quota[0]} and {quota[1]} each decide what a queue may use; a gang needs the room of both",
            f"keep one of {', '.join(quota)}",
        )
    if not {"gang", "coscheduling"} & plugins.keys():
        yield _warning(
            "no-gangs", "tiers", "without plugin gang a job runs with any number of its members", "add gang to tier 1"
        )
    if "predicates" not in plugins:
        yield _warning(
            "no-predicates", "tiers", "without plugin predicates selectors, taints and ports are not looked at",
            "add predicates",
        )  # fmt: skip


def _victims(policy: Policy, plugins: Mapping[str, PluginOption]) -> Iterator[Finding]:
    for action, point, switch in (
        ("reclaim", "reclaimable", "enableReclaimable"),
        ("preempt", "preemptable", "enablePreemptable"),
    ):
        if action not in policy.actions:
            continue
        voters = [name for name, option in plugins.items() if _votes(name, option, point)]
        if not voters:
            yield _warning(
                f"no-{action}-voter", "tiers", f"no plugin votes on victims, so {action} never evicts a gang",
                f"add one that registers {point}, or remove {action}",
            )  # fmt: skip
        gang = plugins.get("gang")
        whole = any(_plugin(name).gangs_fall_whole for name in plugins)
        if gang is not None and _votes("gang", gang, point) and not (whole and action == "reclaim"):
            yield _info(
                "gang-protects",
                _path(policy, "gang"),
                f"plugin gang lets {action} take only members above minMember: a job whose minAvailable is the number "
                "of its replicas is never evicted",
                f"{switch}: false, where whole gangs may be evicted",
            )


def _votes(name: str, option: PluginOption, point: str) -> bool:
    return POINTS[point] in points_of(_plugin(name)) and option.switches.get(point, True)


def _plugin(name: str) -> type[Any]:
    return registered().plugins[name]


def _shapes(policy: Policy, plugins: Mapping[str, PluginOption]) -> Iterator[Finding]:
    option = plugins.get("requested-to-capacity-ratio")
    shape = option.arguments.get("functionshape") if option is not None else None
    scores = [point.get("score", 0) for point in shape if isinstance(point, Mapping)] if isinstance(shape, list) else []
    path = f"{_path(policy, 'requested-to-capacity-ratio')}.arguments.functionshape"
    if scores and (max(scores) > _HIGHEST_SCORE or min(scores) < 0):
        yield _warning(
            "score-out-of-range",
            path,
            f"scores go from {min(scores):g} to {max(scores):g}; kube-scheduler takes 0 to 10 and refuses this shape",
            "write scores from 0 to 10",
        )
    if scores and len(set(scores)) == 1:
        yield _info("flat-shape", path, "every utilisation gets the same score", "give at least two different scores")


def _windows(policy: Policy, plugins: Mapping[str, PluginOption]) -> Iterator[Finding]:
    """Hours of tdm that never end; a text that is no window is refused by the parser."""
    option = plugins.get("tdm")
    zones: Mapping[str, str] = option.arguments.get("tdm.revocable-zone.<zone>", {}) if option is not None else {}
    for zone, text in sorted(zones.items()):
        window = parse_window(text)
        if window.start == window.end:
            yield _info(
                "window-always-open",
                f"{_path(policy, 'tdm')}.arguments.tdm.revocable-zone.{zone}",
                f"zone {zone}: {text} ends when it begins, which is 24 hours: its nodes are lent all day",
                "00:00-24:00, if that is what is meant",
            )


def _path(policy: Policy, plugin: str) -> str:
    for t, tier in enumerate(policy.tiers):
        for p, option in enumerate(tier):
            if option.name == plugin:
                return f"tiers[{t}].plugins[{p}]"
    return "tiers"


def _finding(severity: Severity, code: str, path: str, message: str, fix: str) -> Finding:
    return Finding(severity=severity, code=code, object=_OBJECT, path=path, message=message, fix=fix)


_error, _warning, _info = (
    partial(_finding, severity) for severity in (Severity.ERROR, Severity.WARNING, Severity.INFO)
)
