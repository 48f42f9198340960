"""Dumps one step of each point on a device and holds it against PyTorch; fails when one of them disagrees."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "verify_pytorch.py"


def dump(key, directory):
    subprocess.run([os.environ["DLBENCH"], "check", "--point", key, "--dump", directory], check=True,
                   stdout=subprocess.DEVNULL)


def verify(directory, *options):
    return subprocess.run([sys.executable, SCRIPT, directory, *options], capture_output=True, text=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", required=True)
    parser.add_argument("points", nargs="+")
    arguments = parser.parse_args()
    failed = 0
    for point in arguments.points:
        with tempfile.TemporaryDirectory(prefix="dlbench-pytorch-") as folder:
            dump(f"{point}/device={arguments.device}", folder)
            result = verify(folder)
            print(result.stdout + result.stderr, flush=True)
            failed += result.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
