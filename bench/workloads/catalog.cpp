#include "workloads/catalog.h"

namespace dlbench {

const WorkloadCatalog& workload_catalog() {
  static const WorkloadCatalog catalog({
#define DLB_WORKLOAD(name) &name##_workload(),
#include "workloads/workloads.def"
#undef DLB_WORKLOAD
  });
  return catalog;
}

}  // namespace dlbench
