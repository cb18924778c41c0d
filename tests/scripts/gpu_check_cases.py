"""Tests scripts/gpu_check with fakes of the programs it runs: rows, resuming, failures, budgets and the summary."""
import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/gpu_check"), str(pathlib.Path(__file__).parent)]

import gpu_check_fakes as fakes
import host
import losses
import main
import rows
import sanitizer
import speed
import store
import suites
import summary
from execute import Finished, execute

MAIN = ROOT / "scripts/gpu_check/main.py"
SMALL = ["--models=resnet50", "--precisions=fp16"]


class WithFakes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        fakes.install_all(self.folder)
        self.json = self.folder / "out/result.json"
        self.log = self.folder / "log"

    def command(self, *flags):
        return [sys.executable, str(MAIN), f"--bin={self.folder}", f"--json={self.json}",
                f"--torch_python={self.folder / 'torch_python'}", *flags]

    def run_check(self, *flags, **environment):
        self.log.write_text("")
        return execute(self.command(*flags), 60, {"FAKE_LOG": str(self.log), **environment})

    def rows(self):
        return json.loads(self.json.read_text())["rows"]

    def statuses(self):
        return {name: row["status"] for name, row in self.rows().items()}

    def measurements(self):
        """Returns the runs of the program without those that only check the device."""
        return [line for line in self.log.read_text().splitlines() if "--model=trivial --batch_size=1 " not in line]


class Rows(WithFakes):
    def test_the_table_tries_batches_first_and_the_levels_at_the_best_of_them(self):
        self.assertEqual(self.run_check("--slice=table", *SMALL).status, 0)
        self.assertEqual(list(self.rows()), [
            "table/resnet50/fp16/b256/conv/graph", "table/resnet50/fp16/b512/conv/graph",
            "table/resnet50/fp16/b512/conv/launches", "table/resnet50/fp16/b512/bn/graph",
            "table/resnet50/fp16/b512/bn/launches", "table/resnet50/fp16/b512/none/graph",
            "table/resnet50/fp16/b512/none/launches", "table/resnet50/fp16/b512/conv/graph/untuned",
            "table/resnet50/fp16/b512/conv/graph/nondeterministic"])
        row = self.rows()["table/resnet50/fp16/b256/conv/graph"]
        self.assertIn("--tune", row["command"])
        self.assertIn("--use_cuda_graph=true", row["command"])
        self.assertEqual(row["result"]["images_per_sec"], 1256)
        self.assertEqual(row["result"]["start"], {"process_to_first_step": 1.5})
        self.assertNotIn("--tune", self.rows()["table/resnet50/fp16/b512/bn/launches"]["command"])

    def test_all_slices_run_in_the_order_of_their_worth(self):
        finished = self.run_check(*SMALL)
        kinds = [name.split("/")[0] for name in self.rows() if not name.startswith(("losses", "sanitizer"))]
        self.assertEqual(kinds, ["tests", "table", "table", "peers", "peers", *["table"] * 7, "peers", "tests"])
        self.assertIn("out of memory", self.rows()["peers/resnet50/fp16/b512/compile"]["error"])
        self.assertEqual(self.statuses()["peers/resnet50/fp16/b512/compile"], "does_not_fit")
        self.assertRegex(finished.out, r"resnet50  fp16  512    conv .* 500.0 +800.0 +- +3.02 +1.89")

    def test_a_second_call_runs_only_what_is_not_there(self):
        self.run_check("--slice=table", *SMALL)
        self.assertEqual(len(self.measurements()), 9)
        self.assertEqual(self.run_check("--slice=table", *SMALL).status, 0)
        self.assertEqual(self.measurements(), [])
        self.run_check("--slice=table", "--again", *SMALL)
        self.assertEqual(len(self.measurements()), 9)

    def test_a_row_that_fails_is_recorded_with_its_error_and_the_others_go_on(self):
        finished = self.run_check("--slice=table", *SMALL, FAKE_BAD="fusion=bn:fail")
        self.assertEqual(finished.status, 1)
        self.assertEqual([name for name, status in self.statuses().items() if status == "failed"],
                         ["table/resnet50/fp16/b512/bn/graph", "table/resnet50/fp16/b512/bn/launches"])
        self.assertEqual(len(self.rows()), 9)
        self.assertEqual(self.rows()["table/resnet50/fp16/b512/bn/graph"]["error"], "exit code 1: the card is on fire")
        self.assertIn("table/resnet50/fp16/b512/bn/graph: failed: exit code 1: the card is on fire", finished.out)
        # The row stays bad until --again runs it.
        self.assertEqual(self.run_check("--slice=table", *SMALL).status, 1)
        self.assertEqual(self.run_check("--slice=table", "--again", *SMALL).status, 0)

    def test_a_batch_that_does_not_fit_is_no_failure(self):
        finished = self.run_check("--slice=table", *SMALL, FAKE_BAD="batch_size=512:memory")
        self.assertEqual(finished.status, 0)
        self.assertEqual(self.statuses()["table/resnet50/fp16/b512/conv/graph"], "does_not_fit")
        self.assertIn("table/resnet50/fp16/b256/none/graph", self.rows())

    def test_a_row_that_hangs_is_killed_with_its_children(self):
        finished = self.run_check("--slice=table", "--timeout_scale=0.02", *SMALL, FAKE_BAD="fusion=none:hang")
        self.assertEqual(finished.status, 1)
        row = self.rows()["table/resnet50/fp16/b512/none/graph"]
        self.assertEqual((row["status"], row["error"]), ("timeout", "killed after 2 s"))
        self.assertFalse(fakes.is_alive(int(pathlib.Path(f"{self.log}.child").read_text())))

    def test_a_bundle_without_losses_and_a_host_without_pytorch_leave_those_out(self):
        finished = self.run_check("--slice=peers", "--torch_python=/nowhere/python", *SMALL)
        self.assertIn("no PyTorch to compare with (--torch_python=/nowhere/python)", finished.err)
        self.assertEqual(self.rows(), {})


