#!/usr/bin/env python3
"""Checks which folder may include which, and the other rules that a glance at the sources can check.

    check_layers.py [ROOT]      prints one line for each violation; exit code 1 if there is any
    check_layers.py --self-test seeds violations in a scratch tree and checks that each is found
"""
import pathlib
import re
import sys
import tempfile

# Folder -> folders it may include besides itself. This table is the design; cmake links by the same arrows.
ARROWS = {
    "runtime": [],
    "runtime/cpu": ["runtime"],
    "runtime/cuda": ["runtime"],
    "layers": ["runtime"],
    "layers/passes": ["layers", "runtime"],
    "layers/cpu": ["layers", "layers/cpu/simd", "runtime", "runtime/cpu"],
    "layers/cpu/onednn": ["layers/cpu", "layers", "layers/cpu/simd", "runtime", "runtime/cpu"],
    # Sources of which CMake picks one of several.
    "layers/cpu/alternatives": ["layers/cpu", "layers", "layers/cpu/simd", "runtime", "runtime/cpu"],
    # Compiled for one instruction set each, so it shares no inline code with anyone.
    "layers/cpu/simd": [],
    "layers/cuda": ["layers", "runtime", "runtime/cuda"],
    # The code that talks to cuDNN and cuBLAS; our own kernels are above it.
    "layers/cuda/cudnn": ["layers/cuda", "layers", "runtime", "runtime/cuda"],
    "models": ["layers", "runtime"],
    "lms": ["runtime"],
    "allreduce": ["allreduce/simd", "runtime"],
    "allreduce/simd": [],  # as layers/cpu/simd
    "allreduce/mpi": ["allreduce", "runtime"],
    "allreduce/nccl": ["allreduce", "runtime"],  # a library that is opened at run time: no header of CUDA
    "data": ["data/json", "runtime"],
    # TFRecord files, and the examples in them.
    "data/records": ["data", "runtime"],
    # Decoders, crops, sizes and colours of images; their inner loops are compiled for one instruction set each.
    "data/images": ["data", "data/images/simd", "runtime"],
    "data/images/alternatives": ["data/images", "runtime"],
    "data/images/simd": [],
    "data/imagenet": ["data", "data/images", "data/records", "runtime"],
    # The one reader of JSON, for all programs.
    "data/json": ["runtime"],
    "bench/flags": ["allreduce", "data", "lms", "models", "layers", "runtime"],
    "bench/machine": ["bench/flags", "data", "data/json", "lms", "models", "layers", "layers/cpu", "runtime", "runtime/cpu"],
    "bench/report": ["bench/version", "bench/machine", "bench/flags", "data", "data/json", "data/records", "lms", "models", "layers", "runtime"],
    # The commit that a program was built from: apart, so that a new commit compiles one file.
    "bench/version": [],
    # Processes and threads that compute together; their failures are told on the console of the report.
    "bench/ranks": ["bench/report", "bench/machine", "bench/flags", "allreduce", "allreduce/nccl", "allreduce/simd", "data/json", "layers",
                    "runtime"],
    # From flags to a step that fits the memory: data, before anything is allocated.
    "bench/plan": ["bench/version", "bench/ranks", "bench/report", "bench/machine", "bench/flags", "lms", "data", "data/json", "models", "layers/passes",
                   "layers", "runtime"],
    # Runs planned steps on the devices of this process.
    "bench/session": ["bench/plan", "bench/ranks", "bench/report", "bench/machine", "bench/flags", "lms", "allreduce", "data", "models",
                      "layers/passes", "layers", "runtime"],
    # The program's modes, and the observers that write its files.
    "bench/run": ["bench/version", "bench/session", "bench/plan", "bench/ranks", "bench/report", "bench/machine", "bench/flags", "lms", "allreduce", "data",
                  "data/json", "models", "layers/passes", "layers", "runtime"],
    # A verdict over result files: needs nothing of what made them.
    "bench/compare": ["data/json", "runtime"],
    "bench/page": ["bench/compare", "data/json", "runtime"],
    # A program of its own.
    "bench/all_reduce": ["bench/version", "bench/plan", "bench/ranks", "bench/report", "bench/machine", "bench/flags", "lms", "allreduce", "allreduce/simd",
                         "data", "data/json", "models", "layers/passes", "layers", "runtime"],
    # Writes TFRecord files of a folder of images.
    "bench/make_records": ["bench/report", "data", "data/images", "data/imagenet", "data/records", "runtime"],
    "bench/cuda": ["*"],
    "bench/mpi": ["allreduce/mpi", "allreduce", "runtime"],
    "bench": ["*"],
    # Fixtures of all tests: no fast kernels, no data, no program.
    "tests/support": ["runtime", "runtime/cpu", "layers", "allreduce"],
    # Proofs of the step lists of all-reduces.
    "tests/support/allreduce": ["allreduce", "runtime"],
    # The emulated grid, and the header that stands in for runtime/cuda/launch.h there.
    "tests/support/grid": ["runtime", "tests/support"],
    "tests/support/grid/include/runtime/cuda": ["runtime", "tests/support/grid"],
    # The emulated GPU: CUDA's libraries on host memory. It knows nothing of the code that it serves.
    "tests/support/cuda/runtime": ["runtime", "tests/support/grid"],
    "tests/support/cuda/blas": ["runtime", "tests/support/cuda/runtime"],
    "tests/support/cuda/dnn": ["runtime", "tests/support/cuda/runtime"],
    "tests/support/cuda/nccl": ["runtime", "tests/support/cuda/runtime"],
    # Libraries that the program opens by name.
    "tests/support/cuda/nccl/library": [],
    "tests/support/cuda/nvml": [],
    "tests/support/cuda/include/runtime/cuda": ["runtime", "runtime/cuda", "tests/support/grid", "tests/support/cuda/runtime"],
    "tests/layers/cuda_grid": ["layers", "layers/cuda", "layers/passes", "runtime", "runtime/cuda", "tests/layers", "tests/support",
                               "tests/support/grid"],
    "tests/layers/emulated_gpu": ["layers", "layers/cuda", "layers/cuda/cudnn", "runtime", "runtime/cuda",
                                  "tests/layers/cuda/cudnn", "tests/support", "tests/support/cuda/runtime"],
    # The program on the emulated GPU.
    "tests/program/emulated_gpu": ["tests/program", "tests/support", "runtime"],
    "tests/support/cuda/driver": [],
    # Tests of what the emulated NCCL forbids, and the exchange on top of it.
    "tests/allreduce/emulated_gpu": ["allreduce", "allreduce/nccl", "layers/cuda", "runtime", "runtime/cuda", "tests/support",
                                     "tests/support/cuda/nccl", "tests/support/cuda/runtime"],
    # Tests of what the emulated runtime forbids.
    "tests/runtime/emulated_gpu": ["runtime", "runtime/cuda", "tests/runtime/cuda", "tests/support",
                                   "tests/support/cuda/runtime", "tests/support/grid"],
    # Targets of libFuzzer, which scripts/fuzz.sh builds.
    "tests/fuzz": ["bench/compare", "bench/flags", "bench/machine", "bench/page", "bench/plan", "bench/ranks", "data",
                   "data/images", "data/imagenet", "data/records", "layers/cuda/cudnn", "runtime", "tests/support"],
    # A program that scripts build where SimGrid is.
    "tests/allreduce/simgrid": ["allreduce", "allreduce/simd", "runtime"],
    # A library that is loaded at run time, and what its stand-in answers.
    "tests/bench/cuda/fake_nvml": [],
    # The program as its users see it: started as a process.
    "tests/program": ["tests/support"],
    # Preloaded into the program.
    "tests/program/watched_reads": [],
}
# Folders that the tests of a folder may use beyond what the folder itself may.
MORE_FOR_TESTS = {
    "tests/layers": ["layers/passes", "tests/layers"],
    "tests/data/records": ["tests/data"],
    "tests/data/images": ["tests/data"],
    "tests/data/imagenet": ["tests/data", "tests/data/images"],
    "tests/layers/passes": ["layers/cpu", "layers/cpu/simd", "tests/layers"],
    "tests/allreduce": ["tests/support/allreduce"],
    "tests/allreduce/simd": ["tests/allreduce"],
    "tests/allreduce/mpi": ["tests/allreduce", "allreduce/simd"],
    # Steps as networks have them.
    "tests/lms": ["layers", "layers/passes"],
    # Whole networks against recorded values: by the plain loops they would take hours.
    "tests/models": ["layers/cpu", "layers/cpu/simd", "layers/passes"],
    "tests/layers/cpu/onednn": ["tests/layers/cpu"],
    # The same cases on a device.
    "tests/layers/cuda": ["layers/passes", "tests/layers"],
    "tests/layers/cuda/cudnn": ["layers/passes", "tests/layers", "tests/layers/cuda"],
    "tests/bench/cuda": ["tests/bench/cuda/fake_nvml"],
    "tests/bench/page": ["tests/bench/compare"],
    "tests/bench/session": ["tests/bench/ranks", "allreduce/simd"],
    "tests/bench/run": ["tests/bench/session", "tests/bench/ranks"],
    "tests/bench/all_reduce": ["tests/bench/session", "tests/bench/ranks"],
}

