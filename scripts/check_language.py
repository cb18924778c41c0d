#!/usr/bin/env python3
"""Checks the words of the project: comments are sentences about things that exist, pages name things that exist, links lead
somewhere, commit subjects are short and imperative.

    check_language.py [ROOT]        prints one line for each violation; exit code 1 if there is any
    check_language.py --commits [N] checks the subjects of the last N commits (50); exit code 77 without a git history
    check_language.py --self-test   seeds violations in a scratch tree and checks that each is found
"""
from __future__ import annotations

import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

CPP = {".h", ".cpp", ".cu", ".cuh"}
HASH = {".py", ".sh", ".cmake"}
SKIPPED = {"build", ".git"}

# A sentence that begins with one of these has a thing without a name as its subject, or has no main clause.
FRAGMENT = re.compile(r"(What|Of|Who|Whom|Whose|Which|That which|By|Where it|The own|So that|"
                      r"(For|To|From|In|With|At|On|After|Before|Between|Through) (whom|which|what))\b")
# A subordinate clause that no comma separates from a main clause: there is none.
SUBORDINATE = re.compile(r"(As|Like|Unlike|Where|When|Because|Although|Unless|While|If|Since)\b(?! of )[^,:;]*$")
# One or two words on a line of their own that say nothing about the code below.
LABEL = re.compile(r"[a-z]+( [a-z]+)?[.:]?$")
# Sentences that may begin so: questions, and subordinate clauses with a main clause behind them.
WHOLE = re.compile(r"(What follows|By default|By then|Of course)\b|[^.]*\?")

FILE_NAME = re.compile(r"(?<![\w./*<>{}-])((?:[\w-]+/)*[\w-]+\.(?:h|cpp|cu|cuh|py|sh|md|cmake|tsv))(?![\w*])")
# Files of others, and names that stand for any file of a kind.
PLACEHOLDER = re.compile(r"(^|[/_])x[._]")  # the x of a name that stands for any
OTHER_FILES = {"x_avx2.cpp", "x_avx512.cpp", "x_avx512_bf16.cpp", "compare.py", "syncedmem.cpp", "DIR/scripts/gpu_check.sh"}

CALL = re.compile(r"(?<![\w.:>/-])((?:[a-z_]\w*::)*[A-Za-z_]\w*)\(\)")
QUALIFIED = re.compile(r"(?<![\w:])((?:[A-Za-z_]\w*::)+[A-Za-z_]\w*)")
SNAKE = re.compile(r"(?<![\w./<:-])([a-z][a-z0-9]*(?:_[a-z0-9]+)+)(?![\w*/.(])")
CAMEL = re.compile(r"(?<![\w:./\"'-])([A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+)(?![\w\"'])")
# Names of the world outside: systems, formulas, people.
OTHER_NAMES = {
    "GitHub", "GitLab", "GoogLeNet", "GoogleNet", "GoogleTest", "MobileNet", "ResNet", "DenseNet", "AlexNet", "LeNet", "ImageNet",
    "TensorFlow", "PyTorch", "PowerAI", "TensorBoard", "TensorRT", "SimGrid", "ThreadSanitizer", "AddressSanitizer", "NumPy",
    "InfiniBand", "SplitMix64", "SwapInOutScheduler", "LeVeque", "LeCun", "simgrid_run", "eltwise_relu", "sm_80", "t_i", "UndefinedBehaviorSanitizer",
    "sample_distorted_bounding_box", "align_corners", "bytes_list", "pull_request", "merge_request_event",
}

# Verbs in the imperative that look like other forms of a verb.
IMPERATIVES = {"Bring", "Address", "Pass", "Process", "Compress", "Express", "Discuss", "Focus", "Access", "Dismiss", "Guess", "Embed",
               "Feed", "Need", "Speed", "Seed", "Shed", "Shred", "Proceed", "Exceed", "Bias", "Press", "Miss", "Toss", "Cross"}
LONGEST_SUBJECT = 72


@dataclasses.dataclass
class Comment:
    line: int
    text: str  # one paragraph, without its marks
    behind_code: bool = False


def is_source(path: pathlib.Path) -> bool:
    return path.suffix in CPP | HASH or path.name == "CMakeLists.txt"


def files(root: pathlib.Path) -> list[pathlib.Path]:
    return [path for path in sorted(root.rglob("*"))
            if path.is_file() and not SKIPPED & set(path.relative_to(root).parts)]


def code_and_comment(line: str, mark: str) -> tuple[str, str | None]:
    """Splits a line at the mark of a comment that is not inside a string; None: it has no comment."""
    quote = None
    i = 0
    while i < len(line):
        if quote:
            if line[i] == "\\":
                i += 1
            elif line[i] == quote:
                quote = None
        elif line[i] == "'" and i > 0 and line[i - 1].isalnum():
            pass  # 1'000 or an apostrophe
        elif line[i] in "\"'":
            quote = line[i]
        elif line.startswith(mark, i) and (mark == "//" or i == 0 or line[i - 1].isspace()):
            return line[:i], line[i + len(mark):]
        i += 1
    return line, None


