"""What the documents say of the program is true: tables come from committed results, named commands and files exist."""

import pathlib
import re
import subprocess
import sys
import tempfile

from cli import PROGRAM, SOURCE, CliTest, main

DOCUMENTS = sorted(path for path in SOURCE.rglob("*.md") if "build" not in path.parts)


class Documents(CliTest):
    def test_the_table_of_the_readme_comes_from_its_result(self):
        result = subprocess.run([sys.executable, SOURCE / "scripts/readme_table.py", "--check"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_a_table_that_says_something_else_is_noticed(self):
        text = (SOURCE / "README.md").read_text()
        with tempfile.NamedTemporaryFile("w", suffix=".md") as copy:
            copy.write(text.replace("<!-- end of table -->", "| 1 | 2 |\n<!-- end of table -->", 1))
            copy.flush()
            result = subprocess.run([sys.executable, SOURCE / "scripts/readme_table.py", "--check", "--readme", copy.name],
                                    capture_output=True, text=True)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("readme-table", result.stderr)

    def test_named_subcommands_exist(self):
        known = set(re.findall(r"^  (\w[\w-]*)", self.dlbench("--help")[0].split("Subcommands:\n")[1].split("\n\n")[0], re.M))
        known |= {"help-man", "help-completion", "worker", "info,"}
        for document in DOCUMENTS:
            for command in re.findall(r"(?:^|[`/ ])dlbench ([a-z][a-z-]+)", "\n".join(self.code_of(document.read_text()))):
                self.assertIn(command, known, f"{document.relative_to(SOURCE)} names `dlbench {command}`")

    def test_named_options_exist(self):
        for document in DOCUMENTS:
            for line in self.code_of(document.read_text()):
                match = re.search(r"(?:^|/)dlbench (run|check|report|validate|export|list|info)\b(.*)", line)
                if not match:
                    continue
                known = self.dlbench(match.group(1), "--help")[0]
                for option in re.findall(r"(--[a-z][a-z-]+)", match.group(2).split("#")[0]):
                    self.assertIn(option, known, f"{document.relative_to(SOURCE)}: {line}")

    @staticmethod
    def code_of(text):
        """Lines of code blocks and pieces of inline code."""
        blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
        rest = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.M | re.S)
        return [line for block in blocks for line in block.splitlines()] + re.findall(r"`([^`\n]+)`", rest)

    def test_named_files_exist(self):
        """Inline code that looks like a path of this repository."""
        for document in DOCUMENTS:
            text = document.read_text()
            for name in re.findall(r"`((?:src|bench|scripts|tests|configs|results|cmake)/[\w./-]+)`", text):
                if (document.parent / name).exists() or name.startswith("results/quick"):
                    continue
                # A program goes by the name of its source.
                self.assertTrue((SOURCE / name).exists() or list(SOURCE.glob(name + ".*")),
                                f"{document.relative_to(SOURCE)} names {name}")


if __name__ == "__main__":
    main()
