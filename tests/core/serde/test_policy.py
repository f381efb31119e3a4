"""Policy files: every name and value is checked, and each error names its line."""

import os
from pathlib import Path

import pytest
import yaml

from scheduler_core.model.errors import BadInput
from scheduler_core.serde.policy import parse_policy
from scheduler_core.serde.policy.founding import FOUNDING_POLICY

SHARED = Path(os.environ.get("TIDESCHED_DATA", "../shared/data"))

SMALL = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
"""


def error_of(text, file="policy.conf"):
    with pytest.raises(BadInput) as caught:
        parse_policy(text, file)
    return caught.value


def plugin(policy, name):
    return next(option for tier in policy.tiers for option in tier if option.name == name)


class TestFounding:
    def test_it_parses_unchanged(self):
        policy = parse_policy(FOUNDING_POLICY)
        assert policy.actions == ("enqueue", "allocate", "backfill", "reclaim")
        assert [[option.name for option in tier] for tier in policy.tiers] == [
            ["priority", "gang", "conformance"],
            ["predicates", "capacity-card", "nodeorder"],
        ]
        assert plugin(policy, "gang").switches == {"reclaimable": False}
        card = plugin(policy, "capacity-card").arguments
        assert card["overCommitFactor"] == 2.0
        assert card["cardUnlimitedCpuMemory"] is True
        assert card["podOwnerReferenceToServiceType"] == {
            "ReplicaSet": "inference",
            "Deployment": "inference",
            "Job": "training",
        }
        assert policy.warnings == ()
        assert policy.source == FOUNDING_POLICY

    def test_the_file_of_the_document_is_the_same_policy(self):
        file = SHARED / "founding" / "volcano-scheduler.conf"
        if not file.exists():
            pytest.skip(f"{file} is not there; TIDESCHED_DATA names the folder of the shared data")
        ours = parse_policy(FOUNDING_POLICY)
        theirs = parse_policy(file.read_text())
        assert (theirs.actions, theirs.tiers, theirs.action_arguments) == (
            ours.actions,
            ours.tiers,
            ours.action_arguments,
        )

    def test_inside_a_config_map(self):
        document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "volcano-scheduler-configmap"},
            "data": {"volcano-scheduler.conf": FOUNDING_POLICY},
        }
        assert parse_policy(yaml.safe_dump(document)) == parse_policy(FOUNDING_POLICY)

    def test_lines_inside_a_config_map_are_those_of_the_file(self):
        inner = SMALL.replace("gang", "gnag")
        text = "kind: ConfigMap\napiVersion: v1\ndata:\n  volcano-scheduler.conf: |\n"
        text += "".join(f"    {line}\n" for line in inner.splitlines())
        error = error_of(text)
        assert text.splitlines()[error.line - 1].strip() == "- name: gnag"

    def test_a_config_map_without_a_policy(self):
        assert error_of("kind: ConfigMap\ndata: {a: b}\n").code == "malformed_policy"


class TestNames:
    @pytest.mark.parametrize(
        ("old", "new", "code", "line", "hint"),
        [
            ("allocate", "alocate", "unknown_action", 1, "did you mean 'allocate'?"),
            ("allocate", "enqueue", "duplicate_action", 1, None),
            ("- name: gang", "- name: gagn", "unknown_plugin", 5, "did you mean 'gang'?"),
            (
                "- name: gang",
                "- name: network-topology-aware",
                "not_built",
                5,
                "leave it out; with 'compatibility: volcano' at the top it is passed over with a warning",
            ),
            ("- name: gang", "- name: priority", "duplicate_plugin", 5, None),
            (
                "- name: gang",
                "- {name: gang, enableReclaimble: false}",
                "unknown_switch",
                5,
                "did you mean 'enableReclaimable'?",
            ),
            ("- name: gang", "- {name: gang, enableReclaimable: 'no way'}", "bad_value", 5, "true or false"),
            (
                "- name: gang",
                "- {name: gang, arguments: {x: 1}}",
                "unknown_argument",
                5,
                "plugin 'gang' takes no arguments",
            ),
            ("- name: gang", "- {nam: gang}", "malformed_policy", 5, "- name: gang"),
            ("- name: gang", "- gang", "malformed_policy", 5, "- name: gang"),
            ("tiers:", "teirs:", "unknown_key", 2, "did you mean 'tiers'?"),
            (
                "tiers:",
                "tiers: 7\nx:",
                "unknown_key",
                3,
                "known: actions, compatibility, configurations, profiles, tiers",
            ),
            ("- plugins:", "- plugin:", "unknown_key", 3, "plugins"),
        ],
    )
    def test_a_name_that_is_not_known(self, old, new, code, line, hint):
        error = error_of(SMALL.replace(old, new))
        assert (error.code, error.line, error.hint, error.file) == (code, line, hint, "policy.conf")

    def test_not_built_says_so(self):
        message = "plugin 'network-topology-aware': known, not built yet"
        assert error_of(SMALL.replace("gang", "network-topology-aware")).message == message

    @pytest.mark.parametrize("spelling", ["enableJobOrder", "enabledJobOrder"])
    def test_both_spellings_of_a_switch(self, spelling):
        policy = parse_policy(SMALL.replace("- name: gang", f"- {{name: gang, {spelling}: false}}"))
        assert plugin(policy, "gang").switches == {"job_order": False}

    @pytest.mark.parametrize(
        ("spelling", "switches", "warned"), [("enableJobOrder", {"job_order": False}, 0), ("enabledJobOrder", {}, 1)]
    )
    def test_volcano_understands_one_spelling(self, spelling, switches, warned):
        text = "compatibility: volcano\n" + SMALL.replace("- name: gang", f"- {{name: gang, {spelling}: false}}")
        policy = parse_policy(text)
        assert (plugin(policy, "gang").switches, len(policy.warnings)) == (switches, warned)

    def test_a_policy_without_tiers_or_actions(self):
        assert error_of("actions: allocate\n").code == "malformed_policy"
        assert error_of("").code == "empty_policy"
        assert error_of("just text").code == "malformed_policy"
        assert error_of("actions: ''\ntiers: []\n").code == "malformed_policy"
        assert parse_policy("tiers: [{plugins: [{name: gang}]}]").actions == ("enqueue", "allocate", "backfill")

    def test_yaml_that_is_none(self):
        error = error_of("actions: [a\ntiers: b\n")
        assert (error.code, error.line) == ("malformed_yaml", 2)

    def test_a_key_twice(self):
        error = error_of(SMALL + "actions: allocate\n")
        assert (error.code, error.line) == ("duplicate_key", 6)


class TestArguments:
    def conf(self, **arguments):
        return SMALL + yaml.safe_dump(
            [{"plugins": [{"name": "capacity-card", "arguments": arguments}, {"name": "nodeorder"}]}]
        )

    @pytest.mark.parametrize(
        ("name", "value", "says"),
        [
            ("overCommitFactor", "two", "is a number"),
            ("overCommitFactor", 0.5, "is 1 to"),
            ("overCommitFactor", True, "is a number"),
            ("overCommitFactor", float("nan"), "is 1 to"),
            ("cardUnlimitedCpuMemory", "maybe", "is true or false"),
            ("cardUnlimitedCpuMemory", 1, "is true or false"),
            ("unknownReclaimer", "alow", "did you mean 'allow'?"),
            ("podOwnerReferenceToServiceType", "x", "is a mapping"),
            ("podOwnerReferenceToServiceType", {"Job": "trianing"}, "did you mean 'training'?"),
        ],
    )
    def test_a_value_that_cannot_be(self, name, value, says):
        error = error_of(self.conf(**{name: value}))
        assert error.code == "bad_argument"
        assert says in error.message
        assert f"arguments.{name}" in error.path
        assert error.line

    def test_defaults_are_filled_in(self):
        card = plugin(parse_policy(self.conf()), "capacity-card").arguments
        assert (card["overCommitFactor"], card["unknownReclaimer"]) == (1.0, "deny")

    def test_a_near_name_is_named(self):
        error = error_of(self.conf(overcommitfactor=2))
        assert (error.code, error.hint) == ("unknown_argument", "did you mean 'overCommitFactor'?")

    def test_arguments_of_actions(self):
        assert error_of(SMALL + "configurations: [{name: alocate}]\n").hint == "did you mean 'allocate'?"
        error = error_of(SMALL + "configurations: [{name: allocate, arguments: {speed: 9}}]\n")
        assert error.code == "unknown_argument"
        policy = parse_policy(SMALL + "configurations: [{name: reclaim, arguments: {reservationSeconds: 60}}]\n")
        assert policy.action_arguments["reclaim"]["reservationSeconds"] == 60


class TestCompatibility:
    def test_what_is_unknown_becomes_a_warning(self):
        text = (
            "compatibility: volcano\n"
            + SMALL
            + "  - {name: network-topology-aware, enablePreemptable: false}\n"
            + "  - {name: nonsense}\n"
            + "  - {name: conformance, enableReclaimble: false}\n"
            + "metrics: {type: prometheus}\n"
            + "colour: blue\n"
        )
        policy = parse_policy(text)
        assert policy.compatibility == "volcano"
        assert policy.actions == ("enqueue", "allocate")
        assert [option.name for option in policy.tiers[0]] == ["priority", "gang", "conformance"]
        assert len(policy.warnings) == 5
        assert all(warning.startswith("line ") and warning.endswith("has no effect") for warning in policy.warnings)

    def test_an_unknown_action_stays_an_error(self):
        assert error_of("compatibility: volcano\n" + SMALL.replace("allocate", "alocate")).code == "unknown_action"

    def test_another_word_is_an_error(self):
        assert error_of("compatibility: vulcano\n" + SMALL).code == "bad_value"


class TestBesideArguments:
    @pytest.mark.parametrize(
        ("plugin", "key", "hint"),
        [
            ("overcommit", "overcommit-factor: 1.5", "overcommit-factor belongs below arguments"),
            ("binpack", "binpack.resources.nvidia.com/gpu: 2", "belongs below arguments"),
            ("predicates", "predicate.GPUSharingEnable: true", "belongs below arguments"),
            ("overcommit", "overcomit-factor: 1.5", "did you mean 'overcommit-factor'?"),
        ],
    )
    def test_an_argument_too_far_to_the_left_is_told(self, plugin, key, hint):
        error = error_of(f"actions: allocate\ntiers:\n- plugins:\n  - name: {plugin}\n    {key}\n")
        assert (error.code, error.line) == ("unknown_switch", 5)
        assert hint in error.hint

    @pytest.mark.parametrize("key", ["predicate.GPUSharingEnable", "predicate.DynamicResourceAllocationEnable"])
    def test_an_argument_that_is_not_built_is_known(self, key):
        text = f"actions: allocate\ntiers:\n- plugins:\n  - name: predicates\n    arguments: {{{key}: true}}\n"
        assert error_of(text).code == "not_built"


class TestKubeScheduler:
    CONF = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

    def test_weights_become_those_of_nodeorder(self):
        policy = parse_policy(
            self.CONF
            + """\
