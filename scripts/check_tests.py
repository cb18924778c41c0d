#!/usr/bin/env python3
"""Checks that every unit has a test of its name, or is a row of a table that a shared test runs over.

    check_tests.py [ROOT]      prints one line for each violation and the ratio of test code; exit code 1 if there is any
    check_tests.py --self-test seeds violations in a scratch tree and checks that each is found

The tests of D/x.cpp are in tests/D/x_test.cpp or, for a folder in ALSO_IN, in a file of that name there.
"""
import fnmatch
import pathlib
import re
import sys
import tempfile

FOLDERS = ("models", "layers", "runtime", "lms", "allreduce", "data", "bench")
LEAST_RATIO = 0.75  # lines of tests to lines of code

# Folder -> further folders of its tests: on the emulated grid, on the emulated GPU, of the program as a process.
ALSO_IN = {
    "layers/cpu/simd": ["tests/layers/cpu"],
    "layers/cuda": ["tests/layers/cuda_grid"],
    "layers/cuda/cudnn": ["tests/layers/emulated_gpu"],
    "runtime/cuda": ["tests/runtime/emulated_gpu"],
    "bench/machine": ["tests/program"],
    "bench/plan": ["tests/program"],
    "bench/run": ["tests/program"],
}

# Pattern of units, a text that they contain ("" if any does), the shared test. The first two rows are for kernels: a
# case of an op runs by every kernel that adds a row for it.
ROWS = [
    ("layers/cpu/*.cpp", "void add_", "tests/layers/conformance_test.cpp"),
    ("layers/cuda/*.cu", "void add_", "tests/layers/cuda_grid/conformance_test.cpp"),
    ("layers/cuda/cudnn/kernels.cpp", "void add_kernels", "tests/layers/cuda/device_test.cpp"),
    ("layers/cuda/cudnn/conv.cpp", "void add_", "tests/layers/cuda/device_test.cpp"),
    ("layers/cuda/cudnn/dense.cpp", "void add_", "tests/layers/cuda/device_test.cpp"),
    ("layers/cpu/winograd_*.cpp", "", "tests/layers/cpu/winograd_test.cpp"),
    ("layers/cpu/onednn/library.cpp", "", "tests/layers/cpu/choice_test.cpp"),
    ("layers/cpu/onednn/conv_plans.cpp", "", "tests/layers/cpu/onednn/conv_test.cpp"),
    ("layers/cpu/onednn/own_gradients.cpp", "void add_", "tests/layers/conformance_test.cpp"),
    ("layers/cpu/onednn/tile_conv_rows.cpp", "", "tests/layers/cpu/tile_conv_test.cpp"),
    ("layers/cpu/simd/loops_amx_bf16.cpp", "", "tests/layers/cpu/tile_gradient_test.cpp"),
    ("layers/cpu/simd/tile_dense_amx_bf16.cpp", "", "tests/layers/cpu/tile_dense_test.cpp"),
    ("layers/cpu/simd/tile_lines_amx_bf16.cpp", "", "tests/layers/cpu/tile_lines_test.cpp"),
    ("layers/cpu/simd/tile_conv_amx_bf16.cpp", "", "tests/layers/cpu/tile_conv_test.cpp"),
    ("layers/cpu/alternatives/parallel_*.cpp", "", "tests/layers/cpu/threads_test.cpp"),
    ("data/images/simd/pixel_loops_*.cpp", "", "tests/data/images/resize_test.cpp"),
    ("data/images/alternatives/*.cpp", "public Codec", "tests/data/images/decoder_test.cpp"),
    ("bench/flags/flags_*.cpp", "", "tests/bench/flags/flag_table_test.cpp"),
    ("bench/cuda/backend.cpp", "", "tests/bench/cuda/exchange_test.cpp"),
    ("runtime/cuda/architectures.cu", "", "tests/runtime/cuda/support_test.cpp"),
    ("allreduce/simulate.cpp", "", "tests/allreduce/cost_test.cpp"),
    ("allreduce/mpi/entry.cpp", "", "tests/allreduce/mpi/world_test.cpp"),
    ("bench/cuda/module_main.cpp", "", "tests/program/gpu_module_test.cpp"),
    ("bench/mpi/module_main.cpp", "", "tests/program/ranks_test.cpp"),
    ("bench/main.cpp", "", "tests/program/start_test.cpp"),
    ("bench/compare_main.cpp", "", "tests/scripts/compare.sh"),
    ("bench/all_reduce/main.cpp", "", "tests/program/listing_test.cpp"),
    ("bench/make_records/main.cpp", "", "tests/scripts/install.sh"),
]

