"""The installed tree is used by another project; the package runs from any folder with nothing of this system but glibc
and libstdc++. Called by ctest: test_package.py consumer|relocatable BUILD_DIR SOURCE_DIR CMAKE."""

import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

SYSTEM = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so.*|linux-vdso.*)$")


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} gave {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result.stdout


def test_consumer(build, source, cmake, folder):
    prefix = folder / "prefix"
    run(cmake, "--install", build, "--prefix", prefix)
    for expected in ("bin/dlbench", "share/man/man1/dlbench.1", "share/bash-completion/completions/dlbench",
                     "share/dlbench/configs/quick.json", "share/dlbench/schema/result.schema.json"):
        assert (prefix / expected).is_file(), f"{expected} isn't installed"
    names = run(prefix / "bin/dlbench", "list", "configs", "--names", cwd="/").split()
    assert "quick" in names, names
    run(cmake, "-S", source / "tests/package/consumer", "-B", folder / "consumer", f"-DCMAKE_PREFIX_PATH={prefix}")
    run(cmake, "--build", folder / "consumer")
    assert run(folder / "consumer/consumer") == "bf16 stores 2 bytes, median 2.0\n"


def shared_objects(prefix):
    return [path for path in prefix.rglob("*") if path.is_file() and not path.is_symlink()
            and path.open("rb").read(4) == b"\x7fELF"]


def check_libraries(prefix):
    """Every library that the running program has loaded, backends and OpenBLAS included, lies inside the package or
    belongs to glibc or libstdc++; no path of the machine that built it is left in any file."""
    trace = subprocess.run([prefix / "bin/dlbench", "info"], env={"LD_DEBUG": "files"}, capture_output=True, text=True).stderr
    loaded = set(re.findall(r"calling init: (\S.*)", trace))
    for path in loaded:
        assert path.startswith(str(prefix)) or SYSTEM.match(pathlib.PurePath(path).name), f"{path} isn't in the package"
    for name in ("libdlbench_core", "libdlbench_backend_cpu", "libopenblas", "libtbb", "libgfortran", "libquadmath", "libfmt"):
        assert any(name in path for path in loaded), f"{name} isn't loaded: {sorted(loaded)}"
    for path in shared_objects(prefix):
        for line in run("readelf", "-d", path).splitlines():
            if "RPATH" in line or "RUNPATH" in line:
                paths = line.split("[")[1].rstrip("]").split(":")
                assert all(each.startswith("$ORIGIN") for each in paths), f"{path.name} has the fixed path {paths}"


def test_relocatable(build, source, cmake, folder):
    cpack = pathlib.Path(cmake).with_name("cpack")
    run(cpack, "-G", "TGZ", "-B", folder / "out", cwd=build)
    [archive] = (folder / "out").glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "first")
    [prefix] = (folder / "first").iterdir()
    # A path with a space, in another folder than where it was unpacked first.
    moved = folder / "moved to"
    for place in (prefix, moved):
        if place == moved:
            prefix.rename(moved)
        text = run("env", "-i", place / "bin/dlbench", "info", cwd="/")
        assert re.search(r"^  cpu +usable, " + re.escape(str(place)), text, re.M), text
        assert "quick" in run("env", "-i", place / "bin/dlbench", "list", "configs", "--names", cwd="/").split()
        check_libraries(place)


def main():
    which, build, source, cmake = sys.argv[1], *map(pathlib.Path, sys.argv[2:4]), sys.argv[4]
    with tempfile.TemporaryDirectory(prefix="dlbench-package-") as folder:
        globals()[f"test_{which}"](build, source, cmake, pathlib.Path(folder).resolve())
    print(f"{which}: ok")


if __name__ == "__main__":
    main()
