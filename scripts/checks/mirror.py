"""src/cpu and src/gpu mirror each other: the same files, the same ops in them, the same argument names in the same order."""

import re
import sys

import common

NAME = "mirror"

# Files that exist on one side only, each with why. Everything else needs a twin.
ONE_SIDED = {
    "src/cpu/isa": "nvcc compiles for several architectures by itself; on the CPU one is chosen at start",
    "src/cpu/kernels": "the table of one-thread loops per instruction set",
    "src/cpu/vector_kernels": "one-thread loops, compiled once per instruction set",
    "src/cpu/kernel_blocks": "what the one-thread loops of all instruction sets share",
    "src/cpu/sequence_kernels": "one-thread loops over rows, compiled once per instruction set",
    "src/cpu/gemm_kernels": "one-thread loops of the matrix product, compiled once per instruction set",
    "src/cpu/peak_kernels": "one-thread loops of fma_peak, compiled once per instruction set",
    "src/cpu/conv_kernels": "one-thread loops of convolution, compiled once per instruction set",
    "src/cpu/image_kernels": "one-thread loops of pooling and batch normalization, compiled once per instruction set",
    "src/cpu/conv_plan": "how a convolution is cut over blocks and threads",
    "src/cpu/conv_weights": "the part of conv_plan for the gradient of the filters",
    "src/cpu/gemm_plan": "how a product is cut over threads; cuBLASLt has heuristics of its own",
    "src/cpu/planted": "a slowdown for the acceptance of `dlbench ab`, in test builds only; one side is enough to prove a gate",
    "src/gpu/columns": "how the threads of a block share out columns; the CPU's loops over rows and columns are kernels of their files",
    "src/gpu/launch": "kernel launches have no counterpart: on the CPU a loop is called",
    "src/gpu/absence": "a CPU is always there; a GPU has five ways not to be",
    "src/gpu/nvml": "clocks and power of a GPU come from its management library; those of the CPU belong to the environment record",
    "src/gpu/check": "CUDA reports errors as status codes; the CPU's libraries don't",
}

# Members of the contract that speak about all ops: either side has them where it suits.
NOT_OPS = {"supports"}

CPU_SUFFIXES = {".cpp", ".h"}
GPU_SUFFIXES = {".cu", ".cuh", ".cpp", ".h"}


def stem(name):
    return name.name.split(".")[0]


def sides(root):
    cpu = [n for n in common.sources(root, "src/cpu") if n.suffix in CPU_SUFFIXES]
    gpu = [n for n in common.sources(root, "src/gpu") if n.suffix in GPU_SUFFIXES]
    return cpu, gpu


def parameters(text):
    """Names of the parameters of a declaration's argument list."""
    names = []
    for part in re.split(r",(?![^<(]*[>)])", text):
        words = re.findall(r"[A-Za-z_]\w*", part.split("=")[0])
        if words:
            names.append(words[-1] if len(words) > 1 else "(unnamed)")
    return names


def declared_ops(text):
    """Name -> parameter names of every function that overrides or is pure virtual."""
    text = re.sub(r"//[^\n]*", "", text)
    pattern = re.compile(r"([A-Za-z_]\w*)\s*\(([^()]*)\)\s*(?:const)?\s*(?:noexcept)?\s*(?:override|=\s*0)")
    return {match.group(1): parameters(match.group(2)) for match in pattern.finditer(text)}


def defined_in(root, names, class_name):
    """Op -> stem of the file in which class_name::op is defined."""
    found = {}
    for name in names:
        for match in re.finditer(rf"\b{class_name}::([a-z]\w*)\s*\(", (root / name).read_text()):
            found[match.group(1)] = stem(name)
    return found


