"""What only a whole program shows about measuring: parents that die, second signals, closed pipes, other formats."""

import json
import os
import pathlib
import signal
import subprocess
import time

from cli import PROGRAM, CliTest, main
from meta_config import config

SLOW = {"meta": {"hang_seconds": 0.005}, "measure": {"processes": 2, "point_timeout_seconds": 60}}


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Killed(CliTest):
    def start(self):
        self.write("c.json", config(**SLOW))
        process = subprocess.Popen([PROGRAM, "run", "c.json", "-o", "out.json"], cwd=self.folder, env=self.environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        self.wait_for(lambda: self.journaled() >= 2)
        return process

    def journaled(self):
        journal = self.folder / "out.json.journal"
        if not journal.exists():
            return 0
        return sum('"type":"point"' in line for line in journal.read_text().splitlines())

    def wait_for(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, "nothing happened within a minute")
            time.sleep(0.02)

    def test_the_worker_ends_with_its_parent_and_nothing_finished_is_lost(self):
        process = self.start()
        workers = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        self.assertEqual(len(workers), 1)
        process.kill()
        process.wait()
        self.wait_for(lambda: not alive(workers[0]))
        finished = self.journaled()
        lines = (self.folder / "out.json.journal").read_text().splitlines()
        before = [json.loads(line) for line in lines if '"type":"point"' in line]
        self.dlbench("run", "c.json", "-o", "out.json", "--resume", "--quiet")
        result = self.read_json("out.json")
        self.assertFalse(result["partial"])
        self.assertFalse((self.folder / "out.json.journal").exists())
        after = {(row["key"], row["process"]): row["wall_seconds"] for row in result["timings"]}
        self.assertEqual(len(before), finished)
        for answer in before:
            self.assertEqual(after[(answer["row"]["key"], answer["process"])], answer["timing"]["wall_seconds"])

    def test_a_second_interrupt_ends_at_once(self):
        self.write("c.json", config(meta={"hang_seconds": 30}, sweeps=[{"workload": "gemm", "batch": 16}], devices=["meta:cpu"]))
        process = subprocess.Popen([PROGRAM, "run", "c.json", "-o", "out.json"], cwd=self.folder, env=self.environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        self.wait_for(lambda: (self.folder / "out.json.journal").exists())
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        self.assertIn(process.wait(timeout=20), (130, -signal.SIGINT))


class Formats(CliTest):
    def test_google_benchmark_json(self):
        self.write("c.json", config())
        self.dlbench("run", "c.json", "-o", "out.json", "--gbench-out", "g.json", "--quiet")
        result, google = self.read_json("out.json"), self.read_json("g.json")
        timings = [seconds for row in result["timings"] for seconds in row["wall_seconds"]]
        repetitions = [row for row in google["benchmarks"] if row["run_type"] == "iteration"]
        self.assertEqual(len(repetitions), len(timings))
        self.assertEqual({row["name"] for row in repetitions}, {row["key"] for row in result["points"]})
        self.assertEqual({row["aggregate_name"] for row in google["benchmarks"] if row["run_type"] == "aggregate"},
                         {"mean", "median", "stddev", "cv"})

    def test_result_on_standard_output(self):
        self.write("c.json", config())
        out, _ = self.dlbench("run", "c.json", "-o", "-", "--quiet")
        self.assertEqual(json.loads(out)["kind"], "result")
        self.fails("run", "c.json", "-o", "-", "--resume", code=2, says=r"--resume needs the file")

    def test_a_closed_standard_output(self):
        self.write("c.json", config())
        read, write = os.pipe()
        os.close(read)
        _, err = self.dlbench("run", "c.json", "-o", "out.json", "--quiet", stdout=write, code=5)
        os.close(write)
        self.assertRegex(err, r"dlbench: standard output lost results: Broken pipe")
        self.assertFalse(self.read_json("out.json")["partial"])

    def test_check_as_data(self):
        self.write("c.json", config(devices=["reference"], sweeps=[{"workload": "gemm", "batch": [3, 16]}]))
        self.dlbench("check", "c.json", "--json", "check.json")
        rows = self.read_json("check.json")["points"]
        self.assertEqual([row["status"] for row in rows], ["ok", "ok"])
        self.assertEqual([row["how"] for row in rows], ["full", "full"])
        out, _ = self.dlbench("check", "c.json", "--json", "-")
        self.assertEqual(json.loads(out)["kind"], "check")

    def test_progress_without_a_terminal_is_not_redrawn(self):
        self.write("c.json", config())
        _, err = self.dlbench("run", "c.json", "-o", "out.json")
        self.assertNotIn("\r", err)
        self.assertNotIn("\033", err)


if __name__ == "__main__":
    main()
