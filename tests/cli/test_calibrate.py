"""`dlbench calibrate` on the meta devices: where its profile goes, what it says, what stops it."""

import signal
import subprocess
import time

from cli import PROGRAM, CliTest, main
from meta_config import config

NOISE = {"meta": {"process_sd": 0.01, "noise_sd": 0.005}, "devices": ["meta:cpu"],
         "sweeps": [{"workload": "gemm", "family": "square", "batch": [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]},
                    {"workload": "membw", "op": ["read", "copy", "triad"], "bytes": ["1MiB", "64MiB"]}]}


class Calibrate(CliTest):
    def test_the_profile_of_a_machine_with_known_noise(self):
        self.write("c.json", config(**NOISE, measure={"processes": 5}))
        out, _ = self.dlbench("calibrate", "c.json", "--sessions", "6", "-o", "noise.json")
        self.assertRegex(out, r"^meta:cpu: this machine can see \d+(\.\d+)? % at 5 processes \(.*at 3, .* at 10, .* at 20\)")
        [device] = self.read_json("noise.json")["devices"]
        self.assertEqual((device["device_class"], device["points"]), ("meta:cpu", 15))
        self.assertAlmostEqual(device["prior_variance"] ** 0.5, 0.01, delta=0.004)
        self.assertLess(device["between_session_sd"], 0.005)
        self.dlbench("validate", "noise.json")
        self.assertFalse((self.folder / "noise.json.sessions").exists())

    def test_goes_where_compare_finds_it(self):
        self.write("c.json", config(**NOISE))
        state = self.folder / "state"
        self.dlbench("calibrate", "c.json", "--sessions", "2", "--quiet", env=self.environment(XDG_STATE_HOME=str(state)))
        [file] = (state / "dlbench").iterdir()
        self.assertRegex(file.name, r"^noise-[0-9a-f]{16}\.json$")
        home = self.folder / "home"
        self.dlbench("calibrate", "c.json", "--sessions", "2", "--quiet", env=self.environment(XDG_STATE_HOME=None, HOME=str(home)))
        self.assertEqual([each.name for each in (home / ".local/state/dlbench").iterdir()], [file.name])

    def test_from_files_that_are_there(self):
        for seed in "123":
            self.write("c.json", config(**NOISE))
            self.dlbench("run", "c.json", "-o", f"{seed}.json", "--quiet", "--set", f"/meta/seed={seed}00")
        self.dlbench("calibrate", "--from", "1.json", "2.json", "3.json", "-o", "noise.json", "--quiet")
        self.assertEqual(self.read_json("noise.json")["sessions"], 3)
        self.fails("calibrate", "--from", "1.json", "-o", "noise.json", code=4, says=r"at least two sessions")

    def test_one_process_tells_nothing(self):
        self.write("c.json", config(**NOISE))
        self.fails("calibrate", "c.json", "--processes", "1", "-o", "n.json", code=2, says=r"needs --processes 2 or more")

    def test_ctrl_c_keeps_the_sessions_and_resume_goes_on(self):
        self.write("c.json", config(**{**NOISE, "meta": {"process_sd": 0.01, "hang_seconds": 0.002}}))
        process = subprocess.Popen([PROGRAM, "calibrate", "c.json", "--sessions", "3", "-o", "noise.json"], cwd=self.folder,
                                   env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        end = time.monotonic() + 100
        while not (self.folder / "noise.json.sessions/session-2.json").exists():
            self.assertLess(time.monotonic(), end, "the second session never began")
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("--resume", err)
        first = (self.folder / "noise.json.sessions/session-1.json").read_bytes()
        started = self.read_json("noise.json.sessions/session-1.json")["run"]["started_utc"]
        self.assertTrue(first)
        self.dlbench("calibrate", "c.json", "--sessions", "3", "-o", "noise.json", "--resume", "--quiet")
        self.assertEqual(self.read_json("noise.json")["sessions"], 3)
        self.assertTrue(started)


if __name__ == "__main__":
    main()