def file_problems(root, cpu, gpu):
    found = []
    for side, mine, other, word in (("src/cpu", cpu, gpu, "gpu"), ("src/gpu", gpu, cpu, "cpu")):
        others = {stem(n) for n in other}
        for each in sorted({stem(n) for n in mine} - others):
            if f"{side}/{each}" not in ONE_SIDED:
                found.append(f"{side}/{each} has no twin in src/{word}; write one, or state why not in ONE_SIDED of scripts/checks/mirror.py")
        for each in sorted({stem(n) for n in mine} & others):
            heads = ["\n".join((root / n).read_text().splitlines()[:15]) for n in mine if stem(n) == each]
            if not any(f"src/{word}/" in head for head in heads):
                found.append(f"{side}/{each}: the first lines of none of its files name the twin in src/{word}/")
    present = {f"{'/'.join(n.parts[:2])}/{stem(n)}" for n in cpu + gpu}
    found += [f"ONE_SIDED names {entry}, which doesn't exist" for entry in sorted(set(ONE_SIDED) - present) if cpu and gpu]
    return found


def op_problems(root, cpu, gpu):
    contract = root / "src/core/device/ops.h"
    cpu_header, gpu_header = root / "src/cpu/ops.h", root / "src/gpu/ops.h"
    if not (contract.exists() and cpu_header.exists() and gpu_header.exists()):
        return ["src/core/device/ops.h, src/cpu/ops.h and src/gpu/ops.h must all exist"]
    found = []
    wanted = declared_ops(contract.read_text())
    for header in (cpu_header, gpu_header):
        for op, names in declared_ops(header.read_text()).items():
            if op in wanted and names != wanted[op]:
                found.append(f"{header.relative_to(root)}: {op}({', '.join(names)}) differs from "
                             f"the contract's {op}({', '.join(wanted[op])})")
    on_cpu, on_gpu = defined_in(root, cpu, "CpuOps"), defined_in(root, gpu, "GpuOps")
    for op in sorted((set(wanted) - NOT_OPS) & (set(on_cpu) | set(on_gpu))):
        if on_cpu.get(op) != on_gpu.get(op):
            found.append(f"{op} is defined in src/cpu/{on_cpu.get(op, '(nowhere)')} but in src/gpu/{on_gpu.get(op, '(nowhere)')}")
    return found


def problems(root):
    cpu, gpu = sides(root)
    return file_problems(root, cpu, gpu) + op_problems(root, cpu, gpu)


def broken(root):
    common.write(root, {
        "src/core/device/ops.h": "virtual void gemm(const S& spec, const void* a, void* c) = 0;\nvirtual void copy(const S& spec, void* y) = 0;\n",
        "src/cpu/ops.h": "// src/gpu/ops.h\nvoid gemm(const S& spec, const void* a, void* c) override;\nvoid copy(const S& spec, void* y) override;\n",
        "src/gpu/ops.h": "// src/cpu/ops.h\nvoid gemm(const S& spec, const void* c, void* a) override;\nvoid copy(const S& spec, void* y) override;\n",
        "src/cpu/gemm.cpp": "// src/gpu/gemm.cu\nvoid CpuOps::gemm(const S& spec, const void* a, void* c) {}\n",
        "src/gpu/gemm.cu": "// without its twin\nvoid GpuOps::gemm(const S& spec, const void* a, void* c) {}\n",
        "src/cpu/copy.cpp": "// src/gpu/copy.cu\nvoid CpuOps::copy(const S& spec, void* y) {}\n",
        "src/gpu/copy.cu": "// src/cpu/copy.cpp\n",
        "src/cpu/extra.cpp": "// alone\n",
    })
    common.write(root, {f"{entry}.h": "// alone, with a reason\n" for entry in ONE_SIDED})
    return ["src/cpu/extra has no twin", "src/gpu/gemm: the first lines", "src/gpu/ops.h: gemm(spec, c, a) differs",
            "copy is defined in src/cpu/copy but in src/gpu/(nowhere)"]


if __name__ == "__main__":
    sys.exit(common.main(sys.modules[__name__]))
