#!/usr/bin/env python3
"""How often cnn_compare cries wolf, on real runs of one program; and Google Benchmark's compare.py beside it.

    false_alarms.py collect FOLDER --program=build/cpu/cnn_benchmarks [--runs=60] [--hogged=3] [FLAG...]
        runs the program; beside every third run (--hogged) another process takes a core all the time
    false_alarms.py draw FOLDER --compare=build/cpu/cnn_compare [--draws=200] [--side=5] [--seed=1]
        draws comparisons of so many runs a side from them, and counts verdicts
    false_alarms.py slower FOLDER ... --by=3
        the same, with the new side's steps made longer by so many per cent: what is missed
    false_alarms.py collect FOLDER --pairs ..., then draw or slower FOLDER --pairs ...
        of pairs of runs that take turns on the machine (--take_turns), as scripts/suite.sh --base makes them;
        with --base=PROGRAM two programs take turns, so that draw counts how often a real difference is found

compare.py tests repetitions by Mann and Whitney's U at 5 % (two-sided) and marks what is significant. Repetitions are
steps of one process where people run it once, and medians of processes where they know better: both are counted here.
"""
import argparse
import collections
import functools
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

BUSY = "while True: pass"
FLAGS = ["--device=cpu", "--model=resnet20", "--data_name=cifar10", "--batch_size=16", "--num_warmup_batches=3",
         "--num_batches=40", "--nomeasure_ceilings"]


def u_test(a, b):
    """p of Mann and Whitney's two-sided test by the normal approximation with ties and continuity, as scipy's."""
    ranked = sorted((value, side) for side, values in enumerate((a, b)) for value in values)
    ranks, ties, i = 0.0, 0.0, 0
    while i < len(ranked):
        j = i
        while j < len(ranked) and ranked[j][0] == ranked[i][0]:
            j += 1
        ranks += (i + j + 1) / 2 * sum(1 for value, side in ranked[i:j] if side == 0)
        ties += (j - i) ** 3 - (j - i)
        i = j
    n, m, total = len(a), len(b), len(ranked)
    u = ranks - n * (n + 1) / 2
    deviation = math.sqrt(n * m / 12 * (total + 1 - ties / (total * (total - 1))))
    z = (abs(u - n * m / 2) - 0.5) / deviation if deviation > 0 else 0
    return math.erfc(max(z, 0) / math.sqrt(2))


def run_side_by_side(options, flags, paths):
    """One process for each path; several take turns, the first of them with the base's program."""
    turns = [f"--take_turns={paths[0]}.turns"] if len(paths) > 1 else []
    programs = [options.base or options.program, options.program][-len(paths):]
    runs = [subprocess.Popen([program, *(flags or FLAGS), *turns, f"--result_json={path}.part"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for program, path in zip(programs, paths)]
    codes = [run.wait() for run in runs]
    if any(codes):
        sys.exit(f"{' and '.join(programs)} left with {codes}")
    for path in paths:
        pathlib.Path(f"{path}.part").rename(path)
    pathlib.Path(f"{paths[0]}.turns").unlink(missing_ok=True)


def collect(options, flags):
    folder = pathlib.Path(options.folder)
    sides = [folder / "base", folder / "new"] if options.pairs else [folder]
    for side in sides:
        side.mkdir(parents=True, exist_ok=True)
    for run in range(1, options.runs + 1):
        hogged = options.hogged > 0 and run % options.hogged == 0
        paths = [side / f"{run:03}.{'hogged' if hogged else 'quiet'}.json" for side in sides]
        if all(path.exists() for path in paths):
            continue
        hog = subprocess.Popen([sys.executable, "-c", BUSY]) if hogged else None
        try:
            run_side_by_side(options, flags, paths)
        finally:
            if hog:
                hog.kill()
                hog.wait()
        print(f"[{run}/{options.runs}] {paths[-1]}", file=sys.stderr)


@functools.cache
def seconds_of(path):
    return [step["seconds"] for step in json.loads(path.read_text())["steps"]]


def slowed(path, by, folder):
    """A copy of a result whose steps take longer by `by` per cent."""
    result = json.loads(path.read_text())
    for step in result["steps"]:
        step["seconds"] *= 1 + by / 100
        step["images_per_sec"] /= 1 + by / 100
    copy = pathlib.Path(folder) / path.name
    copy.write_text(json.dumps(result))
    return copy


VERDICTS = {0: "no regression or improvement", 1: "regression", 2: "cannot tell", 3: "error"}


def tell(options, base, new, found):
    """Counts our verdict, and what compare.py would mark as slower of the same runs."""
    call = subprocess.run([options.compare, *base, "--", *new], capture_output=True, check=False)
    found["cnn_compare: " + VERDICTS[call.returncode]] += 1
    medians = [[statistics.median(seconds_of(path)) for path in side] for side in (base, new)]
    steps = [sum((seconds_of(path) for path in side), []) for side in (base, new)]
    single = [seconds_of(side[0]) for side in (base, new)]
    for name, (a, b) in (("medians of runs", medians), ("steps of all runs", steps), ("steps of one run", single)):
        slower = statistics.median(b) > statistics.median(a)
        found[f"compare.py, {name}: slower"] += u_test(a, b) < 0.05 and slower


def count(options, files, by):
    """{name: number} over the draws. Of pairs `files` are the base's."""
    draw, found = random.Random(options.seed), collections.Counter()
    news = {path: path.parent.parent / "new" / path.name if options.pairs else path for path in files}
    with tempfile.TemporaryDirectory() as folder:
        if by:
            news = {path: slowed(new, by, folder) for path, new in news.items()}
        for _ in range(options.draws):
            chosen = draw.sample(files, (1 if options.pairs else 2) * options.side)
            tell(options, chosen[:options.side], [news[path] for path in chosen[-options.side:]], found)
    return found


def report(options, by):
    folder = pathlib.Path(options.folder)
    paths = sorted((folder / "base" if options.pairs else folder).glob("*.json"))
    quiet = [path for path in paths if ".quiet." in path.name]
    kind = "pairs" if options.pairs else "runs"
    for name, files in ((f"all {kind}", paths), (f"quiet {kind}", quiet)):
        if len(files) < (1 if options.pairs else 2) * options.side:
            continue
        what = f"the new side {by} % slower" if by else "as they ran"
        print(f"{name} ({len(files)}), {options.draws} draws of {options.side} a side, {what}:")
        for verdict, times in sorted(count(options, files, by).items()):
            print(f"  {100 * times / options.draws:5.1f} %  {verdict}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["collect", "draw", "slower"])
    parser.add_argument("folder")
    parser.add_argument("--program", default="build/cpu/cnn_benchmarks")
    parser.add_argument("--base")
    parser.add_argument("--compare", default="build/cpu/cnn_compare")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--hogged", type=int, default=3)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--side", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--by", type=float, default=3)
    options, flags = parser.parse_known_args()
    if options.base and not options.pairs:
        parser.error("--base is a program to take turns with: it goes with --pairs")
    if options.what == "collect":
        collect(options, flags)
    else:
        report(options, options.by if options.what == "slower" else 0)


if __name__ == "__main__":
    main()
