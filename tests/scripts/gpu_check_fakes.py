"""Stand-ins for the programs that scripts/gpu_check runs: they leave what those leave, and fail as those may fail."""
import os
import pathlib
import sys

# Writes a result file as the program does. Every run is noted in the file $FAKE_LOG. $FAKE_BAD=FLAG:HOW makes runs with
# that flag fail, hang (with a child of its own), or run out of memory.
PROGRAM = """#!{python}
import json, os, subprocess, sys, time

if sys.argv[1:] == ["--help"]:
    if "FAKE_OLD_HOST" in os.environ:
        sys.exit("version `GLIBC_2.99' not found")
    sys.exit(print("--model") or 1)
flags = dict(word[2:].partition("=")[::2] for word in sys.argv[1:])
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write(" ".join(sys.argv[1:]) + chr(10))
if flags["device"] == "gpu" and "FAKE_OLD_DRIVER" in os.environ:
    sys.exit("--device=gpu: no CUDA device: the NVIDIA driver takes CUDA up to 12.2, but this program was built with "
             "CUDA 13.0")
if flags["device"] == "gpu" and "FAKE_NO_GPU" in os.environ:
    sys.exit("--device=gpu: no CUDA device: cudaErrorNoDevice: no device")
flag, _, how = os.environ.get("FAKE_BAD", "=:").partition(":")
if "--" + flag in sys.argv:
    if how == "hang":
        child = subprocess.Popen(["sleep", "600"])
        with open(os.environ["FAKE_LOG"] + ".child", "w") as file:
            file.write(str(child.pid))
        time.sleep(600)
    if how == "memory":
        sys.exit("needs 90 GiB, but 70 GiB are free: the largest --batch_size that fits is 300")
    sys.exit("first line" + chr(10) + "the card is on fire")
batch = int(flags["batch_size"])
seconds = batch / (1000 + batch)
step = {{"step": 1, "seconds": seconds, "loss": 7.0}}
report = {{
    "commit": "c0ffee", "steps": [step, step],
    "machine": {{"libraries": {{"cuDNN": "9.19.0"}}, "gpu": {{"name": "Fake 100", "memory_bytes": 80 << 30}}}},
    "plan": {{"arena_bytes": 1 << 30, "lower_bound_bytes": 1, "workspace_bytes": 2, "layout": "nhwc",
              "precision": "f16", "predicted_step_seconds": None}},
    "memory": {{"arena_peak_bytes": 1 << 30}}, "start": {{"process_to_first_step": 1.5}},
    "summary": {{"images_per_sec": batch / seconds, "uncertainty": 1.0, "jitter": 0.5,
                 "median_step_seconds": seconds, "percent_of_roofline": 50.0}}}}
with open(flags["result_json"], "w") as file:
    json.dump(report, file)
"""

# Tests One.A, One.B, One.C, One.D: C crashes its process, A fails where it is not alone, B is skipped.
SUITE = """#!{python}
import os, sys

names = ["One.A", "One.B", "One.C", "One.D"]
if "--gtest_list_tests" in sys.argv:
    print("Running main()" + chr(10) + "One.")
    print(chr(10).join("  " + name[4:] + "  # GetParam() = 3" for name in names) if "-Slow" in sys.argv[-1] else "")
    sys.exit(0)
with open(sys.argv[1].partition("=")[2]) as file:
    wanted = file.readline().strip().partition("=")[2].split(":")
for name in names:
    if name in wanted:
        print("[ RUN      ]", name, flush=True)
        if name == "One.C":
            os.abort()
        if name == "One.A" and len(wanted) > 1:
            print("3 is not 4")
            print("[  FAILED  ] One.A, where GetParam() = 3 (5 ms)", flush=True)
        else:
            print("[  SKIPPED ]" if name == "One.B" else "[       OK ]", name, "(0 ms)", flush=True)
"""

TORCH = """#!{python}
import json, sys

if sys.argv[1] == "-c":
    sys.exit(0)
flags = dict(word[2:].partition("=")[::2] for word in sys.argv[2:])
if flags["variant"] == "compile":
    sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate")
speed = {{"eager": 500.0, "graph": 800.0}}[flags["variant"]]
print(json.dumps({{"seconds": [int(flags["batch_size"]) / speed] * 3, "version": "2.0"}}))
"""

# Stands in for scripts/losses/compare.py.
LOSSES = """import json, os, sys

flags = dict(word[2:].partition("=")[::2] for word in sys.argv[1:])
verdict = os.environ["FAKE_LOSSES"]
names = flags["models"].split(",")
done = names[:-1] if verdict == "left_out" else names
models = {{name: {{"ok": verdict != "off" or name != "vgg16", "deviation": 0.0015 if name == "vgg16" else 0.0001,
                   "base_loss": [1.0]}} for name in done}}
with open(flags["json"], "w") as file:
    json.dump({{"models": models, "left_out": names[len(done):]}}, file)
sys.exit(verdict == "off")
"""


def install(path: pathlib.Path, text: str) -> pathlib.Path:
    path.write_text(text.format(python=sys.executable))
    path.chmod(0o755)
    return path


def install_all(folder: pathlib.Path) -> None:
    install(folder / "cnn_benchmarks", PROGRAM)
    install(folder / "cnn_one_cuda_tests", SUITE)
    install(folder / "torch_python", TORCH)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # A killed child that nobody waits for stays as a zombie.
    return pathlib.Path(f"/proc/{process}/stat").read_text().split(")")[-1].split()[0] != "Z"
