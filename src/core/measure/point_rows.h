// The row of a point before and after measuring: everything the plan knows, then what a process learnt.
#pragma once

#include "core/measure/runner.h"

namespace dlbench {

/// The row of a planned point; status `skipped` ("not reached") unless the plan already knows why it can't run.
PointRow planned_row(const PlannedPoint& point, const WorkloadCatalog& catalog);

/// Enters what one process learnt into the row of the point. The worst status over the processes stands, except that
/// a process that didn't get to a point takes nothing away from those that did.
void merge_row(PointRow& row, const PointRow& learnt);

}  // namespace dlbench
