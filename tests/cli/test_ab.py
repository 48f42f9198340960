"""`dlbench ab` on the meta devices. The other program is a go-between: it starts a real worker with another virtual machine."""

import json
import os
import pathlib
import signal
import subprocess
import time

from cli import PROGRAM, CliTest, main
from meta_config import config

# A program whose worker is dlbench's own, told something else than it was: CHANGE edits the job, EDIT every later command.
GO_BETWEEN = """#!/usr/bin/env python3
import json, os, subprocess, sys, threading
job = json.loads(sys.stdin.readline())
meta = job["config"].setdefault("meta", {{}})
{change}
worker = subprocess.Popen([os.environ["DLBENCH"], "worker"], stdin=subprocess.PIPE, pass_fds=(3,), text=True)
os.close(3)
def pass_on():
    worker.stdin.write(json.dumps(job) + "\\n")
    worker.stdin.flush()
    for line in sys.stdin:
        {edit}
        worker.stdin.write(line)
        worker.stdin.flush()
    worker.stdin.close()
threading.Thread(target=pass_on, daemon=True).start()
sys.exit(worker.wait())
"""

NOISE = {"meta": {"process_sd": 0.005, "noise_sd": 0.005}, "devices": ["meta:cpu"]}


class AbTest(CliTest):
    def program(self, change="pass", edit="pass"):
        path = self.write("other.py", GO_BETWEEN.format(change=change, edit=edit))
        path.chmod(0o755)
        return path

    def slower(self, factor):
        return self.program(f'meta.setdefault("cpu", {{}})["flop_per_s"] = 1e11 / {factor}')

    def verdicts(self, name="ab.json"):
        return {row["key"]: row["verdict"] for row in self.read_json(name)["points"]}


class Verdicts(AbTest):
    def test_the_same_program(self):
        self.write("c.json", config(**NOISE))
        out, _ = self.dlbench("ab", PROGRAM, PROGRAM, "c.json", "--json", "ab.json")
        self.assertRegex(out, r"No point is slower\.")
        result = self.read_json("ab.json")
        self.assertFalse(result["partial"])
        self.assertEqual(result["summary"]["screen_rounds"], 3)
        self.assertNotIn("regression", self.verdicts().values())
        for row in result["points"]:
            self.assertEqual(len(row["screen"]), 3)

    def test_without_noise_everything_is_equivalent(self):
        self.write("c.json", config(devices=["meta:cpu", "meta:gpu"]))
        self.dlbench("ab", PROGRAM, PROGRAM, "c.json", "--json", "ab.json", "--quiet")
        self.assertEqual(set(self.verdicts().values()), {"equivalent"})

    def test_five_per_cent_in_compute_bound_points_and_nothing_else(self):
        self.write("c.json", config(**NOISE))
        out, err = self.dlbench("ab", PROGRAM, self.slower(1.05), "c.json", "--json", "ab.json", "--markdown", "ab.md", code=1)
        accused = sorted(key for key, verdict in self.verdicts().items() if verdict == "regression")
        self.assertEqual([key.split("/batch=")[1].split("/")[0] for key in accused], ["256", "4096"])
        for row in self.read_json("ab.json")["points"]:
            if row["key"] in accused:
                self.assertAlmostEqual(row["effect"], 0.05, delta=0.02)
                self.assertTrue(all(round["null_ratio"] for round in row["confirm"]))
        self.assertRegex(out, r"The candidate is slower at 2 points")
        self.assertRegex(err, r"2 of 5 points are suspected; confirming them takes 8 to 36 more rounds")
        self.assertRegex((self.folder / "ab.md").read_text(), r"(?m)^\| regression \| \+[3-7]\.\d % \|")

    def test_an_improvement_is_no_failure(self):
        self.write("c.json", config(**NOISE))
        self.dlbench("ab", PROGRAM, self.slower(0.9), "c.json", "--json", "ab.json")
        self.assertEqual(list(self.verdicts().values()).count("improvement"), 2)

    def test_the_smallest_effect_is_a_choice(self):
        self.write("c.json", config(**NOISE))
        self.dlbench("ab", PROGRAM, self.slower(1.05), "c.json", "--min-effect", "10")

    def test_json_alone_on_stdout(self):
        self.write("c.json", config(**NOISE))
        out, _ = self.dlbench("ab", PROGRAM, PROGRAM, "c.json", "--json", "-", "--filter", "batch=256")
        self.assertEqual(json.loads(out)["kind"], "ab")

    def test_points_that_nobody_can_measure_are_named(self):
        self.write("c.json", config(devices=["meta:cpu"], sweeps=[{"workload": "gemm", "batch": [16, 200000]}]))
        out, _ = self.dlbench("ab", PROGRAM, PROGRAM, "c.json", "--json", "ab.json")
        self.assertEqual(sorted(row["status"] for row in self.read_json("ab.json")["points"]), ["ok", "out_of_memory"])
        self.assertRegex(" ".join(out.split()), r"1 can't be measured here")


