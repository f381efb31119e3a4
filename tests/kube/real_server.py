"""kube-apiserver and etcd on loopback, as one API server for the tests."""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import shutil
import signal
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import urllib3
import yaml
from cryptography.hazmat.primitives.asymmetric import ec

from tests.cluster.servers import ApiServer
from tests.kube import tokens
from tests.kube.binaries import Binaries
from tests.kube.certificates import Authority, key_pem, public_pem
from tests.kube.process_costs import cpu_seconds, resident_mib
from tests.kube.server_process import ServerProcess, free_ports
from tests.waiting import until
from tidesched_web.clusters.kubernetes.client import ApiFailure, KubernetesClient, Unreachable
from tidesched_web.clusters.kubernetes.connection import Connection
from tidesched_web.clusters.kubernetes.paths import (
    COMMAND,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    EVENT,
    JOB,
    LEASE,
    NODE,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    REPLICA_SET,
    Kind,
)

DEFINITIONS = Path(__file__).with_name("crds")
_CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# Admission that waits for what only kube-controller-manager does: service accounts, taints of nodes that are not ready.
_WITHOUT_ADMISSION = "ServiceAccount,TaintNodesByCondition"
# What changes something, and who asked for it.
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]}],
}
_START_SECONDS = 300.0
_TRIES = 3


