"""What a gang is for: inference, training or unknown. Source: design 4 "Tide rules", plan of the annotations, traps 21:
the queue's own service type is the upper bound, an annotation alone makes no gang inference."""

from collections.abc import Mapping

from scheduler_core.model.pod import ServiceType

_BY_NAME = {member.value: member for member in ServiceType}


def service_type(annotation: str, owner_kind: str, queue_type: str, by_owner: Mapping[str, str]) -> ServiceType:
    """Service type of a gang. ``annotation``: ``volcano.sh/service.type`` of the PodGroup, empty = unset.
    ``owner_kind``: kind of what owns the pods. ``queue_type``: ``tidesched.io/service-type`` of the queue, empty = the
    queue says nothing. ``by_owner``: argument ``podOwnerReferenceToServiceType``."""
    if annotation:
        own = _BY_NAME.get(annotation, ServiceType.UNKNOWN)
    else:
        own = _BY_NAME.get(by_owner.get(owner_kind, ""), ServiceType.UNKNOWN)
    if queue_type == ServiceType.TRAINING.value:
        return ServiceType.TRAINING
    if queue_type == ServiceType.INFERENCE.value:
        return ServiceType.TRAINING if annotation == ServiceType.TRAINING.value else ServiceType.INFERENCE
    return own
