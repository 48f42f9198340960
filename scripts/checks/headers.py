"""Every header compiles alone, twice in a row: it includes what it uses, and it is guarded."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

import common

NAME = "headers"
FOLDERS = ("src/core", "src/cpu", "src/gpu", "bench", "tests")


def include_flags(root):
    """Include folders and definitions that targets of this project use, without a build tree."""
    flags = [f"-I{root / folder}" for folder in ("src", "bench", "tests")]
    for folder in os.environ.get("DLBENCH_CHECK_INCLUDES", "").split(":"):
        if folder:
            flags += ["-isystem", folder]
    return flags


def compile_alone(root, name):
    text = f'#include "{root / name}"\n#include "{root / name}"\n'
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
        source.write(text)
        source.flush()
        command = [os.environ.get("CXX") or "c++", "-std=c++20", "-fsyntax-only", *include_flags(root), source.name]
        result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode == 0:
        return None
    errors = [line for line in result.stderr.splitlines() if "error" in line]
    return f"{name}: doesn't compile alone: {errors[0] if errors else result.stderr[:200]}"


def problems(root):
    cuda = any((pathlib.Path(folder) / "cuda_runtime.h").exists()
               for folder in os.environ.get("DLBENCH_CHECK_INCLUDES", "").split(":") if folder)
    names = [n for n in common.sources(root, *FOLDERS) if n.suffix == ".h" and "package" not in n.parts]
    # Headers that name CUDA types need the toolkit's headers, which a host compiler reads as well.
    if not cuda:
        names = [n for n in names if not n.is_relative_to("src/gpu") and "cuda" not in str(n) and not n.is_relative_to("tests/gpu")]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return [problem for problem in pool.map(lambda n: compile_alone(root, n), names) if problem]


def broken(root):
    common.write(root, {
        "src/core/good.h": "#pragma once\n#include <string>\nstruct Good { std::string s; };\n",
        "src/core/needs.h": "#pragma once\nstruct Needs { std::string s; };\n",
        "src/core/unguarded.h": "struct Unguarded {};\n",
    })
    return ["src/core/needs.h", "src/core/unguarded.h"]


if __name__ == "__main__":
    sys.exit(common.main(sys.modules[__name__]))
