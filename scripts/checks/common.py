"""What the checks share: a check is a module with NAME, problems(root) -> [sentence], and broken(root), which writes a
small tree in which the check must complain. `python3 scripts/checks/<name>.py [ROOT]` runs it, `--self-test` proves that
it can fail."""

import argparse
import pathlib
import subprocess
import sys
import tempfile

SOURCE_SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".def"}


def tracked_files(root):
    """Files of the project, relative to root: what git would carry, or everything where root isn't a repository."""
    try:
        out = subprocess.run(["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"],
                             check=True, capture_output=True, text=True).stdout
        names = [pathlib.Path(line) for line in out.splitlines()]
    except (subprocess.CalledProcessError, FileNotFoundError):
        names = [path.relative_to(root) for path in root.rglob("*")]
        names = [name for name in names if name.parts[0] not in (".git", "build")]
    return sorted(name for name in names if (root / name).is_file())


def sources(root, *folders):
    return [name for name in tracked_files(root)
            if name.suffix in SOURCE_SUFFIXES and any(name.is_relative_to(folder) for folder in folders)]


def self_test(check):
    """The broken tree must give at least as many problems as it promises, and the tree without them none."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        expected = check.broken(root)
        found = check.problems(root)
        missing = [part for part in expected if not any(part in problem for problem in found)]
        for part in missing:
            print(f"{check.NAME}: self-test: expected a problem that mentions {part!r}, got {found}", file=sys.stderr)
        if not missing and len(found) != len(expected):
            print(f"{check.NAME}: self-test: {len(found)} problems instead of {len(expected)}: {found}", file=sys.stderr)
            return 1
        return 1 if missing else 0


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main(check):
    parser = argparse.ArgumentParser(description=check.__doc__)
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true", help="prove that the check can fail")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test(check)
    found = check.problems(arguments.root)
    for problem in found:
        print(f"{check.NAME}: {problem}", file=sys.stderr)
    if not found:
        print(f"{check.NAME}: ok")
    return 1 if found else 0
