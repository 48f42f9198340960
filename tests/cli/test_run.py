"""`dlbench run` and `check` on the meta devices: results, streams, interruption, resumption, broken workers."""

import os
import pathlib
import signal
import subprocess
import time

from cli import PROGRAM, CliTest, main
from meta_config import config


def statuses(result):
    return sorted({row["status"] for row in result["points"]})


class Run(CliTest):
    def test_every_planned_point_has_a_row(self):
        self.write("c.json", config())
        self.dlbench("run", "c.json", "-o", "out.json")
        result = self.read_json("out.json")
        self.assertFalse(result["partial"])
        self.assertEqual(statuses(result), ["ok"])
        keys = [row["key"] for row in result["points"]]
        self.assertEqual(len(keys), len(set(keys)))
        measured = {(row["key"], row["process"]) for row in result["timings"]}
        self.assertEqual(measured, {(key, process) for key in keys for process in (0, 1)})

    def test_the_virtual_clock_is_exact(self):
        """launch + max(flops / peak, bytes / bandwidth), without noise: every timing says the same."""
        self.write("c.json", config(meta={"cpu": {"flop_per_s": 1e11, "bytes_per_s": 2e10, "launch_seconds": 1e-6}}))
        self.dlbench("run", "c.json", "-o", "out.json", "--device", "meta:cpu", "--filter", "gemm.*batch=4096")
        [row, *_] = self.read_json("out.json")["timings"]
        for seconds in row["wall_seconds"]:
            self.assertAlmostEqual(seconds, 1e-6 + 2 * 4096**3 / 1e11, delta=1e-6)

    def test_a_key_reruns_exactly_its_point(self):
        self.write("c.json", config())
        self.dlbench("run", "c.json", "-o", "out.json")
        key = self.read_json("out.json")["points"][0]["key"]
        self.dlbench("run", "c.json", "-o", "again.json", "--point", key)
        self.assertEqual([row["key"] for row in self.read_json("again.json")["points"]], [key])

    def test_dry_run_measures_nothing(self):
        self.write("c.json", config())
        out, _ = self.dlbench("run", "c.json", "-o", "out.json", "--dry-run")
        self.assertRegex(out, r"gemm/family=square.*batch=256")
        self.assertFalse((self.folder / "out.json").exists())

    def test_the_table_is_the_report_of_the_file(self):
        self.write("c.json", config())
        out, _ = self.dlbench("run", "c.json", "-o", "out.json", "--quiet")
        self.assertEqual(self.dlbench("report", "out.json")[0], out)

    def test_quiet(self):
        self.write("c.json", config())
        _, err = self.dlbench("run", "c.json", "-o", "out.json", "--quiet")
        self.assertEqual(err, "")

    def test_json_alone_on_stdout(self):
        self.write("c.json", config())
        out, _ = self.dlbench("run", "c.json", "-o", "out.json", "--json", "-")
        self.assertEqual(out.strip(), (self.folder / "out.json").read_text().strip())

    def test_a_demanded_device_that_is_absent(self):
        self.write("c.json", config())
        empty = self.folder / "empty"
        empty.mkdir()
        out, err = self.dlbench("run", "c.json", "-o", "out.json", "--require", "gpu:97", code=6)
        self.assertEqual(out, "")
        self.assertRegex(err, r"^dlbench: .*gpu")

    def test_overrides(self):
        self.write("c.json", config())
        self.dlbench("run", "c.json", "-o", "out.json", "--batch", "8:32:x2", "--precision", "fp32", "--filter", "^gemm",
                     "--processes", "1", "--seed", "7")
        result = self.read_json("out.json")
        self.assertEqual(sorted({row["axis_batch"] for row in result["points"]}), [8, 16, 32])
        self.assertEqual({row["process"] for row in result["timings"]}, {0})

    def test_check_measures_nothing(self):
        self.write("c.json", config())
        out, _ = self.dlbench("check", "c.json", "--device", "reference", "--filter", "batch=16")
        self.assertRegex(out, r"gemm/family=square")


