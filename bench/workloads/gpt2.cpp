// gpt2: a training step of a GPT-2 (Radford et al. 2019): tanh GELU, tied embedding, no dropout; AdamW.
//
// Why: what most of today's training is. Tokens per second are what counts; a batch is a number of sequences.
#include <fmt/format.h>

#include "core/train/models.h"
#include "core/train/train_workload.h"
#include "workloads/catalog.h"

namespace dlbench {

namespace {

std::string check(const Point& point) {
  const Gpt2Config config = gpt2_preset(point.word("preset"));
  if (point.integer("seq") <= config.positions) return "";
  return fmt::format("seq: {} is longer than the position table of gpt2 {}; must be at most {}", point.integer("seq"),
                     point.word("preset"), config.positions);
}

}  // namespace

const WorkloadDescriptor& gpt2_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "gpt2",
      .workload_class = "train",
      .summary = "training step of a GPT-2 language model; AdamW",
      .sweep_axis = "batch",
      .axes = {{.name = "preset",
                .kind = AxisKind::word,
                .fallback = "nano",
                .words = gpt2_presets(),
                .summary = "nano: 4 layers, 4 heads, 128 channels, 8192 words; mini: 6, 6, 384; small (124M): 12, 12, "
                           "768, 50257"},
               {.name = "seq", .fallback = int64_t{128}, .summary = "tokens of a sequence (T); at most 1024"},
               {.name = "batch", .fallback = int64_t{4}, .summary = "sequences of a step"}},
      .precisions = {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp64},
      .check = check,
      .create = [](const Point& point) -> std::unique_ptr<Workload> {
        const int64_t length = point.integer("seq");
        return std::make_unique<TrainWorkload>(
            [config = gpt2_preset(point.word("preset")), length, precision = point.precision()](
                int64_t batch, ImageLayout) { return make_gpt2(config, batch, length, precision); },
            point.integer("batch"), "tokens", length);
      }};
  return descriptor;
}

}  // namespace dlbench