# Library header -> folders that may use it, with their tests. Others (std, POSIX) may be used anywhere.
LIBRARIES = {
    r"(oneapi/)?dnnl": ["layers/cpu/onednn"],
    r"omp\.h": ["layers/cpu", "layers/cpu/alternatives", "layers/cpu/onednn"],
    r"cuda|cublas|curand|nvrtc|nvtx|vector_": ["runtime/cuda", "layers/cuda", "layers/cuda/cudnn", "bench/cuda",
                                               "tests/support/grid", "tests/support/cuda/runtime", "tests/support/cuda/blas",
                                               "tests/support/cuda/include/runtime/cuda", "tests/runtime/emulated_gpu",
                                               "tests/support/cuda/nccl", "tests/allreduce/emulated_gpu"],
    r"cudnn": ["layers/cuda/cudnn", "tests/support/cuda/dnn", "tests/layers/emulated_gpu"],
    r"nccl\.h": ["tests/support/cuda/nccl", "tests/support/cuda/nccl/library", "tests/allreduce/emulated_gpu"],
    r"mpi\.h": ["allreduce/mpi"],
    r"jpeglib|jerror": ["data/images/alternatives", "tests/data/images"],
    r"png\.h": ["data/images/alternatives", "tests/data/images"],
    r"zlib": ["data"],
    r"nlohmann/": ["data", "data/json", "bench", "bench/compare", "bench/flags", "bench/machine", "bench/page", "bench/plan", "bench/ranks", "bench/report", "bench/run",
                   "bench/session", "bench/cuda",
                   "tests/models", "tests/program", "tests/program/emulated_gpu", "tests/support/cuda/runtime"],
    r"fmt/|cxxopts": ["bench", "bench/all_reduce", "bench/compare", "bench/make_records", "bench/flags", "bench/machine", "bench/page",
                      "bench/plan", "bench/ranks", "bench/report", "bench/run", "bench/session", "bench/cuda"],
    r"gtest/|gmock/": [],
}

