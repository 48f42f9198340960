// KeyFilter: which points a list of --filter options keeps.
//
// Why: `run`, `check` and `compare` mean the same by it.
// Promises: a key is kept when at least one positive expression finds something in it (or there is none) and no
// expression with a "-" before it does.
#pragma once

#include <regex>
#include <string>
#include <vector>

namespace dlbench {

class KeyFilter {
 public:
  KeyFilter() = default;
  /// @throws UsageError naming the expression and why it is none.
  explicit KeyFilter(const std::vector<std::string>& filters);
  bool keeps(const std::string& key) const;

 private:
  std::vector<std::regex> include_, exclude_;
};

}  // namespace dlbench
