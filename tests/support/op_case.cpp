#include "support/op_case.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "core/base/random.h"
#include "core/math/rounding.h"
#include "core/measure/buffers.h"

namespace dlbench::test {

CaseBuffer input(std::string name, DType dtype, int64_t elements, double scale) {
  CaseBuffer buffer;
  buffer.name = std::move(name);
  buffer.dtype = dtype;
  buffer.elements = elements;
  buffer.scale = scale;
  return buffer;
}

CaseBuffer input_values(std::string name, DType dtype, std::vector<double> values) {
  CaseBuffer buffer = input(std::move(name), dtype, static_cast<int64_t>(values.size()));
  buffer.start = Start::values;
  buffer.values = std::move(values);
  return buffer;
}

CaseBuffer output(std::string name, DType dtype, int64_t elements, const OutputTolerance& tolerance) {
  CaseBuffer buffer = input(std::move(name), dtype, elements);
  buffer.start = Start::marker;
  buffer.output = true;
  buffer.tolerance = tolerance;
  return buffer;
}

CaseBuffer in_place(std::string name, DType dtype, int64_t elements, const OutputTolerance& tolerance, double scale) {
  CaseBuffer buffer = output(std::move(name), dtype, elements, tolerance);
  buffer.start = Start::normal;
  buffer.scale = scale;
  return buffer;
}

CaseBuffer workspace(int64_t bytes) {
  CaseBuffer buffer = input("workspace", DType::u8, bytes);
  buffer.start = Start::marker;
  buffer.scratch = true;
  return buffer;
}

OutputTolerance tolerance_of(Op op, Precision precision, int64_t reduction_length, double magnitude) {
  OutputTolerance tolerance;
  tolerance.op_class = class_of(op);
  tolerance.precision = precision;
  tolerance.reduction_length = reduction_length;
  tolerance.magnitude = magnitude;
  return tolerance;
}

HostTensor initial_values(const CaseBuffer& b) {
  HostTensor tensor({b.elements}, b.dtype);
  if (b.start == Start::marker && b.elements > 0) std::memset(tensor.data(), BufferSets::kMarkerByte, tensor.bytes());
  for (int64_t i = 0; i < b.elements; ++i) {
    if (b.start == Start::normal) {
      const float factor = static_cast<float>(b.scale * kIrwinHallScale);
      tensor.set(i, normal_value(1, stream_of(b.name, 0), static_cast<uint64_t>(i), factor));
    } else if (b.start == Start::values) {
      tensor.set(i, b.values[static_cast<size_t>(i)]);
    }
  }
  return tensor;
}

namespace {

using Bytes = std::vector<std::byte>;
constexpr size_t kGuard = BufferSets::kGuardBytes;
constexpr std::byte kGuardByte{BufferSets::kGuardByte};
constexpr std::byte kMarkerByte{BufferSets::kMarkerByte};

size_t payload_offset(const CaseBuffer& b) {
  return kGuard + static_cast<size_t>(b.offset) * size_of(b.dtype);
}
size_t payload_bytes(const CaseBuffer& b) {
  return static_cast<size_t>(b.elements) * size_of(b.dtype);
}

/// Guard zone, payload, guard zone.
Bytes initial_image(const CaseBuffer& b) {
  Bytes image(payload_offset(b) + payload_bytes(b) + kGuard, kGuardByte);
  const HostTensor tensor = initial_values(b);
  if (tensor.bytes()) std::memcpy(image.data() + payload_offset(b), tensor.data(), tensor.bytes());
  return image;
}

/// Nobody asks what is left in a workspace; what is around it stays.
void forget_scratch(const CaseBuffer& b, Bytes& image) {
  if (b.scratch && b.elements > 0) std::memset(image.data() + payload_offset(b), 0, payload_bytes(b));
}

/// The buffers of a case on one device.
class Bench {
 public:
  Bench(Device& device, const OpCase& op_case, const std::vector<Bytes>& images)
      : device_(device), op_case_(op_case), images_(images) {
    for (size_t i = 0; i < images.size(); ++i) {
      memory_.emplace_back(device, images[i].size());
      pointers_.push_back(static_cast<std::byte*>(memory_[i].data()) + payload_offset(op_case.buffers[i]));
    }
  }

  void reset() {
    for (size_t i = 0; i < memory_.size(); ++i) {
      device_.copy_to_device(memory_[i].data(), images_[i].data(), images_[i].size());
    }
    device_.synchronize();
  }
  std::vector<Bytes> read() {
    std::vector<Bytes> images = images_;
    for (size_t i = 0; i < memory_.size(); ++i) {
      device_.copy_to_host(images[i].data(), memory_[i].data(), images[i].size());
    }
    device_.synchronize();
    for (size_t i = 0; i < images.size(); ++i) forget_scratch(op_case_.buffers[i], images[i]);
    return images;
  }
  std::vector<Bytes> run() {
    reset();
    call();
    return read();
  }
  void call() {
    op_case_.call(device_.ops(), pointers_);
    device_.synchronize();
  }
  std::vector<Bytes> run_captured() {
    const std::unique_ptr<Graph> graph = device_.capture([this](Ops& ops) { op_case_.call(ops, pointers_); });
    reset();
    graph->replay();
    device_.synchronize();
    return read();
  }

