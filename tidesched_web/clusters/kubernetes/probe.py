import datetime as dt
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import yaml
from urllib3 import exceptions

from tidesched_web.clusters.kubernetes.answers import BeyondBound
from tidesched_web.clusters.kubernetes.client import PROXY, ApiFailure, KubernetesClient, Unreachable
from tidesched_web.clusters.kubernetes.connection import BadConnection
from tidesched_web.clusters.kubernetes.credential_facts import authorities, facts_of
from tidesched_web.clusters.kubernetes.guarded_pool import HeadTooSlow
from tidesched_web.clusters.kubernetes.in_cluster import IN_CLUSTER
from tidesched_web.clusters.kubernetes.outcomes import OutcomeKind
from tidesched_web.clusters.kubernetes.paths import (
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    LEASE,
    NAMESPACE,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    Kind,
)
from tidesched_web.clusters.kubernetes.verbs import LEASE_NAME, LEASE_NAMESPACE, VOLCANO_CONF, Verb, verbs_of
from tidesched_web.engine.yaml_shape import UNREADABLE, check_shape

# The plugin that reads `volcano.sh/card.quota`; a stock Volcano has none that does.
CARD_QUOTA_PLUGIN = "capacity-card"
_DEPLOYMENT, _LABEL = "volcano-scheduler", "app=volcano-scheduler"


def server_uid(client: KubernetesClient) -> str:
    """The uid of kube-system: what tells one cluster from another. Empty where it may not be read.

    Raises Unreachable: there is no answer.
    """
    found = client.send("GET", NAMESPACE.path(name=LEASE_NAMESPACE))
    if found.kind is OutcomeKind.UNREACHABLE:
        raise Unreachable(found.message or found.reason, maybe_done=False)
    return str(found.body["metadata"]["uid"]) if found.body is not None else ""


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


# OpenSSL's X509_V_ERR_*.
_EXPIRED = {9, 10}
_UNKNOWN_ISSUER = {2, 18, 19, 20, 21, 24}
_OTHER_NAME = {62, 64}


def reason_of(error: Unreachable) -> str:
    """``name_unknown``, ``refused``, ``no_answer``, ``wrong_authority``, ``wrong_name``, ``server_expired``, …"""
    cause = error.__cause__
    if isinstance(cause, exceptions.NameResolutionError):
        return "name_unknown"
    if isinstance(cause, exceptions.NewConnectionError):
        return "forbidden_address" if "where no cluster may be" in str(cause) else "refused"
    if isinstance(cause, exceptions.ProxyError):
        return "proxy"
    if isinstance(cause, exceptions.SSLError):
        return _tls_reason(cause)
    if isinstance(cause, exceptions.TimeoutError):
        return "no_answer"
    if isinstance(cause, BeyondBound):
        return cause.code
    if isinstance(cause, HeadTooSlow):
        return "too_slow"
    if isinstance(cause, exceptions.ProtocolError):
        return "broken_off"
    return "unreachable"


def _tls_reason(error: exceptions.SSLError) -> str:
    inner = error.args[0] if error.args else None
    if not isinstance(inner, ssl.SSLCertVerificationError):
        return "no_tls" if "WRONG_VERSION_NUMBER" in str(error) or "record layer" in str(error) else "tls_failed"
    if inner.verify_code in _OTHER_NAME:
        return "wrong_name"
    if inner.verify_code in _EXPIRED:
        return "server_expired"
    return "wrong_authority" if inner.verify_code in _UNKNOWN_ISSUER else "tls_failed"


GOOD, NOTE, WARNING, FAILED = "good", "note", "warning", "failed"
# The Eviction API and disruption budgets of `policy/v1`.
LEAST_VERSION = (1, 22)
SOON = dt.timedelta(days=7)
_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_PARALLEL = 8


@dataclass(frozen=True)
class Finding:
    step: str
    code: str
    level: str
    values: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"step": self.step, "code": self.code, "level": self.level, "values": self.values}


class _Stop(Exception):
    """Nothing more can be found out."""


def unusable(error: BadConnection) -> Finding:
    """Connection data that cannot even be tried; what is wrong is said again in the reader's language."""
    if error.path == IN_CLUSTER:
        return Finding("credentials", "no_pod", FAILED, {})
    if error.path == PROXY:
        return Finding("reach", "proxy", FAILED, {})
    values = {"path": error.path, "detail": error.message, "said": error.said, "with": error.values}
    return Finding("credentials", "unusable", FAILED, values)


