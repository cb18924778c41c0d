#!/usr/bin/env python3
"""Solves the linear program behind the lower bound with HiGHS and prints its optimum in seconds.

Usage: solve_lp.py INSTANCE.json. Exits with 77 if scipy is missing and with 3 if there is no
solution. The variables of each op are its start time and the bytes swapped out and in by then. The
variables of each tensor are the share that is swapped and the share that is recomputed right before
the backward pass needs it.
"""
import json
import sys

try:
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix
except ImportError:
    sys.exit(77)


class Rows:
    """Collects the rows of A x <= b."""

    def __init__(self):
        self.row, self.column, self.value, self.bound = [], [], [], []

    def add(self, terms, bound):
        for column, value in terms:
            self.row.append(len(self.bound))
            self.column.append(column)
            self.value.append(value)
        self.bound.append(bound)

    def matrix(self, columns):
        return coo_matrix((self.value, (self.row, self.column)), shape=(len(self.bound), columns))


def solve(instance):
    steps, tensors = instance["steps"], instance["movables"]
    count, scale = len(steps), 1 / max(instance["device"], 1)
    start = range(0, count + 1)
    out = range(count + 1, 2 * count + 2)
    back = range(2 * count + 2, 3 * count + 3)
    swapped = range(3 * count + 3, 3 * count + 3 + len(tensors))
    again = range(swapped.stop, swapped.stop + len(tensors))
    size = [t["bytes"] * scale for t in tensors]
    rate_out, rate_in, both = (instance[k] * scale for k in ("out", "in", "both"))
    rows = Rows()

    # A tensor that step m makes can leave only from the start of step m + 1 on.
    made, needed = [[] for _ in range(count + 2)], [[] for _ in start]
    for x, tensor in enumerate(tensors):
        rows.add([(swapped[x], 1), (again[x], 1)], 1)
        made[tensor["made"] + 2].append((swapped[x], -size[x]))
        if not tensor["on_host"]:
            needed[tensor["first_backward"]].append((swapped[x], size[x]))
    repeated = [[] for _ in steps]
    for x, tensor in enumerate(tensors):
        if tensor["again"] > 0:
            repeated[tensor["first_backward"]].append((again[x], tensor["again"]))

    there, due = [], []
    for i, step in enumerate(steps):
        rows.add([(start[i], 1), (start[i + 1], -1)] + repeated[i], -step["seconds"])
        for bytes_, rate in ((out, rate_out), (back, rate_in)):
            rows.add([(bytes_[i], 1), (bytes_[i + 1], -1)], 0)
            if rate > 0:
                rows.add([(bytes_[i + 1], 1), (bytes_[i], -1),
                          (start[i + 1], -rate), (start[i], rate)], 0)
        if both > 0:
            joint = max(both, rate_out, rate_in)
            rows.add([(out[i + 1], 1), (out[i], -1), (back[i + 1], 1), (back[i], -1),
                      (start[i + 1], -joint), (start[i], joint)], 0)
        there, due = there + made[i], due + needed[i]
        rows.add([(out[i], 1)] + there, 0)
        rows.add([(back[i], -1)] + due, 0)
        rows.add([(back[i], 1), (out[i], -1)], 0)
        excess = step["live"] * scale - instance["device"] * scale
        if excess > 0:
            gone = [(again[x], -size[x]) for x in step["away"]]
            for at in (i, i + 1):
                rows.add([(out[at], -1), (back[at], 1)] + gone, -excess)
    rows.add([(back[count], 1), (out[count], -1)], 0)
    rows.add([(out[count], 1)] + there + made[count], 0)

    columns = again.stop
    bounds = [(0, None)] * columns
    bounds[start[0]] = (0, 0)
    for i in range(count):
        bounds[out[i]] = bounds[back[i]] = (0, None)
    bounds[out[0]] = bounds[back[0]] = (0, 0)
    host = instance["host"] * scale
    for x, tensor in enumerate(tensors):
        bounds[swapped[x]] = (0, 0 if tensor["on_host"] or not tensor["may_copy"] or host == 0 else 1)
        bounds[again[x]] = (0, 0 if tensor["again"] < 0 else 1)
    objective = np.zeros(columns)
    objective[start[count]] = 1
    return linprog(objective, A_ub=rows.matrix(columns), b_ub=rows.bound, bounds=bounds, method="highs")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        result = solve(json.load(file))
    if result.status != 0:
        sys.exit(3)
    print(f"{result.fun:.12g}")


if __name__ == "__main__":
    main()
