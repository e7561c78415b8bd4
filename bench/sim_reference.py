"""usage: sim_reference.py PROBLEM.json

S0 in Python, written in the obvious way: computes the times of an order of a schedule problem.
Prints the seconds that one order takes and its makespan in picoseconds; and the seconds of the
bare loop alone, over tuples in which everything was looked up before.
"""
import json
import sys
import time

UNIT = {"ns": 1e3, "us": 1e6, "ms": 1e9, "s": 1e12}


def collectives_of(wait, maker):
    """Those that make one of its operands or, if none does, those of the waits that do."""
    made = [maker[d["name"]] for d in wait["deps"] if d["name"] in maker]
    direct = [op for op in made if op["kind"] == "collective"]
    if direct:
        return direct
    return [c for op in made if op["kind"] == "wait" for c in collectives_of(op, maker)]


def simulate(problem, order):
    unit = UNIT[problem.get("unit", "ns")]
    ops = {op["name"]: op for op in problem["snodes"]}
    maker = {out["name"]: op for op in problem["snodes"] for out in op["outputs"]}
    clock = compute = communication = 0
    channel, end, exposed = {}, {}, {}
    for name in order:
        op = ops[name]
        length = round(op["runtime"] * unit)
        if op["kind"] == "collective":
            group = op.get("group")
            end[name] = channel[group] = max(clock, channel.get(group, 0)) + length
            exposed[name] = 0
            communication += length
            if not op.get("async", True):
                exposed[name] = end[name] - clock
                clock = end[name]
        elif op["kind"] == "wait":
            ended = collectives_of(op, maker)
            if ended:
                last = max((c["name"] for c in ended), key=lambda c: end[c])
                stood = max(0, end[last] - clock)
                exposed[last] += stood
                clock += stood
        else:
            compute += length
            clock += length
    makespan = max([clock, *channel.values()])
    return makespan, compute, communication, sum(exposed.values()) + makespan - clock


def look_up(problem):
    unit = UNIT[problem.get("unit", "ns")]
    maker = {out["name"]: op for op in problem["snodes"] for out in op["outputs"]}
    return [(op["name"], op["kind"], round(op["runtime"] * unit), op.get("group"),
             op.get("async", True),
             [c["name"] for c in collectives_of(op, maker)] if op["kind"] == "wait" else [])
            for op in problem["snodes"]]


def bare_loop(ops):
    clock = 0
    channel, end = {}, {}
    for name, kind, length, group, is_async, ended in ops:
        if kind == "collective":
            end[name] = channel[group] = max(clock, channel.get(group, 0)) + length
            if not is_async:
                clock = end[name]
        elif kind == "wait":
            for collective in ended:
                clock = max(clock, end[collective])
        else:
            clock += length
    return max([clock, *channel.values()])


def seconds(function, *args):
    best = 1e9
    for _ in range(20):
        start = time.process_time()
        result = function(*args)
        best = min(best, time.process_time() - start)
    return best, result


def main():
    with open(sys.argv[1]) as f:
        problem = json.load(f)
    took, (makespan, compute, _, exposed) = seconds(
        simulate, problem, [op["name"] for op in problem["snodes"]])
    assert makespan == compute + exposed
    bare, same = seconds(bare_loop, look_up(problem))
    assert makespan == same
    print(took, makespan, bare)


main()
