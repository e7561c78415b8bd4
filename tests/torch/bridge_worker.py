"""One rank of test_bridge_ranks.py: scenarios by name, on real ranks over gloo."""

import ctypes
import datetime
import faulthandler
import json
import os
import sys
import tempfile
import threading
import time
import traceback

from bridge import *  # noqa: F403
from bridge import CALLS, WIDTH
from torch.utils.checkpoint import checkpoint
from tuck.torch import agree, arrays
from exec_worker import STOPPED, leave, meet

BROKEN = ("one_rank_decides_otherwise", "another_program_later")
CLUSTER = '{"schema": 1, "device": "h100", "per_node": 8, "links": {"intra": {"gbps": %d, "us": 1}}}'
PLAIN = {"reorder_for_compute_comm_overlap": False}
SECONDS = 60  # that ranks wait for each other, if nothing is wrong


class Problems(list):
    def check(self, good, what):
        if not good:
            self.append(what)


def trained(problems, expected, fn=loss_of, said=None, merged=None, **how):
    """Trains with Tuck; the result is that of training without. merged: is Tuck's code in use?"""
    chosen = []
    plain = confirm.First.choose

    def choose(self):
        got = plain(self)
        chosen.append(got is self.fast)
        return got

    confirm.First.choose = choose
    try:
        with caught() as texts:
            got = train(torch.compile(fn, dynamic=False), **how)
    finally:
        confirm.First.choose = plain
    problems.check(same(got, expected), "other parameters or losses than without Tuck")
    if merged is not None:
        problems.check(chosen and all(c == merged for c in chosen), f"Tuck's code in use: {chosen}")
    if said is not None:
        problems.check(any(said in t for t in texts) if said else not texts, f"warnings: {texts}")
    return texts


def all_agree(rank, problems, expected):
    problems.check(tuck.torch.install(timeout=SECONDS), "not installed")
    trained(problems, expected, said="", merged=True)


def other_options(rank, problems, expected):
    with caught() as said:
        on = tuck.torch.install(passes="auto" if rank else "sink_waits", timeout=SECONDS)
    problems.check(not on, "installed")
    problems.check(any(f"rank {1 - rank}: its passes: " in t for t in said), f"warnings: {said}")
    trained(problems, expected, said="")


def other_version(rank, problems, expected):
    plain = settings.__version__
    if rank:
        settings.__version__ = "0.1.0"
    try:
        with caught() as said:
            on = tuck.torch.install(timeout=SECONDS)
    finally:
        settings.__version__ = plain
    problems.check(not on, "installed")
    problems.check(any("its version" in t for t in said), f"warnings: {said}")
    trained(problems, expected, said="")


def other_options_without_install(rank, problems, expected):
    given = tuck.torch.options(passes="auto" if rank else "sink_waits", timeout=SECONDS)
    with caught() as said:
        got = train(torch.compile(loss_of, options=given))
    problems.check(same(got, expected), "other parameters or losses than without Tuck")
    problems.check(any("its passes: " in t for t in said), f"warnings: {said}")


def other_decision(rank, problems, expected):
    tuck.torch.install(timeout=SECONDS)
    if rank:
        stand_in(lambda graph, passes, **options: None)
    trained(problems, expected, said=f"rank {1 - rank}: it", merged=False)


def halves(x, y, *ws):
    for w in ws[:2]:
        x = torch.tanh(x @ Sync.apply(w))
    torch._dynamo.graph_break()
    return ((x @ Sync.apply(ws[2])) - y).square().mean()


def other_graph(rank, problems, expected):
    """One rank has a graph break."""
    tuck.torch.install(timeout=SECONDS)
    said = trained(problems, expected, halves if rank else loss_of, said="rank", merged=False)
    late = [t for t in said if f"within {SECONDS} s" in t]
    problems.check(not late, f"waited until the time was up: {late}")


def other_estimates(rank, problems, expected):
    """A cluster file with another content on one rank."""
    with tempfile.TemporaryDirectory() as folder:
        here = os.getcwd()
        os.chdir(folder)
        with open("machine.json", "w") as f:
            f.write(CLUSTER % (100 + rank))
        with caught() as said:
            on = tuck.torch.install(cluster="machine.json", timeout=SECONDS)
        os.chdir(here)
    problems.check(not on, "installed")
    problems.check(any("its estimates" in t for t in said), f"warnings: {said}")
    trained(problems, expected, said="")


def error_in_c(rank, problems, expected):
    """The library refuses what one rank asks it for."""
    tuck.torch.install(timeout=SECONDS)
    if rank:
        stand_in(lambda graph, passes, **options: tuck.torch.run(graph, "no_such_pass"))
    trained(problems, expected, said="rank 1: Tuck failed there: Error", merged=False)


