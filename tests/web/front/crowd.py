"""The console's story with a crowd in it: accounts that have signed in already, written to the file of `CROWD_FILE`.

`python -m tests.web.front.crowd` fills the database that the environment names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

ACCOUNTS = 15


def fill() -> None:
    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY

    from tests.web.console import world
    from tidesched_web.accounts.models import Membership, Scope, TenantRole, User
    from tidesched_web.accounts.services import create_token

    made = world.full()
    tenants = [membership.tenant for membership in Membership.objects.select_related("tenant")]
    store = import_module(settings.SESSION_ENGINE).SessionStore
    people = []

    def signed_in(user: User) -> str:
        session = store()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.save()
        return str(session.session_key)

    for number in range(ACCOUNTS):
        user = User.objects.create(
            username=f"crowd-{number}", password="!", platform_role="auditor" if number % 3 == 0 else ""
        )
        tenant = tenants[number % len(tenants)]
        membership = Membership.objects.create(user=user, tenant=tenant, role=TenantRole.MEMBER)
        token, plain = create_token(user=user, scopes=[Scope.CLUSTER_READ], actor="crowd")
        person = {"user": user.pk, "session": signed_in(user), "token": plain, "token_id": token.pk}
        people.append(person | {"tenant": tenant.slug, "membership": membership.pk})
    told = {"cluster": made.cluster.slug, "people": people, "admin": {"session": signed_in(made.admin)}}
    told |= silent(int(os.environ["SILENT_PORT"]), signed_in)
    Path(os.environ["CROWD_FILE"]).write_text(json.dumps(told), encoding="utf-8")


def silent(port: int, signed_in: Callable[[Any], str]) -> dict[str, Any]:
    """A cluster whose API server accepts connections and never answers, a draft of it and a platform admin."""
    from tests import quota_writes
    from tidesched_web.accounts.models import Tenant, User
    from tidesched_web.accounts.selectors import access_of
    from tidesched_web.changes import services as changes
    from tidesched_web.clusters import services as clusters

    admin = User.objects.create(username="admin-of-silent", password="!", platform_role="admin")
    address = f"http://127.0.0.1:{port}"
    cluster = clusters.create(name="Silent", api_url=address, token="x", mode="quota", actor="crowd")
    line = quota_writes.ensure_business_line(tenant=Tenant.objects.first(), slug="silent", actor="crowd")
    quota_writes.create_queue(
        cluster=cluster, name="silent-train", service_type="training", card_quota={}, business_line=line, actor="crowd"
    )
    draft = changes.draft(cluster=cluster, edits={"queue/silent-train": {"weight": 2}}, access=access_of(admin))
    return {"silent": cluster.slug, "draft": draft.pk, "its_admin": {"session": signed_in(admin)}}


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tidesched_web.settings")
    import django

    django.setup()
    fill()
