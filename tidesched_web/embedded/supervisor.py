"""Keeps a table of processes alive: starts them, passes on what they say, starts again what dies, stops them in order.

One thread, one event loop. The children are started by the main thread, because the kernel ties their lives to it.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import time

from tidesched_web.common import incidents
from tidesched_web.common.incidents import Ending, Replaced
from tidesched_web.common.problems import Problems
from tidesched_web.embedded import identity
from tidesched_web.embedded.child import spawn
from tidesched_web.embedded.console_output import Output
from tidesched_web.embedded.data_folder import DataFolder
from tidesched_web.embedded.errors import StartError
from tidesched_web.embedded.hangs import EVERY_SECONDS, FOLDER, HangWatch, Question, ask
from tidesched_web.embedded.processes import ProcessSpec
from tidesched_web.env import Process, Runtime

# How long each stage of the stop may take before its processes are killed: 15 s altogether.
STAGE_SECONDS = (7.0, 3.0, 5.0)
_BACKOFF_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_STABLE_SECONDS = 30.0
# So many ends in a row are no accident any more.
_ENDS_EACH_TIME = 3
# Of all processes with the demo, each shared page once (docs/operations.md).
MEMORY = "2 GB"
_LONGEST_LINE, _LONGEST_ERROR = 64_000, 300


class Supervisor:
    def __init__(self, folder: DataFolder, output: Output, runtime: Runtime) -> None:
        self._folder = folder
        self._output = output
        self.runtime = runtime
        self.stopping = asyncio.Event()
        self._kept: dict[str, ProcessSpec] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._replaced: set[int] = set()
        self._born: dict[str, float] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._pumps: dict[int, asyncio.Task[None]] = {}
        self._last_line: dict[str, str] = {}
        self.deaths: dict[str, int] = {}
        self.hangs = HangWatch(folder.path / FOLDER)
        self._looking: asyncio.Task[None] | None = None
        self._asking: set[asyncio.Task[None]] = set()
        # Notes that Redis, which may be the one that hung, has not taken yet.
        self._notes: list[Replaced] = []
        self._endings: dict[str, Ending] = {}
        self._out_of_memory: set[str] = set()
        self.problems = Problems(folder.path, output.say)
        self._published = True

    def request_stop(self) -> None:
        """Ask for the stop. Asking again changes nothing: `make` passes on a signal that the whole group gets too."""
        self.stopping.set()

    def keep(self, spec: ProcessSpec) -> None:
        """Start a process and keep it alive from now on."""
        self._kept[spec.name] = spec
        if self._looking is None:
            self.hangs.begin()
            self._looking = asyncio.create_task(self._look_for_ever(), name="looks")
        if spec.asked is not None:
            asking = asyncio.create_task(self._ask(spec.name, spec.asked), name=f"asks {spec.name}")
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
        self._tasks[spec.name] = asyncio.create_task(self._keep_alive(spec.name), name=spec.name)

    def replace(self, spec: ProcessSpec) -> None:
        """Let a process end in good order and start it again as ``spec`` says, which is no death."""
        self._kept[spec.name] = spec
        if child := self._running.get(spec.name):
            self._replaced.add(child.pid)
            _signal(child, spec.stop_signal)

    async def run_once(self, spec: ProcessSpec) -> int:
        """Run a process to its end and return its exit status; a stop ends it."""
        child = self._start(spec)
        stop = asyncio.create_task(self.stopping.wait())
        done = asyncio.create_task(self._ended(child))
        await asyncio.wait({stop, done}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not done.done():
            _signal_group(child, signal.SIGTERM)
        await done
        self._forget(spec, child)
        return child.returncode

    async def stop(self) -> None:
        """Stop all processes, those that use others first; return when none is left."""
        self.stopping.set()
        for asking in list(self._asking):
            asking.cancel()
        for stage, seconds in enumerate(STAGE_SECONDS):
            specs = [spec for spec in self._kept.values() if spec.stage == stage]
            waiting = [self._tasks[spec.name] for spec in specs]
            for spec in specs:
                if child := self._running.get(spec.name):
                    _signal(child, spec.stop_signal)
            if waiting:
                await asyncio.wait(waiting, timeout=seconds)
            for spec in specs:
                if child := self._running.get(spec.name):
                    self._output.say(f"{spec.name} did not stop in {seconds:.0f} s and is killed")
                    kill_all(child)
            if waiting:
                await asyncio.wait(waiting)
        for pump in list(self._pumps.values()):
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(pump, 1.0)

    async def _keep_alive(self, name: str) -> None:
        self.deaths[name] = 0
        while not self.stopping.is_set():
            spec = self._kept[name]
            try:
                if self.deaths[name] and spec.before_restart:
                    spec.before_restart()
                child = self._start(spec)
            except (OSError, subprocess.SubprocessError, StartError) as error:
                await self._wait_after(spec, f"{name} cannot start: {error}")
                continue
            await self._until_ended(spec, child)
            if child.pid in self._replaced:
                self._replaced.discard(child.pid)
            elif not self.stopping.is_set():
                await self._wait_after(
                    spec, f"{name} ended ({how_it_ended(child.returncode, ours=name not in self._born)})", child
                )

    async def _until_ended(self, spec: ProcessSpec, child: subprocess.Popen[bytes]) -> None:
        self._born[spec.name] = time.monotonic()
        ended = asyncio.create_task(self._ended(child))
        if not (await asyncio.wait({ended}, timeout=_STABLE_SECONDS))[0]:
            self.deaths[spec.name] = 0
            if self._endings.pop(spec.name, None):
                incidents.write_endings(self.hangs.folder, self._endings)
        await ended
        # What it forked must not live on beside its successor.
        _signal_group(child, signal.SIGKILL)
        self._forget(spec, child)

    async def _wait_after(self, spec: ProcessSpec, what: str, child: subprocess.Popen[bytes] | None = None) -> None:
        """After an end, or a start that failed: longer each time."""
        self.deaths[spec.name] += 1
        deaths = self.deaths[spec.name]
        pause = _BACKOFF_SECONDS[min(deaths, len(_BACKOFF_SECONDS)) - 1]
        self._output.say(f"{what} and starts again in {pause} s")
        if child is not None and deaths >= _ENDS_EACH_TIME:
            await self._note_ending(spec, child)
            if child.returncode == -signal.SIGKILL and spec.name in self._born:
                self._out_of_memory.add(spec.name)
        await self._pause(pause)

    async def _note_ending(self, spec: ProcessSpec, child: subprocess.Popen[bytes]) -> None:
        """Say, where an operator looks, that a process does not stay alive, and what it said last."""
        if pump := self._pumps.get(child.pid):
            await asyncio.wait({pump}, timeout=1.0)
        last = self._last_line.get(spec.name) or how_it_ended(child.returncode)
        ending = Ending(spec.name, self.deaths[spec.name], last[:_LONGEST_ERROR])
        self._output.say(f"{spec.name}: {ending}")
        if spec.watched:
            self._endings[spec.name] = ending
            incidents.write_endings(self.hangs.folder, self._endings)

    async def _look_for_ever(self) -> None:
        """Each second: is there room, what hangs, what could not be written or shown yet."""
        while not self.stopping.is_set():
            try:
                room = self._look_for_room()
                self._end_what_hangs(room=room)
                self._output.flush()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look is made
                self.problems.put("supervisor", f"the supervisor's look at the processes failed: {error!r}")
            else:
                self.problems.put("supervisor", "")
            await self._pause(1.0)

    def _look_for_room(self) -> bool:
        self._out_of_memory = {name for name in self._out_of_memory if self.deaths[name]}
        self.problems.put("memory", how_it_ended(-signal.SIGKILL) if self._out_of_memory else "")
        # PostgreSQL, which has ended, begins with a file of 16 MiB.
        needed = 20 << 20 if any(self.deaths.values()) else 0
        lack = self._folder.lack_of_room(needed)
        self.problems.put("disk", lack)
        if not self._published:
            self._publish()
        return not lack

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)

    def _end_what_hangs(self, *, room: bool) -> None:
        """One that does not move is ended like one that died: what keeps it alive starts it again."""
        self.hangs.look(room=room)
        for spec in [spec for spec in self._kept.values() if spec.watched or spec.asked]:
            child, born = self._running.get(spec.name), self._born.get(spec.name)
            if child is None or born is None or child.poll() is not None:
                continue
            for report, standing in self.hangs.standing(spec.name, child.pid, born, asked=spec.asked is not None):
                what = f"{standing.activity} {standing.at}".rstrip()
                self._output.say(f"{spec.name} stands still ({what}, {standing.seconds:.0f} s) and is replaced")
                self._notes.append(incidents.note_of(report, standing, ended_by="supervisor"))
                if report.pid == child.pid:
                    kill_all(child)
                    del self._born[spec.name]
                else:  # one that a worker has forked: the worker starts another
                    identity.kill_if_same(report.pid, report.started)
        if self._notes and incidents.write(self.runtime.redis_url, self._notes[0]):
            del self._notes[0]

    async def _ask(self, name: str, question: Question) -> None:
        """Note when a process answers; one that has just started has time until its first answer."""
        while not self.stopping.is_set():
            child = self._running.get(name)
            if child is not None and await ask(question):
                self.hangs.heard(child.pid)
            await self._pause(EVERY_SECONDS)

    def _start(self, spec: ProcessSpec) -> subprocess.Popen[bytes]:
        child = spawn(
            spec.argv,
            env=spec.env,
            account=spec.account,
            death_signal=spec.stop_signal,
            cwd=spec.cwd,
            keep_fds=(self._folder.lock_fd, *spec.keep_fds),
        )
        self._running[spec.name] = child
        self._publish()
        self._last_line.pop(spec.name, None)
        pump = self._pumps[child.pid] = asyncio.create_task(self._pump(spec.name, child))
        pump.add_done_callback(lambda _ended: self._pumps.pop(child.pid, None))
        return child

    async def _ended(self, child: subprocess.Popen[bytes]) -> None:
        while child.poll() is None:  # noqa: ASYNC110 - a waiting thread would forbid to fork from this process
            await asyncio.sleep(0.1)

    def _forget(self, spec: ProcessSpec, child: subprocess.Popen[bytes]) -> None:
        self.hangs.forget(child.pid)
        if self._running.get(spec.name) is child:
            del self._running[spec.name]
            self._publish()

    def _publish(self) -> None:
        self.runtime.processes = {
            name: Process(child.pid, identity.started(child.pid)) for name, child in self._running.items()
        }
        try:
            self._folder.write_runtime(self.runtime)
        except OSError:  # the look for room says it, and writes it later
            self._published = False
        else:
            self._published = True

    async def _pump(self, name: str, child: subprocess.Popen[bytes]) -> None:
        """Pass on the lines of a child until its output ends."""
        assert child.stdout is not None
        os.set_blocking(child.stdout.fileno(), False)
        reader = asyncio.StreamReader()
        transport, _protocol = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), child.stdout
        )
        rest = b""
        try:
            while chunk := await reader.read(65_536):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._pass_on(name, line)
                if len(rest) > _LONGEST_LINE:
                    self._pass_on(name, rest)
                    rest = b""
            if rest:
                self._pass_on(name, rest)
        finally:
            transport.close()

    def _pass_on(self, name: str, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()
        self._output.line(name, text)
        self._last_line[name] = text.strip() or self._last_line.get(name, "")


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(number)


def _signal_group(child: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def kill_all(child: subprocess.Popen[bytes]) -> None:
    """End a process with all that it has started: stopped ones do not see its end, and would keep what it held."""
    below = identity.descendants(child.pid)
    _signal_group(child, signal.SIGKILL)
    for pid, start in below.items():
        identity.kill_if_same(pid, start)


def how_it_ended(status: int, *, ours: bool = False) -> str:
    """In words; signal 9, if it is not ours, is nearly always the kernel's answer to a lack of memory."""
    if status == -signal.SIGKILL and not ours:
        return f"killed from outside (signal 9), probably for too little memory: TideSched needs about {MEMORY}"
    return f"signal {-status}" if status < 0 else f"exit status {status}"