class Budget(WithFakes):
    """Tests budgets by rows that take time on a fake clock."""

    def setUp(self):
        super().setUp()
        self.clock, self.ran = 1000.0, []

    def row(self, name, seconds, timeout):
        def run(allowed):
            self.ran.append((name, allowed))
            self.clock += min(seconds, allowed)
            return rows.Outcome(rows.TIMEOUT if seconds > allowed else rows.OK, [], "", {"found": name})

        return rows.Row(name, "sanitizer", 0, timeout, run)

    def run_for(self, budget, *every):
        with mock.patch.object(main, "rows_of", lambda *_: list(every)), contextlib.redirect_stderr(io.StringIO()), \
                mock.patch.object(main.time, "time", lambda: self.clock):
            return main.run_rows(mock.Mock(), {"sanitizer"}, store.Store(self.json), self.clock + budget)

    def test_what_there_is_no_time_for_is_left_to_the_next_call(self):
        every = [self.row(name, 10, 60) for name in "abc"]
        self.assertEqual(self.run_for(24, *every), ["c"])
        self.assertEqual(self.statuses(), {"a": "ok", "b": "ok"})
        self.assertEqual(self.run_for(24, *every), [])
        self.assertEqual(self.ran, [("a", 24), ("b", 14), ("c", 24)])

    def test_a_row_that_the_budget_cuts_off_has_not_failed(self):
        self.assertEqual(self.run_for(30, self.row("a", 10, 60), self.row("b", 40, 60)), ["b"])
        self.assertEqual(self.statuses(), {"a": "ok"})

    def test_a_row_that_had_its_time_has(self):
        self.assertEqual(self.run_for(90, self.row("a", 100, 60), self.row("b", 10, 60)), [])
        self.assertEqual(self.statuses(), {"a": "timeout", "b": "ok"})

    def test_a_check_that_is_killed_leaves_the_rows_before(self):
        self.log.write_text("")
        child = subprocess.Popen(self.command("--slice=table", *SMALL), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL,
                                 env={**os.environ, "FAKE_LOG": str(self.log), "FAKE_BAD": "fusion=bn:hang"})
        try:
            hanging = pathlib.Path(f"{self.log}.child")
            deadline = time.monotonic() + 30
            while not (hanging.exists() and hanging.read_text()) and time.monotonic() < deadline:
                time.sleep(0.02)
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait(timeout=30)
        self.assertEqual(set(self.statuses().values()), {"ok"})
        self.assertEqual(len(self.rows()), 3)
        self.assertEqual(sorted(path.name for path in self.json.parent.iterdir()), ["result.json"])
        self.assertFalse(fakes.is_alive(int(hanging.read_text())))


