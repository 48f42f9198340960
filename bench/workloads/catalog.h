// The catalog of workloads: every row of workloads.def, in its order.
//
// Why: configs, plan, `dlbench list` and tests take the catalog as an argument; this is the one place that fills it.
#pragma once

#include "core/train/workload.h"

namespace dlbench {

/// The static descriptor of each workload; bench/workloads/<name>.cpp defines `<name>_workload()`.
#define DLB_WORKLOAD(name) const WorkloadDescriptor& name##_workload();
#include "workloads/workloads.def"
#undef DLB_WORKLOAD

const WorkloadCatalog& workload_catalog();

}  // namespace dlbench