def comments(path: pathlib.Path, text: str) -> Iterator[Comment]:
    """Paragraphs of comments: full lines in a row are one, a comment behind code goes on in full lines of its column."""
    mark = "//" if path.suffix in CPP else "#"
    block: Comment | None = None
    for number, line in enumerate(text.split("\n"), 1):
        code, said = code_and_comment(line, mark)
        said = (said or "").strip("/<!#").strip() if said is not None else None
        if block and (code.strip() or not said):
            yield block
            block = None
        if not said or line.startswith("#!"):
            continue
        if block:
            block.text += " " + said
        else:
            block = Comment(number, said, behind_code=bool(code.strip()))
    if block:
        yield block


def sentences(text: str) -> Iterator[str]:
    yield from re.split(r"(?<=[.!?])\s+(?=[A-Z])", text)


def check_fragments(comment: Comment) -> Iterator[str]:
    for sentence in sentences(comment.text):
        if (FRAGMENT.match(sentence) or SUBORDINATE.match(sentence)) and not WHOLE.match(sentence):
            yield f"a fragment instead of a sentence: '{sentence[:60]}'"
    if not comment.behind_code and LABEL.match(comment.text):
        yield f"a label instead of a sentence: '{comment.text}'"


class Names:
    """What exists: paths of files, and words of code and strings."""

    def __init__(self, root: pathlib.Path) -> None:
        self.paths: set[str] = set()
        self.words: set[str] = set()
        for path in files(root):
            parts = path.relative_to(root).parts
            self.paths.update("/".join(parts[i:]) for i in range(len(parts)))
            self.words.update([path.stem, *parts])
            if path.suffix in CPP | HASH | {".txt", ".json", ".tsv"} and path.name != pathlib.Path(__file__).name:
                mark = "//" if path.suffix in CPP else "#"
                for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
                    self.words.update(re.findall(r"\w+", code_and_comment(line, mark)[0]))

    def has_file(self, name: str) -> bool:
        return name in self.paths or name in OTHER_FILES

    def has_word(self, name: str) -> bool:
        return name in self.words or name in OTHER_NAMES


def check_names(text: str, names: Names) -> Iterator[str]:
    for name in FILE_NAME.findall(text):
        if not names.has_file(name):
            yield f"there is no file {name}"
    seen = set(CALL.findall(text)) | set(QUALIFIED.findall(text)) | set(CAMEL.findall(text))
    seen |= set(SNAKE.findall(text))
    for name in sorted(seen):
        last = name.split("::")[-1]
        if not name.startswith("std::") and not names.has_word(last):
            yield f"nothing is called {name}"


def headings(page: pathlib.Path) -> list[str]:
    """The anchors that GitHub gives to the headings of a page."""
    found, in_code = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        in_code ^= line.startswith("```")
        if not in_code and (heading := re.match(r"#+ (.*)", line)):
            found.append(re.sub(r"[^\w\- ]", "", heading[1].strip().lower()).replace(" ", "-"))
    return found


