"""Nothing is left to do, switched off, or tied to one machine: words that announce it are refused in every tracked file."""

import re
import sys

import common

NAME = "words"

# Written in pieces, so that this file doesn't refuse itself.
REFUSED = [
    (re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b"), "work left to do"),
    (re.compile(r"not (yet )?imple" r"mented|NotImple" r"mented|\bst" r"ubs?\b(?!/)", re.IGNORECASE), "something that isn't there"),
    (re.compile(r"\bDIS" r"ABLED_|GTEST_S" r"KIP\(|@unittest\.s" r"kip|pytest\.mark\.s" r"kip"), "a test that is switched off"),
    (re.compile(r"(?<![\w./])/(home|work|farm|Users)/"), "a path of one machine"),
    (re.compile(r"-ffast" r"-math|-Ofa" r"st\b"), "arithmetic that isn't IEEE"),
]
BINARY = {".png", ".gz", ".npy", ".ico"}
EXEMPT = {"CHANGELOG.md"}


def problems(root):
    found = []
    for name in common.tracked_files(root):
        if name.suffix in BINARY or str(name) in EXEMPT:
            continue
        try:
            text = (root / name).read_text()
        except UnicodeDecodeError:
            found.append(f"{name}: isn't UTF-8 text")
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for pattern, meaning in REFUSED:
                match = pattern.search(line)
                if match:
                    found.append(f"{name}:{number}: '{match.group(0)}' means {meaning}")
    return found


def broken(root):
    common.write(root, {
        "src/a.cpp": "// TO" "DO: later\nthrow Not" "Implemented();\nint good = 1;\n",
        "tests/b.cpp": "TEST(A, DIS" "ABLED_B) {}\n",
        "README.md": "see /ho" "me/me/dlbench\n",
        "CMakeLists.txt": "add_compile_options(-ffast" "-math)\n",
    })
    return ["src/a.cpp:1", "src/a.cpp:2", "tests/b.cpp:1", "README.md:1", "CMakeLists.txt:1"]


if __name__ == "__main__":
    sys.exit(common.main(sys.modules[__name__]))
