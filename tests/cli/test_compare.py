"""compare: verdicts on runs of the meta device with known noise, every output format, and every kind of bad input."""

import copy
import json
import re
import xml.etree.ElementTree as ElementTree

from cli import CliTest, main
from meta_config import config

BATCHES = [2 ** i for i in range(4, 16)]


def metaconfig(seed, processes=5, **changes):
    meta = {"seed": seed, "process_sd": 0.005, "noise_sd": 0.002}
    meta.update(changes.pop("meta", {}))
    return config(devices=["meta:cpu"], measure={"processes": processes}, meta=meta,
                  sweeps=[{"workload": "gemm", "family": "linear", "layer": "mlp_base_fc2", "batch": BATCHES}], **changes)


class Compare(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.made = {}

    def measured(self, name, **arguments):
        """A result as a document, measured once for all tests."""
        if name not in self.made:
            self.write("config.json", metaconfig(**arguments))
            self.dlbench("run", "config.json", "-o", "made.json", "--quiet")
            self.made[name] = self.read_json("made.json")
        return copy.deepcopy(self.made[name])

    def base(self):
        return self.measured("base", seed=100)

    def candidate(self):
        return self.measured("candidate", seed=200)

    def compare(self, base, candidate, *options, code=0):
        """Returns (comparison.json, console, stderr)."""
        self.write("base.json", base)
        self.write("cand.json", candidate)
        out, err = self.dlbench("compare", "base.json", "cand.json", "--json", "comparison.json", *options, code=code)
        self.dlbench("validate", "comparison.json")
        comparison = self.read_json("comparison.json")
        self.assertEqual(comparison["exit_code"], code)
        return comparison, out, err

    def refuses(self, base, candidate, says):
        self.write("base.json", base)
        self.write("cand.json", candidate)
        return self.fails("compare", "base.json", "cand.json", code=4, says=says)

    def slowed(self, factor, key=None, result=None):
        result = result or self.candidate()
        key = key or result["points"][5]["key"]
        for row in result["timings"]:
            if row["key"] == key:
                row["wall_seconds"] = [seconds * factor for seconds in row["wall_seconds"]]
        return result, key


class Verdicts(Compare):
    def test_equal_programs_have_no_regression(self):
        comparison, out, _ = self.compare(self.base(), self.candidate())
        self.assertEqual(comparison["summary"]["regression"], 0)
        self.assertEqual(len(comparison["points"]), len(BATCHES))
        self.assertIn("Slowdowns that would have been found", out)

    def test_a_slowdown_is_found_and_nothing_else_accused(self):
        candidate, key = self.slowed(1.10)
        comparison, out, _ = self.compare(self.base(), candidate, code=1)
        accused = [p["key"] for p in comparison["points"] if p["verdict"] == "regression"]
        self.assertEqual(accused, [key])
        self.assertRegex(out, r"1 regression")
        self.assertRegex(out, r"\+(9|10|11)\.\d %")

    def test_swapping_the_sides_makes_it_an_improvement(self):
        candidate, key = self.slowed(1.10)
        comparison, _, _ = self.compare(candidate, self.base())
        self.assertEqual([p["key"] for p in comparison["points"] if p["verdict"] == "improvement"], [key])
        self.assertEqual(comparison["verdict"], "improvement")
        self.compare(candidate, self.base(), "--fail-on", "improvement", code=1)

    def test_min_effect_and_fail_on_decide_what_fails(self):
        candidate, _ = self.slowed(1.10)
        self.compare(self.base(), candidate, "--min-effect", "15")
        self.compare(self.base(), candidate, "--fail-on", "none")
        self.compare(self.base(), candidate, "--fail-on", "missing,incomparable")

    def test_filter_keeps_points(self):
        candidate, key = self.slowed(1.10)
        comparison, _, _ = self.compare(self.base(), candidate, "--filter", "-" + re.escape(key))
        self.assertEqual(len(comparison["points"]), len(BATCHES) - 1)
        self.fails("compare", "base.json", "cand.json", "--filter", "nothing-like-it", code=4, says="do the filters match")
        self.fails("compare", "base.json", "cand.json", "--filter", "(", code=2, says="not a regular expression")

    def test_a_drift_of_the_machine_is_inconclusive_not_a_regression(self):
        drifted = self.measured("drifted", seed=300, meta={"cpu": {"flop_per_s": 0.9e11, "bytes_per_s": 1.8e10}})
        comparison, out, _ = self.compare(self.base(), drifted, code=3)
        self.assertEqual(comparison["summary"]["regression"], 0)
        self.assertTrue(comparison["drifted"])
        self.assertTrue(any(c["shifted"] for c in comparison["controls"]))
        self.assertIn("A control kernel shifted", out)

    def test_one_process_is_never_a_regression_without_a_profile(self):
        one, _ = self.slowed(2.0, result=self.measured("one", seed=400, processes=1))
        comparison, _, _ = self.compare(self.base(), one, code=3)
        self.assertEqual({p["verdict"] for p in comparison["points"]}, {"inconclusive"})
        self.assertIn("one process says nothing", comparison["points"][0]["reason"])
        self.write("noise.json", self.profile(one))
        comparison, _, _ = self.compare(self.base(), one, "--noise-profile", "noise.json", code=1)
        self.assertEqual(comparison["summary"]["regression"], 1)
        self.assertEqual(comparison["noise"][0]["source"], "profile")

    def profile(self, result):
        return {"schema_version": "1.0.0", "kind": "noise_profile", "created_utc": "2026-11-30T20:15:00Z",
                "fingerprint": result["environment"]["fingerprint"], "machine": "a virtual one", "config": "meta",
                "sessions": 5, "processes": 5, "tool": {}, "environment": result["environment"], "warnings": [],
                "devices": [{"device_class": "meta:cpu", "points": 12, "between_session_sd": 0.002,
                             "prior_variance": 2.5e-5, "prior_degrees": 20, "additive_seconds": 0,
                             "detectable": [{"processes": 5, "effect": 0.03}]}]}

    def test_a_profile_of_another_machine_is_refused(self):
        profile = self.profile(self.base())
        profile["environment"]["cpu"]["model"] = "Another CPU"
        self.write("noise.json", profile)
        self.write("base.json", self.base())
        self.fails("compare", "base.json", "base.json", "--noise-profile", "noise.json", code=4,
                   says="noise of another machine .*CPU model")
        self.fails("compare", "base.json", "base.json", "--noise-profile", "base.json", code=4, says="not a noise profile")

    def test_sessions_are_pooled(self):
        for name, seed in (("b1", 100), ("b2", 110), ("c1", 200), ("c2", 210)):
            self.write(f"{name}.json", self.measured(name, seed=seed))
        candidate, key = self.slowed(1.10, result=self.measured("c1", seed=200))
        self.write("c1.json", candidate)
        candidate, _ = self.slowed(1.10, result=self.measured("c2", seed=210))
        self.write("c2.json", candidate)
        self.dlbench("compare", "--base", "b1.json", "b2.json", "--cand", "c1.json", "c2.json", "--json", "c.json", code=1)
        comparison = self.read_json("c.json")
        self.assertEqual([p["key"] for p in comparison["points"] if p["verdict"] == "regression"], [key])
        self.assertEqual({p["base"]["processes"] for p in comparison["points"] if not p["processes_left_out"]}, {10})
        self.fails("compare", "--base", "b1.json", "b1.json", "--cand", "c1.json", code=4, says="name each once")

    def test_timings_of_equal_placement_only(self):
        base, candidate = self.base(), self.candidate()
        key = base["points"][3]["key"]
        # The base saw one state and can't tell which; beside the candidate it can.
        for result, label, ping_pong in ((base, "uniform", 50e-9), (candidate, "far", 330e-9)):
            for row in result["timings"]:
                other = row["key"] != key
                row["placement"] = [label if not other or label == "uniform" else "near"]
                row["block"] = [0] * len(row["wall_seconds"])
                for name in ("ping_pong_before_seconds", "ping_pong_after_seconds"):
                    row[name] = [50e-9 if other else ping_pong]
                for name in ("fma_before_flop_per_s", "fma_after_flop_per_s"):
                    row[name] = [1e11]
        comparison, _, _ = self.compare(base, candidate)
        by_key = {p["key"]: p for p in comparison["points"]}
        self.assertEqual(by_key[key]["verdict"], "inconclusive")
        self.assertRegex(by_key[key]["reason"], "equal placement.*near in the base, far in the candidate")
        self.assertIsNone(by_key[key]["change"])
        self.assertEqual({p["placement"] for k, p in by_key.items() if k != key}, {"near"})


class Formats(Compare):
    def test_json_alone_on_standard_output(self):
        candidate, _ = self.slowed(1.10)
        self.write("base.json", self.base())
        self.write("cand.json", candidate)
        out, err = self.dlbench("compare", "base.json", "cand.json", "--json", "-", "--github", code=1)
        self.assertEqual(json.loads(out)["kind"], "comparison")
        self.assertIn("::error title=dlbench%3A regression::", err)

    def test_junit_is_wellformed_and_counts_what_it_holds(self):
        candidate, key = self.slowed(1.10)
        candidate["points"] = [p for p in candidate["points"] if p["key"] != candidate["points"][0]["key"]]
        gone = self.base()["points"][0]["key"]
        candidate["timings"] = [t for t in candidate["timings"] if t["key"] != gone]
        self.compare(self.base(), candidate, "--junit", "junit.xml", code=1)
        root = ElementTree.parse(self.folder / "junit.xml").getroot()
        self.assertEqual(root.tag, "testsuites")
        suite, = root
        self.assertEqual((suite.tag, suite.get("tests")), ("testsuite", str(len(BATCHES))))
        cases = {case.get("name"): case for case in suite}
        self.assertEqual(len(cases), len(BATCHES))
        for kind, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            self.assertEqual(int(suite.get(kind)), sum(case.find(tag) is not None for case in suite), kind)
        self.assertRegex(cases[key].find("failure").get("message"), r"% slower \(")
        self.assertIn("missing", cases[gone].find("skipped").get("message"))

    def test_github_annotations(self):
        candidate, key = self.slowed(1.10)
        _, out, _ = self.compare(self.base(), candidate, "--github", code=1)
        commands = [line for line in out.splitlines() if line.startswith("::")]
        self.assertTrue(any(line.startswith("::error title=dlbench%3A regression::" + key) for line in commands), out)
        self.assertTrue(commands[-1].startswith("::notice "))

    def test_markdown_for_a_pull_request(self):
        candidate, key = self.slowed(1.10)
        self.compare(self.base(), candidate, "--markdown", "comment.md", code=1)
        text = (self.folder / "comment.md").read_text()
        self.assertIn("## Comparison", text)
        self.assertIn("<details><summary>", text)
        self.assertIn("| " + key.replace("_", "\\_") + " |", text)


class BadInput(Compare):
    def test_other_machines_are_incomparable(self):
        for pointer, value, says in (("cpu/model", "Another CPU", "CPU model"), ("cpu/usable_cpus", 64, "usable CPUs"),
                                     ("cpu/governor", "powersave", "governor")):
            other = self.candidate()
            part, name = pointer.split("/")
            other["environment"][part][name] = value
            comparison, out, _ = self.compare(self.base(), other, "--junit", "junit.xml", code=4)
            self.assertEqual((comparison["verdict"], comparison["points"]), ("incomparable", []))
            self.assertRegex(" ".join(out.split()), f"Incomparable: .*{says}: .* in base.json, .* in cand.json")
            suite, = ElementTree.parse(self.folder / "junit.xml").getroot()
            self.assertEqual((suite.get("errors"), suite.get("tests")), ("1", "1"))

    def test_other_software_is_a_warning(self):
        other = self.candidate()
        other["environment"]["os"]["kernel"] = "7.0.0"
        other["tool"]["compiler"] = "Clang 19"
        comparison, _, _ = self.compare(self.base(), other)
        self.assertTrue(any("kernel" in w and "7.0.0" in w for w in comparison["warnings"]))
        self.assertTrue(any("compiler" in w for w in comparison["warnings"]))

    def test_another_schema(self):
        other = self.candidate()
        other["schema_version"] = "2.0.0"
        self.refuses(self.base(), other, "cand.json: /schema_version: 2.0.0 is another major version")

    def test_truncated(self):
        text = json.dumps(self.candidate())
        self.refuses(self.base(), text[:len(text) // 2], "cand.json:.*ends too early")
        self.refuses(self.base(), "", "cand.json: the file is empty")
        self.refuses(self.base(), [], "cand.json: /: not a result")

    def test_times_that_are_none(self):
        for seconds in (0, -1e-3):
            other = self.candidate()
            other["timings"][3]["wall_seconds"][2] = seconds
            self.refuses(self.base(), other, rf"cand.json: /timings/3/wall_seconds/2: {seconds} is no time")
        other = self.candidate()
        other["controls"][0]["seconds"] = 0
        self.refuses(self.base(), other, "cand.json: /controls/0/seconds/0: 0 is no time")
        text = json.dumps(self.candidate()).replace('"wall_seconds": [', '"wall_seconds": [1e999, ', 1)
        self.refuses(self.base(), text, "cand.json.*not JSON")

    def test_edited_rows(self):
        other = self.candidate()
        other["timings"].append(copy.deepcopy(other["timings"][0]))
        self.refuses(self.base(), other, "has timings of .* already")
        other = self.candidate()
        other["points"].append(copy.deepcopy(other["points"][0]))
        self.refuses(self.base(), other, "is the key of another row as well")
        other = self.candidate()
        other["points"][2]["axis_batch"] = 7
        self.refuses(self.base(), other, "/points/2/key: .* does not agree with the axis_ columns")
        other = self.candidate()
        other["timings"][0]["key"] = "gemm/of=nobody"
        self.refuses(self.base(), other, "gemm/of=nobody is no point of this file")
        other = self.candidate()
        other["timings"] = [t for t in other["timings"] if t["key"] != other["points"][0]["key"]]
        self.refuses(self.base(), other, "/points/0: is ok and has no timings")
        other = self.candidate()
        other["timings"][0]["wall_seconds"] = "fast"
        self.refuses(self.base(), other, "/timings/0/wall_seconds: \"fast\" is not allowed")

    def test_missing_points(self):
        other = self.candidate()
        gone = other["points"].pop(4)["key"]
        other["timings"] = [t for t in other["timings"] if t["key"] != gone]
        comparison, _, _ = self.compare(self.base(), other, code=3)
        missing = [p for p in comparison["points"] if p["verdict"] == "missing"]
        self.assertEqual([(p["key"], p["change"]) for p in missing], [(gone, None)])
        self.compare(self.base(), other, "--fail-on", "regression")
        comparison, _, _ = self.compare(other, self.base())
        self.assertIn("1 point only in the candidate", comparison["notes"])

    def test_a_wrong_result_fails(self):
        other = self.candidate()
        other["points"][1].update(status="mismatch", reason="planted")
        comparison, _, _ = self.compare(self.base(), other, "--fail-on", "none", code=1)
        self.assertEqual(comparison["points"][1]["verdict"], "invalid")
        self.assertIn("planted", comparison["points"][1]["reason"])

    def test_other_work_or_other_steps_are_incomparable(self):
        other = self.candidate()
        other["points"][1]["flops_per_step"] *= 2
        for row in other["timings"]:
            if row["key"] == other["points"][2]["key"]:
                row["steps_per_timing"] *= 4
        comparison, _, _ = self.compare(self.base(), other, code=4)
        self.assertEqual([p["verdict"] for p in comparison["points"][1:3]], ["incomparable"] * 2)
        self.assertIn("FLOPs per step differ", comparison["points"][1]["reason"])
        self.assertIn("steps per timing differ", comparison["points"][2]["reason"])

    def test_command_line(self):
        self.write("base.json", self.base())
        self.fails("compare", "base.json", code=2, says="needs BASE and CAND, got 1 file")
        self.fails("compare", "base.json", "--cand", "base.json", code=2, says="either as BASE CAND or by")
        self.fails("compare", "--base", "base.json", code=2, says="--cand is missing")
        self.fails("compare", "-", "-", code=2, says="once only")
        self.fails("compare", "base.json", "base.json", "--json", "-", "--junit", "-", code=2, says="once only")
        self.fails("compare", "base.json", "base.json", "--fail-on", "everything", code=2, says="--fail-on")
        self.fails("compare", "base.json", "nowhere.json", code=4, says="nowhere.json: cannot be read")
        self.fails("compare", "base.json", "base.json", "--markdown", "no/such/folder.md", code=5, says="folder.md")

    def test_a_file_with_itself_says_so(self):
        comparison, _, _ = self.compare(self.base(), self.base())
        self.assertTrue(any("the same measurement on both sides" in w for w in comparison["warnings"]))
        self.assertEqual({p["change"] for p in comparison["points"]}, {0})


if __name__ == "__main__":
    main()
