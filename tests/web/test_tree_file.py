"""The tree as one file: byte-stable, strict, and the way there and back changes nothing."""

import io

import pytest
import yaml
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import quota_writes
from tidesched_web.changes import tree_file
from tidesched_web.changes.documents import canonical
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.selectors import read_tree
from tidesched_web.changes.tree_document import merged
from tidesched_web.changes.tree_import import edits_to
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.common.errors import DomainError
from tidesched_web.quota.models import Queue

CARDS = ("NVIDIA-H200", "NVIDIA-H200/mig-1g.18gb-mixed", "NVIDIA-H800/mps-80g*1/2", "yes", "1e3", "0x10")
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
slugs = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
awkward = st.sampled_from(["yes", "no", "null", "1", "1e3", "0x1f", "2026-10-01", "on", "12-30", "true", "e1"])
names = slugs | awkward.filter(lambda name: not name.startswith("-"))
counts = st.integers(0, 10**6)
card_maps = st.dictionaries(st.sampled_from(CARDS), counts, max_size=4)
figures = st.fixed_dictionaries(
    {}, optional={"card_quota": card_maps, "cpu_milli": counts, "memory_bytes": counts.map(lambda n: n * 2**20)}
)
limits = st.dictionaries(st.sampled_from(["inference", "training"]), figures)
amounts = st.builds(dict, set=counts) | st.builds(dict, add=st.integers(-1000, 1000))
layers = st.fixed_dictionaries(
    {
        "days": st.lists(st.sampled_from(["mon", "wed", "sun"]), min_size=1, unique=True),
        "start": st.sampled_from(["00:00", "22:30", "07:15"]),
        "end": st.sampled_from(["24:00", "06:00", "08:00"]),
        "quota": st.dictionaries(
            names, st.dictionaries(st.sampled_from(CARDS), amounts, min_size=1), min_size=1, max_size=2
        ),
    },
    optional={"name": texts},
)
documents = {
    "card-type": st.fixed_dictionaries(
        {"kind": st.sampled_from(["whole", "mig"])},
        optional={"aliases": st.lists(slugs, max_size=3), "resource": texts},
    ),
    "tenant": st.fixed_dictionaries(
        {"name": texts}, optional={"description": texts, "approval_required": st.booleans(), "quota": limits}
    ),
    "business-line": st.fixed_dictionaries({"name": texts}),
    "priority-class": st.fixed_dictionaries(
        {"value": st.integers(-(2**31), 10**9)}, optional={"description": texts, "global_default": st.booleans()}
    ),
    "queue": st.fixed_dictionaries(
        {"service_type": st.sampled_from(["inference", "training"])},
        optional={
            "tenant": names, "project": names, "weight": st.integers(1, 100), "card_quota": card_maps,
            "deserved": st.dictionaries(st.sampled_from(["cpu", "gpu"]), st.sampled_from(["8", "500m", "64Gi"])),
            "state": st.sampled_from(["Open", "Closed"]), "reclaimable": st.booleans(), "cpu_milli": counts,
        },
    ),
    "tide-plan": st.fixed_dictionaries(
        {},
        optional={
            "enabled": st.booleans(), "time_zone": st.sampled_from(["UTC", "Asia/Shanghai"]),
            "layers": st.lists(layers, max_size=3), "position": counts,
            "exceptions": st.dictionaries(st.dates().map(str), st.sampled_from(["none", "sun"]), max_size=3),
        },
    ),
}  # fmt: skip
keys = {
    "card-type": slugs,
    "tenant": names, "business-line": st.builds("{}/{}".format, names | st.just("-"), names),
    "priority-class": slugs, "queue": names.filter(lambda name: name == name.lower()), "tide-plan": names,
}  # fmt: skip


@st.composite
def trees(draw):
    """Canonical trees: what the database holds. Whether they hang together does not matter to the file."""
    found = {}
    for kind, shape in documents.items():
        for name, given_ in draw(st.dictionaries(keys[kind], shape, max_size=2)).items():
            document, faults = canonical(f"{kind}/{name}", given_)
            if not faults:
                found[f"{kind}/{name}"] = document
    for namespace, queue in draw(st.lists(st.tuples(slugs, slugs), max_size=2)):
        found[f"grant/{namespace}/{queue}"] = {}
    return {key: found[key] for key in sorted(found)}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trees())
