from collections.abc import Iterable, Mapping
from typing import Any, Final

from tidesched_web.accounts import services as accounts
from tidesched_web.accounts.demo_people import PEOPLE, Offered, keep, kept
from tidesched_web.accounts.models import Tenant, TenantRole, User
from tidesched_web.accounts.selectors import access_of, user_by_name
from tidesched_web.changes.services.applying import carry_out
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH, KubernetesClient
from tidesched_web.clusters.kubernetes.paths import QUEUE
from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import only_simulated
from tidesched_web.common.actors import SYSTEM
from tidesched_web.common.errors import DomainError

REASON: Final = "The demo that comes with a new installation."
# Inside of Ember's ceiling, so that Ember's admin may ask for it; a second person has to agree.
_MOVED: Final[Mapping[str, Any]] = {
    "queue/ember-support": {"card_quota": {"NVIDIA-H200": 8}},
    "project/ember/support": {"quota": {"inference": {"card_quota": {"NVIDIA-H200": 8}}}},
    "queue/ember-recommend": {"card_quota": {"NVIDIA-H200": 8}},
    "project/ember/recommend": {"quota": {"inference": {"card_quota": {"NVIDIA-H200": 8}}}},
}
EDITED_BY_HAND: Final = "train-platform-notebooks"


def make_people(passwords: Iterable[Offered], tenants: Mapping[str, Tenant]) -> None:
    found = {person.username: person.password for person in passwords}
    for person in PEOPLE:
        if person.username not in found or user_by_name(person.username) is not None:
            continue
        user = accounts.create_user(
            username=person.username, password=found[person.username], platform_role=person.platform_role, actor=SYSTEM
        )
        if person.tenant:
            accounts.set_membership(
                user=user, tenant=tenants[person.tenant], role=TenantRole.ADMIN, actor=SYSTEM, reason=REASON
            )


def ask_for_cards(cluster: Cluster) -> None:
    admin, asker = user_by_name("quota-admin"), user_by_name("ember-admin")
    if admin is None or asker is None:
        return
    carry_out(
        cluster=cluster,
        edits={"tenant/ember": {"approval_required": True}},
        access=access_of(admin),
        reason="Ember's quota was changed by mistake twice: a second person looks at it from now on.",
    )
    carry_out(
        cluster=cluster,
        edits=_MOVED,
        access=access_of(asker),
        reason="The new ranking model does not fit on H800: 8 H200 from the support bot until it is smaller.",
    )


def edit_by_hand(cluster: Cluster) -> None:
    """What an operator does with kubectl past TideSched: drift, for the page that shows it."""
    client = KubernetesClient.for_cluster(cluster)
    try:
        client.send(
            "PATCH",
            QUEUE.path(name=EDITED_BY_HAND),
            {"spec": {"weight": 3}},
            query={"fieldManager": "kubectl-edit"},
            content_type=MERGE_PATCH,
        )
    finally:
        client.close()


def forget_people() -> int:
    """With a real cluster the accounts whose passwords everybody at this machine could read are switched off."""
    left, off = [], 0
    for person in kept():
        user = user_by_name(person.username)
        if user is None or not user.is_active or not user.check_password(person.password):
            continue
        if only_simulated():
            left.append(person)
        else:
            off += _switched_off(user)
    if left != kept():
        keep(left)
    return off


def end_people() -> None:
    """Switch them off once a real cluster is connected. Asked now and then, whatever DEMO says."""
    if kept() and not only_simulated():
        forget_people()


def _switched_off(user: User) -> bool:
    reason = "A real cluster is connected: the accounts of the demo end."
    try:
        return accounts.deactivate_user(user=user, actor=SYSTEM, reason=reason)
    except DomainError:  # the last admin who can sign in stays
        return False