# Names that nvcc knows as words of the language can only be macros for a host compiler.
MAY_HAVE_MACROS = {"tests/support/grid/device_language.h"}

TOP_LEVEL = {"CMakeLists.txt", "CMakePresets.json", "README.md", "models", "layers", "runtime", "lms", "allreduce",
             "data", "bench", "scripts", "tests", "build"}
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".hpp", ".c", ".cc"}
LONGEST = 500
LONGEST_CMAKE = 840  # all CMake files together
DEEPEST = 8  # includes of ours in a row, from a source down

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
DIRECTIVE = re.compile(r"^\s*#\s*(define|undef|if|ifdef|ifndef|elif|elifdef|else|endif)\b")


def arrows_of(folder):
    """The folders that may be included from `folder`; None if the table does not know it."""
    if folder in ARROWS:
        allowed = ARROWS[folder]
        if allowed == ["*"]:
            return [f for f in ARROWS if not f.startswith("tests/")]
        return allowed + [folder]
    if not folder.startswith("tests/"):
        return None
    # tests/X: X with its sub-folders, what these may include, fixtures.
    tested = folder.removeprefix("tests/")
    inside = [f for f in ARROWS if f == tested or f.startswith(tested + "/")]
    allowed = {folder, "tests/support", *ARROWS["tests/support"], *MORE_FOR_TESTS.get(folder, [])}
    for f in inside:
        allowed.update(arrows_of(f))
    return sorted(allowed) if inside else None


def may_use_library(folder, owners):
    if folder.startswith("tests/"):
        tested = folder.removeprefix("tests/")
        return any(o in (folder, tested) or o.startswith(tested + "/") for o in owners) or not owners
    return folder in owners


