"""`dlbench info` and `dlbench list`."""

import json
import subprocess

from cli import PROGRAM, CliTest, main


class Info(CliTest):
    def test_golden(self):
        self.assert_golden("info.txt", self.without_facts(self.dlbench("info")[0]))

    def test_starts_no_vendor_library_without_need(self):
        """Half a gigabyte of cuBLAS is not mapped by looking."""
        report = json.loads(self.dlbench("info", "--json")[0])
        gpu = next(each for each in report["backends"] if each["kind"] == "gpu")
        if gpu["usable"]:
            return
        script = 'LD_DEBUG=files "$0" info 2>&1 | grep -c "calling init: .*libcublas" || true'
        out = subprocess.run(["bash", "-c", script, PROGRAM], capture_output=True, text=True, cwd=self.folder).stdout
        self.assertEqual(out.strip(), "0")

    @staticmethod
    def without_facts(text):
        """Facts differ from machine to machine, each an indented `name: value`; so do the GPUs."""
        lines = [line for line in text.splitlines() if not (line.startswith(" " * 13) and ": " in line)]
        gpus = [number for number, line in enumerate(lines) if line.startswith("  gpu:")]
        return "\n".join(line for number, line in enumerate(lines) if number not in gpus and number - 1 not in gpus) + "\n"

    def test_json_and_text_agree(self):
        text = self.dlbench("info")[0]
        report = json.loads(self.dlbench("info", "--json")[0])
        self.assertEqual({each["kind"] for each in report["backends"]} & {"cpu", "gpu", "reference", "meta"},
                         {"cpu", "gpu", "reference", "meta"})
        self.assertGreaterEqual(report["usable_cpus"]["count"], 1)
        for backend in report["backends"]:
            self.assertEqual(backend["usable"], backend["absence"] == "none")
            self.assertEqual(backend["usable"], backend["sentence"] == "")
            if not backend["usable"]:
                self.assertIn(backend["sentence"], text)
            for device in backend["devices"]:
                self.assertRegex(text, rf"(?m)^  {device['id']} ")

    def test_a_missing_plugin_is_a_sentence(self):
        (self.folder / "empty").mkdir()
        report = json.loads(self.dlbench("info", "--json", env=self.environment(DLBENCH_PLUGIN_DIR=str(self.folder / "empty")))[0])
        self.assertTrue(all(each["usable"] or each["sentence"] for each in report["backends"]))


class List(CliTest):
    def test_everything_has_its_section(self):
        out = self.dlbench("list")[0]
        for title in ("Workloads", "Configs", "Precisions", "Devices"):
            self.assertRegex(out, rf"(?m)^{title}")

    def test_names_agree_with_json(self):
        report = json.loads(self.dlbench("list", "--json")[0])
        for what, names in (("workloads", [each["name"] for each in report["workloads"]]),
                            ("configs", [each["name"] for each in report["configs"]]),
                            ("precisions", [each["name"] for each in report["precisions"]]),
                            ("devices", report["devices"])):
            self.assertTrue(names, what)
            self.assertEqual(self.dlbench("list", what, "--names")[0].split(), names)
            out = self.dlbench("list", what)[0]
            for name in names:
                self.assertIn(name, out)

    def test_precisions_golden(self):
        self.assert_golden("list_precisions.txt", self.dlbench("list", "precisions")[0])

    def test_every_axis_says_what_it_allows(self):
        report = json.loads(self.dlbench("list", "workloads", "--json")[0])
        for workload in report["workloads"]:
            self.assertTrue(workload["summary"] and workload["class"] and workload["precisions"] and workload["sides"], workload)
            for axis in workload["axes"] + report["common_axes"]:
                self.assertTrue(axis["summary"], f"{workload['name']}: {axis['name']}")


if __name__ == "__main__":
    main()