def test_a_tree_goes_out_and_comes_back_the_same_and_its_bytes_too(tree):
    text = tree_file.dumps(tree, cluster="demo")
    assert tree_file.loads(text) == tree
    assert tree_file.dumps(tree_file.loads(text), cluster="demo") == text
    assert tree_file.dumps(dict(reversed(tree.items())), cluster="demo") == text
    assert yaml.safe_load(text)["format"] == 1, "any reader of YAML takes it"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trees(), trees())
def test_the_edits_from_one_tree_to_another_lead_there(before, after):
    assert merged(before, edits_to(before, after)) == after
    assert edits_to(after, after) == {}
    kept = merged(before, edits_to(before, after, keep=True))
    assert set(kept) == {*before, *after}


@pytest.mark.parametrize(
    ("text", "words", "pointer"),
    [
        ("format: 1\nqueue:\n  a: {}\n", "Did you mean 'queues'?", "/queue"),
        ("format: 1\nqueues: {a: {service_type: training, wieght: 2}}\n", "mean 'weight'?", "/queues/a/wieght"),
        ("format: 1\nqueues:\n  a: {service_type: train}\n", "none of inference", "/queues/a/service_type"),
        ("format: 2\n", "format 2", "/format"),
        ("queues: {}\n", "names no format", "/format"),
        ("- a\n", "has to be a map", ""),
        ("format: 1\nqueues:\n  a: {}\n  a: {}\n", "Line 4: 'a' is there twice", ""),
        ('format: 1\nqueues:\n  1: {}\n  "1": {}\n', "Line 4: '1' is there twice", ""),
        ('format: 1\npriority_classes: {a: {value: 1, replace: no}}\n', "true or false", "/priority_classes/a/replace"),
        ("format: 1\nqueues: [\n", "Line 3", ""),
        ("format: 1\nqueues: 3\n", "queues has to be a map", "/queues"),
        ("format: 1\nqueues: {a: 3}\n", "queue/a has to be a map", "/queues/a"),
        ("format: 1\nprojects: {a: {}}\n", "names no object", "/projects/a"),
        ("format: 1\nqueues: !!python/object:os.system {}\n", "constructor", ""),
        ("format: 1\nqueues: &a {b: *a}\n", "holds itself", None),
        ("format: 1\nqueues: {a: &a {weight: 1}, " + "".join(f"q{n}: *a," for n in range(2000)) + "}", "repeat", None),
        ("format: " + "[" * 100_000, "deep", None),
        ("format: !!bool soon\n", "", None),
        ("format: 1\ntide_plans: {n: {layers: [{start: 5}]}}\n", "no time of day", "/tide_plans/n/layers/0/end"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(text, words, pointer):
    with pytest.raises(DomainError) as refused:
        tree_file.loads(text)
    errors = refused.value.extra["errors"]
    assert words in refused.value.message + str(errors)
    if pointer is not None:
        assert pointer in [error["pointer"] for error in errors]


def test_a_large_file_is_refused(monkeypatch):
    monkeypatch.setattr(tree_file, "MOST_BYTES", 10)
    with pytest.raises(DomainError, match="larger"):
        tree_file.loads("format: 1\nqueues: {}\n")


@pytest.fixture
def cluster(db):
    made = clusters.create(name="East", slug="east", api_url="https://10.0.0.1:6443", actor="root", token="secret")
    for name, hardware in (("NVIDIA-H200", 16), ("NVIDIA-A100", 8)):
        CardType.objects.create(cluster=made, name=name, hardware=hardware, last_seen_at=timezone.now())
    tenant = quota_writes.ensure_tenant(slug="acme", name="Acme: the company", actor="root")
    project = quota_writes.ensure_project(tenant=tenant, slug="chat", actor="root")
    line = quota_writes.ensure_business_line(tenant=None, slug="research", actor="root")
    queue = quota_writes.create_queue(
        cluster=made, name="online", service_type="inference", project=project, card_quota={"NVIDIA-H200": 4},
        actor="root",
    )  # fmt: skip
    quota_writes.create_queue(cluster=made, name="offline", service_type="training", business_line=line, actor="root")
    quota_writes.ensure_default_priority_classes(cluster=made, actor="root")
    quota_writes.ensure_grant(queue=queue, namespace="chat", actor="root")
    return made


def run(*args):
    out = io.StringIO()
    code = 0
    try:
        call_command("tree", *args, stdout=out, stderr=out)
    except SystemExit as ended:
        code = ended.code
    return out.getvalue(), code


def test_the_commands_export_compare_and_apply(cluster, tmp_path):
    text, _code = run("export")
    assert text == tree_file.dumps(read_tree(cluster), cluster="east")
    assert 'name: "Acme: the company"' in text
    file = tmp_path / "tree.yaml"
    file.write_text(text, encoding="utf-8")
    assert run("diff", str(file)) == ("", 0)
    assert run("apply", str(file), "--reason", "none")[0] == "The tree says so already.\n"
    file.write_text(text.replace("NVIDIA-H200: 4", "NVIDIA-H200: 6"), encoding="utf-8")
    assert run("diff", str(file)) == ("~ queue/online/card_quota/NVIDIA-H200: 4 -> 6\n", 1)
    said, code = run("apply", str(file), "--reason", "more chat")
    assert (code, QuotaChange.objects.get().source) == (0, "import")
    assert f"change {QuotaChange.objects.get().pk}: appl" in said
    assert read_tree(cluster)["queue/online"]["card_quota"] == {"NVIDIA-H200": 6}
    assert run("diff", str(file)) == ("", 0)
    file.write_text(text.replace("NVIDIA-H200: 4", "NVIDIA-H200: 60"), encoding="utf-8")
    said, code = run("diff", str(file))
    assert (code, "error: queue/online/card_quota/NVIDIA-H200: " in said) == (1, True)
    with pytest.raises(CommandError, match="60"):
        run("apply", str(file), "--reason", "too much")
    with pytest.raises(CommandError, match="cannot be read"):
        run("diff", str(tmp_path / "nothing.yaml"))


def test_what_a_file_does_not_name_goes_unless_it_is_kept(cluster, tmp_path):
    file = tmp_path / "tree.yaml"
    tree = {key: document for key, document in read_tree(cluster).items() if key != "queue/offline"}
    file.write_text(tree_file.dumps(tree, cluster="east"), encoding="utf-8")
    assert run("diff", str(file), "--keep") == ("", 0)
    said, code = run("diff", str(file))
    assert (code, "- queue/offline" in said) == (1, True)
    run("apply", str(file), "--reason", "it is over")
    assert not Queue.objects.filter(name="offline").exists()


def test_several_clusters_need_a_name(cluster):
    clusters.create(name="West", slug="west", api_url="https://10.0.0.2:6443", actor="root", token="secret")
    assert Cluster.objects.count() == 2
    with pytest.raises(CommandError, match="east, west"):
        run("export")
    assert "cluster: west" in run("export", "--cluster", "west")[0]


def test_an_import_of_many_queues_asks_the_database_hardly_more_than_one_of_few(cluster, tmp_path):
    file, asked = tmp_path / "tree.yaml", {}
    for first, count in ((0, 5), (5, 200)):
        tree = read_tree(cluster)
        like = tree["queue/online"], tree["queue/offline"]
        for number in range(first, first + count):
            tree[f"queue/q{number}"] = like[number % 2] | {"card_quota": {"NVIDIA-A100": 0}, "weight": 2}
            tree[f"grant/ns{number}/q{number}"] = {}
            quota = {"inference": {"cpu_milli": 1000 + number, "memory_bytes": 2**30}}
            tree[f"project/acme/p{number}"] = tree["project/acme/chat"] | {"quota": quota}
        file.write_text(tree_file.dumps(tree, cluster="east"), encoding="utf-8")
        with CaptureQueriesContext(connection) as queries:
            run("apply", str(file), "--reason", "a new hall")
        asked[count] = len(queries)
        assert read_tree(cluster) == tree
    assert Queue.objects.filter(cluster=cluster).count() == 207
    assert asked[200] <= asked[5] + 5, asked
    for number in range(205):
        quota = {"inference": {"cpu_milli": 7}} if number % 2 else {"training": {"memory_bytes": 2**31}}
        tree[f"project/acme/p{number}"] = tree[f"project/acme/p{number}"] | {"quota": quota if number % 3 else {}}
    file.write_text(tree_file.dumps(tree, cluster="east"), encoding="utf-8")
    with CaptureQueriesContext(connection) as queries:
        run("apply", str(file), "--reason", "other figures")
    assert read_tree(cluster) == tree
    assert len(queries) <= asked[200], len(queries)
