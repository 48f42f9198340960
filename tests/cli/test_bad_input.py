"""Bad input: one clear sentence, the right exit code, nothing lost."""

import json
import os
import re
import stat
import subprocess

from cli import PROGRAM, CliTest, main
from meta_config import config


class BadConfig(CliTest):
    def refused(self, content, says, *more):
        self.write("bad.json", content)
        self.fails("run", "bad.json", "-o", "out.json", *more, code=2, says=says)
        self.assertFalse((self.folder / "out.json").exists())

    def test_malformed(self):
        self.refused('{"name": "x",\n "sweeps": [}', r"bad\.json:2:\d+: ")

    def test_empty(self):
        self.refused("", r"bad\.json.*empty")

    def test_not_an_object(self):
        self.refused("[]", r"bad\.json")

    def test_duplicate_key(self):
        self.refused('{"name": "x", "name": "y"}', r"bad\.json.*name")

    def test_unknown_key_names_the_near_one(self):
        self.refused(config(devises=["cpu"]), r"bad\.json: /devises.*devices")

    def test_unknown_workload(self):
        self.refused(config(sweeps=[{"workload": "gem"}]), r'bad\.json: /sweeps/0/workload: .*gem.*gemm')

    def test_unknown_axis(self):
        self.refused(config(sweeps=[{"workload": "gemm", "bach": 3}]), r"bad\.json: /sweeps/0/bach.*batch")

    def test_wrong_type(self):
        self.refused(config(sweeps=[{"workload": "gemm", "batch": True}]), r"bad\.json: /sweeps/0/batch: .*true")

    def test_value_below_the_range(self):
        self.refused(config(sweeps=[{"workload": "gemm", "batch": [-3]}]), r"/sweeps/0/batch.*-3.*whole number from 1")

    def test_empty_batch_list(self):
        self.refused(config(sweeps=[{"workload": "gemm", "batch": []}]), r"/sweeps/0/batch.*empty")

    def test_empty_sweeps(self):
        self.refused(config(sweeps=[]), r"/sweeps.*empty")

    def test_unknown_precision(self):
        self.refused(config(sweeps=[{"workload": "gemm", "precision": "fp23"}]), r"fp23.*fp32")

    def test_unknown_device(self):
        self.refused(config(devices=["tpu"]), r"tpu.*(cpu|gpu)")

    def test_bad_override(self):
        self.refused(config(), r"--batch.*x2", "--batch", "1:10:x")

    def test_bad_filter(self):
        self.refused(config(), r"\(\[", "--filter", "([")

    def test_a_filter_that_is_too_long_for_regular_expressions(self):
        self.refused(config(filters=["(" * 50000 + ")" * 50000]), r"bad\.json: /filters/0: has 100000 characters")

    def test_nested_too_deeply(self):
        deep = '{"kind": "result", "points": ' + "[" * 300000 + "]" * 300000 + "}"
        self.refused(deep, r"bad\.json: .*nested more than 200 deep")
        out, _ = self.dlbench("validate", "bad.json", code=4)
        self.assertRegex(out, r"bad\.json: .*nested more than 200 deep")

    def test_no_such_config(self):
        self.fails("run", "nowhere", code=2, says=r"there is no config 'nowhere'.*quick")


class AbsurdSizes(CliTest):
    def test_more_memory_than_the_device_has_is_refused_in_the_plan(self):
        self.write("big.json", config(sweeps=[{"workload": "gemm", "family": "square", "batch": [16, 1000000]}]))
        out, _ = self.dlbench("run", "big.json", "--dry-run")
        self.assertRegex(out, r"out_of_memory.*(TiB|GiB|GB|TB)")
        self.dlbench("run", "big.json", "-o", "out.json")
        rows = {row["key"]: row for row in self.read_json("out.json")["points"]}
        big = [row for row in rows.values() if row["axis_batch"] == 1000000]
        self.assertTrue(big)
        for row in big:
            self.assertEqual(row["status"], "out_of_memory")
            self.assertTrue(row["reason"])
        self.assertTrue(all(row["status"] == "ok" for row in rows.values() if row not in big))

    def test_sizes_that_overflow(self):
        self.write("big.json", config(sweeps=[{"workload": "gemm", "family": "square", "batch": [1 << 40]}]))
        self.fails("run", "big.json", "--dry-run", code=2, says=r"big\.json: /sweeps/0: .*more than 2\^63 elements")

    def test_beyond_64_bits(self):
        self.write("big.json", json.dumps(config()).replace("4096", "1" + "0" * 30))
        self.fails("run", "big.json", "-o", "out.json", code=2, says=r"big\.json: /sweeps/0/batch")


