"""The tree as a file and adoption, by page: out, in, compared, and then a change that is reviewed."""

from unittest.mock import patch

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.web.console.cast import H200, L40S
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import User
from tidesched_web.changes import adoption, tree_csv, tree_file
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.selectors import read_tree
from tidesched_web.clusters.models import CardType
from tidesched_web.common.errors import DomainError

pytestmark = pytest.mark.django_db
TREE, EXPORT, ADOPTION = "/clusters/demo/tree/", "/clusters/demo/tree/export/", "/clusters/demo/adoption/"


def test_the_export_holds_what_the_reader_sees(world):
    text = client_of(world.admin).get(EXPORT).content.decode()
    assert text == tree_file.dumps(read_tree(world.cluster), cluster="demo")
    own = tree_file.loads(client_of(world.member).get(EXPORT).content.decode())
    assert "queue/search-training" in own
    assert "queue/research-training" not in own
    table = client_of(world.member).get(f"{EXPORT}?format=csv").content.decode()
    assert table.startswith("\ufeffqueue,service_type,tenant")
    assert "research" not in table


def test_the_keys_of_the_file_stand_beside_the_words_of_the_pages(world):
    client = client_of(world.admin)
    text = changed(client.get(EXPORT).content.decode(), "NVIDIA-L40S: 14", "NVIDIA-L40S: 12")
    User.objects.filter(pk=world.admin.pk).update(language="zh-hans")
    assert "<dt>队列 <code>queues</code></dt>" in client.get(TREE).content.decode()
    page = client.post(TREE, {"text": text, "format": "yaml", "act": "compare"}).content.decode()
    assert '<code class="key fw-normal">queue/maps-route-inference</code>' in page
    assert 'fw-normal">队列</span>' in page
    assert '<span>L40S <code class="key">/card_quota/NVIDIA-L40S</code></span>' in page


def changed(text, before, after):
    assert before in text
    return text.replace(before, after, 1)


def test_a_file_is_compared_and_becomes_a_change_in_review(world):
    client = client_of(world.admin)
    text = changed(client.get(EXPORT).content.decode(), "NVIDIA-L40S: 14", "NVIDIA-L40S: 12")
    page = client.post(TREE, {"text": text, "format": "yaml", "act": "compare"}).content.decode()
    assert "1 object would change: 1 figure" in page
    assert "Make it a change and review it" in page
    refused = client.post(TREE, {"text": text, "format": "yaml", "act": "draft"})
    assert (refused.status_code, QuotaChange.objects.count()) == (400, 0)
    file = SimpleUploadedFile("tree.yaml", text.encode(), content_type="application/yaml")
    done = client.post(TREE, {"file": file, "format": "yaml", "act": "draft", "reason": "less"})
    change = QuotaChange.objects.get()
    assert done["Location"] == f"/clusters/demo/changes/{change.pk}/"
    assert (change.state, change.source, change.reason) == (ChangeState.DRAFT, "import", "less")
    assert change.edits == {"queue/maps-route-inference": {"card_quota": {L40S: 12}}}


def test_what_is_wrong_is_said_with_its_place(world):
    client = client_of(world.admin)
    wrong = client.post(TREE, {"text": "format: 1\nqueus: {}\n", "format": "yaml", "act": "compare"})
    assert wrong.status_code == 400
    assert "Did you mean &#x27;queues&#x27;?" in wrong.content.decode()
    bare = client.post(TREE, {"text": "queues: {}\n", "format": "yaml", "act": "compare"})
    assert "The file names no format: write format: 1 at its top." in bare.content.decode()
    text = changed(client.get(EXPORT).content.decode(), "NVIDIA-L40S: 14", "NVIDIA-L40S: 140")
    assert "the hardware of the cluster" in client.post(TREE, {"text": text, "act": "compare"}).content.decode()
    assert "Choose a file" in client.post(TREE, {"text": " ", "act": "compare"}).content.decode()
    same = client.post(TREE, {"text": client.get(EXPORT).content.decode(), "act": "compare"}).content.decode()
    assert "The tree says already what the file says." in same


