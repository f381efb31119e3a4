"""The rule of the shortest password, in words that the catalogue has: it lacks those of Django in Chinese."""

from django.contrib.auth.password_validation import MinimumLengthValidator
from django.utils.translation import ngettext


class MinimumLength(MinimumLengthValidator):
    def get_error_message(self) -> str:
        return ngettext(
            "The password is too short: it needs at least %(n)d character.",
            "The password is too short: it needs at least %(n)d characters.",
            self.min_length,
        ) % {"n": self.min_length}
