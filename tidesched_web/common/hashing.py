"""How passwords are hashed; older PBKDF2 hashes are still read, and the next sign-in replaces them."""

from django.contrib.auth.hashers import Argon2PasswordHasher


class Argon2(Argon2PasswordHasher):
    """Argon2id with 19 MiB and two passes, the first of the settings that OWASP's password cheat sheet recommends."""

    time_cost = 2
    memory_cost = 19_456
    parallelism = 1
