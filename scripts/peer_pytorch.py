#!/usr/bin/env python3
"""Times in PyTorch the training steps that a dlbench result holds, and writes a result that `dlbench report` can show
beside it: `dlbench run train -o ours.json; scripts/peer_pytorch.py ours.json -o torch.json; dlbench report ours.json
torch.json`. Its rows have the same axes and one more, library=pytorch (library=pytorch_compiled with torch.compile, where
this PyTorch has it and --compiled is given).

The same model, batch, precision and threads; inputs of the same shapes and distribution; forward, loss, backward and
optimizer step. bf16 and fp16 are autocast over fp32 parameters (fp16 with a gradient scaler), as people use them. On
images the faster of the two memory layouts counts.

Debian's PyTorch is slow as installed: its BLAS with POSIX threads fights with OpenMP, and glibc returns memory after every
op. So that the peer is a fair one, the workers run with the OpenMP variant of OpenBLAS where it is installed
(libopenblas0-openmp), with huge pages and without returning memory, and flush denormals; --as-installed leaves all that
out. Timings have no placement probes: on a virtual machine that moves its cores, run this right after dlbench and repeat.

Exit code: 0 measured, 2 the input, PyTorch or the output can't be used, 5 some points failed."""

import argparse
import datetime
import glob
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

WORKLOADS = ("mlp", "cnn", "resnet", "gpt2")
WARMUP_SECONDS, MIN_TIMING_SECONDS = 0.3, 0.01
MLP = {"tiny": (784, 128, 10), "base": (784, 1024, 1024, 10), "wide": (784, 4096, 4096, 4096, 4096, 10)}
GPT2 = {"nano": (4, 4, 128, 8192), "mini": (6, 6, 384, 8192), "small": (12, 12, 768, 50257)}
POSITIONS = 1024
SGD = {"optimizer": "sgd", "lr": 0.01, "momentum": 0.9, "weight_decay": 0.0}
ADAMW = {"optimizer": "adamw", "lr": 3e-4, "beta1": 0.9, "beta2": 0.999, "eps": 1e-5, "weight_decay": 0.01}


def refuse(sentence):
    print(f"peer_pytorch.py: {sentence}", file=sys.stderr)
    sys.exit(2)


# The worker: a fresh process that times every point of one thread count -------------------------------------------------


