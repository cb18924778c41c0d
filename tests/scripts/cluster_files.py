"""Checks the files of scripts/cluster without a cluster: the MPIJob against the operator's schema, and whether it, the
Containerfile, the installed tree and the program agree.

    cluster_files.py BUILD     BUILD: the folder with cnn_benchmarks
"""
from __future__ import annotations

import copy
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import containerfile

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(f"skipped: {error}; apt-get install python3-jsonschema python3-yaml")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "scripts/cluster"
failures: list[str] = []


def expect(holds: object, what: str) -> None:
    if not holds:
        failures.append(what)


def refusals_of_wrong_jobs(schema: jsonschema.Draft7Validator, job: dict) -> None:
    """Checks that the schema refuses the jobs that the operator would refuse."""
    def broken(change) -> dict:
        wrong = copy.deepcopy(job)
        change(wrong)
        return wrong

    wrong_jobs = {
        "an unknown field": lambda j: j["spec"].update(cleanPodPolicy="Running"),
        "a number as text": lambda j: j["spec"].update(slotsPerWorker="1"),
        "no workers": lambda j: j["spec"]["mpiReplicaSpecs"].pop("Worker"),
        "another version": lambda j: j.update(apiVersion="kubeflow.org/v1"),
        "a container without a name": lambda j: j["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0].pop("name"),
        "a number among arguments": lambda j: j["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["args"].append(2),
        "a wrong quantity": lambda j: j["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"]["limits"].update(memory="1GiB"),
    }
    for name, change in wrong_jobs.items():
        expect(not schema.is_valid(broken(change)), f"mpijob_schema.json accepts {name}")


def container_of(job: dict, replica: str) -> dict:
    return job["spec"]["mpiReplicaSpecs"][replica]["template"]["spec"]["containers"][0]


def check_job(job: dict, image: containerfile.Containerfile, build: pathlib.Path) -> None:
    launcher, worker = container_of(job, "Launcher"), container_of(job, "Worker")
    words = launcher["command"] + launcher["args"]
    program = words.index("cnn_benchmarks")
    ranks = job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] * job["spec"].get("slotsPerWorker", 1)
    expect(words[words.index("-np") + 1] == str(ranks), f"mpijob.yaml: -np is not {ranks}, replicas x slotsPerWorker")
    gpus = worker["resources"]["limits"]["nvidia.com/gpu"]
    expect(gpus == job["spec"]["slotsPerWorker"], "mpijob.yaml: a worker's GPUs are not its slots")
    kill = int(words[words.index("odls_base_sigkill_timeout") + 1])
    grace = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["terminationGracePeriodSeconds"]
    expect(2 * kill < grace, "mpijob.yaml: Kubernetes kills mpirun before mpirun kills the ranks")
    check_flags(words[program + 1:], build)
    if shutil.which("mpirun"):
        line = [*words[:program], "--allow-run-as-root", "--oversubscribe", "true"]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        expect(done.returncode == 0, f"mpirun refuses its options of mpijob.yaml: {done.stderr}")

    final = image.stages[-1]
    copied = [text.split()[-1] for text in final.words("COPY")]
    expect(worker["args"][-1] in copied, f"the image has no {worker['args'][-1]}, which a worker's sshd reads")
    user = final.words("USER")[-1]
    expect(user != "root", "the image runs as root, whom mpirun refuses")
    created = [text for text in final.words("RUN") if "useradd" in text and user in text]
    expect(created, f"the image does not create its user {user}")
    for container in (launcher, worker):
        expect(f"--uid {container['securityContext']['runAsUser']} " in created[0],
               "mpijob.yaml: runAsUser is not the user of the image")
    keys = job["spec"]["sshAuthMountPath"]
    expect(keys == f"/home/{user}/.ssh", f"mpijob.yaml: sshAuthMountPath is not in the home of {user}")
    for line in (CLUSTER / "sshd_config").read_text().splitlines():
        name, *value = line.split()
        if name in ("HostKey", "AuthorizedKeysFile"):
            expect(value[0].startswith(keys + "/"), f"sshd_config: {name} is not where the operator mounts keys")


def check_flags(words: list[str], build: pathlib.Path) -> None:
    """Checks that the program accepts the flags: it must reach the check that nothing started the other ranks."""
    with tempfile.TemporaryDirectory() as folder:
        small = [*words, "--device=cpu", "--model=trivial", "--batch_size=2", "--num_batches=1", "--num_warmup_batches=0",
                 "--nomeasure_ceilings"]
        done = subprocess.run([build / "cnn_benchmarks", *small], cwd=folder, capture_output=True, text=True, check=False)
        expect(done.returncode == 0 and '"program": "cnn_benchmarks"' in done.stderr,
               f"the flags of mpijob.yaml do not train, or leave no result on stderr: {done.stderr[-300:]}")


def check_image(image: containerfile.Containerfile, build: pathlib.Path) -> None:
    expect(len(image.stages) == 2, "Containerfile: there are not two stages")
    for stage in image.stages:
        expect(re.fullmatch(r"\$\{\w+\}", stage.base) and ":" in image.base_of(stage),
               f"Containerfile: {stage.base} is not an argument with a tagged default")
    first, final = image.stages
    presets = {preset["name"] for preset in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]}
    defaults = [text.split("=")[1] for text in first.words("ARG")]
    expect(set(defaults) <= presets, f"Containerfile: there is no preset {defaults}")
    for text in first.words("RUN"):
        for script in re.findall(r"scripts/\S+\.sh", text):
            expect((ROOT / script).exists(), f"Containerfile: there is no {script}")
        for option in re.findall(r"-D(CNN_\w+)=", text):
            expect(re.search(rf"(option|set)\({option}\b", all_cmake()), f"Containerfile: there is no option {option}")
    check_copies(image, build)
    packages = re.findall(r"(?<=--no-install-recommends )[^<&]+", " ".join(final.words("RUN")))[0].split()
    setup = (ROOT / "scripts/setup.sh").read_text()
    expect("openmpi-bin" in packages and "openmpi-bin" in setup, "the image and setup.sh do not agree about mpirun's package")
    if shutil.which("apt-cache"):
        for package in packages:
            known = subprocess.run(["apt-cache", "show", package], capture_output=True, check=False).returncode == 0
            expect(known, f"Containerfile: apt knows no package {package}")


