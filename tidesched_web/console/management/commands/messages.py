from django.core.management.base import BaseCommand

from tidesched_web.console import catalogue


class Command(BaseCommand):
    help = "Extract all texts into locale/*/LC_MESSAGES/django.po and say what lacks a translation."
    requires_system_checks = []

    def handle(self, *args: object, **options: object) -> None:
        for language in catalogue.LANGUAGES:
            missing = catalogue.update(language)
            self.stdout.write(f"{language}: {len(missing)} to translate")
            for text in missing:
                self.stdout.write(f"  {text}")
