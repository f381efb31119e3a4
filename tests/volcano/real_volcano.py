"""Volcano beside a real API server: its scheduler, controllers and webhooks, and nodes that stay ready."""

from __future__ import annotations

import base64
import os
import threading
from typing import Any

from tests.kube.real_server import RealServer
from tests.kube.server_process import ServerProcess, free_ports
from tests.volcano.build import Volcano
from tests.waiting import until
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH, KubernetesClient
from tidesched_web.clusters.kubernetes.paths import DEPLOYMENT, NAMESPACE, NODE, QUEUE

SYSTEM = "volcano-system"
# As Volcano's own chart ships it: nothing in it knows card quotas.
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: capacity
  - name: nodeorder
  - name: binpack
"""
_HOOKS = "/apis/admissionregistration.k8s.io/v1"
_QUEUES = (["scheduling.volcano.sh"], ["v1beta1"], ["queues"])
_JOBS = (["batch.volcano.sh"], ["v1alpha1"], ["jobs"])
_WEBHOOKS = {
    "/queues/mutate": ("mutating", ["CREATE"], _QUEUES),
    "/queues/validate": ("validating", ["CREATE", "UPDATE", "DELETE"], _QUEUES),
    "/jobs/mutate": ("mutating", ["CREATE"], _JOBS),
    "/jobs/validate": ("validating", ["CREATE", "UPDATE"], _JOBS),
}


class RealVolcano:
    """The three programs against one server; start it from the main thread."""

    def __init__(self, server: RealServer, volcano: Volcano) -> None:
        self.server, self._volcano = server, volcano
        self.client: KubernetesClient = server.client()
        self._programs: list[ServerProcess] = []
        self._ending = threading.Event()
        self._beat: threading.Thread | None = None

    def start(self) -> None:
        """Webhooks first: from then on the server asks them about every queue."""
        folder = self.server.folder
        self.client.send("POST", NAMESPACE.path(), {"metadata": {"name": SYSTEM}})
        (folder / "volcano-scheduler.conf").write_text(CONF)
        config_map = {"metadata": {"name": "volcano-scheduler-configmap"}, "data": {"volcano-scheduler.conf": CONF}}
        self.client.send("POST", f"/api/v1/namespaces/{SYSTEM}/configmaps", config_map)
        self._start_webhooks()
        common = [f"--kubeconfig={folder / 'kubeconfig'}", "--leader-elect=false", "--logtostderr=true"]
        # Controllers whose kinds are not installed here would keep all others from starting.
        controllers = "--controllers=*,-sharding-controller,-jobflow-controller,-jobtemplate-controller"
        self._run("controller-manager", [*common, "--enable-healthz=false", controllers])
        conf = f"--scheduler-conf={folder / 'volcano-scheduler.conf'}"
        self._run("scheduler", [*common, conf, "--schedule-period=500ms", "--cache-dumper=false"])
        self._announce_scheduler()
        self._beat = threading.Thread(target=self._keep_ready, daemon=True)
        self._beat.start()
        # Volcano's controllers make these two by themselves.
        until(lambda: {"root", "default"} <= self.queues().keys(), 120)

    def stop(self) -> None:
        """End all programs; the API server forgets what they made with its data."""
        self._ending.set()
        if self._beat is not None:
            self._beat.join(10)
        for program in self._programs:
            program.end()
        self.client.close()

    def queues(self) -> dict[str, dict[str, Any]]:
        """The queues of the cluster by name."""
        return {one["metadata"]["name"]: one for one in self.client.get(QUEUE.path())["items"]}

    # -- parts -------------------------------------------------------------------------------------------------

    def _run(self, name: str, argv: list[str]) -> None:
        log = self.server.folder / f"volcano-{name}.log"
        variables = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
        self._programs.append(ServerProcess([str(self._volcano.program(name)), *argv], log, variables))

    def _start_webhooks(self) -> None:
        folder, (port,) = self.server.folder, free_ports(1)
        certificate, key = self.server.authority.server("volcano-admission").write(folder, "webhooks")
        bundle = base64.b64encode(self.server.ca_certificate.encode()).decode()
        for path, (kind, operations, (groups, versions, resources)) in _WEBHOOKS.items():
            rule = {"operations": operations, "apiGroups": groups, "apiVersions": versions, "resources": resources}
            name = path.strip("/").replace("/", "")
            hook = {
                "name": f"{name}.volcano.sh",
                "clientConfig": {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle},
                "rules": [rule],
                "failurePolicy": "Fail",
                "sideEffects": "NoneOnDryRun",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 10,
            }
            body = {"metadata": {"name": f"volcano-admission-service{path.replace('/', '-')}"}, "webhooks": [hook]}
            outcome = self.client.send("POST", f"{_HOOKS}/{kind}webhookconfigurations", body)
            assert outcome.done, outcome
        argv = [
            f"--kubeconfig={folder / 'kubeconfig'}", f"--port={port}", "--listen-address=127.0.0.1",
            f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}", f"--ca-cert-file={folder / 'ca.crt'}",
            f"--enabled-admission={','.join(_WEBHOOKS)}", f"--webhook-url=https://127.0.0.1:{port}",
            "--logtostderr=true",
        ]  # fmt: skip
        self._run("webhook-manager", argv)
        probe = {"apiVersion": QUEUE.group_version, "kind": "Queue", "metadata": {"name": "probe"}, "spec": {}}
        until(lambda: self.client.send("POST", QUEUE.path(), probe, query={"dryRun": "All"}).done, 120)

    def _announce_scheduler(self) -> None:
        """The Deployment that an installation has: it runs in no place, and says that its pod is ready."""
        name = "volcano-scheduler"
        template = {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": name, "image": "example/none"}]},
        }
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
        self.client.send("POST", DEPLOYMENT.path(SYSTEM), {"metadata": {"name": name}, "spec": spec})
        status = {"status": {"replicas": 1, "readyReplicas": 1}}
        path = DEPLOYMENT.path(SYSTEM, name, "status")
        self.client.send("PATCH", path, status, content_type=MERGE_PATCH)

    def _keep_ready(self) -> None:
        """Nodes are plain objects without a kubelet: a small loop says that they are well."""
        client = self.server.client()
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        while not self._ending.wait(1.0):
            for node in client.get(NODE.path())["items"]:
                known = (node.get("status") or {}).get("conditions") or []
                if not any(one["type"] == "Ready" and one["status"] == "True" for one in known):
                    path = NODE.path(name=node["metadata"]["name"], subresource="status")
                    client.send("PATCH", path, {"status": {"conditions": [ready]}}, content_type=MERGE_PATCH)
        client.close()
