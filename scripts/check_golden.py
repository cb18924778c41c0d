#!/usr/bin/env python3
"""Compares a result file of the program with a golden run: check_golden.py RESULT GOLDEN.

Prints every step's losses and exits with 1 if one is outside the tolerance that the golden file
states. See make_golden_inputs.py for the run itself.
"""

import argparse
import json
import pathlib


def pairs(result, golden):
    """(what, is, expected, tolerance) for everything that can be compared."""
    tolerance = golden["tolerance"]
    if golden["phase"] == "eval":
        evaluations = result.get("evaluation") or []
        if len(evaluations) != 1:
            raise SystemExit(f"the result holds {len(evaluations)} evaluations, not 1")
        yield "base_loss", evaluations[0]["base_loss"], golden["base_loss"][0], tolerance[0]
        return
    steps = result.get("steps") or []
    if len(steps) != len(tolerance):
        raise SystemExit(f"the result holds {len(steps)} steps, not {len(tolerance)}")
    for k, step in enumerate(steps):
        for loss in ("total_loss", "base_loss"):
            # The tolerance is that of the total; the base loss is a smaller part of it.
            slack = abs(golden["total_loss"][k] / golden[loss][k])
            yield f"step {k} {loss}", step[loss], golden[loss][k], tolerance[k] * slack


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result", type=pathlib.Path)
    parser.add_argument("golden", type=pathlib.Path)
    arguments = parser.parse_args()
    result = json.loads(arguments.result.read_text())
    golden = json.loads(arguments.golden.read_text())
    wrong = 0
    for what, value, expected, tolerance in pairs(result, golden):
        difference = abs(value - expected) / abs(expected)
        ok = difference <= tolerance  # not a number is never ok
        wrong += not ok
        print(
            f"{what:20} {value:.9g} expected {expected:.9g} "
            f"difference {difference:.1e} of {tolerance:.1e} {'ok' if ok else 'WRONG'}"
        )
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
