"""The pages that the timekeeper opens as an admin, besides those that the crowd keeps open.

Each name is for one address of the console; ``{}`` is the cluster. A page of one object is found by the first link of
its kind in its list.
"""

from __future__ import annotations

import re

_C = "/clusters/{}"
FIXED = {
    "waiting for you": "/waiting/",
    "clusters": "/clusters/",
    "quota editor": f"{_C}/quota/edit/",
    "quota editor data": f"{_C}/quota/edit/data/",
    "quota map": f"{_C}/quota/map/",
    "search": f"{_C}/search/?q=crew",
    "tree file": f"{_C}/tree/",
    "adoption": f"{_C}/adoption/",
    "policy": f"{_C}/policy/",
    "policies": f"{_C}/policy/all/",
    "rules": f"{_C}/rules/",
    "grants": f"{_C}/grants/",
    "card types": f"{_C}/card-types/",
    "priority classes": f"{_C}/priority-classes/",
    "settings": f"{_C}/settings/",
    "connection": f"{_C}/connection/",
    "new queue": f"{_C}/new/queue/",
    "new tide plan": f"{_C}/new/tide-plan/",
    "session timings": f"{_C}/sessions/timings/",
    "audit log": "/audit/",
    "integrity": "/audit/integrity/",
    "tenants": "/tenants/",
    "projects": "/projects/",
    "business lines": "/business-lines/",
    "users": "/users/",
    "all tokens": "/users/tokens/",
    "profile": "/profile/",
    "tokens": "/profile/tokens/",
    "status": "/status/",
    "jobs": "/jobs/",
    "all alerts": "/alerts/",
    "help": "/help/",
    "REST document": "/api/v1/schema/docs/",
}
# Page of one object: the list that links to it, and how its links look.
LINKED = {
    "change": (f"{_C}/changes/", re.compile(r'href="(/clusters/[^"/]+/changes/\d+/)"')),
    "audit entry": ("/audit/", re.compile(r'href="(/audit/\d+/)[?"]')),
    "tenant": ("/tenants/", re.compile(r'href="(/tenants/[^"/]+/)"')),
    "user": ("/users/", re.compile(r'href="(/users/\d+/)"')),
    "tide plan": (f"{_C}/tide-plans/", re.compile(r'href="(/clusters/[^"/]+/tide-plans/[^"/]+/)"')),
    "job": ("/jobs/", re.compile(r'href="(/jobs/\d+/)"')),
}
NAMES = (*FIXED, *LINKED)
