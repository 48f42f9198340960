"""How the program is tested from outside: runs it in an empty folder, looks at exit code, standard output and standard
error apart, and compares output with golden files in which {{...}} stands for a regular expression."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["DLBENCH"]
SOURCE = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"


def golden_pattern(text):
    """Literal text, with {{regex}} inside."""
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return "".join(part if index % 2 else re.escape(part) for index, part in enumerate(parts))


class CliTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="dlbench-cli-")
        self.folder = pathlib.Path(self._folder.name)
        self.addCleanup(self._folder.cleanup)

    def environment(self, **changes):
        environment = {key: value for key, value in os.environ.items()
                       if key not in ("NO_COLOR", "COLUMNS", "DLBENCH_PLUGIN_DIR")}
        environment.update({"TERM": "xterm", "LC_ALL": "C.UTF-8"})
        environment.update(changes)
        return {key: value for key, value in environment.items() if value is not None}

    def dlbench(self, *arguments, code=0, stdin=None, env=None, timeout=120, **options):
        """Runs dlbench in the test's folder; fails unless it ends with `code`. Returns (stdout, stderr)."""
        result = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, input=stdin, timeout=timeout, text=True,
                                stdout=options.pop("stdout", subprocess.PIPE), stderr=options.pop("stderr", subprocess.PIPE),
                                env=env or self.environment(), **options)
        self.assertEqual(result.returncode, code, f"dlbench {' '.join(map(str, arguments))}\n{result.stdout}\n{result.stderr}")
        return result.stdout, result.stderr

    def fails(self, *arguments, code, says, **options):
        """One sentence on standard error, nothing on standard output."""
        out, err = self.dlbench(*arguments, code=code, **options)
        self.assertRegex(err, says)
        lines = [line for line in err.splitlines() if line.startswith("dlbench: ")]
        self.assertEqual(len(lines), 1, f"one sentence expected:\n{err}")
        if out is not None:
            self.assertEqual(out, "")
        return err

    def write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def read_json(self, name):
        def refuse(word):
            raise AssertionError(f"{name} holds {word}, which isn't JSON")
        return json.loads((self.folder / name).read_text(), parse_constant=refuse)

    def assert_golden(self, name, text):
        wanted = (GOLDEN / name).read_text().splitlines()
        got = text.splitlines()
        for number, (pattern, line) in enumerate(zip(wanted, got), 1):
            if not re.fullmatch(golden_pattern(pattern), line):
                self.fail(f"golden/{name}:{number}\n  wanted {pattern}\n  got    {line}\n\nwhole output:\n{text}")
        self.assertEqual(len(got), len(wanted), f"golden/{name} has another number of lines; whole output:\n{text}")


def main():
    unittest.main(verbosity=2)
