#include "core/train/train_workload.h"

namespace dlbench {

TrainWorkload::TrainWorkload(Build build, int64_t batch, std::string sample_unit, int64_t samples_per_item)
    : build_(std::move(build)),
      batch_(batch),
      sample_unit_(std::move(sample_unit)),
      samples_per_item_(samples_per_item),
      model_(build_(batch, ImageLayout::nchw)) {
  model_.program.plan(nullptr);
}

Work TrainWorkload::work() const {
  double bytes = 0;
  for (const BufferSpec& b : buffers()) bytes += static_cast<double>(byte_count(b.shape, b.dtype));
  return {.cost = model_.program.cost(),
          .samples = static_cast<double>(batch_) * static_cast<double>(samples_per_item_),
          .sample_unit = sample_unit_,
          .working_set_bytes = bytes};
}

Support TrainWorkload::supported_by(Device& device) const {
  return model_.program.supported_by(device.ops(), model_.precision);
}

void TrainWorkload::adapt(Device& device) {
  const ImageLayout layout = device.ops().preferred_image_layout();
  if (layout != model_.layout) {
    model_ = build_(batch_, layout);
    model_.layout = layout;  // models without images keep what they were built with
  }
  model_.program.plan(&device.ops());
}

std::unique_ptr<Workload> TrainWorkload::smaller(double bytes) const {
  int64_t batch = batch_;
  double scale = 1;
  const double now = model_.program.cost().bytes();
  // The bytes of weights don't shrink with the batch, so this is an upper bound of what a batch moves; halving ends.
  while (batch > 1 && now * scale > bytes) {
    batch = (batch + 1) / 2;
    scale = static_cast<double>(batch) / static_cast<double>(batch_);
  }
  if (batch == batch_) return nullptr;
  return std::make_unique<TrainWorkload>(build_, batch, sample_unit_, samples_per_item_);
}

}  // namespace dlbench
