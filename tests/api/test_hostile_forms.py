"""Forms that no browser sends: a page refuses them in words and does nothing of them, whatever it is asked to write.

Each form is a good one, made of the fields that its own page shows and of `tests.matrix.bodies`, in which one field is
missing, foreign, there twice or hostile. The short form sends a few to every write of a page, `make proof-rest`
more. Addresses of pages get hostile parameters too.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any
from unittest.mock import patch
from urllib.parse import urlencode, urlsplit

import pytest
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from django.urls import Resolver404, resolve

from tests.api import hostile
from tests.api.contents import contents
from tests.api.page_forms import PageForm, forms_of, parameters_of
from tests.api.results import Findings
from tests.api.test_hostile_bodies import OF_EACH, PATIENCE, SEED, is_half_done
from tests.matrix.bodies import FORMS, REASON, SCRIPTS
from tests.matrix.expectations import ELSEWHERE, EXPECTED
from tests.matrix.recorder import writes as recorded
from tests.matrix.stage import PEOPLE, Route, Stage, address, routes
from tidesched_web.changes import adoption

# An error at a field or above the form, a form that is locked with its reason, a page that has nothing to decide.
_SAYS = ("invalid-feedback", 'role="alert"', "aria-invalid", "data-locked", "empty-state")
_URLENCODED, _JSON = "application/x-www-form-urlencoded", "application/json"
# Who is signed in is led away from these.
SIGNED_OUT = ("console:sign_in", "console:invite", "account_login", "mfa_login_webauthn")
# They take no field: a POST of anything does the same.
NO_FIELDS = {"console:sign_out", "account_logout", "console:priority_class_defaults"}
# Forms that no page of the stage shows: of a package's own address, of a cluster with queues to adopt, of an alert of
# another page.
UNSHOWN = {
    "account_login": {"login": "owner", "password": "wrong"},
    "adoption": {"act": "adopt", **REASON},
    "change_steps": {},
    "mfa_authenticate": {"code": "123456"},
    "mfa_index": {},
    "mfa_list_webauthn": {},
    "resolve_platform_alert": REASON,
    "tide_plan_take_back": {},
}
VERBS = ("apply", "approve", "reject", "cancel", "retry", "rebase", "rollback")


@dataclass
class Form:
    """A good form of one address, and one who may send it."""

    name: str
    place: str
    caller: str
    fields: dict[str, str]
    files: list[str] = field(default_factory=list)
    script: Any = None

    def hostile_bodies(self, chance: random.Random) -> Iterator[tuple[str | bytes, str]]:
        """Body and Content-Type, one after the other."""
        if self.script is not None:
            yield from ((body, _JSON) for body in hostile.bodies(self.script, chance))
        for number, fields in enumerate(hostile.forms(self.fields, chance)):
            if self.files and number % 2:
                yield self._with_file(dict(fields), chance), MULTIPART_CONTENT
            else:
                yield urlencode(fields, errors="surrogatepass"), _URLENCODED

    def _with_file(self, fields: dict[str, str], chance: random.Random) -> bytes:
        """A file of the kind that the page asks for holds what no file of that kind does."""
        content = chance.choice(
            (
                b"", b"\x00" * 40, chance.randbytes(400), b"\xff\xfe" + "a,b\n1,2\n".encode("utf-16-le"),
                *(text.encode("utf-8", "surrogatepass") for text in (*hostile.TEXTS, *hostile.OTHERS)),
            )
        )  # fmt: skip
        sent = {name: text.encode("utf-8", "replace").decode() for name, text in fields.items() if name.isidentifier()}
        named = chance.choice(("tree.yaml", "../../x", "a" * 300, "\u202egnp.exe"))
        files = {name: SimpleUploadedFile(named, content) for name in self.files}
        return encode_multipart(BOUNDARY, {**sent, **files})


def _status(route: Route, caller: str, method: str = "post") -> str:
    return dict(zip(PEOPLE, EXPECTED[route.name, method], strict=True))[caller]


def _caller(route: Route) -> str:
    """One who may send it; nothing where it is no write of a page."""
    if route.name in SIGNED_OUT:
        return "anonymous"
    may = [one for one in reversed(PEOPLE) if _status(route, one) in ("200", "302", "400")]
    return may[0] if may else ""


def _of_pages(method: str) -> list[Route]:
    return [
        route
        for route in routes()
        if route.name not in ELSEWHERE and (route.name, method) in EXPECTED and not route.name.startswith("api:")
    ]


class Site:
    """The pages of the stage, read once, and a good form for each write of a page."""

    def __init__(self) -> None:
        self.stage = Stage()
        for caller in PEOPLE:  # signed in here, as what is read below is taken back
            self.stage.client(caller)
        self.writes = {route.name: route for route in _of_pages("post")}
        self.pages = list(self._read())
        self.shown = self._shown()
        self.forms = list(self._forms())
        for form in self.forms:
            self.stage.client(form.caller)

    def _read(self) -> Iterator[tuple[str, str, str]]:
        """(route, address, HTML) of each page, as one who sees it gets it."""
        for route in _of_pages("get"):
            caller = "anonymous" if route.name in SIGNED_OUT else "platform-admin"
            if _status(route, caller, "get") == "200":
                place = address(self.stage, route)
                with transaction.atomic():
                    answer = self.stage.client(caller).get(place)
                    transaction.set_rollback(True)
                assert answer.status_code == 200, place
                if not answer.streaming and answer["Content-Type"].startswith("text/html"):
                    yield route.name, place, answer.content.decode()

    def _shown(self) -> dict[str, PageForm]:
        """Route → the form that a page shows for it."""
        found: dict[str, PageForm] = {}
        for _name, place, html in self.pages:
            for form in forms_of(html, place):
                if form.method == "post":
                    with contextlib.suppress(Resolver404):
                        found.setdefault(resolve(urlsplit(form.action).path).view_name, form)
        return found

    def _forms(self) -> Iterator[Form]:
        given = {**self.stage.keys, **self.stage.texts}
        for name, route in self.writes.items():
            caller = _caller(route)
            if not caller or name in NO_FIELDS:
                continue
            short, page = name.rpartition(":")[2], self.shown.get(name)
            known = {**UNSHOWN, **FORMS}.get(short, {} if page else REASON)
            fields = dict(page.fields) if page else {}
            fields |= {key.format(**given): value.format(**given) for key, value in known.items()}
            place = address(self.stage, route)
            if short == "change_act":
                fields |= {f"{verb}-reason": "drill" for verb in VERBS}
                for verb in VERBS:
                    yield Form(f"{name} {verb}", place.replace("/apply/", f"/{verb}/"), caller, fields)
            else:
                yield Form(name, place, caller, fields, page.files if page else [], SCRIPTS.get(short))


@pytest.fixture(scope="module")
def _site(django_db_setup: None, django_db_blocker: Any) -> Iterator[Site]:
    with django_db_blocker.unblock(), transaction.atomic():
        with patch.object(adoption, "unmanaged", lambda cluster, known: []):
            yield Site()
        transaction.set_rollback(True)


@pytest.fixture
def site(_site: Site, db: None) -> Iterator[Site]:
    with patch.object(adoption, "unmanaged", lambda cluster, known: []):  # the cluster does not answer
        yield _site


def test_each_write_of_a_page_is_sent_hostile_forms(site: Site) -> None:
    """Against the resolver: a write of a page that has no good form here fails."""
    names = {form.name.partition(" ")[0] for form in site.forms}
    no_write = {name for name, route in site.writes.items() if not _caller(route)}
    assert {answer for name in no_write for answer in EXPECTED[name, "post"]} <= {"405", "404", "403", "in"}
    assert site.writes.keys() - names == NO_FIELDS | no_write
    known = {*FORMS, *SCRIPTS, *UNSHOWN}
    blind = [name for name in names if name not in site.shown and name.rpartition(":")[2] not in known]
    assert " ".join(sorted(blind)) == "", "no page of the stage shows their form, and no other one is known"


@contextmanager
def taken_back(client: Any) -> Iterator[list[str]]:
    """The writing statements of the block, which leaves nothing behind: no row, no cookie."""
    cookies = copy.deepcopy(client.cookies)
    cache.clear()
    with transaction.atomic():
        with recorded() as written:
            yield written
        transaction.set_rollback(True)
    client.cookies = SimpleCookie({name: morsel.value for name, morsel in cookies.items()})


@pytest.mark.timeout(PATIENCE)
def test_a_hostile_form_breaks_no_page_and_what_is_refused_is_not_done(site: Site) -> None:
    before, found = contents(), Findings()
    for number, form in enumerate(site.forms):
        client = site.stage.client(form.caller)
        made = form.hostile_bodies(random.Random(1000 * SEED + number))
        for body, kind in itertools.islice(made, OF_EACH):
            fault = ""
            with taken_back(client) as written:
                answer = client.generic("POST", form.place, body, kind)
                found.answers[form.name][answer.status_code] += 1
                if answer.status_code >= 500:
                    fault = "broke"
                elif answer.status_code >= 400:
                    fault = is_half_done(before, written) or _says_nothing(answer)
                elif form.caller != "anonymous" and answer.headers.get("Location", "").startswith("/sign-in/"):
                    fault = "never came"
            if fault:
                found.failures[form.name].append(f"{fault} {answer.status_code}: {body[:200]!r}")
    print(found.table())
    assert found.faults() == {}


@pytest.mark.timeout(PATIENCE)
@pytest.mark.proof
def test_a_hostile_address_breaks_no_page_and_writes_nothing(site: Site) -> None:
    """The parameters that a page's own filters and links name, with values that none of them has."""
    values = (*hostile.TEXTS, *hostile.NUMBERS, *hostile.OTHERS)
    found = Findings()
    named = [(name, place, sorted(parameters_of(html, place))) for name, place, html in site.pages]
    for number, (name, place, parameters) in enumerate(one for one in named if one[2]):
        client = site.stage.client("anonymous" if name in SIGNED_OUT else "platform-admin")
        chance = random.Random(1000 * SEED + number)
        for _ in range(max(2, OF_EACH // 4)):
            asked = [(one, chance.choice(values)[:2000]) for one in chance.sample(parameters, min(3, len(parameters)))]
            query = urlencode(asked, errors="surrogatepass")
            with taken_back(client) as written:
                answer = client.get(f"{urlsplit(place).path}?{query}")
            found.answers[name][answer.status_code] += 1
            away = name not in SIGNED_OUT and answer.headers.get("Location", "").startswith("/sign-in/")
            if answer.status_code >= 500 or written or away:
                found.failures[name].append(f"broke {answer.status_code}: {written[:1]} {query[:200]}")
    assert found.faults() == {}


def _says_nothing(answer: Any) -> str:
    """A refused form has an error at a field or on the page."""
    if answer.status_code != 400:
        return ""
    if answer["Content-Type"].startswith("application/json"):
        return "" if answer.json().get("errors") or json.loads(answer.content) else "says nothing"
    page = answer.content.decode()
    return "" if any(sign in page for sign in _SAYS) else "says nothing"