class Probe:
    """``installation``: the name in the Lease. ``conf``: namespace and name of the ConfigMap of Volcano's scheduler."""

    def __init__(
        self,
        client: KubernetesClient,
        *,
        mode: str,
        installation: str,
        now: dt.datetime,
        conf: tuple[str, str] = VOLCANO_CONF,
        twin: Callable[[str], str] = lambda _uid: "",
    ) -> None:
        """``twin``: the name under which the cluster of a server's uid is connected already."""
        self._twin = twin
        self._client, self._conf = client, conf
        self._mode, self._installation, self._now = mode, installation, now
        self._findings: list[Finding] = []
        self._step = ""

    def run(self) -> Iterator[tuple[int, list[Finding]]]:
        """Percent done and all findings so far, after each step. Never raises for what a cluster may answer."""
        steps: list[tuple[str, Callable[[], None]]] = [
            ("credentials", self._credentials),
            ("reach", self._reach),
            ("identity", self._identity),
            ("version", self._version),
            ("apis", self._apis),
            ("volcano", self._volcano),
            ("policy", self._policy),
            ("others", self._others),
            ("verbs", self._verbs),
        ]
        for number, (name, step) in enumerate(steps, 1):
            self._step = name
            try:
                step()
            except _Stop:
                break
            except Unreachable as error:
                self._say(reason_of(error), FAILED, url=self._client.connection.url)
                break
            except ApiFailure as error:
                self._say("not_answered", WARNING, status=error.code, detail=str(error)[:300])
            yield round(100 * number / len(steps)), list(self._findings)
        yield 100, list(self._findings)

    def _say(self, code: str, level: str, **values: Any) -> None:
        self._findings.append(Finding(self._step, code, level, values))

    # -- steps -------------------------------------------------------------------------------------------------

    def _credentials(self) -> None:
        connection = self._client.connection
        try:
            found, chain = facts_of(connection), authorities(connection.ca_certificate)
        except BadConnection as error:
            self._findings.append(unusable(error))
            raise _Stop from None
        end = found.expires_at
        if end is None:
            self._say("no_end", NOTE)
        elif end <= self._now:
            self._say("expired", FAILED, at=end.isoformat())
        elif connection.token_file is None and end <= self._now + SOON:
            self._say("ends_soon", WARNING, at=end.isoformat())
        else:
            self._say("lasts", GOOD, at=end.isoformat())
        for one in chain:
            if one.expires_at <= self._now + SOON:
                self._say("authority_ends", WARNING, at=one.expires_at.isoformat(), subject=one.subject)

    def _reach(self) -> None:
        url, started = self._client.connection.url, time.monotonic()
        try:
            self._said = self._client.get("/version")
        except ApiFailure as error:
            if error.code == 401:
                self._say("not_let_in", FAILED, url=url)
            elif error.code == 403:
                self._said = {}
                self._say_reached(url, started)
                return
            else:
                self._say("not_kubernetes", FAILED, url=url, status=error.code)
            raise _Stop from None
        if "gitVersion" not in self._said:
            self._say("not_kubernetes", FAILED, url=url, status=200)
            raise _Stop
        self._say_reached(url, started)

    def _say_reached(self, url: str, started: float) -> None:
        code = "reached" if url.startswith("https:") else "reached_plainly"
        self._say(code, GOOD, url=url, ms=round(1000 * (time.monotonic() - started)))

    def _identity(self) -> None:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        answer = self._client.send("POST", _WHO, body)
        if answer.reason == "Unauthorized":
            self._say("not_let_in", FAILED, url=self._client.connection.url)
            raise _Stop
        who = (((answer.body or {}).get("status") or {}).get("userInfo") or {}).get("username", "")
        if who:
            self._say("known_as", GOOD, user=who)

    def _version(self) -> None:
        shown = str(self._said.get("gitVersion", ""))
        numbers = [int("".join(filter(str.isdigit, str(self._said.get(part, "")))) or 0) for part in ("major", "minor")]
        if not shown:
            self._say("version_unknown", NOTE)
        elif tuple(numbers) < LEAST_VERSION:
            self._say("version_old", FAILED, version=shown, least=".".join(map(str, LEAST_VERSION)))
        else:
            self._say("version", GOOD, version=shown)

    def _apis(self) -> None:
        needed: list[tuple[Kind, str]] = [(DISRUPTION_BUDGET, ""), (PRIORITY_CLASS, ""), (DEPLOYMENT, "")]
        needed += [(LEASE, "")] if self._mode != "observe" else []
        needed += [(POD, "binding"), (POD, "eviction")] if self._mode == "schedule" else []
        missing = [(kind, part) for kind, part in needed if not self._served(kind, part)]
        for kind, part in missing:
            self._say("api_missing", FAILED, resource=_named(kind, part), group_version=kind.group_version)
        if not missing:
            self._say("apis", GOOD, count=len(needed))

    def _volcano(self) -> None:
        missing = [kind for kind in (QUEUE, POD_GROUP) if not self._served(kind)]
        for kind in missing:
            level = WARNING if self._mode == "observe" else FAILED
            self._say("crd_missing", level, kind=kind.name, crd=f"{kind.plural}.{kind.group_version.split('/')[0]}")
        if not missing:
            self._say("crds", GOOD)

    def _policy(self) -> None:
        try:
            conf = scheduler_conf(self._client, self._conf)
        except ApiFailure as error:
            if self._mode == "schedule":
                self._say("card_quota_own", GOOD)
                return
            self._say("conf_hidden", WARNING, status=error.code)
            return
        level = {"quota": FAILED, "observe": WARNING}.get(self._mode, NOTE)
        if conf is None and self._mode == "schedule":
            self._say("card_quota_own", GOOD)
        elif conf is None:
            self._say("conf_missing", WARNING, name="/".join(self._conf))
        elif CARD_QUOTA_PLUGIN in plugins_of(conf):
            self._say("card_quota_holds", GOOD)
        else:
            self._say("card_quota_ignored", level, plugins=plugins_of(conf))

    def _others(self) -> None:
        try:
            running = running_schedulers(self._client)
        except ApiFailure:
            running = None  # the verbs say why
        if running:
            self._say("volcano_runs", FAILED if self._mode == "schedule" else GOOD, names=running)
        elif running is not None:
            self._say("volcano_absent", WARNING if self._mode == "quota" else NOTE)
        if twin := self._twin(server_uid(self._client)):
            self._say("same_server", FAILED, cluster=twin)
        lease = self._client.send("GET", LEASE.path(LEASE_NAMESPACE, LEASE_NAME))
        spec = (lease.body or {}).get("spec") or {}
        holder = str(spec.get("holderIdentity") or "")
        if holder and holder != self._installation and self._renewed_lately(spec):
            self._say("other_installation", WARNING if self._mode == "observe" else FAILED, holder=holder)

    def _verbs(self) -> None:
        asked = [verb for verb in verbs_of(self._mode, self._conf) if not verb.need.optional or self._has(verb)]
        with ThreadPoolExecutor(_PARALLEL, thread_name_prefix="review") as pool:
            answers = list(pool.map(self._allowed, asked))
        if any(answer is None for answer in answers):
            self._say("no_reviews", NOTE)
            return
        for verb, allowed in zip(asked, answers, strict=True):
            if not allowed:
                self._say("verb_missing", FAILED, **_described(verb))
        if all(answers):
            self._say("verbs", GOOD, count=len(asked), mode=self._mode)

    # -- parts -------------------------------------------------------------------------------------------------

    def _served(self, kind: Kind, part: str = "") -> bool:
        return self._client.serves(kind.group_version, _named(kind, part))

    def _has(self, verb: Verb) -> bool:
        group = verb.need.group
        try:
            versions = self._client.get(f"/apis/{group}")["versions"]
        except ApiFailure:
            return False
        return any(self._client.serves(version["groupVersion"], verb.need.resource) for version in versions)

    def _allowed(self, verb: Verb) -> bool | None:
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": verb.attributes},
        }
        answer = self._client.send("POST", _REVIEW, body)
        if answer.body is None:
            return None
        return bool((answer.body.get("status") or {}).get("allowed"))

    def _renewed_lately(self, spec: dict[str, Any]) -> bool:
        renewed = spec.get("renewTime")
        if not renewed:
            return False
        lasts = dt.timedelta(seconds=float(spec.get("leaseDurationSeconds") or 0))
        return dt.datetime.fromisoformat(renewed) + lasts > self._now


def _named(kind: Kind, part: str) -> str:
    return f"{kind.plural}/{part}" if part else kind.plural


def _described(verb: Verb) -> dict[str, Any]:
    need = verb.need
    return {
        "verb": verb.verb,
        "resource": f"{need.resource}.{need.group}" if need.group else need.resource,
        "namespace": need.namespace,
        "names": list(need.names),
        "why": need.why,
    }
