"""Runs every check of this folder that needs no build tree, and each check's proof that it can fail."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main():
    failed = False
    for check in ("layers", "mirror", "words"):
        for arguments in ([], ["--self-test"]):
            failed |= subprocess.run([sys.executable, str(HERE / f"{check}.py"), *arguments]).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
