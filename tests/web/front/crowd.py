"""The console's story with a crowd in it: accounts that have signed in already, written to the file of `CROWD_FILE`.

`python -m tests.web.front.crowd` fills the database that the environment names.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path

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
    for number in range(ACCOUNTS):
        user = User.objects.create(
            username=f"crowd-{number}", password="!", platform_role="auditor" if number % 3 == 0 else ""
        )
        Membership.objects.create(user=user, tenant=tenants[number % len(tenants)], role=TenantRole.MEMBER)
        session = store()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.save()
        _token, plain = create_token(user=user, scopes=[Scope.CLUSTER_READ], actor="crowd")
        people.append({"user": user.pk, "session": session.session_key, "token": plain})
    told = {"cluster": made.cluster.slug, "people": people}
    Path(os.environ["CROWD_FILE"]).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tidesched_web.settings")
    import django

    django.setup()
    fill()