# Units of builds without a library: the tests run in the builds that have it.
UNTESTED = ["data/images/alternatives/without_*.cpp", "layers/cpu/alternatives/without_onednn.cpp"]

# Tests of a whole folder, of several units together, or of a fixture.
WHOLE_FOLDER = [
    "tests/allreduce/{control_plane,numa,proof,soak}_test.cpp",
    "tests/allreduce/emulated_gpu/*_test.cpp",
    "tests/allreduce/mpi/{abort,heartbeat_timeout}_test.cpp",
    "tests/bench/cuda/{exchange,plans}_test.cpp",
    "tests/bench/flags/suite_lines_test.cpp",
    "tests/bench/session/{aggregation,device_team,lms_bits,lms_variables}_test.cpp",
    "tests/data/mutation_test.cpp",
    "tests/data/imagenet/slow_tensorflow_pixels_test.cpp",
    "tests/layers/{cases,conformance,gradient,isa_limit,towers_training}_test.cpp",
    "tests/layers/cpu/{choice,own_kernels}_test.cpp",
    "tests/layers/cpu/onednn/isa_limit_test.cpp",
    "tests/layers/cuda/device_test.cpp",
    "tests/layers/cuda_grid/{concat_in_place,conformance,copies,exchange_step,flat_kernels}_test.cpp",
    "tests/layers/cuda_grid/host_variables_test.cpp",
    "tests/layers/cuda_grid/{global_memory,grid}_test.cpp",
    "tests/layers/emulated_gpu/{blas,dnn}_test.cpp",
    "tests/lms/{bound_lp,bound_property,exhaustive,network}_test.cpp",
    "tests/models/{golden,loss_curves,shape,variables}_test.cpp",
    "tests/program/*_test.cpp",
    "tests/program/emulated_gpu/*_test.cpp",
    "tests/runtime/{exposed,joined_step,missing_wait,no_allocation,recording,sharing}_test.cpp",
    "tests/runtime/emulated_gpu/{capture,event,memory}_test.cpp",
]

VARIANT = re.compile(r"_(avx2|avx512|avx512_bf16|plain)$")  # of one source for several instruction sets


def alternatives(pattern):
    """`a/{b,c}_test.cpp` as the patterns `a/b_test.cpp` and `a/c_test.cpp`."""
    found = re.match(r"(.*)\{(.*)\}(.*)$", pattern)
    return [f"{found[1]}{word}{found[3]}" for word in found[2].split(",")] if found else [pattern]


def matches(path, pattern):
    """As in a shell, where a star stands for no slash."""
    return fnmatch.fnmatchcase(path, pattern) and path.count("/") == pattern.count("/")


def files(root, folders, endings):
    for folder in folders:
        yield from sorted(path.relative_to(root).as_posix() for path in (root / folder).rglob("*")
                          if path.suffix in endings and path.is_file())


def split(path):
    folder, _, name = path.rpartition("/")
    return folder, name.partition(".")[0]


def test_folders(folder):
    return [f"tests/{folder}", *ALSO_IN.get(folder, [])]


def has_test(root, unit):
    folder, name = split(unit)
    return any((root / home / f"{VARIANT.sub('', name)}_test.cpp").is_file() for home in test_folders(folder))


def check_units(root, units):
    used = set()
    for unit in units:
        text = (root / unit).read_text(encoding="utf-8")
        rows = [row for row in ROWS if matches(unit, row[0]) and row[1] in text]
        exempt = [pattern for pattern in UNTESTED if matches(unit, pattern)]
        if has_test(root, unit):
            continue
        used.update(row[0] for row in rows[:1])
        used.update(exempt)
        if rows and not (root / rows[0][2]).is_file():
            yield f"{unit}: its shared test {rows[0][2]} does not exist"
        elif not rows and not exempt:
            yield f"{unit}: no test has its name ({' or '.join(test_folders(split(unit)[0]))}), and no shared test covers it"
    for pattern in [row[0] for row in ROWS] + UNTESTED:
        if pattern not in used:
            yield f"{pattern}: this row of scripts/check_tests.py covers no unit"


def check_test_files(root, tests):
    named = set()
    for unit in files(root, FOLDERS, {".cpp", ".cu", ".h", ".cuh"}):
        folder, name = split(unit)
        named.update(f"{home}/{VARIANT.sub('', name)}_test.cpp" for home in test_folders(folder))
    shared = [single for pattern in WHOLE_FOLDER for single in alternatives(pattern)]
    for test in tests:
        if test not in named and not any(matches(test, pattern) for pattern in shared):
            yield f"{test}: mirrors no unit, and is no test of a whole folder"
    for pattern in shared:
        if not any(matches(test, pattern) and (test not in named or "*" in pattern) for test in tests):
            yield f"{pattern}: this whole-folder test of scripts/check_tests.py does not exist, or has a unit of its name"