class RealServer(ApiServer):
    """A Kubernetes API server with nothing behind it: no kubelet, no controller. Start it from the main thread.

    Args:
        folder: for logs and certificates; the data of etcd is kept in memory where the machine has a place for it.
        definitions: folders with the CRDs to install.
        users: further users by token, with their groups (``{"reader-token": ("reader", ["readers"])}``).
        audited: it keeps a log of the writes (:meth:`audit_log`).
    """

    simulated = False

    def __init__(
        self,
        folder: Path,
        binaries: Binaries,
        *,
        definitions: Iterable[Path] = (DEFINITIONS,),
        users: dict[str, tuple[str, list[str]]] | None = None,
        audited: bool = False,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._binaries = binaries
        self._definitions = list(definitions)
        self.authority = Authority()
        self.ca_certificate = self.authority.certificate
        self.signing_key = ec.generate_private_key(ec.SECP256R1())
        self.token = secrets.token_urlsafe(24)
        self._users = {self.token: ("admin", ["system:masters"]), **(users or {})}
        self._audited = audited
        self._data = Path(tempfile.mkdtemp(prefix="tidesched-etcd-", dir=_memory_folder()))
        self._etcd: ServerProcess | None = None
        self._api: ServerProcess | None = None
        self._write_files()

    # -- life --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Both programs and the CRDs.

        Raises:
            AssertionError: they did not come up; carries what they said.
        """
        for remaining in reversed(range(_TRIES)):
            self._etcd_port, self._peer_port, self._port = free_ports(3)
            self.url = f"https://127.0.0.1:{self._port}"
            try:
                self.start_etcd()
                self.start_api()
                break
            except AssertionError:
                self._end_programs()
                if not remaining:
                    raise
        (self.folder / "kubeconfig").write_text(self.kubeconfig())
        (self.folder / "kubeconfig").chmod(0o600)
        self.install()

    def start_etcd(self) -> None:
        client = f"http://127.0.0.1:{self._etcd_port}"
        peer = f"http://127.0.0.1:{self._peer_port}"
        argv = [str(self._binaries.etcd), "--data-dir", str(self._data), "--unsafe-no-fsync", "--log-level=warn"]
        argv += [f"--listen-client-urls={client}", f"--advertise-client-urls={client}"]
        argv += [f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"]
        argv += [f"--initial-cluster=default={peer}", "--quota-backend-bytes=8589934592"]
        self._etcd = ServerProcess(argv, self.folder / "etcd.log", _environment())
        self._wait(self._etcd, self._etcd_is_well)

    def start_api(self) -> None:
        """Begin kube-apiserver on its port and wait until it is ready."""
        path = self.folder
        argv = [
            str(self._binaries.apiserver),
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--tls-cert-file={path / 'server.crt'}",
            f"--tls-private-key-file={path / 'server.key'}",
            f"--client-ca-file={path / 'ca.crt'}",
            f"--token-auth-file={path / 'tokens.csv'}",
            "--anonymous-auth=false",
            "--authorization-mode=RBAC",
            f"--service-account-issuer={tokens.ISSUER}",
            f"--service-account-key-file={path / 'accounts.pub'}",
            f"--service-account-signing-key-file={path / 'accounts.key'}",
            f"--disable-admission-plugins={_WITHOUT_ADMISSION}",
            "--etcd-compaction-interval=0",
            "--event-ttl=1h",
            "--profiling=false",
            f"--cert-dir={path / 'own'}",
        ]
        if self._audited:
            argv += [f"--audit-policy-file={path / 'audit.yaml'}", f"--audit-log-path={path / 'audit.log'}"]
        self._api = ServerProcess(argv, self.folder / "kube-apiserver.log", _environment())
        self._wait(self._api, self._is_ready)

    def _wait(self, process: ServerProcess, well: object) -> None:
        assert callable(well)
        deadline = time.monotonic() + _START_SECONDS
        while not well():
            assert process.running, f"it ended:\n{process.said()}"
            assert time.monotonic() < deadline, f"not ready in {_START_SECONDS:.0f} s:\n{process.said()}"
            time.sleep(0.1)

    def kill_api(self) -> None:
        """kill -9 of kube-apiserver; etcd stays."""
        if self._api is not None:
            self._api.end(signal.SIGKILL)

    def pause_api(self) -> None:
        """SIGSTOP: it accepts connections and answers nothing."""
        assert self._api is not None
        self._api.send(signal.SIGSTOP)

    def resume_api(self) -> None:
        assert self._api is not None
        self._api.send(signal.SIGCONT)

    def stop(self) -> None:
        """End both and forget the data."""
        self._end_programs()
        shutil.rmtree(self._data, ignore_errors=True)

    def _end_programs(self) -> None:
        # Nothing in it is worth an orderly end; kube-apiserver's takes many seconds while watches are open.
        for program in (self._api, self._etcd):
            if program is not None:
                program.end(signal.SIGKILL)

    @property
    def running(self) -> bool:
        return self._api is not None and self._api.running

    def resident_mib(self) -> dict[str, int]:
        """Memory that each program holds."""
        return {name: resident_mib(program.pid) for name, program in self._programs()}

    def cpu_seconds(self) -> dict[str, float]:
        """Processor time that each program took so far."""
        return {name: cpu_seconds(program.pid) for name, program in self._programs()}

    def _programs(self) -> list[tuple[str, ServerProcess]]:
        both = (("kube-apiserver", self._api), ("etcd", self._etcd))
        return [(name, program) for name, program in both if program is not None]

    def audit_log(self) -> list[dict[str, Any]]:
        """The writes whose answers are complete, as kube-apiserver's audit events."""
        lines = (self.folder / "audit.log").read_bytes().splitlines(keepends=True)
        events = [orjson.loads(line) for line in lines if line.endswith(b"\n")]
        return [event for event in events if event["stage"] == "ResponseComplete"]

    # -- who gets in -------------------------------------------------------------------------------------------

    def client_as(self, token: str) -> KubernetesClient:
        """A client with another token."""
        return KubernetesClient(Connection(self.url, ca_certificate=self.ca_certificate, token=token))

    def account_token(self, namespace: str, name: str, *, seconds: float) -> str:
        """A token of a service account that ends after ``seconds``; the account is made where it is missing."""
        with self._admin() as client:
            path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
            client.send("POST", path, {"metadata": {"name": name}})
            uid = client.get(f"{path}/{name}")["metadata"]["uid"]
        return tokens.sign(self.signing_key, namespace=namespace, account=name, uid=uid, seconds=seconds)

    def kubeconfig(self, *, token: str = "") -> str:
        """As a user would upload it."""
        ca = base64.b64encode(self.ca_certificate.encode()).decode()
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "tests",
            "clusters": [{"name": "tests", "cluster": {"server": self.url, "certificate-authority-data": ca}}],
            "users": [{"name": "tests", "user": {"token": token or self.token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
        }
        return yaml.safe_dump(document, sort_keys=False)

    # -- what is in it -----------------------------------------------------------------------------------------

    def install(self) -> None:
        """Install the CRDs, of which those of a later folder win, and wait until they are served.

        One that is there is replaced.
        """
        files = (file for folder in self._definitions for file in sorted(folder.glob("*.yaml")))
        definitions = [yaml.safe_load(file.read_text()) for file in files]
        by_name = {definition["metadata"]["name"]: definition for definition in definitions}
        with self._admin() as client:
            for name, definition in by_name.items():
                outcome = client.send("POST", _CRD_PATH, definition)
                if outcome.reason == "AlreadyExists":
                    there = client.get(f"{_CRD_PATH}/{name}")["metadata"]["resourceVersion"]
                    definition["metadata"]["resourceVersion"] = there
                    outcome = client.send("PUT", f"{_CRD_PATH}/{name}", definition)
                assert outcome.done, (name, outcome)
            for definition in by_name.values():
                until(lambda definition=definition: _serves(client, definition))

    def remove_definition(self, name: str) -> None:
        """Take a CRD away with all its objects (``jobs.batch.volcano.sh``)."""
        with self._admin() as client:
            client.send("DELETE", f"{_CRD_PATH}/{name}")
            until(lambda: client.send("GET", f"{_CRD_PATH}/{name}").reason == "NotFound")

    def clear(self) -> None:
        """Take away all that tests made, but not namespaces, CRDs and what the server itself has."""
        with self._admin() as client:
            for kind in (DEPLOYMENT, REPLICA_SET, JOB, POD, POD_GROUP, DISRUPTION_BUDGET, COMMAND, EVENT, LEASE):
                self._clear(client, kind)
            for kind in (NODE, QUEUE):
                client.send("DELETE", kind.path())
            for one in client.get(PRIORITY_CLASS.path())["items"]:
                if not one["metadata"]["name"].startswith("system-"):
                    client.send("DELETE", PRIORITY_CLASS.path(name=one["metadata"]["name"]))

    def _clear(self, client: KubernetesClient, kind: Kind) -> None:
        try:
            left = client.get(kind.path())["items"]
        except ApiFailure:  # a kind that is not installed now
            return
        for namespace in {one["metadata"]["namespace"] for one in left}:
            client.send("DELETE", kind.path(namespace), {"gracePeriodSeconds": 0})
        # A gang's controller may have made one more pod before it saw that its gang is gone.
        if left:
            until(lambda: not client.get(kind.path(), {"limit": 1})["items"] or self._clear(client, kind), 600)

    def compact(self) -> int:
        """Let etcd forget all versions but the newest; returns that version."""
        status = self.ask_etcd("/v3/maintenance/status", {})
        revision = int(status["header"]["revision"])
        self.ask_etcd("/v3/kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    def ask_etcd(self, path: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
        """One request to etcd's JSON gateway."""
        request = urllib.request.Request(f"http://127.0.0.1:{self._etcd_port}{path}", orjson.dumps(body))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as answer:
            return dict(orjson.loads(answer.read()))

    def _admin(self) -> contextlib.closing[KubernetesClient]:
        return contextlib.closing(self.client())

    def _etcd_is_well(self) -> bool:
        try:
            self.ask_etcd("/v3/maintenance/status", {})
        except OSError:
            return False
        return True

    def _is_ready(self) -> bool:
        with self._admin() as client:
            try:
                with client.stream("/readyz", {}, read_timeout=5):
                    pass
                client.get("/api/v1/namespaces/kube-system")
            except (ApiFailure, Unreachable, urllib3.exceptions.HTTPError):
                return False
        return True

    def _write_files(self) -> None:
        self.authority.server("kubernetes", "kubernetes.default.svc").write(self.folder, "server")
        (self.folder / "ca.crt").write_text(self.ca_certificate)
        (self.folder / "accounts.key").write_text(key_pem(self.signing_key))
        (self.folder / "accounts.pub").write_text(public_pem(self.signing_key))
        lines = [f'{token},{name},{name},"{",".join(groups)}"\n' for token, (name, groups) in self._users.items()]
        (self.folder / "tokens.csv").write_text("".join(lines))
        (self.folder / "token").write_text(self.token)
        (self.folder / "audit.yaml").write_text(yaml.safe_dump(_AUDIT_POLICY))
        for name in ("accounts.key", "tokens.csv", "token"):
            (self.folder / name).chmod(0o600)


def _serves(client: KubernetesClient, definition: dict[str, dict[str, object]]) -> bool:
    spec = definition["spec"]
    versions, names = spec["versions"], spec["names"]
    assert isinstance(versions, list)
    assert isinstance(names, dict)
    try:
        client.get(f"/apis/{spec['group']}/{versions[0]['name']}/{names['plural']}", {"limit": 1})
    except ApiFailure:
        return False
    return True


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}


def _memory_folder() -> str | None:
    """A place in memory with some room, where the machine has one."""
    try:
        free = shutil.disk_usage("/dev/shm").free
    except OSError:
        return None
    return "/dev/shm" if free > 4 << 30 and os.access("/dev/shm", os.W_OK) else None
