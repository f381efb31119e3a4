"""A small API server that answers over TLS what a test sets: rights, kinds and objects."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tidesched_web.clusters.kubernetes.connection import Connection

TOKEN = "the-token-of-the-answering-server"
GROUPS = {
    "v1": ["pods", "pods/binding", "pods/eviction"],
    "apps/v1": ["deployments"],
    "policy/v1": ["poddisruptionbudgets"],
    "scheduling.k8s.io/v1": ["priorityclasses"],
    "coordination.k8s.io/v1": ["leases"],
    "scheduling.volcano.sh/v1beta1": ["queues", "queues/status", "podgroups"],
    "batch.volcano.sh/v1alpha1": ["jobs"],
    "bus.volcano.sh/v1alpha1": ["commands"],
}
CONF_PATH = "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap"
LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/tidesched-scheduler"


def pair(
    name: str, *, issuer: tuple[Any, Any] | None = None, days: int = 30, address: str = "127.0.0.1"
) -> tuple[Any, Any]:
    """A certificate and its key; without an issuer it is an authority of its own."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=60))
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if issuer is not None:
        names = [x509.IPAddress(ipaddress.ip_address(address))]
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        made = made.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer[1].public_key()), critical=False
        )
    else:
        usage = dict.fromkeys(
            ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False
        )
        made = made.add_extension(
            x509.KeyUsage(**usage, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False),
            critical=True,
        )
    return made.sign((issuer or (None, key))[1], hashes.SHA256()), key


def pem(certificate: Any) -> str:
    return str(certificate.public_bytes(serialization.Encoding.PEM).decode())


def key_pem(key: Any) -> str:
    form = serialization.PrivateFormat.PKCS8
    return str(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode())


class AnsweringServer:
    """``objects``: path → answer. ``denied``: verbs on resources, such as ``("create", "pods/binding")``."""

    def __init__(self, folder: Path, *, certificate_days: int = 30, address: str = "127.0.0.1") -> None:
        self.authority = pair("an authority")
        certificate, key = pair("a server", issuer=self.authority, days=certificate_days, address=address)
        self.groups = {group: list(kinds) for group, kinds in GROUPS.items()}
        self.version: dict[str, str] = {"major": "1", "minor": "34", "gitVersion": "v1.34.0"}
        self.objects: dict[str, Any] = {}
        self.denied: set[tuple[str, str]] = set()
        self.asked: list[dict[str, str]] = []
        self.tokens = {TOKEN}
        chain = folder / "server.pem"
        chain.write_text(pem(certificate) + key_pem(key))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def connection(self, **changes: Any) -> Connection:
        return Connection(**{"url": self.url, "ca_certificate": pem(self.authority[0]), "token": TOKEN} | changes)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Status and body of one request."""
        if path.endswith("selfsubjectaccessreviews"):
            asked = body["spec"]["resourceAttributes"]
            self.asked.append(asked)
            resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
            return 201, {"status": {"allowed": (asked["verb"], resource) not in self.denied}}
        if path.endswith("selfsubjectreviews"):
            return 201, {"status": {"userInfo": {"username": "system:serviceaccount:tidesched:tidesched"}}}
        if path == "/version":
            return 200, self.version
        if path in self.objects:
            return 200, self.objects[path]
        group = path.removeprefix("/apis/").removeprefix("/api/")
        if group in self.groups:
            return 200, {"resources": [{"name": name} for name in self.groups[group]]}
        versions = [known for known in self.groups if known.startswith(f"{group}/")]
        if versions:
            return 200, {"versions": [{"groupVersion": known} for known in versions]}
        if path.endswith(("/pods", "/deployments")):
            return 200, {"items": []}
        return 404, {"reason": "NotFound", "message": f"{path} is not there"}

    def _handler(server: AnsweringServer) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - the handler has a self too
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 20

            def handle(self) -> None:
                try:
                    super().handle()
                except OSError:
                    return  # a client that does not trust us goes away in the handshake

            def do_GET(self) -> None:
                self._reply()

            def do_POST(self) -> None:
                self._reply()

            def _reply(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}")
                token = self.headers.get("Authorization", "").removeprefix("Bearer ")
                status, answer = 401, {"reason": "Unauthorized", "message": "Unauthorized"}
                if token in server.tokens:
                    status, answer = server.answer(self.command, self.path.partition("?")[0], body)
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                return

        return Handler