class Allocator(ctypes.Structure):
    RESIZE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
    _fields_ = [("ctx", ctypes.c_void_p), ("resize", RESIZE)]


def out_of_memory(rank, problems, expected):
    """On one rank the library gets no more memory in the middle of reading a graph."""
    libc = ctypes.CDLL(None)
    libc.realloc.restype, libc.realloc.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    left = [5]

    def resize(_, at, old, new):
        if new == 0:
            libc.free(at)
            return None
        left[0] -= 1
        return libc.realloc(at, new) if left[0] > 0 else None

    allocator = Allocator(None, Allocator.RESIZE(resize))
    plain = arrays.lib.tuck_arrays_read

    def read(*given):
        return plain(*given[:6], ctypes.addressof(allocator), *given[7:])

    tuck.torch.install(timeout=SECONDS)
    stand_in(tuck.torch.run)
    if rank:
        arrays.lib.tuck_arrays_read = read
    try:
        trained(problems, expected, said="rank 1: Tuck failed there: MemoryError", merged=False)
    finally:
        arrays.lib.tuck_arrays_read = plain


def one_rank_warm(rank, problems, expected):
    all_agree(rank, problems, expected)
    forget()
    if rank == 0:
        clear_graphs()
    tuck.torch.install(timeout=SECONDS)
    trained(problems, expected, said="", merged=True)
    hits, misses, bypassed = cache_counts()
    counted = f"hits {hits}, misses {misses}, bypassed {bypassed}"
    problems.check(hits == 2 * rank and misses == 2 * (1 - rank), counted)


def gathered(x, y, *shards):
    """What AOTAutograd caches, unlike an autograd.Function."""
    for w in shards:
        whole = collectives.all_gather_tensor_autograd(w, 0, dist.group.WORLD)
        x = torch.tanh(x @ whole[:WIDTH])
    return (x - y).square().mean()


def one_rank_does_not_trace(rank, problems, expected):
    """One rank has the whole program in AOTAutograd's cache; then both have, and one refuses."""
    merge_both = "bucket_all_gather, bucket_reduce_scatter"
    without = train(torch.compile(gathered, dynamic=False))
    stand_in(tuck.torch.run)
    for turn in range(2):
        forget()
        if turn == 1 and rank == 0:
            clear_graphs()
        tuck.torch.install(merge_both, timeout=SECONDS)
        trained(problems, without, gathered, said="", merged=True)
        hits = counters["aot_autograd"]["autograd_cache_hit"]
        problems.check(hits == turn * rank, f"{hits} hits in turn {turn}")
    plain = confirm.First.vote
    forget()
    tuck.torch.install(merge_both, timeout=SECONDS)
    if rank:
        confirm.First.vote = lambda self: dict(plain(self), value=None, why="made up")
    try:
        trained(problems, without, gathered, said="made up", merged=False)
    finally:
        confirm.First.vote = plain
    hits = counters["aot_autograd"]["autograd_cache_hit"]
    problems.check(hits == 1, f"{hits} hits at last")


def one_rank_recompiles(rank, problems, expected):
    """A ragged last batch on one rank: it must issue what the others issue."""
    sizes = (8, 8, 5 if rank else 8)
    without = train(torch.compile(loss_of, dynamic=False), sizes)
    forget()
    tuck.torch.install(timeout=SECONDS)
    trained(problems, without, said="", merged=True, sizes=sizes)
    problems.check(len(CALLS) == 1 + rank, f"compiled {len(CALLS)} times")


def one_rank_recompiles_with_auto(rank, problems, expected):
    """The same with what the library decides: it repeats its passes instead of searching again."""
    sizes = (8, 8, 5 if rank else 8)
    without = train(torch.compile(loss_of, dynamic=False), sizes)
    forget()
    stand_in(tuck.torch.run)
    tuck.torch.install(timeout=SECONDS, cluster="h100x8")
    trained(problems, without, said="", merged=True, sizes=sizes)


def one_rank_recompiles_later(rank, problems, expected):
    """The same after Tuck was taken back: the other ranks still run Tuck's code."""
    sizes = (8, 5 if rank else 8, 8)
    without = train(torch.compile(loss_of, dynamic=False), sizes)
    forget()
    run = torch.compile(loss_of, dynamic=False)
    with tuck.torch.installed(timeout=SECONDS):
        train(run, (8,))
    problems.check(same(train(run, sizes), without), "other parameters or losses than without Tuck")


