"""Configs on the meta devices: virtual clocks, so a run takes milliseconds and its numbers are exact."""

import copy

CONFIG = {
    "name": "meta",
    "devices": ["meta:cpu", "meta:gpu"],
    "measure": {"profile": "quick", "processes": 2, "max_timings": 11, "warmup_seconds": 0},
    "sweeps": [{"workload": "gemm", "family": "square", "batch": [16, 256, 4096]},
               {"workload": "membw", "op": "triad", "bytes": ["1MiB", "64MiB"]}],
}


def config(**changes):
    """CONFIG with entries replaced; `meta` and `measure` are merged into what is there."""
    result = copy.deepcopy(CONFIG)
    for key, value in changes.items():
        if isinstance(value, dict):
            result.setdefault(key, {}).update(value)
        else:
            result[key] = value
    return result
