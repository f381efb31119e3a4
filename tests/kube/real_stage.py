"""The stage of the pipeline's tests on a real API server, with kubelets and controllers beside it."""

from __future__ import annotations

import threading
from typing import Any

from django.db import connection

from tests.cluster.servers import ApiServer
from tests.kube.real_server import RealServer
from tests.kube.shared import stand_aside, stand_by
from tests.web.pipeline.stage import NAMESPACE_NAME, Stage
from tidesched_web.clusters.kubernetes.paths import POD_GROUP
from tidesched_web.scheduling.pipeline import lease
from tidesched_web.scheduling.pipeline.context import ClusterContext
from tidesched_web.scheduling.pipeline.lease import Lease


class RealStage(Stage):
    """Begins with an empty cluster. ``through``: what TideSched takes for the API server, a proxy say."""

    def __init__(
        self, server: RealServer, *, through: ApiServer | None = None, nodes: int = 2, grace: float = 0.3
    ) -> None:
        stand_aside()
        server.clear()
        stand_by(server, grace=grace)
        super().__init__(through or server, nodes=nodes)

    def open(self, holder: str = "test") -> ClusterContext:
        """As in a worker, the lease is renewed beside the sessions, however long those take."""
        context = super().open(holder)
        self._renewal_ends = threading.Event()
        self._renewal = threading.Thread(target=self._renew, args=(context.lease,), daemon=True)
        self._renewal.start()
        return context

    def _renew(self, held: Lease) -> None:
        while not self._renewal_ends.wait(1.0):
            lease.keep([held])
        connection.close()

    def close(self) -> None:
        self._renewal_ends.set()
        self._renewal.join(30)
        super().close()

    def group(self, name: str) -> dict[str, Any]:
        """Volcano's controllers put the owner's uid into the name."""
        groups = self.client.get(POD_GROUP.path(NAMESPACE_NAME))["items"]
        return next(group for group in groups if group["metadata"]["name"].startswith(f"{name}-"))
