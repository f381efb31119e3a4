"""Card types by other names: written under any of them, kept under the canonical one; audited, rolled back."""

import pytest

from tests.web.changes.ground import A100, H200, Ground
from tidesched_web.audit.models import AuditEntry
from tidesched_web.changes import services as changes
from tidesched_web.changes import tree_csv
from tidesched_web.changes.card_aliases import canonical_cards
from tidesched_web.clusters.models import CardType
from tidesched_web.clusters.selectors import card_aliases
from tidesched_web.common.errors import DomainError

pytestmark = pytest.mark.django_db
NAMED = {f"card-type/{H200}": {"kind": "whole", "aliases": ["H200", "h200-sxm", "H200"]}}
NIGHT = {"name": "night", "days": ["mon"], "start": "22:00", "end": "06:00"}


@pytest.fixture
def named(ground: Ground) -> Ground:
    """H200 goes by two more names."""
    ground.carry_out(NAMED)
    return ground


def test_quota_is_written_under_any_name_and_kept_under_one(named):
    assert named.tree()[f"card-type/{H200}"]["aliases"] == ["H200", "h200-sxm"]
    assert card_aliases(named.cluster) == {"H200": H200, "h200-sxm": H200}
    named.carry_out({"queue/acme-online": {"card_quota": {"H200": 4}}})
    assert named.tree()["queue/acme-online"]["card_quota"] == {H200: 4}
    named.carry_out({"queue/acme-online": {"card_quota": {"h200-sxm": None}}})
    assert named.tree()["queue/acme-online"]["card_quota"] == {}
    named.carry_out({"tenant/acme": {"quota": {"inference": {"card_quota": {"H200": 7}}}}})
    assert named.tree()["tenant/acme"]["quota"]["inference"]["card_quota"][H200] == 7
    layer = NIGHT | {"quota": {"acme-online": {"H200": {"add": 1}}}}
    named.carry_out({"tide-plan/nights": {"layers": [layer]}})
    assert named.tree()["tide-plan/nights"]["layers"][0]["quota"] == {"acme-online": {H200: {"add": 1}}}
    entry = AuditEntry.objects.filter(object_type="card_type").last()
    assert entry.after["aliases"] == ["H200", "h200-sxm"]


def test_a_table_may_be_headed_with_another_name(named):
    tree, aliases = named.tree(), card_aliases(named.cluster)
    edits = tree_csv.loads("queue,H200\nacme-online,3\n", tree, [H200, A100], aliases)
    assert edits == {"queue/acme-online": {"card_quota": {H200: 3}}}
    with pytest.raises(DomainError, match="twice"):
        tree_csv.loads(f"queue,H200,{H200}\nacme-online,3,3\n", tree, [H200, A100], aliases)


def test_one_card_under_two_names_is_refused(named):
    with pytest.raises(DomainError) as refused:
        named.carry_out({"queue/acme-online": {"card_quota": {"H200": 4, H200: 5}}})
    assert refused.value.extra["errors"][0]["pointer"] == f"/edits/queue~1acme-online/card_quota/{H200}"


@pytest.mark.parametrize("taken", [A100, "H200"])
def test_a_name_means_one_card_type(named, taken):
    with pytest.raises(DomainError) as refused:
        named.carry_out({"card-type/NVIDIA-B200": {"aliases": [taken]}})
    (error,) = refused.value.extra["errors"]
    assert (error["code"], error["field"]) == ("name_taken", "/aliases")


def test_no_card_type_is_declared_under_anothers_name(named):
    with pytest.raises(DomainError) as refused:
        named.carry_out({"card-type/H200": {}})
    assert refused.value.extra["errors"][0]["code"] == "name_taken"
    with pytest.raises(DomainError):
        named.carry_out({"card-type/NVIDIA-B200": {"aliases": ["two words"]}})


def test_what_a_node_shows_under_that_name_is_that_card(named):
    CardType.objects.create(cluster=named.cluster, name="H200", hardware=4)
    assert card_aliases(named.cluster) == {"h200-sxm": H200}


def test_rolled_back_the_found_card_has_only_its_own_name(ground):
    change = ground.carry_out(NAMED)
    back = changes.roll_back(change=change, access=ground.access("root"))
    changes.apply(change=back, access=ground.access("root"))
    card = CardType.objects.get(name=H200)
    assert (card.aliases, card.discovered, card.hardware) == ([], True, 16)
    assert f"card-type/{H200}" not in ground.tree()
    assert ground.quota("acme-online") == 6, "the quotas under its canonical name stay"


def test_what_has_no_such_shape_is_left_for_others_to_refuse():
    odd = {"queue/a": None, "queue/b": {"card_quota": 3}, "tenant/c": {"quota": {"inference": []}}}
    odd |= {"tide-plan/d": {"layers": ["x", {"quota": {"q": 1}}]}, "grant/e/f": {}, "project/g/h": {"name": "x"}}
    assert canonical_cards(odd, {"H200": H200}) == odd
