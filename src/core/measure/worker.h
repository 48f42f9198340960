// Worker: the process that measures. It obeys one-line JSON commands and answers with JSON lines.
//
// Why a process of its own: run-to-run variance lives between processes, and a point that crashes or hangs must cost
// itself only. Why commands: order, budgets and what to do after a crash are decided in one place, the parent.
//
// In:  {"config": …, "origin": …, "process": p}            once; answered {"type": "ready"}
//      {"do": "controls", "position": …}                   answered {"type": "controls", "rows": […], "before": …,
//      "after": …}
//      {"do": "point", "key": …}                           answered {"type": "point", "row": …, "timing": … | null}
//      {"do": "plan"}                                      answered {"type": "plan", "tool": …, "points": [{key,
//      status, reason}]}
//      {"do": "open", "key": …, "verify": …, "steps_per_timing": 0 or what to use}
//                                                          answered {"type": "open", "status": …, "reason": …,
//                                                          "steps_per_timing": …, "timing_seconds": …}; one point is
//                                                          open at a time
//      {"do": "take", "timings": n}                        answered {"type": "take", "status": …, "reason": …,
//                                                          "wall_seconds": [n]}, of the open point
//      {"do": "close"}                                     answered {"type": "close"}
//      {"do": "probe"}                                     answered {"type": "probe", "values": …}
//      {"do": "end"}                                       answered {"type": "end", "peak_resident_bytes": …}
#pragma once

#include "core/measure/runner.h"

namespace dlbench {

/// Reads commands from descriptor `in` until "end" or its end; answers on descriptor `out`. What stops the whole worker
/// is thrown. @returns the exit code of the process.
int run_worker(int in, int out, const WorkloadCatalog& catalog);

/// The descriptor on which a worker that `run_plan` started answers; commands come on 0.
inline constexpr int kWorkerAnswers = 3;

}  // namespace dlbench
