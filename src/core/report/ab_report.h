// What `dlbench ab` found, as a document for console and markdown, and as JSON (`kind: "ab"`, results/README.md).
//
// Promises: pure; the JSON holds every round that was measured, so that it can be judged again.
#pragma once

#include "core/analysis/ab.h"
#include "core/report/document.h"

namespace dlbench {

/// What a report of `ab` says beside the measurements.
struct AbContext {
  std::string base, candidate;  ///< programs as they were named
  std::string config;           ///< its name
  Json merged_config = Json::object();
  Json environment = Json::object();
  Json command_line = Json::array();
  std::string started_utc;
  AbRule rule;
};

Document ab_document(const AbSession& session, const AbOutcome& outcome, const AbContext& context);
Json ab_json(const AbSession& session, const AbOutcome& outcome, const AbContext& context);
/// The measurements of a file that `ab_json` made. @throws InputError
AbSession ab_session_from_json(const Json& json, const std::string& origin);

inline constexpr const char* kAbSchemaVersion = "1.0.0";

}  // namespace dlbench
