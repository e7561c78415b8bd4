"""One rank of test_bridge_ranks.py: scenarios by name, on real ranks over gloo."""

import datetime
import faulthandler
import json
import os
import sys
import time
import traceback

from bridge import *  # noqa: F403
from bridge import CALLS
from exec_worker import STOPPED, leave, meet

SECONDS = 60  # that ranks wait for each other, if nothing is wrong


class Problems(list):
    def check(self, good, what):
        if not good:
            self.append(what)


def trained(problems, expected, fn=loss_of, said=None, merged=None, **how):
    """Trains with Tuck; the result is that of training without. merged: is Tuck's code in use?"""
    chosen = []
    plain = compiling.First.choose

    def choose(self):
        got = plain(self)
        chosen.append(got is self.fast)
        return got

    compiling.First.choose = choose
    try:
        with caught() as texts:
            got = train(torch.compile(fn, dynamic=False), **how)
    finally:
        compiling.First.choose = plain
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
    problems.check(any(f"rank {1 - rank}: its options" in t for t in said), f"warnings: {said}")
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
    problems.check(any("its options" in t for t in said), f"warnings: {said}")


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


def error_in_the_library(rank, problems, expected):
    def broken(*args, **kwargs):
        raise MemoryError if rank else tuck.Error("not today")

    tuck.torch.install(timeout=SECONDS)
    if rank:
        stand_in(broken)
    trained(problems, expected, said="rank 1: Tuck failed there: MemoryError", merged=False)


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


def one_rank_decides_otherwise(rank, problems, expected):
    """The same where Tuck decides otherwise: that rank stops, since the others cannot."""
    tuck.torch.install(timeout=SECONDS)
    run = torch.compile(loss_of, dynamic=False)
    train(run)
    if rank == 0:
        return
    stand_in(lambda graph, passes, **options: None)
    try:
        train(run, (5,))
        problems.append("went on")
    except tuck.torch.Disagreement as error:
        problems.check("agreed" in str(error), str(error))


def killed_before_install(rank, problems, expected):
    if rank == 1:
        return
    start = time.monotonic()
    with caught() as said:
        problems.check(not tuck.torch.install(timeout=2), "installed")
    problems.check(time.monotonic() - start < 20, "took long")
    problems.check(any("rank 1: no answer within 2 s" in t for t in said), f"warnings: {said}")


def killed_while_asked(rank, problems, expected):
    """One rank is gone when the other asks about a graph: an error soon, and no hang."""
    tuck.torch.install(timeout=2)
    if rank == 1:
        return
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
            if "killed" in job["graph"] or "otherwise" in job["graph"]:
                return 0  # the others are on their own
    meet(store, rank, plan["world"])
    return 0


if __name__ == "__main__":
    leave(main(sys.argv[1], int(sys.argv[2])))