class Hosts(WithFakes):
    def test_a_host_without_a_gpu_says_so_in_one_line(self):
        finished = self.run_check("--slice=table", FAKE_NO_GPU="1")
        self.assertEqual(finished.status, 2)
        self.assertEqual(finished.err, "gpu_check: --device=gpu: no CUDA device: cudaErrorNoDevice: no device\n")
        self.assertFalse(self.json.exists())

    def test_a_program_that_the_loader_refuses_is_told_apart(self):
        finished = self.run_check("--only_load", FAKE_OLD_HOST="1")
        self.assertEqual(finished.status, 4)  # In this case gpu_check.sh builds the program if it can.
        self.assertEqual(finished.err, f"gpu_check: {self.folder / 'cnn_benchmarks'} does not start here: exit code 1: "
                                       "version `GLIBC_2.99' not found\n")

    def test_a_driver_that_is_too_old_for_the_program_calls_for_a_build_here(self):
        for flags in (["--only_load"], ["--slice=table"]):
            finished = self.run_check(*flags, FAKE_OLD_DRIVER="1")
            self.assertEqual(finished.status, 4)
            self.assertEqual(finished.err, "gpu_check: --device=gpu: no CUDA device: the NVIDIA driver takes CUDA up to "
                                           "12.2, but this program was built with CUDA 13.0\n")

    def with_cards(self, lines):
        """Installs a fake nvidia-smi that knows these cards by their PCI addresses, as the driver writes them."""
        rows = "\n".join(f"case $1 in --id={place}) echo '{line}'; exit;; --id=*) ;; *) echo '{line}';; esac"
                         for place, line in lines.items())
        fakes.install(self.folder / "nvidia-smi", f"#!/bin/sh\n{rows}\n")
        return mock.patch.dict(os.environ, {"PATH": f"{self.folder}:{os.environ['PATH']}"})

    @staticmethod
    def line_of(name, mode):
        return ", ".join({"name": name, "compute_mode": mode}.get(field, "1") for field in host.CARD)

    def test_the_card_is_the_one_that_the_program_uses(self):
        lines = {"0000:1b:00.0": self.line_of("first", "Default"), "0000:65:00.0": self.line_of("second", "Default")}
        with self.with_cards(lines):
            self.assertEqual(host.card("0000:65:00.0")["name"], "second")
            self.assertEqual(host.card("0000:1b:00.0")["name"], "first")
            self.assertIsNone(host.card(None))  # Without a number, no card can be chosen.
        with self.with_cards({"0000:1b:00.0": self.line_of("only", "Default")}):
            self.assertEqual(host.card(None)["name"], "only")

    def test_cards_in_an_exclusive_mode_get_one_process_at_a_time(self):
        for mode, expected in (("Default", host.PROCESSES), ("Exclusive_Process", 1)):
            with self.with_cards({"0000:1b:00.0": self.line_of("card", mode)}):
                facts = {"card": host.card("0000:1b:00.0")}
            self.assertEqual(host.processes_at_once(facts, "gpu"), expected)
        self.assertEqual(host.processes_at_once({"card": None}, "gpu"), 1)
        self.assertEqual(host.processes_at_once({"card": None}, "cpu"), host.PROCESSES)

    def test_rows_of_two_cards_are_not_mixed(self):
        self.run_check("--slice=table", *SMALL)
        text = self.json.read_text().replace("Fake 100", "Fake 200")
        self.json.write_text(text)
        finished = self.run_check("--slice=table", *SMALL)
        self.assertEqual(finished.status, 2)
        self.assertIn("'Fake 200'} , and this is".replace(" ,", ","), finished.err)
        self.assertEqual(finished.err.count("\n"), 1)

    def test_another_file_is_not_overwritten(self):
        self.json.parent.mkdir()
        self.json.write_text("[1, 2")
        self.assertEqual(self.run_check("--slice=table").status, 2)
        self.assertEqual(self.json.read_text(), "[1, 2")

    def test_libraries_are_taken_from_the_folders_that_have_them(self):
        wheels = [self.folder / "cublas", self.folder / "cudnn", self.folder / "nvrtc", self.folder / "other"]
        for folder, name in zip(wheels, ("libcublasLt.so.13", "libcudnn.so.9", "libnvrtc.so.13", "libother.so.1")):
            folder.mkdir()
            (folder / name).touch()
        lacking = [["libcudnn.so.9", "libcublasLt.so.13"], []]
        with mock.patch.object(host, "missing_libraries", side_effect=lacking), \
                mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": "/before"}):
            environment = host.environment_for(pathlib.Path("program"), wheels)
        self.assertEqual(environment, {"LD_LIBRARY_PATH": f"{wheels[1]}:{wheels[0]}:{wheels[2]}:/before"})

    def test_a_library_of_another_version_is_named(self):
        (self.folder / "libcublasLt.so.12").touch()
        with mock.patch.object(host, "missing_libraries", return_value=["libcublasLt.so.13"]):
            with self.assertRaisesRegex(host.HostError, r"needs libcublasLt.so.13, which .*\(there is "
                                                        r"libcublasLt.so.12\): build it on this host"):
                host.environment_for(pathlib.Path("program"), [self.folder])


