"""The stage of the pipeline's tests on a real API server, with kubelets and controllers beside it."""

from __future__ import annotations

from typing import Any

from tests.cluster.servers import ApiServer
from tests.kube.real_server import RealServer
from tests.kube.shared import stand_aside, stand_by
from tests.web.pipeline.stage import NAMESPACE_NAME, Stage
from tidesched_web.clusters.kubernetes.paths import POD_GROUP


class RealStage(Stage):
    """Begins with an empty cluster. ``through``: what TideSched takes for the API server, a proxy say."""

    def __init__(
        self, server: RealServer, *, through: ApiServer | None = None, nodes: int = 2, grace: float = 0.3
    ) -> None:
        stand_aside()
        server.clear()
        stand_by(server, grace=grace)
        super().__init__(through or server, nodes=nodes)

    def group(self, name: str) -> dict[str, Any]:
        """Volcano's controllers put the owner's uid into the name."""
        groups = self.client.get(POD_GROUP.path(NAMESPACE_NAME))["items"]
        return next(group for group in groups if group["metadata"]["name"].startswith(f"{name}-"))