class Broken(CliTest):
    def test_a_worker_that_crashes_costs_its_point_only(self):
        self.write("c.json", config(measure={"processes": 1}, meta={"crash_after_ops": 40}))
        _, err = self.dlbench("run", "c.json", "-o", "out.json", code=5)
        result = self.read_json("out.json")
        self.assertIn("failed", statuses(result))
        for row in result["points"]:
            if row["status"] != "ok":
                self.assertTrue(row["reason"], row)

    def test_a_hanging_point_is_a_timeout(self):
        self.write("c.json", config(measure={"processes": 1, "point_timeout_seconds": 0.05}, meta={"hang_seconds": 0.02},
                                    sweeps=[{"workload": "gemm", "batch": 16}], devices=["meta:cpu"]))
        self.dlbench("run", "c.json", "-o", "out.json", code=5)
        [row] = self.read_json("out.json")["points"]
        self.assertEqual(row["status"], "timeout")
        self.assertIn("0.05 s", row["reason"])

    def test_hanging_control_kernels_cost_one_timeout(self):
        self.write("c.json", config(measure={"processes": 2, "point_timeout_seconds": 0.2}, meta={"hang_seconds": 30},
                                    sweeps=[{"workload": "gemm", "batch": 16}], devices=["meta:cpu"]))
        _, err = self.dlbench("run", "c.json", "-o", "out.json", code=5, timeout=20)
        self.assertEqual(err.count("control kernels"), 1, err)
        [warning] = [w for w in self.read_json("out.json")["warnings"] if "control kernels" in w]
        self.assertIn("0.2 s", warning)

    def test_a_lost_device(self):
        self.write("c.json", config(measure={"processes": 1}, meta={"fail_after_ops": 20}, devices=["meta:cpu"]))
        self.dlbench("run", "c.json", "-o", "out.json", code=5)
        self.assertIn("device_lost", statuses(self.read_json("out.json")))


class Interrupted(CliTest):
    """A run whose points hang is stopped from outside."""

    def start(self, **options):
        self.write("c.json", config(measure={"processes": 2, "point_timeout_seconds": 60}, meta={"hang_seconds": 0.005}))
        process = subprocess.Popen([PROGRAM, "run", "c.json", "-o", "out.json"], cwd=self.folder, env=self.environment(),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(process.kill)
        self.wait_for(lambda: (self.folder / "out.json").exists() and self.read_json("out.json")["timings"])
        return process

    def wait_for(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(0.02)
        self.fail("nothing happened within a minute")

    def stop(self, which, code):
        process = self.start()
        process.send_signal(which)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, err)
        result = self.read_json("out.json")
        self.assertTrue(result["partial"])
        self.dlbench("validate", "out.json")
        self.assertIn("--resume", err)

    def test_ctrl_c_keeps_what_was_measured_and_resume_finishes_it(self):
        self.stop(signal.SIGINT, 130)
        before = {(row["key"], row["process"]): row["wall_seconds"] for row in self.read_json("out.json")["timings"]}
        self.write("c.json", config(measure={"processes": 2, "point_timeout_seconds": 60}, meta={"hang_seconds": 0.005}))
        self.dlbench("run", "c.json", "-o", "out.json", "--resume")
        result = self.read_json("out.json")
        self.assertFalse(result["partial"])
        self.assertEqual(statuses(result), ["ok"])
        after = {(row["key"], row["process"]): row["wall_seconds"] for row in result["timings"]}
        for key, seconds in before.items():
            self.assertEqual(after[key], seconds)

    def test_terminated(self):
        self.stop(signal.SIGTERM, 143)

    def test_terminating_the_whole_process_group_is_no_failure(self):
        process = self.start(start_new_session=True)
        os.killpg(process.pid, signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143, err)
        self.assertNotIn("failed", statuses(self.read_json("out.json")))

    def test_a_damaged_journal_costs_what_is_behind_the_damage(self):
        self.stop(signal.SIGTERM, 143)
        (self.folder / "out.json.journal").write_bytes(b"\0\0\0\0\n{}\n")
        _, err = self.dlbench("run", "c.json", "-o", "out.json", "--resume")
        self.assertRegex(err, r"out\.json\.journal:1:1: .*measured again")
        self.assertFalse(self.read_json("out.json")["partial"])
        result = self.read_json("out.json")
        result["partial"] = True
        self.write("out.json", result)
        (self.folder / "out.json.journal").write_text('{"type": "point"}\n')
        _, err = self.dlbench("run", "c.json", "-o", "out.json", "--resume")
        self.assertRegex(err, r"out\.json\.journal holds a line that no worker wrote; .*measured again")

    def test_a_killed_worker_costs_its_point_only(self):
        process = self.start()
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 5)
        result = self.read_json("out.json")
        self.assertFalse(result["partial"])
        failed = [row for row in result["points"] if row["status"] == "failed"]
        self.assertEqual(len(failed), 1)
        self.assertRegex(failed[0]["reason"], r"signal 9|killed")


if __name__ == "__main__":
    main()
