"""Problems unlike a training step: what no compiler produces, but a file may contain.

Each has a few random traits: which ops there are, what needs what, how large and how long things
are, and their names. `odd_options` also goes to the limits of the options.
"""
import schedule_stubs as stubs

KINDS = {"usual": {"compute": 8, "gemm": 3, "collective": 3, "wait": 3},
         "dense": {"compute": 2, "collective": 5, "wait": 5},
         "no collective": {"compute": 5, "gemm": 2}, "only collectives": {"collective": 1},
         "only waits": {"wait": 1}, "no wait": {"compute": 3, "gemm": 1, "collective": 2},
         "waits of nothing": {"compute": 3, "wait": 2}, "no compute": {"collective": 1, "wait": 1}}
SIZES = {"none": (0,), "equal": (64,), "usual": (0, 8, 100, 512, 3000), "odd": (1, 3, 7, 1023),
         "huge": (2**53 + 1, 2**54 + 3, 1, 2), "steep": (1, 2**20, 2**40, 2**52)}
TIMES = {"none": (0,), "equal": (5,), "equal fraction": (0.1,), "usual": range(12),
         "fraction": (0.1, 0.2, 0.3, 0.7, 1 / 3), "steep": (1e-9, 1.0, 1e9, 9e12, 0.3),
         "huge": (9.7e12, 1.3e13, 1.0, 0.1), "tiny": (5e-324, 1e-310, 3e-308, 0.0)}
NAMES = {"op{}": 4, "op1{}": 1, "op{0}_{0}": 1, "op{0}_op{1}": 1, "a b/{}": 1, "é{}": 1}
SHAPES = ("recent", "any", "chain", "fan out", "fan in", "ladder", "alone")


class Making:
    def __init__(self, rng):
        self.rng = rng
        self.kinds = KINDS[rng.choice((*KINDS, "usual", "usual", "usual"))]
        self.sizes = SIZES[rng.choice((*SIZES, "usual", "usual"))]
        self.times = TIMES[rng.choice((*TIMES, "usual", "usual"))]
        self.name = rng.choices(list(NAMES), NAMES.values())[0]
        self.shape = rng.choice(SHAPES)
        self.sync = rng.choice((0, 0, 0.2, 1))
        self.groups = rng.choice((0, 0, 1, 3))
        self.ordered = rng.random() < 0.6  # collectives by fake dependences
        self.bytes = 0
        self.ops, self.made, self.real, self.last, self.open = [], [], {}, None, []

    def buffer(self, size, alias=None):
        self.bytes += size
        if self.bytes > 2**58:  # all that a file may hold is 2**60
            size %= 1000
        name = f"buf{len(self.made)}"
        self.made.append(name)
        if alias is not None:
            self.real[name] = alias
            size = 0
        return {"name": name, "size_alloc": size, "size_free": size}

    def outputs(self):
        rng, n = self.rng, self.rng.choice((0, 1, 1, 1, 1, 1, 2, 5))
        outputs = [self.buffer(rng.choice(self.sizes)) for _ in range(n)]
        if n > 1 and rng.random() < 0.7:  # parts of one allocation
            outputs[0]["size_alloc"] = sum(out["size_free"] for out in outputs)
            for out in outputs[1:]:
                out["size_alloc"] = 0
        return outputs

    def reads(self):
        rng, made = self.rng, self.made
        if not made or self.shape == "alone":
            return []
        if self.shape == "chain":
            return made[-1:]
        if self.shape == "fan out":
            return made[:1] if rng.random() < 0.9 else made[-1:]
        if self.shape == "fan in":
            return list(made) if rng.random() < 0.1 else []
        if self.shape == "ladder":
            return made[-2:]
        pool = made[-4:] if self.shape == "recent" else made
        return rng.sample(pool, min(len(pool), rng.randint(0, 3)))

    def add(self, i):
        rng = self.rng
        kind = rng.choices(list(self.kinds), self.kinds.values())[0]
        reads, weak, fake, outputs = self.reads(), [], [], []
        if rng.random() < 0.15 and self.made:
            weak = [x for x in rng.sample(self.made, 1) if x not in reads]
        if kind == "wait" and self.open and rng.random() < 0.9:
            which = self.open.pop(rng.randrange(len(self.open)))
            reads = [which[0]] + [x for x in which[1] + reads if x != which[0] and rng.random() < 0.3]
            outputs = [self.buffer(0, which[0])]
        elif reads and rng.random() < 0.15:  # writes what it reads: chains of aliases
            outputs = [self.buffer(0, reads[0])]
        else:
            outputs = self.outputs()
        if kind == "collective" and self.ordered and self.last:
            fake = [x for x in self.last if x not in weak]
        deps = [{"name": x, "weak": False, "fake": False} for x in dict.fromkeys(reads)]
        deps += [{"name": x, "weak": True, "fake": False} for x in weak]
        deps += [{"name": x, "weak": True, "fake": True} for x in fake]
        op = {"name": self.name.format(i, i // 2), "kind": kind, "deps": deps, "outputs": outputs,
              "runtime": 0 if kind == "wait" and rng.random() < 0.8 else rng.choice(self.times),
              "is_async": kind == "collective" and rng.random() >= self.sync}
        if kind == "collective":
            if self.groups:
                op["group"] = str(rng.randrange(self.groups))
            if outputs:
                self.open.append((outputs[0]["name"], reads))
                self.last = [out["name"] for out in outputs]
        elif kind == "wait" and outputs and rng.random() < 0.5:
            self.last = [outputs[0]["name"]]
        self.ops.append(op)


def odd_problem(rng):
    making = Making(rng)
    for i in range(rng.choice((1, 2, 3, 5, 9, 14, 20, 28, 60))):
        making.add(i)
    stubs.link(making.ops, making.real)
    names = [op["name"] for op in making.ops]
    inputs = [{"name": f"held_{i}", "size_free": rng.choice(making.sizes),
               "succ": sorted(rng.sample(names, min(len(names), rng.randint(1, 4))), key=names.index)}
              for i in range(rng.choice((0, 0, 1, 1, 5)))]
    share = rng.choice((0, 0.1, 0.5, 1))
    outputs = [x for x in making.made if rng.random() < share]
    outputs += [x["name"] for x in inputs if rng.random() < 0.2] + ["nobody"] * (rng.random() < 0.1)
    return {"schema": 1, "snodes": making.ops, "graph_outputs": outputs, "freeable_inputs": inputs,
            "graph_inputs": [x["name"] for x in inputs]}


def odd_options(rng):
    chosen = stubs.random_options(rng)
    for which in "reorder", "sink":
        chosen[f"{which}_iterative_peak_memory_budget"] = rng.choice((0.0, 1e-9, 0.2, 0.1, 1e6))
        chosen[f"{which}_iterative_extra_comm_comp_overlap"] = rng.choice((0.0, 0.5, 1e-12, 3.0))
    chosen["reorder_sink_runtime_estimations_comm_mult"] = rng.choice((2.0, 0.0, 1e-3, 1e6))
    chosen["reorder_sink_runtime_estimations_non_comm_mult"] = rng.choice((1.0, 0.0, 0.1, 1e6))
    chosen["reorder_iterative_debug_limit_to_reorder"] = rng.choice((None, None, 0, 1))
    chosen["sink_waits_iterative_debug_limit_to_sink"] = rng.choice((None, None, 0, 1))
    return chosen