def parameters_of(workload, axes, randn):
    """Shapes and names as dlbench has them; values of the same scale."""
    p = {}
    if workload == "mlp":
        widths = MLP[axes["preset"]]
        for i, (n_in, n_out) in enumerate(zip(widths, widths[1:])):
            p[f"{2 * i}.weight"], p[f"{2 * i}.bias"] = randn(n_out, n_in) / n_in ** 0.5, 0 * randn(n_out)
    elif workload == "cnn":
        for name, shape in (("0", (32, 3, 3, 3)), ("3", (64, 32, 3, 3)), ("7", (128, 4096)), ("9", (10, 128))):
            fan = shape[1] * (9 if len(shape) == 4 else 1)
            p[f"{name}.weight"], p[f"{name}.bias"] = randn(*shape) * (2 / fan) ** 0.5, 0 * randn(shape[0])
    elif workload == "gpt2":
        layers, _, d, vocabulary = GPT2[axes["preset"]]
        p["wte.weight"], p["wpe.weight"] = 0.02 * randn(vocabulary, d), 0.01 * randn(POSITIONS, d)
        norms = [f"h.{i}.ln_{j}" for i in range(layers) for j in (1, 2)] + ["ln_f"]
        for name in norms:
            p[f"{name}.weight"], p[f"{name}.bias"] = 0 * randn(d) + 1, 0 * randn(d)
        for i in range(layers):
            for part, n_in, n_out in (("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d), ("mlp.c_fc", d, 4 * d),
                                      ("mlp.c_proj", 4 * d, d)):
                p[f"h.{i}.{part}.weight"], p[f"h.{i}.{part}.bias"] = 0.02 * randn(n_in, n_out), 0 * randn(n_out)
    else:
        resnet_parameters(p, axes, randn)
    return p


def resnet_parameters(p, axes, randn):
    bottleneck = axes["preset"] == "resnet50"
    large = axes["image"] == "224"

    def conv(name, k, c, size):
        p[f"{name}.weight"] = randn(k, c, size, size) * (2 / (k * size * size)) ** 0.5

    def norm(name, c):
        p[f"{name}.weight"], p[f"{name}.bias"] = 0 * randn(c) + 1, 0 * randn(c)

    conv("conv1", 64, 3, 7 if large else 3)
    norm("bn1", 64)
    c = 64
    for stage, blocks in enumerate((3, 4, 6, 3) if bottleneck else (2, 2, 2, 2), 1):
        width = 64 << (stage - 1)
        out = 4 * width if bottleneck else width
        for i in range(blocks):
            name = f"layer{stage}.{i}"
            sizes = ((width, c, 1), (width, width, 3), (out, width, 1)) if bottleneck else ((width, c, 3), (out, width, 3))
            for j, (k, channels, size) in enumerate(sizes, 1):
                conv(f"{name}.conv{j}", k, channels, size)
                norm(f"{name}.bn{j}", k)
            if i == 0 and (stage > 1 or c != out):
                conv(f"{name}.downsample.0", out, c, 1)
                norm(f"{name}.downsample.1", out)
            c = out
    classes = 1000 if large else 10
    p["fc.weight"], p["fc.bias"] = randn(classes, c) / c ** 0.5, 0 * randn(classes)


def make_step(torch, models, workload, axes, device, layout, compiled):
    generator = torch.Generator().manual_seed(1)

    def randn(*shape):
        return torch.randn(*shape, generator=generator)

    batch, precision = axes["batch"], axes["precision"]
    dtype = torch.float64 if precision == "fp64" else torch.float32
    p, buffers = parameters_of(workload, axes, randn), {}
    for name, w in p.items():
        w = w.to(device, dtype)
        p[name] = (w.contiguous(memory_format=layout) if w.dim() == 4 else w).requires_grad_()
    if workload == "resnet":
        for name, w in p.items():
            if re.search(r"(bn\d|downsample\.1)\.weight$", name):
                buffers[name[:-6] + "running_mean"] = torch.zeros_like(w, requires_grad=False)
                buffers[name[:-6] + "running_var"] = torch.ones_like(w, requires_grad=False)
    if workload == "gpt2":
        vocabulary = GPT2[axes["preset"]][3]
        shape = (batch, axes["seq"])
        inputs = {"tokens": torch.randint(vocabulary, shape, generator=generator),
                  "targets": torch.randint(vocabulary, shape, generator=generator)}
    else:
        size = int(axes.get("image", 32))
        classes = 1000 if workload == "resnet" and size == 224 else 10
        x = randn(batch, 784) if workload == "mlp" else randn(batch, 3, size, size).contiguous(memory_format=layout)
        inputs = {"x": x.to(dtype), "y": torch.randint(classes, (batch,), generator=generator)}
    streamed = axes.get("data", "resident") != "resident"
    if streamed and axes["data"] == "streamed":
        inputs = {name: x.pin_memory() for name, x in inputs.items()}
    resident = {name: x.to(device) for name, x in inputs.items()}
    hyper = dict(ADAMW if workload == "gpt2" else SGD, **({"weight_decay": 1e-4} if workload == "resnet" else {}))
    more = {"fused": True} if device.type == "cuda" and torch.__version__ >= "2" else {"foreach": True}
    optimizer = models.optimizer_of(list(p.values()), hyper, **more)
    cast = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    scaler = torch.cuda.amp.GradScaler(enabled=precision == "fp16")
    facts = {"heads": GPT2[axes["preset"]][1]} if workload == "gpt2" else {}

    def loss_of(data):
        with torch.autocast(device.type, cast or torch.bfloat16, enabled=cast is not None):
            logits = models.logits_of(workload, p, buffers, data, facts)
        return models.loss_of(logits.float() if cast else logits, data)

    forward = torch.compile(loss_of) if compiled else loss_of

    def step():
        data = {name: x.to(device, non_blocking=True) for name, x in inputs.items()} if streamed else resident
        optimizer.zero_grad(set_to_none=True)
        loss = forward(data)
        if precision == "fp16":
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
        return loss

    return step


def timings_of(torch, step, device, budget):
    """(seconds per step of each timing, steps per timing, warm-up steps, warm-up seconds)"""

    def timed(steps):
        start = time.perf_counter()
        for _ in range(steps):
            loss = step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        if not torch.isfinite(loss):
            raise ArithmeticError("the loss is no longer finite")
        return seconds

    start, done, steps = time.perf_counter(), 0, 1
    fastest = float("inf")
    while time.perf_counter() - start < WARMUP_SECONDS or done < 3:
        seconds = timed(steps)
        done += steps
        fastest = min(fastest, seconds / steps)
        if seconds < MIN_TIMING_SECONDS:
            steps *= 2
    warmup = time.perf_counter() - start
    steps = 1
    while steps * fastest < MIN_TIMING_SECONDS:
        steps *= 2
    timings, start = [], time.perf_counter()
    while len(timings) < 5 or (time.perf_counter() - start < budget and len(timings) < 81):
        timings.append(timed(steps) / steps)
    return timings, steps, done, warmup


def work(task):
    import torch

    import pytorch_models
    torch.set_num_threads(task["threads"])
    torch.set_flush_denormal(not task["as_installed"])
    answers = []
    for point in task["points"]:
        axes, answer = point["axes"], {"key": point["key"]}
        device = torch.device("cuda", int(axes["device"][4:])) if axes["device"].startswith("gpu:") else torch.device("cpu")
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = axes["precision"] == "tf32"
        layouts = {"contiguous": torch.contiguous_format}
        if point["workload"] in ("cnn", "resnet"):
            layouts["channels_last"] = torch.channels_last
        try:
            if device.type == "cuda" and not torch.cuda.is_available():
                raise LookupError("this PyTorch sees no CUDA device")
            if point["compiled"] and not hasattr(torch, "compile"):
                raise LookupError(f"PyTorch {torch.__version__} has no torch.compile")
            if axes["precision"] == "fp16" and device.type == "cpu":
                raise LookupError("PyTorch trains in fp16 on CUDA only")
            for layout, format in layouts.items():
                start = time.perf_counter()
                step = make_step(torch, pytorch_models, point["workload"], axes, device, format, point["compiled"])
                step()
                setup = time.perf_counter() - start
                timings, steps, warm, seconds = timings_of(torch, step, device, task["seconds"])
                if "timings" not in answer or statistics.median(timings) < statistics.median(answer["timings"]):
                    answer.update(timings=timings, steps=steps, warmup_steps=warm, warmup_seconds=seconds, layout=layout,
                                  setup_seconds=setup)
        except LookupError as error:
            answer.update(status="unsupported", reason=str(error))
        except Exception as error:  # whatever PyTorch throws belongs to this point
            memory = "out of memory" in str(error) or isinstance(error, MemoryError)
            answer.update(status="out_of_memory" if memory else "failed", reason=f"PyTorch: {str(error) or repr(error)}"[:300])
        answers.append(answer)
    json.dump({"torch": torch.__version__, "config": torch.__config__.show(), "points": answers}, sys.stdout)


# The parent -----------------------------------------------------------------------------------------------------------


def environment_of(threads, as_installed):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    if as_installed:
        return environment, ""
    environment.update(MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_=str(1 << 40), MALLOC_TOP_PAD_=str(64 << 20),
                       GLIBC_TUNABLES="glibc.malloc.hugetlb=1", OMP_PROC_BIND="true")
    found = glob.glob("/usr/lib/*/openblas-openmp/libblas.so.3")
    if not found:
        return environment, "no OpenMP variant of OpenBLAS was found (Debian: libopenblas0-openmp); the BLAS is as installed"
    folders = [str(pathlib.Path(found[0]).parent), environment.get("LD_LIBRARY_PATH", "")]
    environment["LD_LIBRARY_PATH"] = ":".join(folder for folder in folders if folder)
    return environment, ""


def axes_of(row):
    return {name[5:]: value for name, value in row.items() if name.startswith("axis_") and value is not None}


def peer_row(row, library):
    """The same point with the axis `library` before the common axes' threads and device."""
    head = {name: value for name, value in row.items() if not name.startswith("axis_")}
    axes = axes_of(row)
    before = {name: value for name, value in axes.items() if name not in ("threads", "device")}
    ordered = {**before, "library": library, **{n: v for n, v in axes.items() if n not in before}}

    def spelt(names):
        return "/".join([row["workload"]] + [f"{name}={ordered[name]}" for name in names])

    one_sided = ("threads", "device", "launch", "data")
    shared = [name for name in ordered if name not in one_sided]
    head.update(key=spelt(ordered), pair_key=spelt(shared),
                sweep_key=spelt([name for name in shared if name != row["sweep_axis"]]), support="native",
                support_reason="", verification="none", verification_error=None, verification_tolerance=None,
                verified_fraction=0, peak_memory_bytes=None, status="skipped", reason="not reached")
    return {**head, **{f"axis_{name}": value for name, value in ordered.items()}}


def timing_row(key, process, answer):
    return {"key": key, "process": process, "steps_per_timing": answer["steps"], "wall_seconds": answer["timings"],
            "device_seconds": [], "block": [0] * len(answer["timings"]), "ping_pong_before_seconds": [],
            "ping_pong_after_seconds": [], "fma_before_flop_per_s": [], "fma_after_flop_per_s": [],
            "placement": ["unknown"], "repeated_blocks": 0, "warmup_seconds": answer["warmup_seconds"],
            "warmup_steps": answer["warmup_steps"], "setup_seconds": answer["setup_seconds"], "verify_seconds": 0,
            "stop_reason": "budget_exhausted", "half_width_relative": None, "flags": [], "clock_hz": None,
            "temperature_c": None, "power_watts": None, "energy_joules": None, "throttle_reasons": "",
            "allocations_in_timed_region": 0}


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def run_worker(task, environment):
    worker = subprocess.run([sys.executable, __file__, "--worker"], input=json.dumps(task), text=True, env=environment,
                            stdout=subprocess.PIPE)
    if worker.returncode != 0:
        return None, f"the worker ended with {worker.returncode}"
    return json.loads(worker.stdout), ""


def wanted_rows(result, pattern, compiled):
    rows = []
    for row in result["points"]:
        if row["workload"] not in WORKLOADS or row["status"] != "ok" or not re.search(pattern, row["key"]):
            continue
        if row.get("axis_launch") == "graph" or row.get("axis_cache") == "rotate" or row.get("axis_library"):
            continue  # PyTorch has its own way to launch; data in turn is the loader's business
        if row["device_kind"] not in ("cpu", "gpu"):
            continue
        rows += [peer_row(row, name) for name in (["pytorch", "pytorch_compiled"] if compiled else ["pytorch"])]
    return rows


def read_result(path):
    try:
        result = json.loads(path.read_text())
    except OSError as error:
        refuse(f"{path}: {error.strerror}")
    except ValueError as error:
        refuse(f"{path}: is no JSON: {error}")
    if not isinstance(result, dict) or result.get("kind") != "result":
        refuse(f"{path}: is no result of dlbench; write one with: dlbench run train -o ours.json")
    return result


def measure(arguments, ours, rows):
    """Fills the rows in; the rest of the result."""
    timings, processes, warnings, versions = [], [], [], {}
    threads = sorted({row.get("axis_threads", 1) for row in rows})
    started = now()
    for process in range(arguments.processes):
        begin, at = time.time(), now()
        for count in threads:
            environment, warning = environment_of(count, arguments.as_installed)
            if warning and warning not in warnings:
                warnings.append(warning)
            mine = [row for row in rows if row.get("axis_threads", 1) == count]
            points = [{"key": row["key"], "workload": row["workload"], "axes": axes_of(row),
                       "compiled": row["axis_library"] == "pytorch_compiled"} for row in mine]
            answers, error = run_worker({"threads": count, "points": points, "seconds": arguments.seconds,
                                         "as_installed": arguments.as_installed}, environment)
            for row in mine if error else []:
                row.update(status="failed", reason=error)
            versions.update({k: answers[k] for k in ("torch", "config")} if answers else {})
            for row, answer in zip(mine, answers["points"] if answers else []):
                if "timings" in answer:
                    timings.append(timing_row(row["key"], process, answer))
                    layout = f" ({answer['layout']})" if row["workload"] in ("cnn", "resnet") else ""
                    print(f"{row['key']}: {statistics.median(answer['timings']) * 1e3:.3f} ms{layout}", file=sys.stderr)
                    if row["status"] == "skipped":
                        row.update(status="ok", reason="")
                else:
                    row.update(status=answer["status"], reason=answer["reason"])
        processes.append({"process": process, "started_utc": at, "elapsed_seconds": time.time() - begin,
                          "workers": len(threads), "exit": "ok", "steal_seconds": None, "cgroup_throttled_seconds": None,
                          "peak_resident_bytes": None, "placement_threshold_seconds": None})
    timed = {t["key"] for t in timings}
    timings = [t for t in timings if next(r for r in rows if r["key"] == t["key"])["status"] == "ok"]
    for row in rows:
        if row["status"] == "ok" and row["key"] not in timed:
            row.update(status="failed", reason="no process timed it")
    tuned = "as installed" if arguments.as_installed else "tuned (environment of the workers, see scripts/peer_pytorch.py)"
    return {"schema_version": ours["schema_version"], "kind": "result", "partial": False,
            "tool": {"name": "pytorch", "version": versions.get("torch", "unknown"), "build": versions.get("config", "")},
            "run": {"started_utc": started, "finished_utc": now(), "command_line": sys.argv, "library": "pytorch",
                    "tuning": tuned, "peer_of": str(arguments.result)},
            "environment": ours["environment"], "config": ours["config"], "points": rows, "timings": timings,
            "controls": [], "processes": processes, "warnings": warnings}


def main():
    if sys.argv[1:] == ["--worker"]:
        return work(json.load(sys.stdin))
    paragraphs = __doc__.split("\n\n")
    parser = argparse.ArgumentParser(description=paragraphs[0], epilog="\n\n".join(paragraphs[1:]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=pathlib.Path, help="what dlbench run wrote; its ok rows of mlp, cnn, resnet, gpt2")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="the result to write")
    parser.add_argument("--filter", default="", help="only points whose key this regular expression finds")
    parser.add_argument("--processes", type=int, default=3, help="fresh processes, the replicates (default 3)")
    parser.add_argument("--seconds", type=float, default=2.0, help="timed seconds per point, process and layout (default 2)")
    parser.add_argument("--compiled", action="store_true", help="also with torch.compile, as library=pytorch_compiled")
    parser.add_argument("--as-installed", action="store_true", help="without the tuning described below")
    arguments = parser.parse_args()
    if arguments.processes < 1 or not arguments.seconds > 0:
        refuse("--processes must be at least 1 and --seconds above 0")
    try:
        import torch  # noqa: F401  before an hour is spent
    except ImportError as error:
        refuse(f"{error}; PyTorch is needed (Debian: apt install python3-torch)")
    ours = read_result(arguments.result)
    try:
        rows = wanted_rows(ours, arguments.filter, arguments.compiled)
    except re.error as error:
        refuse(f"--filter {arguments.filter}: {error}")
    if not rows:
        refuse(f"{arguments.result}: has no ok row of {', '.join(WORKLOADS)} that passes the filter")
    result = measure(arguments, ours, rows)
    try:
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    except OSError as error:
        refuse(f"{arguments.output}: {error.strerror}")
    return 5 if any(row["status"] in ("failed", "out_of_memory") for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
