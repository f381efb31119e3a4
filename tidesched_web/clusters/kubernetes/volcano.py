from typing import Any

import yaml

from tidesched_web.clusters.kubernetes.client import ApiFailure, KubernetesClient
from tidesched_web.clusters.kubernetes.paths import DEPLOYMENT, POD
from tidesched_web.clusters.kubernetes.verbs import VOLCANO_CONF
from tidesched_web.engine.yaml_shape import UNREADABLE, check_shape

# The plugin that reads `volcano.sh/card.quota`; a stock Volcano has none that does.
CARD_QUOTA_PLUGIN = "capacity-card"
_DEPLOYMENT, _LABEL = "volcano-scheduler", "app=volcano-scheduler"


def scheduler_conf(client: KubernetesClient, place: tuple[str, str] = VOLCANO_CONF) -> str | None:
    namespace, config_map = place
    try:
        found = client.get(f"/api/v1/namespaces/{namespace}/configmaps/{config_map}")
    except ApiFailure as error:
        if error.code == 404:
            return None
        raise
    data = found.get("data") or {}
    name = "volcano-scheduler.conf"
    return str(data[name] if name in data else next(iter(data.values()), ""))


def plugins_of(conf: str) -> list[str]:
    try:
        check_shape(conf, twice=False)  # Volcano reads a key that stands twice
        document: Any = yaml.load(conf, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, *UNREADABLE):
        return []
    tiers = document.get("tiers") if isinstance(document, dict) else None
    found = []
    for tier in tiers if isinstance(tiers, list) else []:
        plugins = tier.get("plugins") if isinstance(tier, dict) else None
        found += [str(one.get("name")) for one in plugins or [] if isinstance(one, dict)]
    return found


def running_schedulers(client: KubernetesClient) -> list[str]:
    named = client.get(DEPLOYMENT.path(), {"fieldSelector": f"metadata.name={_DEPLOYMENT}", "limit": 10})
    pods = client.get(POD.path(), {"labelSelector": _LABEL, "limit": 10})
    ready = [one for one in named["items"] if (one.get("status") or {}).get("readyReplicas")]
    running = [one for one in pods["items"] if (one.get("status") or {}).get("phase") == "Running"]
    return [f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in [*ready, *running]]