def another_function(rank, problems, expected):
    """Its collectives are those of an earlier function, whose passes cannot be repeated on it."""

    def sines(x, y, *ws):
        return loss_of(torch.sin(x), y, *ws)

    def run(graph, passes, **options):
        if passes == "of the other":
            raise tuck.Error("there is no such node")
        merge(graph, passes, **options)

    without = train(torch.compile(sines, dynamic=False))
    forget()
    stand_in(run)
    tuck.torch.install(timeout=SECONDS, strict=True)
    train(torch.compile(loss_of, dynamic=False))
    for verdict in job.places.values():
        verdict.plan = "of the other"
    with caught() as said:
        got = train(torch.compile(sines, dynamic=False))
    problems.check(same(got, without), "other parameters or losses than without Tuck")
    problems.check(CALLS == ["auto", "auto"] and not said, f"passes {CALLS}, warnings {said}")


def off_on_one_rank(rank, problems, expected):
    """TUCK=0 on one rank: nobody waits until the time is up."""
    start = time.monotonic()
    if rank:
        os.environ["TUCK"] = "0"
    with caught() as said:
        problems.check(not tuck.torch.install(timeout=1000), "installed")
        got = train(torch.compile(loss_of, options=tuck.torch.options(timeout=1000)))
    if rank:
        del os.environ["TUCK"]
    problems.check(not switch.is_off(), "still off")
    dist.barrier()  # all know that it is on again
    problems.check(same(got, expected), "other parameters or losses than without Tuck")
    off = [t for t in said if "rank 1: Tuck is off there" in t]
    problems.check(len(off) == 2 * (1 - rank), f"warnings: {said}")
    problems.check(time.monotonic() - start < 500, "took long")


def stops_soon(rank, problems, work, says):
    """The rank that is alone says why it stops; the others fail soon, instead of waiting."""
    start = time.monotonic()
    try:
        work()
        problems.append("went on")
    except tuck.torch.Disagreement as error:
        problems.check(rank == 1 and says in str(error), str(error))
    except RuntimeError as error:
        problems.check(rank == 0 and "onnection" in str(error), str(error))
    problems.check(time.monotonic() - start < 90, "took long")


def one_rank_decides_otherwise(rank, problems, expected):
    """A rank compiles alone and cannot be given the agreed sequence."""
    tuck.torch.install(timeout=SECONDS)
    run = torch.compile(loss_of, dynamic=False)
    train(run)
    job.patience = lambda settings: 5.0  # from now on
    if rank:
        stand_in(lambda graph, passes, **options: None)
    stops_soon(rank, problems, lambda: train(run, (5 if rank else 8,)), "agreed on earlier")


def another_program_later(rank, problems, expected):
    """One rank comes with a graph that is new, while the other runs what was agreed."""
    tuck.torch.install(timeout=SECONDS)
    run = torch.compile(loss_of, dynamic=False)
    train(run)
    job.patience = lambda settings: 5.0  # from now on
    new = torch.compile(halves, dynamic=False) if rank else run
    stops_soon(rank, problems, lambda: train(new), "new on this rank")


def another_form_together(rank, problems, expected):
    """A graph of a form that was agreed on, which cannot be given the agreed sequence; but all ranks
    compile it: they run it unchanged."""
    tuck.torch.install(timeout=SECONDS)
    run = torch.compile(loss_of, dynamic=False)
    train(run)
    stand_in(lambda graph, passes, **options: None)
    without = train(torch.compile(loss_of, dynamic=False, options=PLAIN), (5, 5))
    problems.check(same(train(run, (5, 5)), without), "other parameters or losses than without Tuck")


def mesh_recompiles(rank, problems, expected):
    """Tensor parallel by data parallel: the two ranks of one replica have a smaller last batch, so
    that messages of one of the two kinds of groups are smaller there."""
    mesh = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    tensor = mesh["tensor"].get_group()

    def loss(x, y, *ws):
        for w in ws:
            part = collectives.all_reduce((x @ w).detach(), "sum", tensor)
            x = torch.tanh(x @ Sync.apply(w)) + part / 2
        return (x - y).square().mean()

    sizes = (8, 8, 5 if rank < 2 else 8)
    without = train(torch.compile(loss, dynamic=False), sizes)
    forget()
    tuck.torch.install(timeout=SECONDS)
    with caught() as said:
        parameters, losses = train(torch.compile(loss, dynamic=False), sizes)
    near = all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(parameters, without[0]))
    problems.check(near, "other parameters than without Tuck")  # gloo sums in another order
    problems.check(not said, f"warnings: {said}")
    problems.check(len(CALLS) == (4 if rank < 2 else 2), f"compiled {len(CALLS)} times")


# ---- ways to compile: each gives what it gives without Tuck