class Suites(WithFakes):
    def test_a_crash_loses_nothing_and_failures_have_names(self):
        finished = self.run_check("--slice=tests")
        self.assertEqual(finished.status, 1)
        result = self.rows()["tests/cnn_one_cuda_tests"]["result"]
        self.assertEqual((result["tests"], result["skipped"], result["not_run"]), (4, 1, []))
        self.assertIn("One.C", result["failed"])
        self.assertIn("SIGABRT", result["messages"]["One.C"])

    def test_a_test_that_fails_only_beside_others_is_told_apart(self):
        context = mock.Mock(environment={"FAKE_LOG": str(self.log)}, processes=1)
        outcome = suites.run_suite(self.folder / "cnn_one_cuda_tests", "-Slow*", context, 30)
        self.assertEqual(outcome.result["failed"], ["One.A", "One.C"])
        self.assertEqual(outcome.result["failed_but_pass_alone"], ["One.A"])
        self.assertEqual(outcome.result["messages"]["One.A"], "3 is not 4")
        self.assertEqual(outcome.result["passed"], 1)
        self.assertEqual(outcome.error, "2 of 4 tests failed, 0 did not run, first One.A")


class Options(WithFakes):
    def test_a_model_that_no_row_has_is_an_error(self):
        finished = self.run_check("--slice=table", "--models=resnet50,resnet51")
        self.assertEqual(finished.status, 2)
        self.assertIn("--models: resnet51 is not one of alexnet, ", finished.err)
        # This network has losses but is too small for the table.
        small = self.run_check("--slice=table", "--models=lenet", "--precisions=fp16")
        self.assertEqual((small.status, small.err), (0, ""))
        self.assertIn("--precisions: fp8 is not one of bf16, fp16, ", self.run_check("--precisions=fp8").err)


class Losses(WithFakes):
    def run_losses(self, verdict):
        curves = self.folder / "tests/losses"
        (self.folder / "scripts/losses").mkdir(parents=True)
        curves.mkdir(parents=True)
        for name in ("lenet", "vgg16", "vgg16.fine", "trivial"):
            (curves / f"{name}.json").touch()
        fakes.install(self.folder / "scripts/losses/compare.py", fakes.LOSSES)
        context = mock.Mock(root=self.folder, models=(), precisions=(), rehearsal=False, toy=False, timeout_scale=1.0,
                            environment={"FAKE_LOSSES": verdict}, device="gpu", program="program")
        self.assertEqual([row.name for row in losses.rows(context)],
                         ["losses/fp16/1", "losses/fp32/1", "losses/fp16/none/1", "losses/bf16/1",
                          "losses/fp32_strict/1"])
        return losses.rows(context)[0].run(20)

    def test_models_of_the_benchmark_come_first(self):
        outcome = self.run_losses("ok")
        self.assertEqual(outcome.status, "ok")
        self.assertIn("--models=vgg16,lenet,trivial", outcome.command)
        self.assertEqual(losses.text({"result": outcome.result, "error": ""}), "3 of 3 agree, worst 1.5e-03 (vgg16)")

    def test_models_that_are_off_are_named(self):
        outcome = self.run_losses("off")
        self.assertEqual((outcome.status, outcome.error), ("failed", "off: vgg16"))

    def test_models_that_it_had_no_time_for_are_for_another_call(self):
        outcome = self.run_losses("left_out")
        self.assertEqual((outcome.status, outcome.error), ("timeout", "no time for trivial"))


