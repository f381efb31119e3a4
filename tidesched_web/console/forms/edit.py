from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tidesched_web.changes.tree_document import unescaped
from tidesched_web.common.errors import DomainError
from tidesched_web.console.forms.meanwhile import Meanwhile, take_over
from tidesched_web.console.forms.number_words import NumberWords

# The service's words are exact and English; these are the reader's, where one sentence fits every case.
WORDS: Mapping[str, str | Promise] = {
    "already_exists": _("There is one of this name already."),
    "permission_denied": _("You may not do this."),
}


def reason_field(*, required: bool = True) -> forms.CharField:
    return forms.CharField(
        label=_("Reason"),
        max_length=1000,
        required=required,
        help_text=_("It is kept in the audit log with your name."),
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": _("Say why: the reason goes into the audit log.")},
    )


class EditForm(NumberWords):
    """``pointers`` maps the service's names of fields to the form's; ``meanwhile`` says what another person changed."""

    pointers: Mapping[str, str] = {}
    meanwhile: Meanwhile | None = None

    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            kind = "form-control"
            if isinstance(field.widget, forms.Select):
                kind = "form-select"
            elif isinstance(field.widget, forms.CheckboxInput | forms.RadioSelect):
                kind = "form-check-input"
            field.widget.attrs.setdefault("class", kind)

    def full_clean(self) -> None:
        """What does not say of which version it is, although its page does, is not taken for the newest one."""
        super().full_clean()
        if self.is_bound and self.initial.get("version") is not None and not self.data.get(self.add_prefix("version")):
            said = gettext("What was sent does not say which version of this its author had looked at.")
            self.meanwhile = take_over(self, said, known=False)

    def is_valid(self) -> bool:
        return super().is_valid() and self.meanwhile is None

    def add_error(self, field: str | None, error: Any) -> None:
        if field in self.fields and isinstance(self.fields[field].widget, forms.HiddenInput):
            said = _("This page sent a value of %(field)s that it does not have: load it again.")
            field, error = None, said % {"field": field}
        super().add_error(field, error)

    def values(self) -> dict[str, Any]:
        found = dict(self.cleaned_data)
        if found.get("version") is None or self.initial.get("version") is None:
            found.pop("version", None)
        return found

    def saved(self, act: Callable[..., object], **arguments: Any) -> bool:
        try:
            act(**arguments)
        except DomainError as error:
            self.refuse(error)
            return False
        return True

    def refuse(self, error: DomainError) -> None:
        if error.code == "stale" and self.initial.get("version") is not None:
            self.meanwhile = take_over(self, error.message)
            return
        entries = error.extra.get("errors") or [{"pointer": "", "code": error.code, "detail": error.message}]
        for entry in entries:
            name = self._field_of(entry)
            own = WORDS.get(entry["code"]) if name else None
            self.add_error(name, str(own or entry["detail"]))

    def _field_of(self, entry: Mapping[str, Any]) -> str | None:
        pointer = entry.get("field") or entry["pointer"]
        steps = [unescaped(step) for step in pointer.split("/") if step]
        for step in reversed(steps):
            name = self.pointers.get(step, step)
            if name in self.fields and not isinstance(self.fields[name].widget, forms.HiddenInput):
                return name
        return None

    @property
    def refused_as(self) -> int:
        return 412 if self.meanwhile else 400 if self.errors else 200


class ReasonForm(EditForm):
    reason = reason_field()
