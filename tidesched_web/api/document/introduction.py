"""The introduction of the OpenAPI document, and what each group of operations is about."""

from tidesched_web.accounts.scope_words import SCOPE_WORDS

SCOPES = "\n".join(
    ["| scope | lets a token |", "|---|---|", *(f"| `{scope}` | {words} |" for scope, words in SCOPE_WORDS.items())]
)
INTRODUCTION = """\
Quota, gangs and reclaims of GPU clusters. What the console shows of them and changes in them can be asked and done
here too, with the whole quota tree of a cluster as one file (`/clusters/{id}/tree/`). Pages alone have the table of the
tree (CSV), the map and the editor of quota, the jobs that try out a day, the filters for starved and unused queues, and
the settings of a person.

## First requests

With a token in `TOKEN` and this address in `SITE` each of these can be copied and sent as it is, once the names are
those of your cluster; so can the example of each operation below.

```
curl -H "Authorization: Bearer $TOKEN" "$SITE/api/v1/clusters/"
curl -H "Authorization: Bearer $TOKEN" "$SITE/api/v1/queues/?cluster=east&name=acme-online"
curl -H "Authorization: Bearer $TOKEN" "$SITE/api/v1/gangs/?waiting=true&limit=10"
curl -H "Authorization: Bearer $TOKEN" "$SITE/api/v1/usage/?cluster=east&queue=acme-online&step=1h"
curl -X POST -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '{"cluster": "east", "edits": {"queue/acme-online": {"card_quota": {"NVIDIA-H200": 8}}}, "reason": "Launch"}' \\
  "$SITE/api/v1/quota-changes/?dry_run=true"
curl -X POST -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" -H "Idempotency-Key: launch-1" \\
  -d '{"cluster": "east", "edits": {"queue/acme-online": {"card_quota": {"NVIDIA-H200": 8}}}, "reason": "Launch"}' \\
  "$SITE/api/v1/quota-changes/"
```

## Tokens and scopes

Send `Authorization: Bearer tide_…`. A person makes the first token on the page *Profile › Tokens*, and further ones
there or with `POST /api/v1/tokens/`; an operator makes one with `manage.py token create USER --scope quota:read`. The
text of a token is shown once. The session of a signed-in browser works too; its writes need the header `X-CSRFToken`.

A token never allows more than its user may. It allows less by **scope**, and by tenant where it is limited to one:

@SCOPES@

Each operation names its scopes; any one of them is enough. Where it names a role, the user of the token needs that role
besides. What is out of a caller's sight is not there: a list leaves it out, its address is a 404.

## Lists and paging

`?limit=` (50 rows, at most 1000) and `?cursor=` give `{results, next, previous}`; `next` and `previous` are whole
addresses, or null at the end. A page costs the same at any depth. `?count=exact` adds `count`, at the price of a second
query. A parameter that a list does not know, a value that does not parse and a parameter that is there twice are a 400
that names the parameter and what would be right; nothing is ignored. A boolean is `true` or `false`.

Other objects are named by id, slug or name. Objects inside others are small forms with `id`, `url` and `display`. Cards
are numbers (0.5 for half of one), cpu is in milli-cores, memory in bytes, times are UTC.

## Versions

Where an object has a `version`, its detail has it as a strong `ETag`. Send the ETag that you looked at as `If-Match`:
without it some writes are a 428, with a stale one the answer is a 412, so that no write of another caller is lost. `*`
is any version.

## Writing safely

`?dry_run=true` checks and answers as if it were done, with `dry_run: true`, and does nothing.

`Idempotency-Key` on a POST: the same key and body within 24 hours get the first answer again, with its
`ETag` and `Location` and with `Idempotency-Replayed: true`; another body under the same key is a 422, and while the
first request is under way the answer is a 409. Only success is kept: a refused request may be corrected and sent
again. Keys belong to the caller.

A write of quota is carried out as a quota change. Where a second person has to approve it, the answer is 202 with the
change instead of the object; `Location` is the change's address.

## Errors

Every refusal is `application/problem+json` (RFC 9457): `type`, `title`, `status`, `code`, `detail`, `instance`,
`request_id`, and `errors` with a JSON pointer for each member at fault. Programs decide by `code`, which is stable;
figures are members of their own. 429 and 503 have `Retry-After`.

A person has 3,000 requests a minute over all of their tokens, an address without a token 120, unless the operator has
set other limits. No header counts them: one request too many is a 429, and `Retry-After` says when the next minute
begins. A body that has a member twice is refused, as is one whose values are more than 100 deep in each other.

## Streams

`GET /api/v1/stream` is a stream of server-sent events. Each names its object (`topic`, `kind`, `id`, `name`,
`cluster`), its `version`, and in `what` which part of it has changed: the new state of a gang, a change, a job or a
reclaim (`running`, `applied`), `raised`, `acknowledged`, `handed_back` or `resolved` of an alert, `create`, `update`,
`delete`, `quota` or `push` of a queue, `settings` or `connection` of a cluster. Fetch the object for its figures.

An event never names what its reader could not ask for. Of an object out of sight, and where very many have changed at
once, there is one event with the id `*` and without `kind`, `name` and `what`: fetch the list again.

Reconnect with `Last-Event-ID`; a stream ends by itself after 15 minutes.
""".replace("@SCOPES@", SCOPES)

TAGS = {
    "index": "Where everything is.",
    "clusters": "Clusters: their connection, settings, pause switch and scheduler policy.",
    "nodes": "Nodes of the clusters, as the cluster says them.",
    "card-types": "Kinds of accelerators, whole or slices, and their aliases.",
    "tenants": "Tenants: who owns queues.",
    "projects": "Projects of a tenant: what inference is for.",
    "business-lines": "Business lines of a tenant or of the platform: what training is for.",
    "queues": "Queues with their card quota, what holds now and what they use.",
    "grants": "Which namespaces may use which queues.",
    "priority-classes": "Priority classes of the clusters.",
    "tide-plans": "Quota that changes by the hour and the day.",
    "quota-changes": "Drafts of quota, their plans, approval, application and roll back.",
    "drift": "Objects that were changed in a cluster by hand, and decisions about them.",
    "gangs": "Gangs (all-or-nothing groups of pods), why they wait and what happened to them.",
    "reclaims": "Cards that were taken back: for whom, from whom and by which rule.",
    "sessions": "Runs of the scheduler and their decisions.",
    "usage": "Use of quota over time.",
    "alerts": "Conditions that a person should know of.",
    "jobs": "Work that outlasts a request.",
    "stream": "Server-sent events: which objects have changed.",
    "audit": "The audit log, its chains, signatures and sealed segments.",
    "members": "Who belongs to a tenant, and in which role.",
    "tokens": "API tokens: what each allows, its end and its last use.",
    "users": "Accounts, invitations and links for a password.",
}
