#!/usr/bin/env python3
"""Recomputes one training step that `dlbench check --point KEY --dump DIR` wrote, with PyTorch, and compares.

A tensor passes when its error against PyTorch's fp64 (L2 norm, relative) is below max(1e-4, 4 x the error that PyTorch's
own fp32 has against it): no fixed bound would do, because networks amplify rounding. What an update changed is compared
as the step, new - old. A dump in fp64 must agree to 1e-10. 16-bit dumps are held against PyTorch's own bf16, on the
parameters rounded as the step used them (fp16: an eighth of that, its unit roundoff being an eighth), and their update
against PyTorch's from the dumped gradients: the first step of AdamW is nearly the gradient's sign, which any rounding
may turn.

Exit code: 0 everything agrees, 1 something doesn't, 2 the dump or PyTorch can't be used.
Needs PyTorch and NumPy: on Debian `apt install python3-torch`."""

import argparse
import json
import math
import pathlib
import sys

ROLES = ("input", "parameter", "buffer", "output", "gradient", "updated", "updated_buffer")


def refuse(sentence):
    print(f"verify_pytorch.py: {sentence}", file=sys.stderr)
    sys.exit(2)


try:
    import numpy
    import torch

    import pytorch_models
except ImportError as error:
    refuse(f"{error}; PyTorch and NumPy are needed (Debian: apt install python3-torch)")


class Dump:
    def __init__(self, directory):
        path = directory / "manifest.json"
        try:
            manifest = json.loads(path.read_text())
        except OSError as error:
            refuse(f"{path}: {error.strerror}; write it with: dlbench check --point KEY --dump {directory}")
        except ValueError as error:
            refuse(f"{path}: is no JSON: {error}")
        try:
            self.key, self.workload, self.axes = manifest["key"], manifest["workload"], manifest["axes"]
            self.hyperparameters, self.loss = manifest["hyperparameters"], manifest["loss"]
            self.tensors = {role: {} for role in ROLES}
            for entry in manifest["tensors"]:
                array = numpy.load(directory / entry["file"])
                if list(array.shape) != entry["shape"]:
                    refuse(f"{entry['file']}: has shape {list(array.shape)}, the manifest says {entry['shape']}")
                self.tensors[entry["role"]][entry["name"]] = torch.from_numpy(array)
        except (KeyError, OSError, ValueError) as error:
            refuse(f"{path}: {type(error).__name__}: {error}")
        self.precision = self.axes["precision"]


def step(dump, dtype):
    """One step in `dtype`, the update in at least fp32. Returns what is compared, by (what, name), as fp64."""
    stored = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(dump.precision)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    master = {name: w.to(wide).clone().requires_grad_() for name, w in dump.tensors["parameter"].items()}
    used = {}
    for name, w in master.items():
        rounded = w.detach().to(torch.float32).to(stored) if stored else w.detach()
        used[name] = rounded.to(dtype).requires_grad_()
    buffers = {name: b.to(wide).clone() for name, b in dump.tensors["buffer"].items()}
    inputs = {name: x.long() if x.dtype == torch.int32 else x.to(dtype) for name, x in dump.tensors["input"].items()}
    logits = pytorch_models.logits_of(dump.workload, used, buffers, inputs, dump.axes)
    loss = pytorch_models.loss_of(logits if dtype == torch.float64 else logits.float(), inputs)
    loss.backward()
    result = {("loss", ""): loss.detach().reshape(1).double(), ("output", "logits"): logits.detach().double()}
    for name, w in used.items():
        result["gradient", name] = w.grad.double()
        master[name].grad = w.grad.to(wide)
        if stored:
            master[name].grad = dump.tensors["gradient"][name].to(wide)
    old = {name: w.detach().clone() for name, w in master.items()}
    pytorch_models.optimizer_of(list(master.values()), dump.hyperparameters).step()
    for name, w in master.items():
        result["step", name] = w.detach().double() - old[name].double()
    for name, b in buffers.items():
        result["running step", name] = b.double() - dump.tensors["buffer"][name].double()
    return result


def dumped(dump):
    t = dump.tensors
    result = {("loss", ""): torch.tensor([math.nan if dump.loss is None else dump.loss], dtype=torch.float64)}
    for name, x in t["output"].items():
        result["output", name] = x.double()
    for name, x in t["gradient"].items():
        result["gradient", name] = x.double()
    for name, x in t["updated"].items():
        result["step", name] = x.double() - t["parameter"][name].double()
    for name, x in t["updated_buffer"].items():
        result["running step", name] = x.double() - t["buffer"][name].double()
    return result


def error_of(got, exact):
    """Relative, in the L2 norm; NaN counts as infinitely wrong."""
    if got.shape != exact.shape:
        return math.inf
    difference, size = (got - exact).norm().item(), exact.norm().item()
    if math.isnan(difference):
        return math.inf
    return 0.0 if difference == 0 else difference / size if size > 0 else math.inf


def bounds(dump):
    """(type of PyTorch's own run, least bound, factor on its error)"""
    if dump.precision == "fp64":
        return None, 1e-10, 0
    if dump.precision == "bf16":
        return torch.bfloat16, 1e-2, 4
    if dump.precision == "fp16":
        return torch.bfloat16, 1e-2 / 8, 4 / 8
    if dump.precision == "tf32":  # 2^-11 rounds the factors of products as fp16 does
        return torch.bfloat16, 1e-2 / 8, 4 / 8
    return torch.float32, 1e-4, 4


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog="\n\n".join(__doc__.split("\n\n")[1:]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path, help="what dlbench check --dump wrote")
    parser.add_argument("--all", action="store_true", help="list every tensor, not only the wrong and the worst")
    arguments = parser.parse_args()
    dump = Dump(arguments.directory)
    try:
        exact = step(dump, torch.float64)
        own_type, least, factor = bounds(dump)
        own = step(dump, own_type) if own_type else exact
    except (KeyError, ValueError) as error:
        refuse(f"{arguments.directory}: the dump isn't a step of {dump.workload}: {type(error).__name__}: {error}")
    got = dumped(dump)
    missing = sorted(set(exact) ^ set(got))
    rows = []
    for what in exact:
        if what in got:
            theirs = error_of(own[what], exact[what])
            update_alone = what[0] == "step" and dump.precision in ("bf16", "fp16")  # in fp32, from given gradients
            allowed = max(1e-4, 4 * theirs) if update_alone else max(least, factor * theirs)
            rows.append((what, error_of(got[what], exact[what]), theirs, allowed))
    wrong = [row for row in rows if not row[1] < row[3]]
    worst = max(rows, key=lambda row: row[1] / row[3])
    shown = rows if arguments.all else wrong or [worst]
    print(f"{dump.key}: {len(rows)} tensors against PyTorch {torch.__version__}")
    print(f"{'tensor':<50} {'error':>9} {'PyTorch':>9} {'allowed':>9}")
    for (kind, name), error, theirs, allowed in shown:
        verdict = "" if error < allowed else "  WRONG"
        print(f"{kind + ' ' + name:<50} {error:>9.2e} {theirs:>9.2e} {allowed:>9.2e}{verdict}")
    for kind, name in missing:
        print(f"{kind} {name}: is only on one side")
    if wrong or missing:
        print(f"{len(wrong) + len(missing)} of {len(rows) + len(missing)} are wrong")
        return 1
    print("all agree; the worst is shown" if not arguments.all else "all agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
