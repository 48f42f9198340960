#!/usr/bin/env python3
"""Makes tests/golden/small.json: an invented result of an invented machine, small enough to check a report by hand.

The CPU does 100 GFLOP/s on one thread and 190 on two, the GPU 5 TFLOP/s after 10 us per launch (8 us in a graph). Nothing in it was
measured. Usage: tests/golden/make_small.py > tests/golden/small.json
"""
import json
import math

NOISE = [0.0, 0.006, -0.004]  # of ln(time), per process
WITHIN = [0.0, 0.002, -0.001, 0.003, -0.002, 0.001]
points, timings = [], []


def key_of(workload, axes):
    return "/".join([workload] + [f"{a}={v}" for a, v in axes])


def add(workload, own, device, sweep_axis, sweep_value, precision, flops, read, written, working_set, seconds, samples, unit,
        threads=None, launch=None, status="ok", reason="", support="native", far=()):
    side = "gpu" if device.startswith("gpu") else "cpu"
    axes = list(own) + [("precision", precision)]
    if side == "gpu":
        axes += [("launch", launch), ("data", "resident")]
    axes += [("cache", "warm")]
    if side == "cpu":
        axes += [("threads", threads)]
    axes += [("device", device)]
    shared = [(a, v) for a, v in axes if a not in ("launch", "data", "threads", "device")]
    key = key_of(workload, axes)
    row = {"key": key, "pair_key": key_of(workload, shared),
           "sweep_key": key_of(workload, [(a, v) for a, v in shared if a != sweep_axis]), "workload": workload,
           "sweep_axis": sweep_axis, "sweep_value": sweep_value, "device": device, "device_kind": side, "side": side,
           "precision": precision}
    row.update({f"axis_{a}": v for a, v in axes})
    row.update({"status": status, "reason": reason, "support": support,
                "support_reason": "converted to fp32 first" if support == "emulated" else "",
                "flops_per_step": flops, "bytes_read_per_step": read, "bytes_written_per_step": written,
                "working_set_bytes": working_set, "samples_per_step": samples, "sample_unit": unit,
                "tensor_bytes": int(working_set), "buffer_sets": 1,
                "peak_memory_bytes": int(working_set) if status == "ok" else None,
                "verification": "full" if status in ("ok", "mismatch") else "none",
                "verification_error": {"ok": 1e-7, "mismatch": 0.5}.get(status),
                "verification_tolerance": 1e-5 if status in ("ok", "mismatch") else None,
                "verified_fraction": 1.0 if status in ("ok", "mismatch") else 0.0})
    points.append(row)
    if status != "ok":
        return
    for process in range(3):
        wall = [float(f"{seconds * math.exp(NOISE[process] + w):.6g}") for w in WITHIN]
        placement = "far" if process in far else "near"
        timings.append({
            "key": key, "process": process, "steps_per_timing": 64, "wall_seconds": wall,
            "device_seconds": [float(f"{w * 0.9:.6g}") for w in wall] if side == "gpu" else [], "block": [0] * 3 + [1] * 3,
            "ping_pong_before_seconds": [5e-8, 5e-8], "ping_pong_after_seconds": [5e-8, 5e-8],
            "fma_before_flop_per_s": [2e11, 2e11], "fma_after_flop_per_s": [2e11, 2e11], "placement": [placement] * 2,
            "repeated_blocks": 0, "warmup_seconds": 0.3, "warmup_steps": 1000, "setup_seconds": 0.01,
            "verify_seconds": 0.001, "stop_reason": "converged", "half_width_relative": 0.004, "flags": [],
            "clock_hz": None, "temperature_c": None, "power_watts": None, "energy_joules": None, "throttle_reasons": "",
            "allocations_in_timed_region": 0})


def cpu_seconds(flops, read, written, threads):
    rate = {1: 100e9, 2: 190e9}[threads]
    return 2e-6 + max(flops / rate, (read + written) / 30e9)