def all_cmake() -> str:
    return "\n".join(path.read_text() for path in [ROOT / "CMakeLists.txt", *(ROOT / "scripts/cmake").glob("*.cmake")])


def check_copies(image: containerfile.Containerfile, build: pathlib.Path) -> None:
    """Checks that all files of the second stage exist in the repository or in the first stage's installation."""
    with tempfile.TemporaryDirectory() as staged:
        install(build, pathlib.Path(staged))
        for text in image.stages[-1].words("COPY"):
            source = text.split()[-2]
            place = pathlib.Path(staged) / source.removeprefix("/staged/") if "--from=build" in text else ROOT / source
            if source != "/staged/packages":
                expect(place.exists(), f"Containerfile: there is no {source} to copy")
        prefix = pathlib.Path(staged) / "usr/local"
        modules = [module.name for module in build.glob("cnn_*.so")]
        for file in ["bin/cnn_benchmarks", "bin/cnn_compare", "bin/all_reduce_benchmark", "bin/make_records",
                     "share/cnn_benchmarks/scripts/suite.sh", "share/cnn_benchmarks/scripts/suites/quick",
                     "share/cnn_benchmarks/scripts/machines/h100.json",
                     *(f"lib/cnn_benchmarks/{module}" for module in modules)]:
            expect((prefix / file).resolve().exists(), f"the installed tree has no {file}")
        check_packages(prefix, "cnn_mpi.so" in modules)


def install(build: pathlib.Path, staged: pathlib.Path) -> None:
    done = subprocess.run(["cmake", "--install", build, "--prefix", "/usr/local", "--strip"], capture_output=True, text=True,
                          check=False, env={**os.environ, "DESTDIR": str(staged)})
    expect(done.returncode == 0, f"cmake --install fails: {done.stderr[-300:]}")


def check_packages(prefix: pathlib.Path, with_mpi: bool) -> None:
    if not shutil.which("dpkg-query"):
        return
    done = subprocess.run(["bash", CLUSTER / "runtime_packages.sh", prefix], capture_output=True, text=True, check=False)
    packages = done.stdout.split()
    expect(done.returncode == 0, f"runtime_packages.sh fails: {done.stderr}")
    wanted = ["libc6", "libfmt", "libgomp", "libpng"] + ["libopenmpi"] * with_mpi
    for name in wanted:
        expect(any(package.startswith(name) for package in packages), f"runtime_packages.sh does not print {name}: {packages}")


def check_ssh() -> None:
    """Checks that sshd and ssh accept their configuration. As in a worker, sshd does not run as root."""
    if not shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin"):
        return
    with tempfile.TemporaryDirectory() as folder:
        key = f"{folder}/id_rsa"
        subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", key], check=True)
        config = pathlib.Path(folder) / "sshd_config"
        config.write_text((CLUSTER / "sshd_config").read_text().replace("/home/mpiuser/.ssh", folder))
        line = ["/usr/sbin/sshd", "-T", "-f", config]
        if os.geteuid() == 0:
            nobody = 65534
            for path in (folder, key, config):
                os.chown(path, nobody, nobody)
            line = ["setpriv", f"--reuid={nobody}", "--clear-groups", *line]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        expect(done.returncode == 0, f"sshd refuses sshd_config: {done.stderr}")
        port = re.search(r"^port (\d+)$", done.stdout, re.M)
        read = subprocess.run(["ssh", "-G", "-F", CLUSTER / "ssh_config", "worker-0"], capture_output=True, text=True, check=False)
        expect(port and f"\nport {port[1]}\n" in read.stdout, f"ssh and sshd do not agree about the port: {read.stderr}")


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    job = yaml.safe_load((CLUSTER / "mpijob.yaml").read_text())
    schema = jsonschema.Draft7Validator(json.loads((ROOT / "tests/scripts/mpijob_schema.json").read_text()))
    for error in schema.iter_errors(job):
        failures.append(f"mpijob.yaml: {'.'.join(map(str, error.path))}: {error.message}")
    refusals_of_wrong_jobs(schema, job)
    image = containerfile.read(CLUSTER / "Containerfile")
    check_job(job, image, build)
    check_image(image, build)
    check_ssh()
    print("\n".join(failures) or "the files of scripts/cluster agree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