profiles:
- schedulerName: default-scheduler
  plugins:
    queueSort: {enabled: [{name: PrioritySort}]}
    filter: {enabled: [{name: NodeAffinity}], disabled: [{name: "*"}]}
    score:
      enabled:
      - {name: NodeResourcesBalancedAllocation, weight: 5}
      - {name: TaintToleration}
      disabled: [{name: NodeResourcesLeastAllocated}]
"""
        )
        given = plugin(policy, "nodeorder").arguments
        assert (given["balancedresource.weight"], given["tainttoleration.weight"]) == (5, 1)
        assert given["leastrequested.weight"] == 0
        assert policy.actions == ("enqueue", "allocate", "backfill")

    def test_one_profile_is_for_its_scheduler_and_the_usual_ones(self):
        text = "profiles:\n- schedulerName: mine\n  plugins:\n    multiPoint: {enabled: [{name: Coscheduling}]}\n"
        policy = parse_policy(self.CONF + text)
        assert [profile.scheduler for profile in policy.profiles] == ["mine"]
        assert policy.profiles[0].tiers == policy.tiers

    def test_the_configuration_of_document_003(self):
        text = self.CONF + (
            "plugins:\n  score:\n    enabled:\n    - {name: RequestedToCapacityRatio, weight: 100}\n"
            "    disabled:\n    - {name: LeastRequestedPriority}\npluginConfig:\n- name: RequestedToCapacityRatio\n"
            "  args:\n    functionshape:\n    - {utilization: 0, score: 0}\n    - {utilization: 100, score: 100}\n"
            "    resourcetoweightmap: {cpu: 1, nvidia.com/gpu: 1}\n"
        )
        policy = parse_policy(text)
        given = plugin(policy, "requested-to-capacity-ratio").arguments
        assert given["weight"] == 100
        assert given["resourcetoweightmap"] == {"cpu": 1, "nvidia.com/gpu": 1}
        assert plugin(policy, "nodeorder").arguments["leastrequested.weight"] == 0

    def test_what_has_no_equivalent_is_named(self):
        text = self.CONF + "plugins: {filter: {enabled: [{name: CheckNodeColour}]}}\n"
        error = error_of(text)
        assert (error.code, error.line) == ("no_equivalent", 3)
        assert "CheckNodeColour at filter" in error.message
        assert error_of(self.CONF + "colour: blue\n").code == "unknown_key"
        assert error_of(self.CONF + "plugins: {colour: {}}\n").code == "unknown_key"
        assert error_of(self.CONF + "pluginConfig: [{name: NodeAffinity, args: {a: 1}}]\n").code == "no_equivalent"

    def test_several_profiles_become_profiles(self):
        policy = parse_policy(
            self.CONF
            + """\
