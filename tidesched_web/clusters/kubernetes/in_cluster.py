import os
import threading
import time
from pathlib import Path

from tidesched_web.clusters.kubernetes.connection import BadConnection, Connection, check_server
from tidesched_web.clusters.kubernetes.credential_facts import certificates

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
ADDRESS = "https://kubernetes.default.svc"
# What is named where this process runs in no cluster.
IN_CLUSTER = "in_cluster"
# The kubelet writes a new token long before the old one ends; Kubernetes' own clients look once a minute.
_KEPT_SECONDS = 30.0


class TokenFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._token, self._read_at = "", float("-inf")

    def token(self) -> str:
        """The token as it is now. A file that cannot be read for a moment leaves the last token in force."""
        with self._lock:
            if time.monotonic() - self._read_at > _KEPT_SECONDS:
                try:
                    self._token = self.path.read_text(encoding="ascii").strip()
                    self._read_at = time.monotonic()
                except (OSError, UnicodeDecodeError):
                    if not self._token:
                        raise BadConnection("token", "%(file)s cannot be read", file=self.path) from None
            return self._token

    def forget(self) -> None:
        """The server did not take the token: read the file before the next request."""
        with self._lock:
            self._read_at = float("-inf")


def in_cluster_connection(folder: Path = FOLDER) -> Connection:
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    shown = f"[{host}]" if ":" in host else host
    url = f"https://{shown}:{port}" if host else ADDRESS
    try:
        authority = (folder / "ca.crt").read_text(encoding="latin-1")
    except OSError:
        why = "this process is in no pod of a cluster, or its pod has no token of a service account"
        raise BadConnection(IN_CLUSTER, why) from None
    # A cluster of one machine may have its server on that machine.
    return Connection(
        check_server(url, path="KUBERNETES_SERVICE_HOST", loopback=True),
        ca_certificate=certificates(authority, path="ca.crt"),
        token_file=TokenFile(folder / "token"),
    )
