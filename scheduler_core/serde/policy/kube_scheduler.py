"""``KubeSchedulerConfiguration`` as a policy, as far as there are equivalents.

Score plugins become weights of ``nodeorder`` or plugins of their own; filters are what ``predicates`` checks anyway;
the sorter becomes ``priority``. Anything else is an error that names it: a scheduler that leaves out a rule silently is
worse than one that does not start."""

from scheduler_core.serde.policy.arguments import did_you_mean
from scheduler_core.serde.policy.tree import Field, Source

KUBE_KIND = "KubeSchedulerConfiguration"

# Kubernetes' name -> weight argument of nodeorder. Names of the old priorities are beside those of the plugins.
_WEIGHTS = {
    "NodeResourcesLeastAllocated": "leastrequested.weight",
    "LeastRequestedPriority": "leastrequested.weight",
    "NodeResourcesMostAllocated": "mostrequested.weight",
    "MostRequestedPriority": "mostrequested.weight",
    "NodeResourcesBalancedAllocation": "balancedresource.weight",
    "BalancedResourceAllocation": "balancedresource.weight",
    "NodeAffinity": "nodeaffinity.weight",
    "NodeAffinityPriority": "nodeaffinity.weight",
    "TaintToleration": "tainttoleration.weight",
    "TaintTolerationPriority": "tainttoleration.weight",
    "InterPodAffinity": "podaffinity.weight",
    "InterPodAffinityPriority": "podaffinity.weight",
    "PodTopologySpread": "podtopologyspread.weight",
    "EvenPodsSpreadPriority": "podtopologyspread.weight",
    "ImageLocality": "imagelocality.weight",
    "ImageLocalityPriority": "imagelocality.weight",
}
# Checked by predicates or by every action, whatever the file says.
_ALWAYS = frozenset(
    {
        "NodeResourcesFit", "NodeAffinity", "NodeName", "NodePorts", "NodeUnschedulable", "TaintToleration",
        "InterPodAffinity", "PodTopologySpread", "VolumeBinding", "VolumeZone", "NodeVolumeLimits",
        "VolumeRestrictions", "PrioritySort", "DefaultBinder",
    }
)  # fmt: skip
_OWN_PLUGIN = {
    "RequestedToCapacityRatio": "requested-to-capacity-ratio",
    "Coscheduling": "coscheduling",
    "DefaultPreemption": "default-preemption",
}
_POD_BY_POD = frozenset({"Coscheduling", "DefaultPreemption"})
_POINTS = frozenset(
    {
        "queueSort", "preEnqueue", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit",
        "preBind", "bind", "postBind", "multiPoint",
    }
)  # fmt: skip
_KEYS = frozenset(
    {
        "kind", "apiVersion", "leaderElection", "clientConnection", "profiles", "plugins", "pluginConfig",
        "parallelism", "healthzBindAddress", "metricsBindAddress", "enableProfiling", "enableContentionProfiling",
        "percentageOfNodesToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds", "schedulerName",
        "disablePreemption",
    }
)  # fmt: skip


def translate(root: Field, source: Source) -> Field:
    """The tree of an equivalent ``volcano-scheduler.conf``; values keep their lines. Raises BadInput: ``no_equivalent``
    for a plugin that has none, ``malformed_policy``."""
    fields = root.fields or {}
    for key, field in fields.items():
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS)
            raise source.error("unknown_key", f"unknown key {key!r} of {KUBE_KIND}", field, hint=hint)
    profiles = fields.get("profiles")
    if profiles is None:
        return Field({}, root.line, "", fields={"tiers": _tiers(root, fields, source)})
    if not profiles.items or any(entry.fields is None for entry in profiles.items):
        raise source.error("malformed_policy", "profiles is a list of {schedulerName, plugins}", profiles)
    entries: list[Field] = []
    for entry in profiles.items:
        parts = entry.fields or {}
        named = parts.get("schedulerName") or Field("default-scheduler", entry.line, entry.path)
        entries.append(
            Field({}, entry.line, entry.path, fields={"schedulerName": named, "tiers": _tiers(entry, parts, source)})
        )
    translated = {"profiles": Field([], profiles.line, "profiles", items=entries)}
    if len(entries) == 1:  # the usual schedulers have no other tiers that could be meant
        translated["tiers"] = (entries[0].fields or {})["tiers"]
    return Field({}, root.line, "", fields=translated)


