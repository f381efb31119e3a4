from django.conf import settings

from tidesched_web.accounts.models import SCOPE_WORDS

_SCOPES = "\n".join(f"| `{scope}` | {words} |" for scope, words in SCOPE_WORDS.items())
_TEXT = (settings.BASE_DIR / "templates" / "api" / "introduction.md").read_text(encoding="utf-8")
INTRODUCTION = _TEXT.replace("@SCOPES@", _SCOPES)
