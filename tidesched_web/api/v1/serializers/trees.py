"""The quota tree of a cluster as one file, as the API shows and takes it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tidesched_web.api.v1.serializers.briefs import ShownAsIs
from tidesched_web.api.v1.serializers.json_shapes import ref

TREE_SCHEMA = ref("Tree")


@extend_schema_field(TREE_SCHEMA)
class TreeField(ShownAsIs):
    """A tree: section → name → document."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise serializers.ValidationError("A tree is a map with sections such as queues.")
        return data


class TreeInput(serializers.Serializer[Any]):
    """What the tree has to say: `tree`, or `file` with the text of a YAML file."""

    tree = TreeField(required=False)
    file = serializers.CharField(required=False, trim_whitespace=False)
    keep = serializers.BooleanField(
        required=False, default=False, help_text="What is not named stays as it is instead of being deleted."
    )
    reason = serializers.CharField(max_length=1000, required=False, allow_blank=True, default="")
