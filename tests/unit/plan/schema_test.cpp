// The schema of configs: every shipped config is valid, what the program refuses by structure is refused by the schema
// as well, and the schema knows the axes and words of every workload.
#include <gtest/gtest.h>

#include <filesystem>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "core/base/json.h"
#include "workloads/catalog.h"

namespace dlbench {
namespace {

using PlainJson = nlohmann::json;  // valijson's adapter is written for the unordered kind

PlainJson read(const std::string& path) {
  return PlainJson::parse(read_json_file(path, JsonComments::kAllow).dump());
}
PlainJson schema_json() {
  return read(std::string(DLBENCH_CONFIGS) + "/schema/config.schema.json");
}

bool is_valid(const PlainJson& config) {
  const PlainJson json = schema_json();
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(json), schema);
  valijson::Validator validator;
  return validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(config), nullptr);
}

TEST(ConfigSchema, AcceptsEveryShippedConfig) {
  int configs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DLBENCH_CONFIGS)) {
    if (entry.path().extension() != ".json") continue;
    EXPECT_TRUE(is_valid(read(entry.path().string()))) << entry.path();
    ++configs;
  }
  EXPECT_GE(configs, 4);
}

TEST(ConfigSchema, RefusesWhatTheProgramRefuses) {
  EXPECT_TRUE(is_valid(PlainJson::parse(R"({"sweeps": [{"workload": "gemm", "batch": "1:8:x2"}]})")));
  for (const char* wrong : {
           R"({})",
           R"({"sweep": []})",
           R"({"sweeps": [{"workload": "gem"}]})",
           R"({"sweeps": [{"workload": "gemm", "batch": []}]})",
           R"({"sweeps": [{"workload": "gemm", "batch": "1-8"}]})",
           R"({"sweeps": [{"workload": "gemm", "batch": 0}]})",
           R"({"sweeps": [{"workload": "gemm", "op": "read"}]})",
           R"({"sweeps": [{"workload": "membw", "precision": "bf16"}]})",
           R"({"sweeps": [{"workload": "gemm"}], "devices": []})",
           R"({"sweeps": [{"workload": "gemm"}], "measure": {"profile": "fast"}})",
           R"({"sweeps": [{"workload": "gemm"}], "meta": {"noise": 1}})",
       }) {
    EXPECT_FALSE(is_valid(PlainJson::parse(wrong))) << wrong;
  }
}

TEST(ConfigSchema, KnowsTheAxesAndWordsOfEveryWorkload) {
  const PlainJson definitions = schema_json().at("definitions");
  for (const WorkloadDescriptor* workload : workload_catalog().all()) {
    const PlainJson properties = definitions.at("sweep_" + workload->name).at("properties");
    size_t axes = 0;
    for (const AxisSpec& spec : axes_of(*workload)) {
      if (spec.name == "device") continue;
      ASSERT_TRUE(properties.contains(spec.name)) << workload->name << " " << spec.name;
      if (!spec.words.empty()) {
        EXPECT_EQ(properties.at(spec.name).at("anyOf").at(0).at("enum"), PlainJson(spec.words))
            << workload->name << " " << spec.name;
      }
      ++axes;
    }
    EXPECT_EQ(properties.size(), axes + 2) << workload->name << ": beside its axes only workload and comment";
  }
}

}  // namespace
}  // namespace dlbench
