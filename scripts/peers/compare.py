"""Runs this program, PyTorch and tf_cnn_benchmarks on the same networks and compares their speed.

The runs are interleaved (A B C A B C ...), since a machine's speed drifts: ratios are taken within one round as well.
Each run is a process of its own, on the same cores, with the same batch, threads, precision and learning rate.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BATCHES = {"resnet50": 32, "vgg16": 16, "inception3": 16, "googlenet": 32, "alexnet": 64}
# The default rate of some networks ends in NaN within steps on synthetic images; a small one keeps numbers ordinary.
LEARNING_RATE = 1e-5


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/peers.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--models", default=",".join(BATCHES), help="comma list (default: %(default)s)")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--forward_only", action="store_true", help="inference instead of training steps")
    parser.add_argument("--batch", action="append", default=[], metavar="NAME=N", help="another batch for a model")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6, help="timed steps in each run (default: %(default)s)")
    parser.add_argument("--warmup", type=int, default=2, help="steps before these (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: all cores")
    parser.add_argument("--torch_python", help="a Python that has torch; without it PyTorch is left out")
    parser.add_argument("--torch_compile", action="store_true", help="measure torch.compile as well")
    parser.add_argument("--tf_python", help="a Python that has tensorflow and tf-keras")
    parser.add_argument("--tf_cnn_benchmarks", help="folder with tf_cnn_benchmarks.py; needs --tf_python; fp32 only")
    parser.add_argument("--without_program", action="store_true", help="measure the peers only")
    parser.add_argument("--json", help="write all step times to this file")
    options = parser.parse_args()
    options.models = options.models.split(",")
    options.batches = dict(BATCHES)
    for item in options.batch:
        name, _, number = item.partition("=")
        if name not in BATCHES or not number.isdigit() or int(number) < 1:
            parser.error(f"--batch={item} is not one of {', '.join(BATCHES)} = a positive number")
        options.batches[name] = int(number)
    if unknown := [m for m in options.models if m not in BATCHES]:
        parser.error(f"--models: {', '.join(unknown)} is not one of {', '.join(BATCHES)}")
    if bool(options.tf_python) != bool(options.tf_cnn_benchmarks):
        parser.error("--tf_python and --tf_cnn_benchmarks belong together")
    return options


def execute(command, options, environment=None):
    """Standard output of a run on the first `threads` of our cores; ends everything if the run fails."""
    cores = sorted(os.sched_getaffinity(0))[:options.threads]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            env={**os.environ, "OMP_NUM_THREADS": str(options.threads), **(environment or {})},
                            preexec_fn=lambda: os.sched_setaffinity(0, cores))
    if result.returncode:
        sys.exit(f"exit code {result.returncode} of: {' '.join(map(str, command))}\n{result.stdout[-1500:]}"
                 f"{result.stderr[-3000:]}")
    return result.stdout


def common_flags(model, options):
    return ["--device=cpu", f"--model={model}", f"--batch_size={options.batches[model]}",
            f"--num_batches={options.steps}", f"--num_warmup_batches={options.warmup}",
            f"--num_intra_threads={options.threads}", f"--init_learning_rate={LEARNING_RATE:.5f}",
            *(["--forward_only"] if options.forward_only else [])]


def run_program(model, options):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "result.json"
        execute([options.program, *common_flags(model, options), f"--precision={options.precision}",
                 f"--result_json={report}"], options)
        result = json.loads(report.read_text())
    return [step["seconds"] for step in result["steps"]], result["version"]


def run_torch(variant):
    def run(model, options):
        command = [options.torch_python, HERE / "torch_step.py", f"--model={model}", f"--variant={variant}",
                   f"--batch_size={options.batches[model]}", f"--steps={options.steps}", f"--warmup={options.warmup}",
                   f"--threads={options.threads}", f"--precision={options.precision}",
                   f"--learning_rate={LEARNING_RATE}", *(["--forward_only"] if options.forward_only else [])]
        result = json.loads(execute(command, options).splitlines()[-1])
        return result["seconds"], result["version"]
    return run


def run_tf(model, options):
    command = [options.tf_python, HERE / "tf_step.py", options.tf_cnn_benchmarks, *common_flags(model, options),
               "--data_format=NHWC", "--display_every=1"]
    environment = {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    result = json.loads(execute(command, options, environment).splitlines()[-1])
    return result["seconds"], result["version"]


def runners(options):
    chosen = {}
    if not options.without_program:
        chosen["this program"] = run_program
    if options.torch_python:
        chosen["PyTorch"] = run_torch("eager")
        if options.precision == "bf16":
            chosen["PyTorch full bf16"] = run_torch("full")
        if options.torch_compile:
            chosen["PyTorch compiled"] = run_torch("compile")
    if options.tf_python and options.precision == "fp32":
        chosen["tf_cnn_benchmarks"] = run_tf
    if not chosen:
        sys.exit("nothing to run: give --torch_python or --tf_python with --tf_cnn_benchmarks")
    return chosen


def measure(model, chosen, options):
    """{runner: {"rounds": [[seconds]], "version"}}"""
    found = {name: {"rounds": [], "version": None} for name in chosen}
    for index in range(options.rounds):
        for name, run in chosen.items():
            seconds, version = run(model, options)
            if len(seconds) != options.steps:
                sys.exit(f"{name} reported {len(seconds)} steps, not {options.steps}")
            found[name]["rounds"].append(seconds)
            found[name]["version"] = version
            speed = options.batches[model] / statistics.median(seconds)
            print(f"{model} round {index + 1}: {name} {speed:.2f} img/s", file=sys.stderr)
    return found


def summarise(found, batch):
    """Adds img/s of the best step, of the median step, and of the median step in each round."""
    for entry in found.values():
        steps = [s for seconds in entry["rounds"] for s in seconds]
        entry["best"] = batch / min(steps)
        entry["median"] = batch / statistics.median(steps)
        entry["round_medians"] = [batch / statistics.median(seconds) for seconds in entry["rounds"]]
    return found


def cpu():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    name = re.search(r"^model name\s*:\s*(.*)$", text, re.M)
    flags = set((re.search(r"^flags\s*:\s*(.*)$", text, re.M) or [None, ""])[1].split())
    sets = [s for s in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if s in flags]
    return {"name": name[1] if name else platform.processor(), "instruction_sets": sets,
            "amx": "amx_bf16" in flags, "cores": os.cpu_count()}


def table(model, found, options):
    print(f"\n{model}, batch {options.batches[model]}, img/s")
    print(f"  {'':22}{'best':>9}{'median':>9}   this program against it: best, median, median by round")
    ours = found.get("this program")
    for name, entry in found.items():
        line = f"  {name:22}{entry['best']:9.2f}{entry['median']:9.2f}"
        if ours and entry is not ours:
            by_round = [a / b for a, b in zip(ours["round_medians"], entry["round_medians"])]
            line += (f"   {ours['best'] / entry['best']:.2f}x, {ours['median'] / entry['median']:.2f}x, "
                     f"{' '.join(f'{r:.2f}x' for r in by_round)}")
        print(line)


def main():
    options = arguments()
    chosen = runners(options)
    machine = cpu()
    kind = "forward only" if options.forward_only else "training"
    header = {"machine": machine, "threads": options.threads, "precision": options.precision, "mode": kind,
              "rounds": options.rounds, "steps": options.steps, "batches": options.batches}
    results = {}
    for model in options.models:
        results[model] = summarise(measure(model, chosen, options), options.batches[model])
        if options.json:  # after each model, so that a long run that is cut off leaves something
            pathlib.Path(options.json).write_text(json.dumps({**header, "models": results}, indent=1) + "\n")
    print(f"{machine['name']}, {machine['cores']} cores ({' '.join(machine['instruction_sets'])}; "
          f"{'AMX' if machine['amx'] else 'no AMX'}), {options.threads} threads, {options.precision}, {kind}, "
          f"{options.rounds} rounds of {options.steps} steps")
    for name, entry in next(iter(results.values())).items():
        print(f"  {name} {entry['version']}")
    for model, found in results.items():
        table(model, found, options)


if __name__ == "__main__":
    main()
