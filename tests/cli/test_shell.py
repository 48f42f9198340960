"""The shell of the program: help, usage errors, exit codes, streams, completion, man page."""

import os
import re
import signal
import subprocess

from cli import PROGRAM, CliTest, main


def commands_of(help_text):
    section = help_text.split("Subcommands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  (\w[\w-]*)", section, re.M)


def options_of(help_text):
    return re.findall(r"^  (?:-\w,)?(--[\w-]+)", help_text, re.M)


class Help(CliTest):
    def test_help_names_every_command_and_exit_code(self):
        out, err = self.dlbench("--help")
        self.assertEqual(err, "")
        self.assertLessEqual({"info", "list"}, set(commands_of(out)))
        for code in ("0", "1", "2", "3", "4", "5", "6", "130"):
            self.assertRegex(out, rf"\n +{code}  \w")

    def test_each_command_has_one_sentence_and_an_example(self):
        out, _ = self.dlbench("--help")
        for command in commands_of(out):
            with self.subTest(command):
                text, err = self.dlbench(command, "--help")
                self.assertEqual(err, "")
                self.assertIn(f"Example: dlbench {command}", text)

    def test_version(self):
        out, _ = self.dlbench("--version")
        self.assertRegex(out, r"^dlbench \d+\.\d+\.\d+\n$")


class Usage(CliTest):
    def test_no_command(self):
        self.fails(code=2, says=r"a subcommand is needed: info, .*`dlbench --help`")

    def test_unknown_command(self):
        self.fails("inof", code=2, says=r"there is no subcommand 'inof'; did you mean 'info'\?")

    def test_unknown_option(self):
        self.fails("list", "--jsno", code=2, says=r"`dlbench list` has no option '--jsno'; did you mean '--json'\?")

    def test_unknown_option_without_a_near_one(self):
        self.fails("info", "--zzzzzzzzzz", code=2, says=r"`dlbench info` has no option '--zzzzzzzzzz'; `dlbench info --help`")

    def test_extra_argument(self):
        self.fails("info", "now", code=2, says=r"`dlbench info` takes no further argument, but got 'now'")

    def test_value_out_of_a_closed_set(self):
        self.fails("list", "animals", code=2, says=r"animals not in \{workloads,configs,precisions,devices\}.*`dlbench list --help`")

    def test_an_empty_value_is_no_value(self):
        for arguments in (["run", "--batch", ""], ["run", "-o", ""], ["check", "--point", ""], ["report", "x.json", "-o", ""]):
            self.fails(*arguments, code=2, says=r"the value is empty")

    def test_numbers_that_mean_nothing(self):
        for arguments in (["--threads", "0"], ["--processes", "0"], ["--time-budget", "nan"], ["--time-budget", "-1"],
                          ["--time-budget", "inf"], ["--seed", "-1"]):
            self.fails("run", *arguments, code=2, says=rf"{arguments[0]} {arguments[1]}: must be a")

    def test_options_that_exclude_each_other(self):
        self.fails("list", "--names", "--json", code=2, says=r"--json excludes --names")


class Streams(CliTest):
    def test_a_full_disk_behind_stdout_is_noticed(self):
        with open("/dev/full", "w") as full:
            self.fails("list", code=5, stdout=full, says=r"standard output lost results: No space left on device")

    def test_a_closed_pipe_is_noticed(self):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as pipe:
            self.fails("list", code=5, stdout=pipe, says=r"standard output lost results: Broken pipe")

    def test_a_closed_stdout_is_noticed(self):
        result = subprocess.run(["bash", "-c", '"$0" list >&-', PROGRAM], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(result.returncode, 5)
        self.assertRegex(result.stderr, "^dlbench: standard output lost results: Bad file descriptor\n$")

    def test_no_colour_in_files(self):
        for command in (["list"], ["info"]):
            out, _ = self.dlbench(*command)
            self.assertNotIn("\x1b", out)

    def test_sigpipe_does_not_kill(self):
        self.assertNotEqual(signal.SIGPIPE, 0)
        result = subprocess.run(["bash", "-o", "pipefail", "-c", '"$0" list | true', PROGRAM], capture_output=True, text=True)
        self.assertIn(result.returncode, (0, 5))  # 0 where `true` read late


class ManPage(CliTest):
    def test_names_every_command_and_option(self):
        page = self.dlbench("help-man")[0].replace("\\-", "-")
        top = self.dlbench("--help")[0]
        for option in options_of(top):
            self.assertIn(option, page)
        for command in commands_of(top):
            self.assertIn(f".SS dlbench {command}\n", page)
            section = page.split(f".SS dlbench {command}\n")[1].split(".S")[0]
            for option in options_of(self.dlbench(command, "--help")[0]):
                self.assertIn(option, section, f"{option} of {command}")

    def test_groff_reads_it_without_a_warning(self):
        page = self.dlbench("help-man")[0]
        result = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8"], input=page, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


class Completion(CliTest):
    def complete(self, line):
        """What bash would offer at the end of `line`."""
        words = line.split(" ")
        script = ('eval "$("$0" help-completion)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_WORDS[0]=$0; _dlbench; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        result = subprocess.run(["bash", "-c", script, PROGRAM, *words], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return set(result.stdout.split())

    def test_commands(self):
        self.assertEqual(self.complete("dlbench inf"), {"info"})
        self.assertLessEqual(set(commands_of(self.dlbench("--help")[0])), self.complete("dlbench "))

    def test_options_of_every_command(self):
        for command in commands_of(self.dlbench("--help")[0]):
            wanted = set(options_of(self.dlbench(command, "--help")[0]))
            self.assertLessEqual(wanted, self.complete(f"dlbench {command} -"), command)

    def test_closed_sets(self):
        self.assertEqual(self.complete("dlbench list pre"), {"precisions"})

    def test_files(self):
        self.write("some.json", "{}")
        self.assertIn("some.json", self.complete("dlbench info som"))


if __name__ == "__main__":
    main()
