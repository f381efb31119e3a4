"""Simplified Chinese: thousands are separated as in English; Django's own file separates nothing."""

THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