def code_of_page(text: str) -> Iterator[str]:
    """What stands in backticks, and the labels of diagrams: there a page names files and symbols."""
    diagrams = re.findall(r"^```mermaid$(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for span in re.findall(r"`([^`\n]+)`", prose) + [label for diagram in diagrams for label in re.findall(r'"([^"]*)"', diagram)]:
        if not PLACEHOLDER.search(span):
            yield span


def check_page(page: pathlib.Path, names: Names) -> Iterator[str]:
    for span in code_of_page(page.read_text(encoding="utf-8")):
        yield from check_names(span, names)
    anchors = headings(page)
    for anchor in sorted({anchor for anchor in anchors if anchors.count(anchor) > 1}):
        yield f"two headings have the anchor #{anchor}"
    for link in re.findall(r"(?:\]\(|(?:src|srcset)=\")([^)\s\"]+)", page.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if "://" in link:
            continue
        if not target.exists():
            yield f"the link {link} leads nowhere"
        elif anchor and anchor not in headings(target):
            yield f"the link {link} names no heading"


def check(root: pathlib.Path) -> list[str]:
    names = Names(root)
    problems = [f"{page.relative_to(root)}: {problem}" for page in files(root) if page.suffix == ".md"
                for problem in check_page(page, names)]
    for path in files(root):
        if not is_source(path):
            continue
        for comment in comments(path, path.read_text(encoding="utf-8")):
            for problem in [*check_fragments(comment), *check_names(comment.text, names)]:
                problems.append(f"{path.relative_to(root)}:{comment.line}: {problem}")
    return problems


def check_subject(subject: str) -> str | None:
    first = subject.split(" ")[0]
    if len(subject) > LONGEST_SUBJECT:
        return f"{len(subject)} characters; the limit is {LONGEST_SUBJECT}"
    if not first[:1].isupper():
        return "does not begin with a capital letter"
    if subject.endswith("."):
        return "ends with a full stop"
    if first not in IMPERATIVES and re.search(r"(ed|ing|[^s]s)$", first):
        return f"is not in the imperative: '{first}'"
    return None


def check_commits(root: pathlib.Path, number: int) -> list[str] | None:
    """None: there is no history to look at."""
    done = subprocess.run(["git", "-C", root, "log", f"-{number}", "--no-merges", "--format=%h %s"], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0 or not (root / ".git").exists():
        return None
    found = []
    for line in done.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        if problem := check_subject(subject):
            found.append(f"{commit}: {problem}: {subject}")
    return found


CLEAN = {
    "runtime/loop.h": "#pragma once\n// Runs steps; see plan.h and Plan::run. ResNet-50 is a network.\nint run_steps();  // steps\n"
                      "// As a loop has many steps, it counts them. If it has none, which is rare, it ends.\n",
    "runtime/plan.h": "// Calls run_steps() for MemoryPlan.\nstruct MemoryPlan {};\nstruct Plan { int run(); };  // What follows is a step.\n",
    "README.md": "# Loops\nSee [the plan](runtime/plan.h), [this](#two-words) and [a page](https://example.org/x#y).\n"
                 "`MemoryPlan` is in `plan.h`, a new one in `runtime/x.h`.\n## Two words\n",
    "scripts/go.sh": "#!/bin/bash\n# Runs what loop.h says.\necho \"# Of no one\"  # prints\n",
}
SEEDED = [
    ("// What a step does.\n", "a fragment instead of a sentence: 'What a step does.'"),
    ("// Counts steps. By lane and step.\n", "a fragment instead of a sentence: 'By lane and step.'"),
    ("int a;  // Whose turn it is\n", "a fragment"),
    ("// Where it stands\n// in the plan\n", "a fragment"),
    ("// Which of them is computed\n", "a fragment"),
    ("// That which remains is copied\n", "a fragment"),
    ("// The own buffer is full\n", "a fragment"),
    ("// In which order the blocks run\n", "a fragment"),
    ("// Counts steps. So that no step is lost.\n", "a fragment"),
    ("// As a tensor core takes it.\n", "a fragment instead of a sentence: 'As a tensor core takes it.'"),
    ("// Where the time goes\n", "a fragment"),
    ("// steps\nint c;\n", "a label instead of a sentence: 'steps'"),
    ("// Reads runtime/gone.h first.\n", "there is no file runtime/gone.h"),
    ("// As MemoryPlot has it.\n", "nothing is called MemoryPlot"),
    ("// As Plan::stop has it.\n", "nothing is called Plan::stop"),
    ("// Calls stop_steps() twice.\n", "nothing is called stop_steps"),
    ("// Reads stop_bits where it can.\n", "nothing is called stop_bits"),
]
SEEDED_PAGES = [
    ("[gone](runtime/gone.h)", "the link runtime/gone.h leads nowhere"),
    ("[words](README.md#three-words)", "the link README.md#three-words names no heading"),
    ('<img src="plots/a.svg">', "the link plots/a.svg leads nowhere"),
    ("`runtime/gone.h`", "there is no file runtime/gone.h"),
    ("`MemoryPlot` lies there", "nothing is called MemoryPlot"),
    ('```mermaid\na["MemoryPlot"] --> b["MemoryPlan"]\n```', "nothing is called MemoryPlot"),
    ("## Two words", "two headings have the anchor #two-words"),
]
SUBJECTS = {"Add a lint of comments": None, "Pass flags on": None, "Added a lint": "imperative", "Fixes it": "imperative",
            "Adding a lint": "imperative", "add a lint": "capital", "Add a lint.": "full stop", "Add " + "x" * 70: "characters"}


def self_test() -> int:
    failures = []
    seeded = [("", "", None), *(("runtime/seeded.h", *row) for row in SEEDED)]
    seeded += [("README.md", *row) for row in SEEDED_PAGES]
    for seeded_path, extra, expected in seeded:
        with tempfile.TemporaryDirectory() as name:
            texts = {"runtime/seeded.h": "", **CLEAN}
            for path, text in texts.items():
                text += extra if path == seeded_path else ""
                (pathlib.Path(name) / path).parent.mkdir(parents=True, exist_ok=True)
                (pathlib.Path(name) / path).write_text(text)
            found = check(pathlib.Path(name))
        if expected is None and found or expected and not any(expected in line for line in found):
            failures.append(f"{extra!r}: expected {expected!r}, found {found}")
    for subject, expected in SUBJECTS.items():
        problem = check_subject(subject)
        if (problem is None) != (expected is None) or expected and expected not in str(problem):
            failures.append(f"{subject!r}: expected {expected!r}, found {problem!r}")
    print("\n".join(failures) or f"{len(seeded) + len(SUBJECTS)} seeded violations found or passed as they should")
    return 1 if failures else 0


def main(arguments: list[str]) -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    if arguments == ["--self-test"]:
        return self_test()
    if arguments[:1] == ["--commits"]:
        found = check_commits(root, int(arguments[1]) if len(arguments) > 1 else 50)
        if found is None:
            print("skipped: there is no git history here")
            return 77
    else:
        found = check(pathlib.Path(arguments[0]) if arguments else root)
    print("\n".join(found) or "language: nothing to complain about")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