def _tiers(owner: Field, where: dict[str, Field], source: Source) -> Field:
    """The tiers that mean what one profile says."""
    weights: dict[str, Field] = {}
    own: dict[str, Field] = {}
    for point, sets in _fields(where.get("plugins"), source).items():
        if point not in _POINTS:
            hint = did_you_mean(point, _POINTS)
            raise source.error("unknown_key", f"unknown extension point {point!r}", sets, hint=hint)
        for name, entry, enabled in _entries(sets, source):
            _take(point, name, entry, enabled, weights, own, source)
    arguments = _plugin_config(where.get("pluginConfig"), own, source)
    return _conf(owner, weights, own, arguments)


def _entries(sets: Field, source: Source) -> list[tuple[str, Field, bool]]:
    found: list[tuple[str, Field, bool]] = []
    for which, enabled in (("disabled", False), ("enabled", True)):
        field = _fields(sets, source).get(which)
        for entry in (field.items if field else None) or []:
            named = _fields(entry, source).get("name")
            if named is None or not isinstance(named.value, str):
                raise source.error("malformed_policy", "the plugin has no name", entry)
            if named.value != "*":
                found.append((named.value, entry, enabled))
    return found


def _take(
    point: str, name: str, entry: Field, enabled: bool, weights: dict[str, Field], own: dict[str, Field], source: Source
) -> None:
    given = (entry.fields or {}).get("weight")
    scores = point in ("score", "multiPoint")
    if scores and name in _WEIGHTS:
        weights[_WEIGHTS[name]] = _scalar(entry, (given.value if given else 1) if enabled else 0)
    elif name in _OWN_PLUGIN:
        if enabled:
            own[name] = given or _scalar(entry, 1)
    elif enabled and name not in _ALWAYS:
        known = [*_WEIGHTS, *_ALWAYS, *_OWN_PLUGIN]
        text = f"{name} at {point} has no equivalent here"
        raise source.error("no_equivalent", text, entry, hint=did_you_mean(name, known))


def _plugin_config(field: Field | None, own: dict[str, Field], source: Source) -> dict[str, dict[str, Field]]:
    """Arguments of the plugins of our own by Kubernetes' name."""
    found: dict[str, dict[str, Field]] = {}
    for entry in (field.items if field else None) or []:
        parts = _fields(entry, source)
        name = parts["name"].value if "name" in parts else None
        if name not in own:
            text = f"the arguments of {name} have no equivalent here"
            raise source.error("no_equivalent", text, entry, hint=did_you_mean(str(name), _OWN_PLUGIN))
        found[name] = dict(_fields(parts.get("args"), source))
    return found


def _conf(
    root: Field, weights: dict[str, Field], own: dict[str, Field], arguments: dict[str, dict[str, Field]]
) -> Field:
    def plugin(name: str, line: int, given: dict[str, Field] | None = None) -> Field:
        fields = {"name": Field(name, line, "plugins")}
        if given:
            fields["arguments"] = Field({}, line, "plugins", fields=given)
        return Field({}, line, "plugins", fields=fields)

    line = root.line
    # What only the per-pod cycle knows asks for it; else gangs take turns, which keeps them whole.
    pod_by_pod = _POD_BY_POD & own.keys()
    sorter = ("gang",) if not pod_by_pod else () if "Coscheduling" in own else ("priority-sort",)
    first = [plugin(name, line) for name in ("priority", *sorter, "conformance")]
    second = [plugin("predicates", line), plugin("nodeorder", line, weights)]
    for name, weight in own.items():
        given = dict(arguments.get(name, {}))
        if name not in _POD_BY_POD:
            given["weight"] = weight
        second.append(plugin(_OWN_PLUGIN[name], weight.line, given))
    tiers = [
        Field({}, line, "tiers", fields={"plugins": Field([], line, "tiers", items=plugins)})
        for plugins in (first, second)
    ]
    return Field([], line, "tiers", items=tiers)


def _scalar(entry: Field, value: object) -> Field:
    return Field(value, entry.line, entry.path)


def _fields(field: Field | None, source: Source) -> dict[str, Field]:
    if field is None or field.value is None:
        return {}
    if field.fields is None:
        raise source.error("malformed_policy", "a mapping is expected here", field)
    return field.fields
