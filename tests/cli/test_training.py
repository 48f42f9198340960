"""Training steps on the virtual devices: planned, refused with a reason, never stopping a sweep."""

from cli import CliTest, main
from meta_config import config


class Training(CliTest):
    def test_every_model_runs_on_both_sides(self):
        sweeps = [{"workload": "mlp", "preset": "tiny", "batch": 8}, {"workload": "cnn", "batch": 8},
                  {"workload": "resnet", "preset": "resnet18", "image": "32", "batch": 2},
                  {"workload": "gpt2", "preset": "nano", "seq": 16, "batch": 2, "launch": ["stream", "graph"],
                   "data": ["resident", "streamed", "streamed_pageable"]}]
        self.write("c.json", config(sweeps=sweeps))
        self.dlbench("run", "c.json", "-o", "out.json")
        points = self.read_json("out.json")["points"]
        self.assertEqual({row["status"] for row in points}, {"ok"})
        units = {row["workload"]: (row["sample_unit"], row["samples_per_step"]) for row in points}
        self.assertEqual(units, {"mlp": ("samples", 8), "cnn": ("images", 8), "resnet": ("images", 2),
                                 "gpt2": ("tokens", 32)})
        self.assertEqual(len([row for row in points if row["workload"] == "gpt2"]), 1 + 6)

    def test_a_batch_that_cannot_fit_is_a_row_and_the_sweep_goes_on(self):
        sweeps = [{"workload": "resnet", "preset": "resnet50", "batch": [1, 1048576, 2]}]
        self.write("c.json", config(sweeps=sweeps, devices=["meta:cpu"]))
        self.dlbench("run", "c.json", "-o", "out.json")
        rows = {row["axis_batch"]: row for row in self.read_json("out.json")["points"]}
        self.assertEqual([rows[batch]["status"] for batch in (1, 1048576, 2)], ["ok", "out_of_memory", "ok"])
        self.assertRegex(rows[1048576]["reason"], r"needs [0-9.]+ GiB for its tensors, meta:cpu has 16.0 GiB")

    def test_a_batch_that_cannot_be_counted_is_refused(self):
        self.write("c.json", config(sweeps=[{"workload": "resnet", "batch": 1 << 40}]))
        self.fails("run", "c.json", "-o", "out.json", code=2, says="resnet/.*make it smaller|resnet/.*elements")

    def test_a_preset_that_does_not_exist(self):
        self.write("c.json", config(sweeps=[{"workload": "gpt2", "preset": "medium"}]))
        self.fails("run", "c.json", "-o", "out.json", code=2, says=r'/sweeps/0/preset: .*medium.*nano, mini, small')

    def test_a_sequence_beyond_the_position_table(self):
        self.write("c.json", config(sweeps=[{"workload": "gpt2", "seq": 1025}]))
        self.fails("run", "c.json", "-o", "out.json", code=2, says=r"1025 is longer than the position table.*at most 1024")

    def test_the_list_shows_the_presets(self):
        out, _ = self.dlbench("list", "workloads")
        self.assertRegex(out, r"resnet \(train\)")
        self.assertRegex(out, r"nano.*mini.*small")


class Dump(CliTest):
    KEY = "mlp/preset=tiny/batch=3/device=reference"

    def test_a_step_is_dumped_and_checked(self):
        out, _ = self.dlbench("check", "--point", self.KEY, "--dump", "step")
        self.assertRegex(out, "1 right, 0 wrong")
        manifest = self.read_json("step/manifest.json")
        self.assertEqual(manifest["workload"], "mlp")
        self.assertEqual(manifest["axes"]["preset"], "tiny")
        self.assertTrue((self.folder / "step" / "gradient.0.weight.npy").exists())

    def test_a_directory_that_is_not_empty(self):
        (self.folder / "step").mkdir()
        self.write("step/precious", "x")
        self.dlbench_refuses("step", r"--dump step: the directory isn't empty")
        self.assertEqual([path.name for path in (self.folder / "step").iterdir()], ["precious"])

    def test_a_file_in_the_way(self):
        self.write("step", "x")
        self.dlbench_refuses("step", r"--dump step: it is no directory")

    def test_more_than_one_point(self):
        self.fails("check", "ci", "--device", "meta:cpu", "--dump", "step", code=2, says=r"one point.*--point KEY")

    def test_a_workload_that_is_no_model(self):
        self.dlbench("check", "--point", "gemm/batch=4/device=reference", "--dump", "step", code=2)

    def test_a_device_that_computes_nothing(self):
        self.dlbench("check", "--point", "mlp/preset=tiny/device=meta:cpu", "--dump", "step", code=2)

    def dlbench_refuses(self, directory, says):
        _, err = self.dlbench("check", "--point", self.KEY, "--dump", directory, code=2)
        self.assertRegex(err, says)


if __name__ == "__main__":
    main()
