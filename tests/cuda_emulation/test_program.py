"""The program with the emulated GPU: `info` names it, `check` runs on it, `run` refuses to time it."""

import json
import os

from cli import CliTest, main

CONFIG = {
    "name": "emulated",
    "devices": ["gpu:0"],
    "measure": {"profile": "quick", "processes": 1, "max_timings": 11, "warmup_seconds": 0},
    "sweeps": [{"workload": "gemm", "family": "square", "batch": [16, 33], "precision": ["fp32", "bf16"]}],
}


class EmulatedGpu(CliTest):
    def environment(self, **changes):
        return super().environment(**{"DLBENCH_PLUGIN_DIR": os.environ["DLBENCH_EMULATED_BACKEND"], **changes})

    def test_info_says_that_it_is_emulated(self):
        out, _ = self.dlbench("info")
        self.assertRegex(out, r"gpu:0 .*emulated GPU \(CUDA on the CPU, for tests only\)")
        backends = json.loads(self.dlbench("info", "--json")[0])["backends"]
        [device] = next(each for each in backends if each["kind"] == "gpu")["devices"]
        self.assertTrue(device["emulated"])

    def test_run_refuses_to_time_it(self):
        self.write("c.json", CONFIG)
        self.dlbench("run", "c.json", "-o", "out.json", "--quiet")
        result = self.read_json("out.json")
        self.assertGreaterEqual(len(result["points"]), 4)
        for row in result["points"]:
            self.assertEqual(row["status"], "unsupported", row)
            self.assertRegex(row["reason"], r"emulated.*never timed")
        self.assertEqual(result["timings"], [])

    def test_check_runs_on_it(self):
        self.write("c.json", CONFIG)
        out, err = self.dlbench("check", "c.json", timeout=300)
        self.assertRegex(out, r"gemm/family=square.*device=gpu:0.*ok|ok.*gemm/family=square.*device=gpu:0", err)


if __name__ == "__main__":
    main()