class Refused(AbTest):
    def test_programs_that_are_none(self):
        self.write("c.json", config())
        self.fails("ab", PROGRAM, "./nothing", "c.json", code=4, says=r"\./nothing|nothing \(candidate\).*there is no such program")
        self.fails("ab", "/bin/true", PROGRAM, "c.json", code=4, says=r"/bin/true \(base\) can't take part: its worker can't be started")
        self.fails("ab", PROGRAM, "/bin/cat", "c.json", code=4, says=r"/bin/cat \(candidate\) can't take part")

    def test_a_program_from_before_ab(self):
        self.write("c.json", config())
        old = self.program(edit='line = line.replace(\'"plan"\', \'"unheard"\')')
        self.fails("ab", PROGRAM, old, "c.json", code=4, says=r"too old for `dlbench ab`.*knows no command unheard")

    def test_other_points(self):
        self.write("c.json", config(**NOISE))
        other = self.program('job["config"]["sweeps"][0]["batch"] = [16, 256, 512]')
        self.fails("ab", PROGRAM, other, "c.json", code=4,
                   says=r"don't plan the same points for meta: the candidate lacks gemm/.*batch=4096.*--filter")

    def test_options_that_mean_nothing(self):
        self.write("c.json", config())
        self.fails("ab", PROGRAM, PROGRAM, "c.json", "--processes", "3", code=2, says=r"--processes means nothing to `dlbench ab`")
        self.fails("ab", PROGRAM, PROGRAM, "c.json", "--json", "-", "--markdown", "-", code=2, says=r"both want standard output")


class Broken(AbTest):
    def test_a_candidate_that_crashes_at_a_point(self):
        self.write("c.json", config(**NOISE))
        crashing = self.program(edit='if "batch=4096" in line and \'"open"\' in line: worker.kill()')
        out, _ = self.dlbench("ab", PROGRAM, crashing, "c.json", "--json", "ab.json", code=5)
        failed = [row for row in self.read_json("ab.json")["points"] if row["failed_in"]]
        self.assertEqual([(row["status"], row["failed_in"]) for row in failed], [("failed", "candidate")])
        self.assertIn("batch=4096", failed[0]["key"])
        self.assertRegex(out, r"1 failed")

    def test_too_little_time(self):
        self.write("c.json", config(**NOISE))
        out, _ = self.dlbench("ab", PROGRAM, self.slower(1.3), "c.json", "--json", "ab.json", "--time-budget", "0.01", code=3)
        self.assertRegex(out, r"stopped early: the time budget of 0.01 s was spent")
        self.assertTrue(self.read_json("ab.json")["partial"])


class Interrupted(AbTest):
    def test_ctrl_c_keeps_what_there_is(self):
        self.write("c.json", config(meta={"hang_seconds": 0.005}, devices=["meta:cpu"]))
        process = subprocess.Popen([PROGRAM, "ab", PROGRAM, PROGRAM, "c.json", "--json", "ab.json"], cwd=self.folder,
                                   env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        end = time.monotonic() + 100
        while not (self.folder / "ab.json").exists():
            self.assertLess(time.monotonic(), end, "no round ended")
            time.sleep(0.02)
        workers = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertRegex(out, r"stopped early: interrupted")
        result = self.read_json("ab.json")
        self.assertEqual(result["stopped"], "interrupted")
        self.assertTrue(all(row["screen"] for row in result["points"]))
        for worker in workers:
            self.assertFalse(os.path.exists(f"/proc/{worker}"), "a worker outlived its parent")


if __name__ == "__main__":
    main()