profiles:
- schedulerName: batch
  plugins:
    multiPoint: {enabled: [{name: Coscheduling}], disabled: [{name: PrioritySort}]}
  pluginConfig:
  - {name: Coscheduling, args: {permitWaitingTimeSeconds: 30}}
- schedulerName: services
  plugins:
    postFilter: {enabled: [{name: DefaultPreemption}]}
    score: {enabled: [{name: InterPodAffinity, weight: 4}]}
- plugins: {}
"""
        )
        assert policy.tiers == ()
        names = {profile.scheduler: [o.name for tier in profile.tiers for o in tier] for profile in policy.profiles}
        assert names == {
            "batch": ["priority", "conformance", "predicates", "nodeorder", "coscheduling"],
            "services": ["priority", "priority-sort", "conformance", "predicates", "nodeorder", "default-preemption"],
            "default-scheduler": ["priority", "gang", "conformance", "predicates", "nodeorder"],
        }
        waits = policy.profiles[0].tiers[1][-1].arguments
        assert waits == {"waitSeconds": 30.0}


class TestWhatWouldBeRight:
    @pytest.mark.parametrize(
        ("text", "value", "hint"),
        [
            ("actions: allocate\ntiers: [{plugins: gang}]\n", "gang", "plugins: [{name: gang}]"),
            ("actions: allocate\ntiers: [{plugins: [gang]}]\n", "gang", "- name: gang"),
            ("actions: allocate\ntiers: gang\n", "gang", "tiers: [{plugins: [{name: gang}]}]"),
            ("actions: allocate\ntiers: [gang]\n", "gang", "- plugins: [{name: gang}]"),
        ],
    )
    def test_a_value_of_another_kind_is_shown_with_what_is_right(self, text, value, hint):
        error = error_of(text)
        assert (error.value, error.hint) == (value, hint)

    def test_a_list_in_place_of_a_text_is_shown(self):
        text = FOUNDING_POLICY.replace("Job: training", "Job: [training]")
        assert text != FOUNDING_POLICY
        error = error_of(text)
        assert error.value == ["training"]
        assert error.hint