for threads in (1, 2):
    flops = {1: 1.1e9, 2: 2.2e9}[threads]
    add("peak", [("unit", "vector_auto")], "cpu", "", None, "fp32", flops, 0.0, 4096.0, 4096.0, 1e-2, 1.0, "calls", threads=threads)
    for size, rate in ((1 << 18, 120e9), (1 << 28, 30e9)):
        add("membw", [("op", "read"), ("bytes", size)], "cpu", "bytes", size, "fp32", size / 4.0, float(size), 4.0, float(size),
            size / rate, float(size), "bytes", threads=threads)
    for n in (32, 64, 128, 256, 512):
        flops, read, written = 2.0 * n**3, 8.0 * n * n, 4.0 * n * n
        far = (2,) if n == 64 and threads == 2 else ()
        add("gemm", [("family", "square"), ("batch", n)], "cpu", "batch", n, "fp32", flops, read, written, read + written,
            cpu_seconds(flops, read, written, threads), float(n), "rows", threads=threads, far=far)
add("gemm", [("family", "square"), ("batch", 512)], "cpu", "batch", 512, "bf16", 2.0 * 512**3, 4.0 * 512**2, 2.0 * 512**2,
    6.0 * 512**2, 2.0e-3, 512.0, "rows", threads=2, support="emulated")
add("gemm", [("family", "square"), ("batch", 32)], "cpu", "batch", 32, "bf16", 2.0 * 32**3, 4.0 * 32**2, 2.0 * 32**2, 6.0 * 32**2,
    1.0, 32.0, "rows", threads=2, support="emulated", status="mismatch",
    reason="c[17]: got 1.5, expected 1, error 0.5 above the tolerance 1e-05")
add("peak", [("unit", "cuda_core")], "gpu:0", "", None, "fp32", 6e10, 0.0, 4096.0, 4096.0, 1e-2, 1.0, "calls", launch="stream")
add("membw", [("op", "read"), ("bytes", 1 << 28)], "gpu:0", "bytes", 1 << 28, "fp32", float(1 << 26), float(1 << 28), 4.0, float(1 << 28),
    (1 << 28) / 500e9, float(1 << 28), "bytes", launch="stream")
for launch, each in (("stream", 4e-6), ("graph", 2e-6)):
    add("launch", [("count", 1)], "gpu:0", "count", 1, "fp32", 0.0, 0.0, 0.0, 0.0, each, 1.0, "launches", launch=launch)
    for n in (32, 64, 128, 256, 512):
        flops, read, written = 2.0 * n**3, 8.0 * n * n, 4.0 * n * n
        add("gemm", [("family", "square"), ("batch", n)], "gpu:0", "batch", n, "fp32", flops, read, written, read + written,
            {"stream": 10e-6, "graph": 8e-6}[launch] + flops / 5e12, float(n), "rows", launch=launch)
for n in (32, 512):
    add("gemm", [("family", "square"), ("batch", n)], "gpu:0", "batch", n, "bf16", 2.0 * n**3, 4.0 * n * n, 2.0 * n * n, 6.0 * n * n, 1.0,
        float(n), "rows", launch="stream", status="unsupported", reason="bf16 products need compute capability 8.0; this is 7.5",
        support="no")

rows = {"points": points, "timings": timings, "controls": [],
        "processes": [{"process": p, "started_utc": f"2026-01-02T03:0{p}:00Z", "elapsed_seconds": 50.0, "workers": 1, "exit": "ok",
                       "steal_seconds": 0.0, "cgroup_throttled_seconds": None, "peak_resident_bytes": 100000000,
                       "placement_threshold_seconds": 1e-7} for p in range(3)],
        "warnings": ["the frequency governor is powersave"]}
head = {"schema_version": "1.0.0", "kind": "result", "partial": False,
        "tool": {"name": "dlbench", "version": "0.1.0"},
        "run": {"id": "small", "started_utc": "2026-01-02T03:00:00Z"},
        "environment": {"fingerprint": "invented", "cpu": {"model": "Invented CPU", "usable_cpus": 2},
                        "memory": {"total_bytes": 8 << 30}, "os": {"name": "Invented OS"},
                        "devices": [{"id": "cpu", "kind": "cpu", "name": "Invented CPU"},
                                    {"id": "gpu:0", "kind": "gpu", "name": "Invented GPU"}]},
        "config": {"name": "small"}}
text = json.dumps(head, indent=1)[:-2]
for name, list_ in rows.items():
    text += f',\n "{name}": [' + ",".join("\n  " + json.dumps(row) for row in list_) + ("\n ]" if list_ else "]")
print(text + "\n}")
