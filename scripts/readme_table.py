"""The tables of README.md come from committed results: each stands between

    <!-- table: results/reference/MACHINE/NAME.json -->
    <!-- end of table -->

`--write` fills it from that file, `--check` (a test) fails when README.md says something else, `--use FILE` makes the first
table show another result. Derived numbers come from `dlbench report --format json`, never from here."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(<!-- table: (\S+) -->\n)(.*?)(<!-- end of table -->)", re.S)


def program():
    """DLBENCH, or the newest build."""
    if os.environ.get("DLBENCH"):
        return os.environ["DLBENCH"]
    built = sorted((ROOT / "build").glob("*/bin/dlbench"), key=lambda path: path.stat().st_mtime)
    if not built:
        sys.exit("readme_table: there is no build/*/bin/dlbench; build it first (scripts/dev build)")
    return str(built[-1])


def three_digits(value):
    """1234 -> 1230, 0.012345 -> 0.0123: an interval of 1 % doesn't carry more."""
    return f"{float(f'{value:.3g}'):,.10g}"


def scaled(value, unit, steps):
    for factor, prefix in steps:
        if value >= factor:
            return f"{three_digits(value / factor)} {prefix}{unit}"
    factor, prefix = steps[-1]
    return f"{three_digits(value / factor)} {prefix}{unit}"


def seconds(value):
    return scaled(value, "s", ((1, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")))


def rate(value, unit):
    return scaled(value, unit, ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, "")))


def work(row):
    """The axes that a reader needs, without those that are the same on both sides or shown in a column."""
    own = [part for part in row["pair_key"].split("/") if not part.startswith(("cache=", "precision="))]
    return " ".join(part.split("=")[-1] if part.startswith(("family=", "op=", "layer=")) else part for part in own)


def fastest(rows):
    """Per work and device the row with the fastest thread count, in the order of the file."""
    best = {}
    for row, derived in rows:
        name = (row["pair_key"], row["device"])
        if name not in best or derived["seconds"] < best[name][1]["seconds"]:
            best[name] = (row, derived)
    return list(best.values())


def table(path):
    if path == "none":  # no result has been chosen
        return ""
    result = json.loads((ROOT / path).read_text())
    report = json.loads(subprocess.run([program(), "report", str(ROOT / path), "--format", "json"], check=True,
                                       capture_output=True, text=True).stdout)
    derived = {point["key"]: point for point in report["points"]}
    rows = [(row, derived[row["key"]]) for row in result["points"]
            # A step of `peak` does more work the more threads there are: its times say nothing side by side.
            if row["status"] == "ok" and row["workload"] != "peak" and derived[row["key"]]["seconds"] is not None]
    lines = ["| work | precision | device | one step | 95 % interval | achieved | of the measured roofline |",
             "|---|---|---|---|---|---|---|"]
    for row, point in fastest(rows):
        flops, moved = point["achieved_flop_per_s"], point["achieved_bytes_per_s"]
        memory_bound = moved is not None and (flops is None or (point["arithmetic_intensity"] or 0) < 1)
        achieved = rate(moved, "B/s") if memory_bound else rate(flops, "FLOP/s") if flops is not None else "–"
        low, high, fraction = point["seconds_low"], point["seconds_high"], point["roofline_fraction"]
        interval = f"{seconds(low)} to {seconds(high)}" if low is not None else "one process"
        threads = row.get("axis_threads")
        device = row["device"] + (f", {threads} thread{'s' if threads != 1 else ''}" if threads else "")
        share = f"{fraction:.0%}" if fraction is not None else "–"
        lines.append(f"| {work(row)} | {row['precision']} | {device} | {seconds(point['seconds'])} | {interval} | {achieved} | {share} |")
    names = ", ".join(sorted({device["name"] for device in result["environment"]["devices"]
                              if any(row["device"] == device["id"] for row, _ in rows)}))
    lines.append("")
    lines.append(f"From [`{path}`]({path}): {names}; {result['environment']['os']['name']}; "
                 f"{result['tool']['name']} {result['tool']['version']}, {result['run']['started_utc'][:10]}.")
    return "\n".join(lines) + "\n"


def filled(text):
    return BLOCK.sub(lambda match: match.group(1) + table(match.group(2)) + match.group(4), text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true")
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--use", metavar="FILE", help="path of a committed result, relative to the repository")
    parser.add_argument("--readme", type=pathlib.Path, default=ROOT / "README.md")
    arguments = parser.parse_args()
    before = arguments.readme.read_text()
    text = before
    if arguments.use:
        text = re.sub(r"<!-- table: \S+ -->", f"<!-- table: {arguments.use} -->", text, count=1)
    if not BLOCK.search(text):
        sys.exit(f"readme_table: {arguments.readme} has no table block")
    after = filled(text)
    if arguments.check:
        if after != before:
            sys.exit(f"readme_table: {arguments.readme} doesn't show what its result says; run scripts/dev readme-table")
        print("readme_table: ok")
    else:
        arguments.readme.write_text(after)


if __name__ == "__main__":
    main()