class Sanitizer(WithFakes):
    def run_sanitizer(self, text, code):
        tool = fakes.install(self.folder / "compute-sanitizer",
                             f"#!/bin/sh\necho '========= {text}'\nexit {code}\n")
        context = mock.Mock(environment={}, device="gpu", program="program")
        return sanitizer.run(str(tool), "memcheck", sanitizer.TOYS[1], context, 20)

    def test_calls_of_libraries_that_fail_are_no_errors(self):
        self.assertIn("--report-api-errors=no", self.run_sanitizer("ERROR SUMMARY: 0 errors", 0).command)

    def test_races_are_looked_for_in_our_kernels(self):
        for offered, flag in (("--kernel-name", "--kernel-name"), ("--kernel-regex", "--kernel-regex")):
            tool = fakes.install(self.folder / "compute-sanitizer", f"#!/bin/sh\necho '{offered}'\n")
            found = sanitizer.check_flags(str(tool), "racecheck", mock.Mock(environment={}))
            self.assertEqual(found, [flag, "kns=cnn6layers4cuda"])

    def test_what_it_found_is_told(self):
        outcome = self.run_sanitizer("ERROR SUMMARY: 3 errors", 86)
        self.assertEqual((outcome.status, outcome.error), ("failed", "memcheck found: 3 errors"))
        self.assertIn("--fusion=bn", outcome.command)

    def test_a_tool_that_looked_at_nothing_is_no_success(self):
        self.assertEqual(self.run_sanitizer("ERROR SUMMARY: 0 errors", 0).status, "ok")
        self.assertEqual(self.run_sanitizer("Device not supported", 0).status, "failed")
        self.assertEqual(self.run_sanitizer("Device not supported", 1).error,
                         "exit code 1: ========= Device not supported")


class Parts(unittest.TestCase):
    def test_the_file_is_there_whole_or_not_at_all(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "file.json"
            path.write_text("before")
            with mock.patch.object(os, "replace", side_effect=OSError), contextlib.suppress(OSError):
                store.write_atomically(path, "after")
            self.assertEqual([(found.name, found.read_text()) for found in pathlib.Path(folder).iterdir()],
                             [("file.json", "before")])

    def test_convolutions_take_batch_norms_in_fp16_only(self):
        self.assertEqual(speed.levels("resnet152", "fp16"), ("conv", "bn", "none"))
        self.assertEqual(speed.levels("resnet152", "fp32"), ("bn", "none"))
        self.assertEqual(speed.levels("vgg16", "fp16"), ("bn", "none"))

    def test_smaller_cards_get_smaller_batches(self):
        for gib, expected in ((141, (256, 512)), (80, (256, 512)), (40, (128, 256)), (24, (64, 128))):
            context = mock.Mock(rehearsal=False, toy=False, memory_bytes=gib * 10 ** 9)
            self.assertEqual(speed.batches("resnet50", context), expected)

    def test_slow_networks_run_fewer_steps(self):
        context = mock.Mock(rehearsal=False, toy=False)
        self.assertEqual(speed.step_count("alexnet", "fp16", 1024, context), 100)
        self.assertEqual(speed.step_count("resnet152", "fp16", 256, context), 69)
        self.assertEqual(speed.step_count("resnet152", "fp32", 256, context), 30)

    def test_one_line_tells_how_a_process_ended(self):
        self.assertEqual(Finished(0, "", "", 1).failure(), "")
        self.assertEqual(Finished(2, "a\n", "b\nc\n\n", 1).failure(), "exit code 2: c")
        self.assertEqual(Finished(-11, "last", "", 1).failure(), "ended by SIGSEGV: last")
        self.assertEqual(execute(["/nowhere/program"], 1).status, 127)

    def test_peaks_that_differ_from_the_plan_are_shown(self):
        row = {"model": "m", "precision": "fp16", "batch": 8, "level": "bn", "graph": False, "images_per_sec": 10.0,
               "uncertainty": 0.1, "percent_of_roofline": None, "predicted_peak_bytes": 2 ** 30,
               "measured_peak_bytes": 2 ** 31, "warm_start_seconds": 1.25, "torch": {}, "ratio_to_eager": None,
               "ratio_to_best": None}
        self.assertEqual(summary.columns(row), ["m", "fp16", "8", "bn, launches", "10.0 +- 0.1", "-", "1.00 (2.00)",
                                                "1.2", "-", "-", "-", "-", "-"])


if __name__ == "__main__":
    unittest.main()
