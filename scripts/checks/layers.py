"""Includes follow the arrow of src/README.md: core knows no vendor library, backends know core only, nobody includes
the program."""

import re
import sys

import common

NAME = "layers"

# folder of src/core -> what it may include of src/core beside itself: folders, or single headers where one is enough.
CORE = {
    "base": set(),
    "math": {"base"},
    "tensor": {"base", "math"},
    "device": {"base", "math", "tensor", "measure/clock.h"},
    "train": {"base", "math", "tensor", "device", "plan/point.h", "plan/axis.h"},
    "plan": {"base", "tensor", "device", "train", "result/status.h", "measure/buffers.h"},
    "result": {"base", "tensor", "device", "plan"},
    "measure": {"base", "math", "tensor", "device", "train", "plan", "result", "analysis/statistics.h", "analysis/ab.h"},
    "analysis": {"base", "tensor", "device", "plan", "result"},
    "report": {"base", "tensor", "plan", "result", "analysis"},
}

CUDA = re.compile(r"^(cuda|cublas|curand|cudnn|nvml|cub/|thrust/)")
TBB = re.compile(r"^(tbb/|oneapi/)")
BLAS = re.compile(r"^(cblas\.h|openblas|lapack)")
GTEST = re.compile(r"^(gtest|gmock)/")
CLI = re.compile(r"^CLI/")

# folder -> (first parts of quoted includes that it may use, angle includes that it must not use)
AREAS = [
    ("src/core", {"core"}, [CUDA, TBB, BLAS, GTEST, CLI]),
    ("src/cpu", {"core", "cpu"}, [CUDA, GTEST, CLI]),
    # cuda_emulation: stands in for nvcc where the same sources are compiled by a host compiler, in tests only.
    ("src/gpu", {"core", "gpu", "cuda_emulation"}, [TBB, BLAS, GTEST, CLI]),
    ("bench/micro", {"core", "cpu", "gpu", "micro", "workloads"}, [GTEST]),
    ("bench", {"core", "commands", "workloads"}, [CUDA, TBB, BLAS, GTEST]),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def core_problem(name, target):
    folder, wanted = name.parts[2], target.split("/")[1]
    if folder == wanted or wanted in CORE.get(folder, set()) or "/".join(target.split("/")[1:]) in CORE.get(folder, set()):
        return None
    return f"src/core/{folder} may not include src/core/{wanted}"


def problems(root):
    found = []
    for name in common.sources(root, "src", "bench"):
        area = next((each for each in AREAS if name.is_relative_to(each[0])), None)
        if area is None:
            found.append(f"{name}: lies in no known layer")
            continue
        if area[0] == "src/core" and name.parts[2] not in CORE:
            found.append(f"{name}: src/core/{name.parts[2]} has no place among the layers; add it to scripts/checks/layers.py")
            continue
        for number, line in enumerate((root / name).read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, target = match.groups()
            wrong = None
            if quote == '"':
                if target.split("/")[0] not in area[1]:
                    wrong = f"{area[0]} may not include \"{target}\""
                elif area[0] == "src/core":
                    wrong = core_problem(name, target)
            elif any(pattern.match(target) for pattern in area[2]):
                wrong = f"{area[0]} may not include <{target}>"
            if wrong:
                found.append(f"{name}:{number}: {wrong}")
    return found


def broken(root):
    common.write(root, {
        "src/core/base/a.h": '#include "core/tensor/t.h"\n#include <cuda_runtime.h>\n',
        "src/core/tensor/t.h": '#include "core/base/a.h"\n#include <vector>\n#include <tbb/tbb.h>\n',
        "src/core/device/d.h": '#include "core/measure/clock.h"\n#include "core/measure/runner.h"\n',
        "src/core/novel/n.h": "",
        "src/cpu/c.cpp": '#include "gpu/g.h"\n#include <cblas.h>\n',
        "src/gpu/g.cu": '#include "cpu/c.h"\n#include <cublas_v2.h>\n#include <tbb/parallel_for.h>\n',
        "bench/main.cpp": '#include "cpu/c.h"\n',
        "src/cpu/u.cpp": '#include "commands/commands.h"\n',
    })
    return ["src/core/base may not include src/core/tensor", "src/core may not include <cuda_runtime.h>",
            "src/core may not include <tbb/tbb.h>", "src/core/device may not include src/core/measure",
            "src/core/novel has no place", 'src/cpu may not include "gpu/g.h"', 'src/gpu may not include "cpu/c.h"',
            "src/gpu may not include <tbb/parallel_for.h>", 'bench may not include "cpu/c.h"',
            'src/cpu may not include "commands/commands.h"']


if __name__ == "__main__":
    sys.exit(common.main(sys.modules[__name__]))