def without_comments(text):
    """Blanks comments, keeping line numbers; strings that look like comments matter to no rule here."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)


def sources(root):
    tops = {folder.split("/")[0] for folder in ARROWS} | {"tests"}
    for top in sorted(tops):
        yield from sorted(p for p in (root / top).rglob("*") if p.suffix in SOURCES and p.is_file())


def check_include(root, path, folder, bracket, name):
    allowed = arrows_of(folder)
    if bracket == "<":
        for pattern, owners in LIBRARIES.items():
            if re.match(pattern, name) and not may_use_library(folder, owners):
                yield f"{folder} must not use the library of <{name}>"
        return
    target = pathlib.PurePosixPath(name)
    if ".." in target.parts or "/" not in name or not (root / name).is_file():
        yield f'"{name}" is not a file by its path from the top folder'
    elif allowed is not None and str(target.parent) not in allowed:
        yield f'{folder} must not include {target.parent} ("{name}")'


def check_source(root, path, includes):
    folder = path.parent.relative_to(root).as_posix()
    text = path.read_text(encoding="utf-8")
    if arrows_of(folder) is None:
        yield 1, f"folder {folder} is not in the table of folders"
    length = text.count("\n")
    if length > LONGEST:
        yield length, f"{length} lines; the limit is {LONGEST}"
    if path.suffix in {".h", ".cuh", ".hpp"} and "#pragma once" not in text:
        yield 1, "a header without #pragma once"
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        if (directive := DIRECTIVE.match(line)) and path.relative_to(root).as_posix() not in MAY_HAVE_MACROS:
            yield number, f"#{directive[1]}: no macros and no conditional compilation"
        if include := INCLUDE.match(line):
            includes.setdefault(path.relative_to(root).as_posix(), []).append(include[2])
            for problem in check_include(root, path, folder, include[1], include[2]):
                yield number, problem


def cycles(graph):
    """One line for each cycle that a depth-first walk of {node: successors} closes."""
    state, stack = {}, []

    def visit(node):
        state[node] = "open"
        stack.append(node)
        for successor in sorted(graph.get(node, ())):
            if state.get(successor) == "open":
                yield " -> ".join(stack[stack.index(successor):] + [successor])
            elif successor not in state:
                yield from visit(successor)
        stack.pop()
        state[node] = "done"

    for node in sorted(graph):
        if node not in state:
            yield from visit(node)


def folder_graph(includes):
    graph = {}
    for source, names in includes.items():
        folder = source.rpartition("/")[0]
        targets = {name.rpartition("/")[0] for name in names if name.rpartition("/")[0] in ARROWS}
        graph.setdefault(folder, set()).update(targets - {folder})
    return graph


def depths(includes):
    """{file: includes of ours in the longest chain that starts there}; the includes have no cycle."""
    found, tops = {}, {folder.split("/")[0] for folder in ARROWS}

    def depth(path):
        if path not in found:
            ours = [name for name in includes.get(path, []) if name.split("/")[0] in tops]
            found[path] = 1 + max(map(depth, ours), default=-1)
        return found[path]

    for path in includes:
        depth(path)
    return found


def too_deep(includes):
    for path, depth in sorted(depths(includes).items()):
        if depth > DEEPEST:
            yield f"{path}: includes {depth} files deep; the limit is {DEEPEST}"


def check(root):
    """All violations under `root`, as lines that an editor can jump to."""
    problems, includes = [], {}
    for path in sources(root):
        where = path.relative_to(root)
        problems += [f"{where}:{line}: {what}" for line, what in check_source(root, path, includes)]
    looped = list(cycles(includes))
    problems += [f"include cycle: {c}" for c in looped]
    problems += [] if looped else too_deep(includes)
    problems += [f"folder cycle: {c}" for c in cycles(folder_graph(includes))]
    for entry in sorted(root.iterdir()):
        if entry.name not in TOP_LEVEL and not entry.name.startswith("."):
            problems.append(f"{entry.name}: does not belong in the top folder")
    scripts = root / "scripts"
    cmake = [p for p in (root / "CMakeLists.txt", *scripts.rglob("*.cmake"), *root.glob("tests/**/CMakeLists.txt"))
             if p.is_file()]
    lines = sum(p.read_text().count("\n") for p in cmake)
    if lines > LONGEST_CMAKE:
        problems.append(f"CMake files: {lines} lines together; the limit is {LONGEST_CMAKE}")
    for path in sorted(p for p in scripts.rglob("*") if p.suffix in {".sh", ".py"}):
        length = path.read_text().count("\n")
        if length > LONGEST:
            problems.append(f"{path.relative_to(root)}:{length}: {length} lines; the limit is {LONGEST}")
    return problems


CLEAN = {
    "CMakeLists.txt": "project(x)\n",
    "runtime/tensor.h": "#pragma once\n#include <vector>\n",
    "runtime/cpu/device.h": '#pragma once\n#include "runtime/tensor.h"\n',
    "layers/conv.h": '#pragma once\n// #define in a comment is no macro\n#include "runtime/tensor.h"\n',
    "layers/cpu/onednn/conv.cpp": '#include <dnnl.hpp>\n#include "layers/conv.h"\n#include "runtime/cpu/device.h"\n',
    "models/lenet.cpp": '#include "layers/conv.h"\n',
    **{f"runtime/h{i}.h": f'#pragma once\n#include "runtime/h{i - 1}.h"\n' for i in range(1, 9)},
    "runtime/h0.h": "#pragma once\n",
    "bench/main.cpp": '#include <fmt/core.h>\n#include "models/lenet.h"\n',
    "models/lenet.h": "#pragma once\n",
    "layers/cpu/onednn/onednn.h": "#pragma once\n#include <dnnl.hpp>\n",
    "data/dataset.h": "#pragma once\n",
    "bench/flags/config.h": "#pragma once\n",
    "tests/layers/conv_test.cpp": '#include <gtest/gtest.h>\n#include "layers/conv.h"\n#include "tests/support/n.h"\n',
    "tests/support/n.h": '#pragma once\n#include "layers/conv.h"\n',
}

# Files that are added to the clean tree, and the words that the report of it must have.
SEEDED = [
    ("models/bad.cpp", '#include "data/dataset.h"\n', "models must not include data"),
    ("runtime/up.cpp", '#include "layers/conv.h"\n', "runtime must not include layers"),
    ("layers/fast.cpp", '#include "layers/cpu/onednn/onednn.h"\n', "layers must not include layers/cpu"),
    ("models/up.cpp", '#include "bench/flags/config.h"\n', "models must not include bench"),
    ("models/gone.cpp", '#include "layers/gone.h"\n', "is not a file by its path"),
    ("bench/x.h", '#pragma once\n#include "tests/support/n.h"\n', "bench must not include tests/support"),
    ("data/swap.cpp", '#include "models/lenet.h"\n', "data must not include models"),
    ("tests/models/m_test.cpp", '#include "bench/flags/config.h"\n', "tests/models must not include bench"),
    ("tests/runtime/t_test.cpp", '#include "models/lenet.h"\n', "tests/runtime must not include models"),
    ("layers/flat.cpp", '#include "conv.h"\n', "is not a file by its path"),
    ("layers/dots.cpp", '#include "../runtime/tensor.h"\n', "is not a file by its path"),
    ("layers/macro.cpp", "#define LIMIT 3\n", "#define: no macros"),
    ("layers/feature.cpp", "#ifdef USE_X\n#endif\n", "#ifdef: no macros"),
    ("layers/spaced.cpp", "# if X\n# endif\n", "#if: no macros"),
    ("runtime/print.cpp", "#include <fmt/core.h>\n", "must not use the library of <fmt/core.h>"),
    ("layers/blas.cpp", "#include <oneapi/dnnl/dnnl.hpp>\n", "must not use the library"),
    ("models/test.cpp", "#include <gtest/gtest.h>\n", "must not use the library"),
    ("runtime/long.cpp", "\n" * 501, "501 lines; the limit is 500"),
    ("scripts/long.sh", "\n" * 501, "501 lines; the limit is 500"),
    ("scripts/cmake/Long.cmake", "\n" * 840, "841 lines together"),
    ("runtime/twice.h", '#include "runtime/tensor.h"\n', "without #pragma once"),
    ("engine/core.h", "#pragma once\n", "engine: does not belong in the top folder"),
    ("runtime/tpu/device.h", "#pragma once\n", "folder runtime/tpu is not in the table"),
    ("notes.txt", "", "notes.txt: does not belong"),
    ("runtime/loop.h", '#pragma once\n#include "runtime/loop.h"\n', "include cycle: runtime/loop.h -> runtime/loop.h"),
    ("runtime/h9.h", '#pragma once\n#include "runtime/h8.h"\n', "runtime/h9.h: includes 9 files deep"),
    ("runtime/back.cpp", '#include "runtime/cpu/device.h"\n', "folder cycle: runtime -> runtime/cpu -> runtime"),
]


def self_test():
    def report(extra):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            for path, text in {**CLEAN, **extra}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return check(root)

    failures = [f"the clean tree is not clean: {line}" for line in report({})]
    for path, text, expected in SEEDED:
        found = report({path: text})
        if not any(expected in line for line in found):
            failures.append(f"{path}: expected '{expected}', found {found}")
    print("\n".join(failures) or f"{len(SEEDED)} seeded violations found")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent)
    problems = check(root)
    print("\n".join(problems) or "layers: nothing to complain about")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