def test_the_table_goes_out_and_comes_back(world):
    tree, cards = read_tree(world.cluster), list(CardType.objects.values_list("name", flat=True))
    text = tree_csv.dumps(tree, cards)
    assert tree_csv.loads(text, tree, cards) == {}
    assert tree_csv.loads(text.replace(",", ";").replace("\r\n", "\n"), tree, cards) == {}
    edits = tree_csv.loads(f'queue,cpu_milli,{H200},weight\nresearch-training,,"1,040.0",3\n', tree, cards)
    assert edits == {"queue/research-training": {"cpu_milli": None, "card_quota": {H200: 1040}, "weight": 3}}
    assert tree_csv.loads(f"queue,{H200}\nresearch-training,\n\n", tree, cards) == {
        "queue/research-training": {"card_quota": {H200: None}}
    }
    page = client_of(world.admin).post(TREE, {"text": f"queue,{H200}\nresearch-training,30\n", "format": "csv"})
    assert "1 object would change" in page.content.decode()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("queue,wieght\na,1\n", "Did you mean 'weight'?"),
        ("name\na\n", "There is no column 'name'."),
        ("weight\n1\n", "a column named queue"),
        ("queue,weight\nresearch-trainin,1\n", "Did you mean 'research-training'?"),
        ('queue,weight\nresearch-training,"1,5"\n', "'1,5' is no number: write a point"),
        ("queue,weight\nresearch-training,x\n", "Line 2, weight: 'x' is no number"),
        ("queue,weight\nresearch-training,1\nresearch-training,2\n", "Line 3: 'research-training' is there twice."),
        ("queue,weight,weight\n", "is there twice"),
        ('queue,weight\n"research-training,1\n', "quotation mark"),
        ("", "a column named queue"),
        ("queue,memory\nresearch-training,1Ki\n", "Line 2, memory: '1Ki' is no whole number of Mi."),
        ("queue,weight\nresearch-training,1,7\n", "Line 2, column 3: '7' is in a column without a head."),
        ("queue,weight\nresearch-training,1\nsearch-training,1,000\n", "Line 3, column 3: '000' is in a"),
        (
            "queue;cpu_milli\nresearch-training;64.000\n",
            "Line 2, cpu_milli: '64.000' can mean 64 or 64 000: write 64 or 64000.",
        ),
        ("queue;cpu_milli\nresearch-training;64.500\n", "'64.500' can mean 64.5 or 64 500: write 64.5 or 64500."),
        (f"queue;{H200}\nresearch-training;8,000\n", f"Line 2, {H200}: '8,000' can mean 8 or 8 000"),
        (f"queue\t{H200}\nresearch-training\t1.000\n", "'1.000' can mean 1 or 1 000"),
        (f'queue,{H200}\nresearch-training,"8,500"\n', "'8,500' can mean 8.5 or 8 500"),
        (f"queue;{H200}\nresearch-training;0,500\n", "'0,500' is no number"),
        (f"queue;{H200}\nresearch-training;1.024.000\n", "'1.024.000' is no number"),
        (f"queue;{H200}\nresearch-training;1 234,000\n", "'1 234,000' is no number"),
        ("queue,weight\nresearch-training,8.5\n", "'8.5' is no whole number."),
        ("queue,memory\nresearch-training,512\n", "Line 2, memory: '512' has no unit: write it as in 512Gi or 640Mi."),
        (
            "queue,memory_bytes\nresearch-training,4.39805E+12\n",
            "A spreadsheet has shortened this number to '4.39805E+12'",
        ),
        ("queue,weight,,\nresearch-training,1,,7\n", "Line 2, column 4: '7' is in a column without a head."),
        ("queue,memory,memory_bytes\n", "The column 'memory' is there twice."),
        (f"queue,weight,{H200}\nresearch-training,3\n", f"Line 2 ends before the column {H200}"),
        ("queue,weight\nresearch-training,1" + 20 * "0" + "\n", "is more than a number may be here."),
    ],
)
def test_a_wrong_table_is_refused_with_its_line(world, text, words):
    with pytest.raises(DomainError) as refused:
        tree_csv.loads(text, read_tree(world.cluster), [H200])
    assert words in refused.value.message


def test_the_table_comes_back_from_a_spreadsheet(world):
    """Heads in capitals, empty lines above and columns beside, memory as a text, the heads of earlier exports."""
    tree, cards = read_tree(world.cluster), list(CardType.objects.values_list("name", flat=True))
    text = tree_csv.dumps(tree, cards)
    head, *rows = text.removeprefix("\ufeff").splitlines()
    assert ",memory," in head
    saved = "\r\n".join([",,", head.upper() + ",,", *(f"{row},," for row in rows)])
    name = "tree.csv"
    client = client_of(world.admin)
    for data in (saved.encode("utf-16"), saved.encode(), f"sep=,\r\n{saved}".encode("utf-8-sig")):
        sent = {"file": SimpleUploadedFile(name, data), "format": "csv", "act": "compare"}
        assert "The tree says already what the file says." in client.post(TREE, sent).content.decode()
    for cell, memory in (("4.398046511104E+12", 4 * 2**40), ("4398046511104", 4 * 2**40), ("1.5 Ti", 1536 * 2**30)):
        edits = tree_csv.loads(f"Queue;Memory_Bytes\nresearch-training;{cell}\n", tree, cards)
        assert edits == {"queue/research-training": {"memory_bytes": memory}}
    assert tree_csv.loads("queue,cpu_milli,l40s\nresearch-training,64125m,3\n", tree, cards) == {
        "queue/research-training": {"cpu_milli": 64125, "card_quota": {L40S: 3}}
    }
    refused = client.post(TREE, {"file": SimpleUploadedFile(name, "queue\nGröße\n".encode("cp1252")), "format": "csv"})
    assert refused.status_code == 400
    assert "Line 2 has bytes that are no UTF-8: save the file as UTF-8" in refused.content.decode()


