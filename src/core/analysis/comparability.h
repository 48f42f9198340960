// Comparability: whether two results were measured under conditions that let their times be compared (METHODS section
// 5, step 1).
//
// Why field by field and not by one hash: a person has to be told what differs, and a newer kernel is a warning while
// another CPU is the end of it.
// Promises: looks at the devices only that the compared points ran on; what neither file knows differs in nothing.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/result/result.h"

namespace dlbench {

struct Differences {
  std::vector<std::string> fatal;     ///< the results can't be compared: sentences without their subject
  std::vector<std::string> warnings;  ///< software that may explain a change
};

/// @param devices ids of the devices whose points are compared; @param a, b names of the files, for the sentences.
Differences compare_environments(const Result& first, const std::string& a, const Result& second, const std::string& b,
                                 const std::set<std::string>& devices);

}  // namespace dlbench
