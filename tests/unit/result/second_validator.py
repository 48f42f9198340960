"""Validates what dlbench and its tests write with python3-jsonschema, and proves that it would notice a mistake.

Usage: second_validator.py TEST_RESULT TEST_ANALYSIS DLBENCH SOURCE_DIR
"""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

test_result, test_analysis, dlbench, source = sys.argv[1:]
source = pathlib.Path(source)
KINDS = ("result", "report", "noise_profile", "comparison")
schemas = {kind: json.loads((source / f"results/schema/{kind}.schema.json").read_text()) for kind in KINDS}
validators = {}
for kind, schema in schemas.items():
    jsonschema.Draft7Validator.check_schema(schema)
    validators[kind] = jsonschema.Draft7Validator(schema)


def errors(document):
    return [f"/{'/'.join(map(str, e.path))}: {e.message[:200]}" for e in validators[document["kind"]].iter_errors(document)]


def must_fail(document, change, what):
    broken = copy.deepcopy(document)
    change(broken)
    assert errors(broken), f"{what} was not noticed"


with tempfile.TemporaryDirectory() as folder:
    env = dict(os.environ, DLBENCH_WRITTEN_DIR=folder)
    subprocess.run([test_result, "--gtest_filter=Validate.WritesFilesForTheSecondValidator", "--gtest_brief=1"], check=True, env=env)
    subprocess.run([test_analysis, "--gtest_filter=*ForTheSecondValidator", "--gtest_brief=1"], check=True, env=env)
    small = source / "tests/golden/small.json"
    report = pathlib.Path(folder) / "small.report.json"
    code = subprocess.run([dlbench, "report", str(small), "--format", "json", "-o", str(report)]).returncode
    assert code == 1, f"small.json has a mismatch, so the report ends with 1, not {code}"
    comparison = pathlib.Path(folder) / "small.comparison.json"
    subprocess.run([dlbench, "compare", small, small, "--json", comparison], check=True, stdout=subprocess.DEVNULL)
    files = sorted(pathlib.Path(folder).glob("*.json")) + sorted((source / "tests/golden").glob("small*.json"))
    assert len(files) >= 7, files
    assert {json.loads(f.read_text())["kind"] for f in files} == set(KINDS), "every kind of file is validated"
    failed = False
    for file in files:
        found = errors(json.loads(file.read_text()))
        failed |= bool(found)
        print(f"{file.name}: {'valid' if not found else ''}", *found[:10], sep="\n  " if found else "")
        verdict = subprocess.run([dlbench, "validate", str(file)], capture_output=True, text=True)
        assert verdict.returncode == 0, verdict.stdout + verdict.stderr
    compared = json.loads(comparison.read_text())
    profile = json.loads((pathlib.Path(folder) / "made.noise_profile.json").read_text())

document = json.loads(small.read_text())
must_fail(document, lambda d: d["points"][0].update(colour="red"), "an unknown column")
must_fail(document, lambda d: d["points"][-1].update(reason=""), "a status without a reason")
must_fail(document, lambda d: d["timings"][0]["wall_seconds"].append(0), "a timing of 0 s")
must_fail(document, lambda d: d["points"][0].pop("key"), "a missing key")
must_fail(document, lambda d: d.update(schema_version="2.0.0"), "another major version")
must_fail(profile, lambda d: d["devices"][0].update(between_session_sd=-0.01), "a negative standard deviation")
must_fail(compared, lambda d: d["points"][0].update(verdict="slower"), "a verdict that is none")
must_fail(compared, lambda d: d["summary"].pop("regression"), "a verdict that isn't counted")
must_fail(profile, lambda d: d.update(devices=[]), "a noise profile without a device")
sys.exit(failed)
