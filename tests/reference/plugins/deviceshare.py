"""deviceshare: cards one by one as Volcano's device plugins count them."""

from __future__ import annotations

from tests.reference.world import HOLDING


class DeviceShare:
    """One kind of device; who holds which is kept while a pod stays where it is."""

    def __init__(self, arguments):
        self.sharing = arguments.get("deviceshare.GPUSharingEnable", False)
        self.numbers = arguments.get("deviceshare.GPUNumberEnable", False)
        self.virtual = arguments.get("deviceshare.VGPUEnable", False)
        self.policy = arguments.get("deviceshare.SchedulePolicy", "")
        self.weight = arguments.get("deviceshare.ScheduleWeight", 0)
        # Pod -> (node, whether it leaves, [(device number, memory, cores)])
        self.given = {}

    def filter(self, world, task, name):
        wish = self._wish(task)
        return wish is None or self._choose(world, wish, name, later=True) is not None

    def filter_now(self, world, task, name):
        wish = self._wish(task)
        return wish is None or self._choose(world, wish, name, later=False) is not None

    def curable(self, world, task, name):
        """Other pods may leave."""
        return True

    def score(self, world, task, name):
        wish = self._wish(task)
        if wish is None or not self.policy or not self.weight:
            return 0.0
        chosen = self._choose(world, wish, name, later=True)
        if not chosen:
            return 0.0
        return sum(self._worth(world, name, one) for one in chosen) / len(chosen) * float(self.weight)

    def _worth(self, world, name, one):
        number, memory, _ = one
        _, size, _ = self._devices(world, name)[number]
        pods, held, _ = self._use(world, name, number, later=True)
        if self.policy == "spread":
            return 100.0 if pods == 0 else 0.0
        return 100.0 * (held + memory) / size if size else 0.0

    def _wish(self, task):
        """(devices, alone, memory, percent, cores)"""
        asks = {name.removeprefix("volcano.sh/"): count for name, count in task["pod"].scalars.items()}
        if self.sharing and asks.get("gpu-memory"):
            return (1, False, asks["gpu-memory"], 0, 0)
        if self.numbers and asks.get("gpu-number"):
            return (asks["gpu-number"], True, 0, 100, 0)
        if self.virtual and (asks.get("vgpu-number") or asks.get("vgpu-memory")):
            memory, percent = asks.get("vgpu-memory", 0), asks.get("vgpu-memory-percentage", 0)
            if not memory and not percent:
                percent = 100
            return (
                asks.get("vgpu-number") or 1,
                False,
                memory,
                0 if memory else percent,
                min(asks.get("vgpu-cores", 0), 100),
            )
        return None

    def _devices(self, world, name):
        """number -> (name, memory, pods that may share it)"""
        node = world["nodes"][name]
        if self.virtual:
            found = {}
            for i, part in enumerate(node.annotations.get("volcano.sh/node-vgpu-register", "").split(":")):
                fields = part.split(",")
                if len(fields) >= 5 and fields[4] in ("true", "1"):
                    found[i] = (fields[0], int(fields[2]), int(fields[1]))
            return found
        number = node.scalars.get("volcano.sh/gpu-number", 0)
        each = node.scalars.get("volcano.sh/gpu-memory", 0) // number if number else 0
        sick = node.annotations.get("volcano.sh/gpu-unhealthy-ids", "").split(",")
        return {i: (str(i), each, 1 << 30) for i in range(number) if str(i) not in sick}

    def _use(self, world, name, number, *, later):
        """(pods, memory, cores) of a device."""
        self._bring_up(world)
        return self._in_use(name, number, later=later)

    def _in_use(self, name, number, *, later):
        held = [
            one
            for node, leaving, ones in self.given.values()
            if node == name and not (leaving and later)
            for one in ones
            if one[0] == number
        ]
        return len(held), sum(one[1] for one in held), sum(one[2] for one in held)

    def _choose(self, world, wish, name, *, later):
        self._bring_up(world)
        return self._fitting(world, wish, name, later=later)

    def _fitting(self, world, wish, name, *, later):
        count, alone, memory, percent, cores = wish
        fitting = []
        for number, (_, size, most) in self._devices(world, name).items():
            pods, held, busy = self._in_use(name, number, later=later)
            need = size * percent // 100 if percent else memory
            if pods >= most or size - held < need or busy + cores > 100:
                continue
            if ((alone or cores == 100) and pods) or (not cores and busy >= 100):
                continue
            fitting.append((number, need, pods, held))
        if len(fitting) < count:
            return None
        if self.policy == "binpack":
            fitting.sort(key=lambda one: (-one[3], one[0]))
        elif self.policy == "spread":
            fitting.sort(key=lambda one: (one[2], one[3], one[0]))
        return [(number, need, cores) for number, need, _, _ in fitting[:count]]

    def _bring_up(self, world):
        """Pods keep their devices; those that are new get some, by name."""
        here = {
            t["key"]: t
            for t in world["tasks"].values()
            if t["node"] and t["status"] in (*HOLDING, "pipelined") and self._wish(t) is not None
        }
        for key, (node, leaving, ones) in list(self.given.items()):
            now = here.get(key)
            if now is None or now["node"] != node:
                del self.given[key]
            elif (now["status"] == "releasing") != leaving:
                self.given[key] = (node, not leaving, ones)
        for key in sorted(here.keys() - self.given.keys()):
            task = here[key]
            ones = self._said(world, task) or self._fitting(world, self._wish(task), task["node"], later=True) or []
            self.given[key] = (task["node"], task["status"] == "releasing", ones)

    def _said(self, world, task):
        """The devices that a pod says it holds."""
        notes, devices = task["pod"].annotations, self._devices(world, task["node"])
        _, _, memory, percent, cores = self._wish(task)
        if "volcano.sh/vgpu-ids-new" in notes:
            numbers = {name: number for number, (name, _, _) in devices.items()}
            parts = [part.split(",") for part in notes["volcano.sh/vgpu-ids-new"].replace(";", ":").split(":")]
            return [(numbers[p[0]], int(p[2]), int(p[3])) for p in parts if len(p) >= 4 and p[0] in numbers]
        if "volcano.sh/gpu-index" in notes:
            said = [int(part) for part in notes["volcano.sh/gpu-index"].split(",") if part.strip().isdecimal()]
            need = {n: size * percent // 100 if percent else memory for n, (_, size, _) in devices.items()}
            return [(n, need[n], cores) for n in said if n in devices]
        return None