def form(fn=loss_of, sizes=(8, 8), backward=None, **options):
    def run(rank, problems, expected):
        without = train(torch.compile(fn, **options), sizes)
        forget()
        tuck.torch.install(timeout=SECONDS)
        with caught() as said:
            got = train(torch.compile(fn, **options), sizes, backward=backward)
        problems.check(same(got, without), "other parameters or losses than without Tuck")
        problems.check(CALLS, "Tuck's passes were not called")
        problems.check(not said, f"warnings: {said}")

    return run


def checkpointed(x, y, *ws):
    x = checkpoint(lambda v: torch.tanh(v @ Sync.apply(ws[0])).sin(), x, use_reentrant=False)
    return loss_of(x, y, *ws[1:])


def in_a_thread(loss):
    thread = threading.Thread(target=loss.backward)
    thread.start()
    thread.join()


form_fullgraph = form(fullgraph=True)
form_mode = form(mode="max-autotune-no-cudagraphs")
form_dynamic = form(sizes=(8, 6, 5), dynamic=True)
form_recompiles = form(sizes=(8, 6, 5), dynamic=False)
form_automatic_dynamic = form(sizes=(8, 6, 5))
form_graph_breaks = form(halves)
form_checkpointing = form(checkpointed)
form_backward_in_a_thread = form(backward=in_a_thread)


def form_own_hooks(rank, problems, expected):
    seen = []

    class Mine(hooks.CustomGraphPass):
        def __call__(self, graph):
            seen.append(sum("all_reduce" in str(n.target) for n in graph.nodes))

        def uuid(self):
            return "mine"

    tuck.torch.install(timeout=SECONDS)
    got = train(torch.compile(loss_of, options={"post_grad_custom_post_pass": Mine()}))
    problems.check(same(got, expected) and 3 in seen and CALLS, f"hooks saw {seen}")


def form_context_left(rank, problems, expected):
    ws = weights()
    x = torch.ones(8, WIDTH)
    with tuck.torch.installed(timeout=SECONDS):
        loss = torch.compile(loss_of, dynamic=False)(x, x, *ws)
    problems.check(not CALLS, "too early")
    loss.backward()
    problems.check(CALLS == ["auto"], f"passes: {CALLS}")


def killed_before_install(rank, problems, expected):
    if rank == 1:
        return
    start = time.monotonic()
    with caught() as said:
        problems.check(not tuck.torch.install(timeout=2), "installed")
    problems.check(time.monotonic() - start < 20, "took long")
    problems.check(any("rank 1: no answer within 2 s" in t for t in said), f"warnings: {said}")


def killed_while_asked(rank, problems, expected):
    """One rank ends in the middle of agreeing about a graph: an error soon, and no hang."""
    tuck.torch.install(timeout=2)
    if rank == 1:
        agree.Poll.cast = lambda self: os._exit(0)
    start = time.monotonic()
    try:
        with caught() as said:
            train(torch.compile(loss_of, dynamic=False))
        problems.append("trained alone")
    except RuntimeError as error:
        problems.check("gloo" in str(error).lower() or "onnection" in str(error), str(error))
    problems.check(any("rank 1: no answer within 2 s" in t for t in said), f"warnings: {said}")
    problems.check(time.monotonic() - start < 60, "took long")


def main(path, rank):
    with open(path) as f:
        plan = json.load(f)
    faulthandler.dump_traceback_later(plan["seconds"], exit=True)
    torch.set_num_threads(1)
    limit = datetime.timedelta(seconds=plan["collective_seconds"])
    store = dist.FileStore(plan["store"], plan["world"])
    dist.init_process_group("gloo", store=store, rank=rank, world_size=plan["world"], timeout=limit)
    use_cache(f"rank{rank}")
    expected = train(loss_of_compiled := torch.compile(loss_of, dynamic=False))
    del loss_of_compiled
    with open(plan["reports"][rank], "w") as report:
        for job in plan["jobs"]:
            problems = Problems()
            clear_graphs()
            stand_in()
            forget()
            stopped = False
            if job["graph"] == "killed_while_asked" and rank == 1:  # it will not come back
                line = {"graph": job["graph"], "problems": [], "tensors": 1, "stopped": False}
                report.write(json.dumps(line) + "\n")
                report.flush()
            try:
                globals()[job["graph"]](rank, problems, expected)
            except Exception:
                problems.append(traceback.format_exc())
                stopped = True
            line = {"graph": job["graph"], "problems": problems, "tensors": 1, "stopped": stopped}
            report.write(json.dumps(line) + "\n")
            report.flush()
            if stopped:
                return STOPPED
            if "killed" in job["graph"] or job["graph"] in BROKEN:
                return 0  # the others are on their own
    meet(store, rank, plan["world"])
    return 0


if __name__ == "__main__":
    leave(main(sys.argv[1], int(sys.argv[2])))