 private:
  Device& device_;
  const OpCase& op_case_;
  const std::vector<Bytes>& images_;
  std::vector<DeviceBuffer> memory_;
  std::vector<void*> pointers_;
};

std::string check_untouched(const OpCase& op_case, const std::vector<Bytes>& before, const std::vector<Bytes>& after) {
  for (size_t i = 0; i < before.size(); ++i) {
    const CaseBuffer& b = op_case.buffers[i];
    const size_t first = payload_offset(b), end = first + payload_bytes(b);
    for (size_t at = 0; at < after[i].size(); ++at) {
      const bool payload = at >= first && at < end;
      if ((payload && (b.output || b.scratch)) || before[i][at] == after[i][at]) continue;
      if (payload)
        return fmt::format("{}: input {} was changed at element {}", op_case.name, b.name,
                           (at - first) / size_of(b.dtype));
      const int64_t distance =
          at < first ? static_cast<int64_t>(at) - static_cast<int64_t>(first) : static_cast<int64_t>(at - end) + 1;
      return fmt::format("{}: {} was written outside of, {} byte(s) {} it", op_case.name, b.name, std::abs(distance),
                         distance < 0 ? "before" : "behind");
    }
  }
  return "";
}

HostTensor payload(const CaseBuffer& b, const Bytes& image) {
  HostTensor tensor({b.elements}, b.dtype);
  if (tensor.bytes()) std::memcpy(tensor.data(), image.data() + payload_offset(b), tensor.bytes());
  return tensor;
}

bool same_element(const HostTensor& got, const HostTensor& expected, int64_t i) {
  const size_t size = size_of(got.dtype());
  const auto* g = static_cast<const std::byte*>(got.data()) + static_cast<size_t>(i) * size;
  const auto* e = static_cast<const std::byte*>(expected.data()) + static_cast<size_t>(i) * size;
  return std::memcmp(g, e, size) == 0 || (std::isnan(got.at(i)) && std::isnan(expected.at(i)));
}

/// Compares one output; elements that the oracle never wrote must still be as they started.
std::string compare_output(const std::string& name, const CaseBuffer& b, const Bytes& got_image,
                           const Bytes& expected_image, const Bytes& initial) {
  const HostTensor got = payload(b, got_image), expected = payload(b, expected_image), start = payload(b, initial);
  if (b.compare) {
    const std::string what = b.compare(got, expected);
    return what.empty() ? "" : name + ": " + what;
  }
  const size_t size = size_of(b.dtype);
  std::vector<bool> computed(static_cast<size_t>(b.elements), true);
  for (int64_t i = 0; i < b.elements; ++i) {
    const size_t at = static_cast<size_t>(i) * size;
    const auto* e = static_cast<const std::byte*>(expected.data()) + at;
    const auto* g = static_cast<const std::byte*>(got.data()) + at;
    const auto* s = static_cast<const std::byte*>(start.data()) + at;
    if (b.start == Start::marker && std::memcmp(e, s, size) == 0) {
      computed[static_cast<size_t>(i)] = false;
      if (std::memcmp(g, s, size) != 0) {
        return fmt::format("{}: {} was written at element {}, which isn't part of the result", name, b.name, i);
      }
    } else if (b.bitwise && !same_element(got, expected, i)) {
      return fmt::format("{}: {} at {}: {:.17g} where reference has {:.17g}; bits must be equal", name, b.name, i,
                         got.at(i), expected.at(i));
    }
  }
  const TensorComparison comparison = compare_tensors(b.name, got, expected, &computed, b.tolerance);
  return comparison.ok ? "" : name + ": " + comparison.message;
}

}  // namespace

std::string check_case(Device& device, Device& oracle, const OpCase& op_case) {
  std::vector<Bytes> images;
  for (const CaseBuffer& b : op_case.buffers) images.push_back(initial_image(b));
  const std::vector<Bytes> expected = Bench(oracle, op_case, images).run();

  Bench bench(device, op_case, images);
  const std::vector<Bytes> first = bench.run();
  if (std::string what = check_untouched(op_case, images, first); !what.empty()) return what;
  for (size_t i = 0; i < images.size(); ++i) {
    const CaseBuffer& b = op_case.buffers[i];
    if (!b.output) continue;
    if (std::string what = compare_output(op_case.name, b, first[i], expected[i], images[i]); !what.empty())
      return what;
  }

  bench.reset();
  const int64_t allocations = device.allocation_count();
  bench.call();
  if (device.allocation_count() != allocations) {
    return fmt::format("{}: the second call made {} allocation(s)", op_case.name,
                       device.allocation_count() - allocations);
  }
  if (bench.read() != first) return fmt::format("{}: two calls gave different bits", op_case.name);
  if (device.supports_graphs().level != SupportLevel::no && bench.run_captured() != first) {
    return fmt::format("{}: a replayed graph gave other bits than the direct call", op_case.name);
  }
  return "";
}

}  // namespace dlbench::test
