"""The roles of `deploy/rbac` are enough for each mode, and the admission policy allows and refuses what it says."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kube.real_server import RealServer
from tidesched_web.clusters.kubernetes.client import APPLY_PATCH, KubernetesClient
from tidesched_web.clusters.kubernetes.connection import Connection
from tidesched_web.clusters.kubernetes.outcomes import Outcome
from tidesched_web.clusters.kubernetes.paths import POD, POD_GROUP
from tidesched_web.clusters.kubernetes.probe import Finding, Probe
from tidesched_web.clusters.kubernetes.verbs import MODES, VOLCANO_NAMESPACE, verbs_of

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PLURALS = {
    "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


def address(manifest: dict[str, Any]) -> str:
    version, metadata = manifest["apiVersion"], manifest["metadata"]
    parts = ["/apis" if "/" in version else "/api", version]
    parts += ["namespaces", metadata["namespace"]] if "namespace" in metadata else []
    return "/".join([*parts, PLURALS[manifest["kind"]], metadata["name"]])


def apply(client: KubernetesClient, manifest: dict[str, Any]) -> None:
    query = {"fieldManager": "tests", "force": "true"}
    answer = client.send("PATCH", address(manifest), manifest, query=query, content_type=APPLY_PATCH)
    assert answer.done, answer


def account(client: KubernetesClient, mode: str) -> str:
    """The token of an account of its own that has the roles of one mode."""
    for manifest in yaml.safe_load_all((DEPLOY / "rbac" / f"{mode}.yaml").read_text()):
        if manifest["kind"] == "ServiceAccount":
            manifest["metadata"]["name"] = mode
        for subject in manifest.get("subjects", ()):
            subject["name"] = mode
        apply(client, manifest)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    made = client.send("POST", f"/api/v1/namespaces/tidesched/serviceaccounts/{mode}/token", asked)
    assert made.body is not None, made
    return str(made.body["status"]["token"])


@pytest.fixture
def admin(server: RealServer):
    client = server.client()
    apply(client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": VOLCANO_NAMESPACE}})
    yield client
    client.close()


def found(server: RealServer, token: str, mode: str) -> list[Finding]:
    client = KubernetesClient(Connection(server.url, ca_certificate=server.ca_certificate, token=token))
    try:
        runs = list(Probe(client, mode=mode, installation="tests", now=dt.datetime.now(dt.UTC)).run())
    finally:
        client.close()
    return runs[-1][1]


def missing(findings: list[Finding]) -> set[tuple[str, ...]]:
    lacking = [finding.values for finding in findings if finding.code == "verb_missing"]
    return {(one["resource"], one["verb"], one["namespace"], *one["names"]) for one in lacking}


def needed(mode: str) -> set[tuple[str, ...]]:
    def resource(group: str, name: str) -> str:
        return f"{name}.{group}" if group else name

    return {
        (resource(verb.need.group, verb.need.resource), verb.verb, verb.need.namespace, *verb.need.names)
        for verb in verbs_of(mode)
    }


def test_each_mode_s_roles_are_enough_for_it_and_for_no_more(server, admin) -> None:
    tokens = {mode: account(admin, mode) for mode in MODES}
    optional = {("podgroups/status.scheduling.volcano.sh", "patch", "")}
    for held in MODES:
        for wanted in MODES:
            findings = found(server, tokens[held], wanted)
            lacking = missing(findings)
            assert lacking | optional >= needed(wanted) - needed(held), (held, wanted)
            assert lacking <= needed(wanted) - needed(held), (held, wanted)
            known = next(finding.values["user"] for finding in findings if finding.code == "known_as")
            assert known == f"system:serviceaccount:tidesched:{held}"
            if held == wanted:
                assert "verbs" in {finding.code for finding in findings}


def test_a_verb_that_is_taken_away_is_found_missing(server, admin) -> None:
    token = account(admin, "quota")
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/tidesched-quota"
    role = admin.get(path)
    kept = [rule for rule in role["rules"] if rule["resources"] != ["priorityclasses"]]
    try:
        assert admin.send("PUT", path, role | {"rules": kept}).done
        deadline = time.monotonic() + 30  # the server's own cache of roles
        while not missing(found(server, token, "quota")) and time.monotonic() < deadline:
            time.sleep(0.1)
        lacking = missing(found(server, token, "quota"))
        assert {one[0] for one in lacking} == {"priorityclasses.scheduling.k8s.io"}
        assert {one[1] for one in lacking} == {"get", "list", "watch", "create", "patch", "delete"}
    finally:
        account(admin, "quota")


@pytest.fixture
def guarded(admin: KubernetesClient):
    """The policy, for two namespaces of the test alone."""
    policy, binding = yaml.safe_load_all((DEPLOY / "admission" / "tidesched-annotations.yaml").read_text())
    chosen = {"namespaceSelector": {"matchLabels": {"tests": "admission"}}}
    binding["spec"]["matchResources"] = chosen
    names = {"guarded-training": {}, "guarded-inference": {"tidesched.io/inference": "true"}}
    for name, labels in names.items():
        metadata = {"name": name, "labels": {"tests": "admission"} | labels}
        if not labels:
            metadata["annotations"] = {"tidesched.io/queues": "a, b"}
        apply(admin, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    apply(admin, policy)
    apply(admin, binding)
    yield
    for manifest in (binding, policy):
        assert admin.send("DELETE", address(manifest)).done


def test_the_admission_policy(admin, guarded) -> None:
    def group(namespace: str, queue: str, **annotations: str) -> Outcome:
        metadata = {"generateName": "g-", "annotations": {f"volcano.sh/{k}": v for k, v in annotations.items()}}
        body = {"apiVersion": POD_GROUP.group_version, "kind": "PodGroup", "metadata": metadata}
        return admin.send("POST", POD_GROUP.path(namespace), body | {"spec": {"minMember": 1, "queue": queue}})

    def pod(namespace: str, **annotations: str) -> Outcome:
        metadata = {"generateName": "p-", "annotations": annotations}
        body = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "c"}]}}
        query = {"dryRun": "All"}
        return admin.send("POST", POD.path(namespace), body, query=query)

    service = {"service.type": "inference"}
    training, inference = "guarded-training", "guarded-inference"
    deadline = time.monotonic() + 30  # until the server has taken the policy in
    while group(training, "c").done and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "queue c is not one of this namespace: a, b" in group(training, "c").message
    assert group(training, "b").done
    assert group(inference, "c").done
    assert "has no inference" in group(training, "a", **service).message
    assert group(inference, "a", **service).done
    assert "may be reclaimed" in group(training, "a", preemptable="false").message
    assert "has no inference" in pod(training, **{"volcano.sh/service.type": "inference"}).message
    assert "queue zz" in pod(training, **{"scheduling.volcano.sh/queue-name": "zz"}).message
    assert pod(training, **{"scheduling.volcano.sh/queue-name": "a", "volcano.sh/service.type": "training"}).done
    made = group(training, "a").body
    assert made is not None
    patch = {"metadata": {"annotations": {"volcano.sh/service.type": "inference"}}}
    path = POD_GROUP.path(training, made["metadata"]["name"])
    changed = admin.send("PATCH", path, patch, content_type="application/merge-patch+json")
    assert "has no inference" in changed.message
    harmless = {"metadata": {"labels": {"x": "y"}}}
    assert admin.send("PATCH", path, harmless, content_type="application/merge-patch+json").done