class Output(CliTest):
    def test_a_folder_that_does_not_exist(self):
        self.write("c.json", config())
        self.fails("run", "c.json", "-o", "no/such/out.json", code=2, says=r"there is no directory no/such.*nothing was measured")

    def test_a_folder_that_cannot_be_written(self):
        self.write("c.json", config())
        self.fails("run", "c.json", "-o", "/proc/out.json", code=2, says=r"/proc/out\.json: cannot be written.*nothing was measured")

    def limited(self, blocks):
        """A limit on file sizes (in KiB) gives the same failed write as a disk without space."""
        self.write("c.json", config())
        return subprocess.run(["bash", "-c", f'ulimit -f {blocks}; exec "$0" run c.json -o out.json', PROGRAM],
                              cwd=self.folder, capture_output=True, text=True, env=self.environment(), timeout=120)

    def test_no_space_at_the_start(self):
        result = self.limited(1)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, r"(?m)^dlbench: out\.json: cannot be written: File too large.*nothing was measured")

    def test_a_disk_that_fills_up_keeps_the_last_state(self):
        whole = self.limited("unlimited")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        kibibytes = (self.folder / "out.json").stat().st_size // 1024
        result = self.limited(kibibytes * 3 // 4)
        self.assertEqual(result.returncode, 5, result.stderr)
        self.assertRegex(result.stderr, r"(?m)^dlbench: .*out\.json(\.journal)?: cannot be written: File too large")
        self.assertTrue(self.read_json("out.json")["partial"])

    def test_an_existing_result_is_kept(self):
        self.write("c.json", config())
        self.write("out.json", "precious")
        _, err = self.dlbench("run", "c.json", "-o", "out.json")
        self.assertEqual((self.folder / "out.json.previous").read_text(), "precious")
        self.assertIn("out.json.previous", err)


    def test_files_beside_the_result_are_refused_before_measuring(self):
        self.write("c.json", config())
        for value, says in (("no/such/g.json", r"there is no directory no/such.*nothing was measured"),
                            (".", r"is a directory.*nothing was measured"),
                            ("out.json", r"this is the result file of --output"),
                            ("../" + self.folder.name + "/out.json", r"this is the result file of --output")):
            self.fails("run", "c.json", "-o", "out.json", "--gbench-out", value, code=2, says=says)
            self.assertFalse((self.folder / "out.json").exists())
        self.fails("check", "c.json", "--json", "no/such/c.json", code=2, says=r"there is no directory no/such")

    def test_a_device_stays_a_device(self):
        self.write("c.json", config())
        name = "out.json"
        self.dlbench("run", "c.json", "-o", name)
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
            self.dlbench("report", name, "-o", "pipe")
            self.assertIn("Where the GPU wins", reader.communicate(timeout=60)[0])
        self.assertTrue(stat.S_ISFIFO(pipe.stat().st_mode))

    def test_a_link_stays_a_link(self):
        self.write("c.json", config())
        name = "out.json"
        self.dlbench("run", "c.json", "-o", name)
        self.write("target.md", "old")
        (self.folder / "link.md").symlink_to("target.md")
        self.dlbench("report", name, "-o", "link.md")
        self.assertTrue((self.folder / "link.md").is_symlink())
        self.assertIn("Where the GPU wins", (self.folder / "target.md").read_text())


class Results(CliTest):
    def unreadable(self, name, says):
        """`report` has nothing to show: an error. What `validate` finds is its result."""
        self.fails("report", name, code=4, says=says)
        out, err = self.dlbench("validate", name, code=4)
        self.assertRegex(out, says)
        self.assertEqual(err, "")

    def test_a_result_with_a_wrong_field_is_named_by_its_place(self):
        path = self.measured()
        path.write_text(re.sub(r'"status": ?"ok"', '"status": "fine"', path.read_text(), count=1))
        out, err = self.dlbench("validate", "out.json", code=4)
        self.assertRegex(out, r"out\.json: /points/0/status: ")
        self.assertEqual(err, "")
        self.fails("report", "out.json", code=4, says=r"out\.json: /points/0/status: .*fine")

    def measured(self, name="out.json", **changes):
        self.write("c.json", config(**changes))
        self.dlbench("run", "c.json", "-o", name, "--quiet")
        return self.folder / name

    def test_an_axis_of_another_type_is_a_violation(self):
        path = self.measured()
        result = json.loads(path.read_text())
        result["points"][0]["axis_batch"] = "x"
        path.write_text(json.dumps(result))
        out, err = self.dlbench("validate", path.name, code=4)
        self.assertIn("/points/0", out)
        self.assertEqual(err, "")

    def test_a_result_cut_in_half(self):
        path = self.measured()
        path.write_text(path.read_text()[:len(path.read_text()) // 2])
        self.unreadable("out.json", r"out\.json:\d+:\d+: .*cut short")
        _, err = self.dlbench("run", "c.json", "-o", "out.json", "--resume", code=4)
        self.assertRegex(err, r"dlbench: .*out\.json")

    def test_no_such_result(self):
        self.unreadable("gone.json", r"gone\.json.*No such file")

    def test_not_a_result(self):
        self.write("other.json", {"hello": 1})
        self.unreadable("other.json", r"other\.json: ")

    def test_another_major_version(self):
        path = self.measured()
        path.write_text(path.read_text().replace('"schema_version": "1.', '"schema_version": "2.', 1))
        self.fails("report", "out.json", code=4, says=r"out\.json.*version")

    def test_clashing_keys(self):
        self.measured("a.json", meta={"seed": 1, "noise_sd": 0.01})
        self.measured("b.json", meta={"seed": 2, "noise_sd": 0.01})
        self.fails("report", "a.json", "b.json", code=4, says=r"b\.json")


if __name__ == "__main__":
    main()
