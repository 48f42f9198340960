#include "core/train/workload.h"

#include <algorithm>

namespace dlbench {

std::vector<AxisSpec> axes_of(const WorkloadDescriptor& workload) {
  std::vector<AxisSpec> axes = workload.axes;
  for (AxisSpec axis : common_axes()) {
    if (axis.name == "precision") {
      axis.words.clear();
      for (const Precision p : workload.precisions) axis.words.emplace_back(to_string(p));
    }
    for (const auto& [name, words] : workload.narrowed) {
      if (name == axis.name) axis.words = words;
    }
    const auto* fallback = std::get_if<std::string>(&axis.fallback);
    if (fallback && !axis.words.empty() &&
        std::find(axis.words.begin(), axis.words.end(), *fallback) == axis.words.end()) {
      axis.fallback = axis.words.front();
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

const WorkloadDescriptor* WorkloadCatalog::find(std::string_view name) const {
  const auto it = std::find_if(workloads_.begin(), workloads_.end(), [name](const auto* w) { return w->name == name; });
  return it == workloads_.end() ? nullptr : *it;
}

std::vector<std::string> WorkloadCatalog::names() const {
  std::vector<std::string> names;
  for (const WorkloadDescriptor* workload : workloads_) names.push_back(workload->name);
  return names;
}

}  // namespace dlbench