def test_the_grid_gets_the_lines_of_a_table(world):
    client, place = client_of(world.admin), "/clusters/demo/quota/edit/table/"

    def lines(text, source):
        return client.post(f"{place}?{source}", text, content_type="text/csv").json()

    assert lines("sep=;\n\nName;h200\n;\n'-x;8,000\n", "file") == {
        "lines": [[3, ["Name", "h200"]], [5, ["-x", "8,000"]]]
    }
    assert lines("1;2\t\n\n3\n", "paste") == {"lines": [[1, ["1;2", ""]], [2, [""]], [3, ["3"]]]}
    assert "no UTF-8" in lines(b"\xff\xff", "file")["error"]
    assert "quotation mark that does not end" in lines('"a\n', "paste")["error"]
    assert client_of(world.auditor).post(place, "a", content_type="text/csv").status_code == 403


LIVE = {
    "metadata": {
        "name": "old-training",
        "labels": {"team": "blue"},
        "annotations": {"volcano.sh/card.quota": '{"NVIDIA-L40S": 3}', "note": "ours"},
    },
    "spec": {
        "weight": 4, "reclaimable": True, "capability": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"},
        "extendClusters": [{"name": "far"}],
    },
    "status": {"state": "Open", "running": 2},
}  # fmt: skip


@pytest.mark.parametrize(("cell", "cards"), [("8.0", 8), ("8.00", 8), ("1,024,000", 1_024_000), ("1 024", 1024)])
def test_a_number_that_means_one_thing_is_taken(world, cell, cards):
    tree = read_tree(world.cluster)
    for text in (f'queue,{H200}\nresearch-training,"{cell}"\n', f"queue;{H200}\nresearch-training;{cell};;\n"):
        assert tree_csv.loads(text, tree, [H200]) == {"queue/research-training": {"card_quota": {H200: cards}}}


def test_a_page_refuses_a_table_that_can_mean_two_things(world):
    """The comparison said "CPU cores 512 -> 0.06"."""
    text = f"queue;cpu_milli;{H200}\nresearch-training;64.000;8,000\n"
    page = client_of(world.admin).post(TREE, {"text": text, "format": "csv", "act": "compare"})
    assert page.status_code == 400
    assert "can mean 64 or 64 000" in page.content.decode()


def test_a_live_queue_is_read_as_intent():
    found = adoption.read(LIVE)
    assert found.document == {
        "card_quota": {L40S: 3}, "state": "Open", "weight": 4, "reclaimable": True, "cpu_milli": 8000,
        "memory_bytes": 64 * 2**30,
    }  # fmt: skip
    assert (found.service_type, found.gangs, found.unread) == ("training", 2, [])
    odd = adoption.read({"metadata": {"name": "x", "annotations": {"volcano.sh/card.quota": "8"}},
                         "spec": {"capability": {"cpu": "many"}}})  # fmt: skip
    assert odd.unread == ["metadata.annotations[volcano.sh/card.quota]", "spec.capability.cpu"]


def test_adoption_shows_first_and_then_drafts_a_change(world):
    client = client_of(world.admin)
    line = world.queues["search-training"].business_line.slug
    sent = {"owner-old-training": f"business-line/search/{line}", "reason": "ours now"}
    with patch.object(adoption, "unmanaged", lambda cluster, known: [adoption.read(LIVE)]):
        page = client.get(ADOPTION).content.decode()
        assert "old-training" in page
        assert "1 queue of the cluster is decided on elsewhere." in page
        shown = client.post(ADOPTION, sent | {"act": "look"}).content.decode()
        for words in ("spec.capability.nvidia.com/gpu", "Stays", "spec.extendClusters", "metadata.labels.team"):
            assert words in shown
        assert client.post(ADOPTION, sent | {"act": "adopt", "reason": ""}).status_code == 400
        assert client.post(ADOPTION, {"act": "look"}).status_code == 400
        done = client.post(ADOPTION, sent | {"act": "adopt"})
        assert client_of(world.auditor).post(ADOPTION, sent).status_code == 403
    change = QuotaChange.objects.get()
    assert done["Location"] == f"/clusters/demo/changes/{change.pk}/"
    edit = change.edits["queue/old-training"]
    assert (edit["tenant"], edit["business_line"], edit["service_type"], edit["weight"]) == (
        "search",
        line,
        "training",
        4,
    )
    with patch.object(adoption, "unmanaged", lambda cluster, known: []):
        assert "Nothing to adopt" in client.get(ADOPTION).content.decode()
    # No server listens where the story's cluster is.
    broken = client.get(ADOPTION)
    assert broken.status_code == 503
    assert "Check the connection of the cluster" in broken.content.decode()
