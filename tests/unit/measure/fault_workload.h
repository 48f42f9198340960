// A workload with planted faults and the catalog that holds it, shared by the tests of run_plan and by their workers.
#pragma once

#include "core/train/workload.h"

namespace dlbench::test {

/// "fault" with axes kind (ok | crash | kill | hang | throw | oom | lost | unsupported | chatty) and n.
const WorkloadCatalog& fault_catalog();

}  // namespace dlbench::test