def ratio(root):
    endings = {".cpp", ".cu", ".h", ".cuh"}
    lines = [sum((root / path).read_text(encoding="utf-8").count("\n") for path in files(root, folders, endings))
             for folders in (["tests"], FOLDERS)]
    return lines[0] / max(1, lines[1])


def check(root):
    units = list(files(root, FOLDERS, {".cpp", ".cu"}))
    tests = [path for path in files(root, ["tests"], {".cpp"}) if path.endswith("_test.cpp")]
    problems = [*check_units(root, units), *check_test_files(root, tests)]
    if ratio(root) < LEAST_RATIO:
        problems.append(f"{ratio(root):.2f} lines of tests to a line of code; at least {LEAST_RATIO} are wanted")
    return problems


def clean_tree():
    """A tree without a violation: a unit for each row, and each whole-folder test."""
    tree = {"models/lenet.cpp": "\n", "tests/models/lenet_test.cpp": "\n" * 500,
            "layers/cpu/simd/loops_avx2.cpp": "\n", "tests/layers/cpu/loops_test.cpp": "\n",
            "bench/plan/search.cpp": "\n", "tests/program/search_test.cpp": "\n",
            "data/gzip.h": "\n", "tests/data/gzip_test.cpp": "\n"}
    for pattern, text, test in ROWS:
        tree[pattern.replace("*", "x")] = f"{text}\n"
        tree[test] = "\n"
    tree.update({pattern.replace("*", "x"): "\n" for pattern in UNTESTED})
    tree.update({single.replace("*", "whole"): "\n" for pattern in WHOLE_FOLDER for single in alternatives(pattern)})
    return tree


# Files that are added to the clean tree (None: taken away), and words that the report of it must have.
SEEDED = [
    ({"models/vgg.cpp": "\n"}, "models/vgg.cpp: no test has its name (tests/models)"),
    ({"tests/models/lenet_test.cpp": None, "tests/runtime/lenet_test.cpp": "\n" * 500}, "models/lenet.cpp: no test"),
    ({"tests/runtime/lenet_test.cpp": "\n"}, "tests/runtime/lenet_test.cpp: mirrors no unit"),
    ({"layers/cuda/fused.cpp": "void add_rows\n"}, "layers/cuda/fused.cpp: no test"),
    ({"layers/cpu/helper.cpp": "\n"}, "layers/cpu/helper.cpp: no test"),
    ({"layers/cpu/deep/helper.cpp": "void add_rows\n"}, "layers/cpu/deep/helper.cpp: no test"),
    ({"tests/layers/cpu/loops_test.cpp": None}, "layers/cpu/simd/loops_avx2.cpp: no test"),
    ({"tests/allreduce/cost_test.cpp": None}, "its shared test tests/allreduce/cost_test.cpp does not exist"),
    ({"allreduce/simulate.cpp": None}, "allreduce/simulate.cpp: this row"),
    ({"tests/allreduce/simulate_test.cpp": "\n"}, "allreduce/simulate.cpp: this row"),
    ({"tests/lms/network_test.cpp": None}, "tests/lms/network_test.cpp: this whole-folder test"),
    ({"lms/network.cpp": "\n"}, "tests/lms/network_test.cpp: this whole-folder test"),
    ({"tests/data/gzip_test.cpp": "\n", "data/gzip.h": None}, "tests/data/gzip_test.cpp: mirrors no unit"),
    ({"runtime/long.cpp": "\n" * 5000, "tests/runtime/long_test.cpp": "\n"}, "lines of tests to a line of code"),
]


def self_test():
    def report(extra):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            for path, text in {**clean_tree(), **extra}.items():
                if text is not None:
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    (root / path).write_text(text)
            return check(root)

    # The shared tests of units are tests of whole folders or have units of their names, which this tree lacks.
    known = {f"{test}: mirrors no unit, and is no test of a whole folder" for _, _, test in ROWS}
    failures = [f"the clean tree is not clean: {line}" for line in report({}) if line not in known]
    for extra, expected in SEEDED:
        found = report(extra)
        if not any(expected in line for line in found):
            failures.append(f"{sorted(extra)}: expected '{expected}', found {found}")
    print("\n".join(failures) or f"{len(SEEDED)} seeded violations found")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent)
    problems = check(root)
    print("\n".join(problems) or "tests: every unit has one by name or by a shared table")
    print(f"test : code = {ratio(root):.2f} (lines; at least {LEAST_RATIO})")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
