"""Random steps for the overlap scheduler: random_step(seed) gives a text, its side-car, options, and the MiB up to
which FSDP's collectives are merged first, or None."""

import random

GROUPS = {"0": list(range(8)), "1": [0, 1], "2": [0, 2, 4, 6]}
DTYPES = {"f32": "float32", "bf16": "bfloat16"}
COMM = "_c10d_functional"


class Step:
    """A value is (name, dtype, rows, columns)."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.size = self.r.choice([64, 256, 1024])
        self.groups = self.r.sample(list(GROUPS), self.r.choice([1, 1, 2, 3]))
        self.lines, self.flying, self.count, self.used = [], [], {"slice": 0}, set()
        kinds = ["primals_", "tangents_", "arg"]
        self.inputs = [
            (f"{self.r.choice(kinds)}{k + 1}", self.r.choice(list(DTYPES)), self.size, self.size)
            for k in range(self.r.randint(3, 12))
        ]
        self.values = list(self.inputs)

    def annotated(self, v):
        return f'{v[0]}: "{v[1]}[{v[2]}, {v[3]}][{v[3]}, 1]cuda:0"'

    def add(self, name, op, operands, rest, like):
        """One more statement; `like` is (dtype, rows, columns)."""
        self.count[name] = self.count.get(name, -1) + 1
        number = self.count[name]
        v = (f"{name}_{number}" if number else name, *like)
        given = ", ".join([*(x[0] for x in operands), *rest])
        self.used.update(x[0] for x in operands)
        self.lines.append(f"        {self.annotated(v)} = torch.ops.{op}({given})")
        return v

    def pick(self, wanted=lambda v: True):
        near = [v for v in self.values[-self.r.choice([3, 8, 40]) :] if wanted(v)]
        return self.r.choice(near or [v for v in self.values if wanted(v)])

    def whole(self, v):
        return v[2] == self.size

    def pair(self):
        a = self.pick(self.whole)
        return a, self.pick(lambda v: self.whole(v) and v[1] == a[1])

    def converted(self, a):
        other = "bf16" if a[1] == "f32" else "f32"
        op = "prims.convert_element_type.default"
        return self.add("convert_element_type", op, [a], [f"torch.{DTYPES[other]}"], (other, *a[2:]))

    def compute(self, kind):
        if kind < 0.5:
            a, b = self.pair()
            return self.add("mm", "aten.mm.default", [a, b], [], a[1:])
        if kind < 0.75:
            a, op = self.pick(), self.r.choice(["relu", "neg", "sin"])
            return self.add(op, f"aten.{op}.default", [a], [], a[1:])
        if kind < 0.85:
            a, b = self.pair()
            return self.add("add", "aten.add.Tensor", [a, b], [], a[1:])
        if kind < 0.93:
            return self.converted(self.pick())
        a = self.pick()
        return self.add("view", "aten.view.default", [a], [f"[{a[2]}, {a[3]}]"], a[1:])

    def gather(self, group, ranks):
        a = self.r.choice(self.inputs) if self.r.random() < 0.5 else self.pick(self.whole)
        shard = (a[1], self.size // ranks, a[3])
        a = self.add("slice", "aten.slice.Tensor", [a], ["0", "0", str(shard[1])], shard)
        if self.r.random() < 0.3:
            a = self.converted(a)
        whole = (a[1], self.size, self.size)
        name = "all_gather_into_tensor"
        return self.add(name, f"{COMM}.{name}.default", [a], [str(ranks), f"'{group}'"], whole)

    def collective(self):
        group = self.r.choice(self.groups)
        ranks, kind = len(GROUPS[group]), self.r.choice(["ag", "ag", "rs", "rs", "ar", "a2a"])
        op = self.r.choice(["'avg'", "'sum'"])
        if kind == "ag":
            return self.gather(group, ranks)
        if kind == "ar":
            a = self.pick()
            return self.add("all_reduce", f"{COMM}.all_reduce.default", [a], [op, f"'{group}'"], a[1:])
        a = self.pick(self.whole)
        if kind == "a2a":
            split, name = str([self.size // ranks] * ranks), "all_to_all_single"
            return self.add(name, f"{COMM}.{name}.default", [a], [split, split, f"'{group}'"], a[1:])
        part, name = (a[1], self.size // ranks, self.size), "reduce_scatter_tensor"
        return self.add(name, f"{COMM}.{name}.default", [a], [op, str(ranks), f"'{group}'"], part)

    def wait(self, k):
        v = self.flying.pop(k)
        self.values.append(self.add("wait_tensor", f"{COMM}.wait_tensor.default", [v], [], v[1:]))

    def text(self, short):
        for _ in range(self.r.choice([6, 12, 24] if short else [15, 30, 60, 120])):
            if self.r.random() < 0.6:
                self.values.append(self.compute(self.r.random()))
            else:
                self.flying.append(self.collective())
            if self.flying and self.r.random() < 0.5:
                self.wait(self.r.randrange(len(self.flying)))
        while self.flying:
            self.wait(0)
        made = self.values[len(self.inputs) :]
        returned = [v[0] for v in made if v[0] not in self.used or self.r.random() < 0.1]
        inputs, body = ", ".join(map(self.annotated, self.inputs)), "\n".join(self.lines)
        return (
            f"class GraphModule(torch.nn.Module):\n    def forward(self, {inputs}):\n{body}\n"
            f"        return ({', '.join(returned)},)\n"
        )

    def options(self):
        unit = self.size * self.size / 2**30
        choices = {
            "max_in_flight_gb": (0.3, [0.0, 8 * unit, 40 * unit]),
            "max_memory_increase_gb": (0.3, [0.0]),
            "max_memory_increase_ratio": (0.3, [0.0, 0.5]),
            "max_off_bucket_gb": (0.3, [0.0, 10 * unit]),
            "max_compute_pre_fetch": (0.2, [0, 1, 3]),
            "max_coll_distance": (0.2, [1, 2, 5]),
            "bucket_exposed_first": (0.2, [True, False]),
            "prioritize_bucketing_during_scheduling": (0.15, [False]),
            "bucket_only_internode_comms": (0.15, [True]),
            "compute_overlap_multipler": (0.15, [0.5, 2.0]),
            "bucket_mode": (0.2, ["custom_ops", "coalesced"]),
            "overlap_scheduling_autofix_cycles": (0.3, [True]),
            "enable_fusion_regions": (0.5, [False]),
        }
        return {k: self.r.choice(v) for k, (often, v) in choices.items() if self.r.random() < often}


def random_step(seed, short=False):
    step = Step(seed)
    text = step.text(short)
    groups = {name: {"ranks": ranks} for name, ranks in GROUPS.items()}
    options = step.options()
    cap = step.r.choice([step.size**2 * few / 2**20 for few in (4, 12, 1000)]) if step.r.random() < 0.5 else None
    return text, {"printed_on_rank": 0, "groups": groups}, options, cap
