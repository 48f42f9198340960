#include "core/measure/buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/error.h"
#include "core/base/random.h"

namespace dlbench {

namespace {
/// Host memory for initial values that are made on the host: one piece at a time, so that large buffers need no copy.
constexpr size_t kPieceElements = size_t{1} << 20;

bool has_copies(const BufferSpec& spec) {
  return spec.role == BufferRole::input;
}
bool is_marked(const BufferSpec& spec) {
  return spec.role == BufferRole::output || spec.role == BufferRole::scratch;
}

std::byte* payload_of(const DeviceBuffer& buffer) {
  return static_cast<std::byte*>(buffer.data()) + BufferSets::kGuardBytes;
}

/// Every element of data[0, count) becomes `value`.
void fill_constant(Device& device, DType type, double value, int64_t count, std::byte* data) {
  const int64_t piece_count = std::min(static_cast<int64_t>(kPieceElements), count);
  HostTensor piece({piece_count}, type);
  for (int64_t i = 0; i < piece_count; ++i) piece.set(i, value);
  for (int64_t first = 0; first < count; first += piece_count) {
    const int64_t n = std::min(piece_count, count - first);
    device.copy_to_device(data + static_cast<size_t>(first) * size_of(type), piece.data(),
                          static_cast<size_t>(n) * size_of(type));
  }
  device.synchronize();
}

void fill_indices(Device& device, const BufferSpec& spec, uint64_t seed, uint64_t stream, std::byte* data) {
  if (spec.dtype != DType::i32 && spec.dtype != DType::u8) {
    throw Error(
        fmt::format("buffer {}: uniform_index needs an integer type, not {}", spec.name, to_string(spec.dtype)));
  }
  const int64_t count = element_count(spec.shape);
  const size_t element = size_of(spec.dtype);
  for (int64_t first = 0; first < count; first += static_cast<int64_t>(kPieceElements)) {
    const int64_t n = std::min(static_cast<int64_t>(kPieceElements), count - first);
    HostTensor piece({n}, spec.dtype);
    for (int64_t i = 0; i < n; ++i) {
      piece.set(i, uniform_index(seed, stream, static_cast<uint64_t>(first + i), spec.index_bound));
    }
    device.copy_to_device(data + static_cast<size_t>(first) * element, piece.data(), piece.bytes());
    device.synchronize();
  }
}
}  // namespace

uint64_t stream_of(const std::string& buffer_name, int set) {
  uint64_t hash = 0xCBF29CE484222325ull;  // FNV-1a, 64 bit: http://www.isthe.com/chongo/tech/comp/fnv/
  for (const char c : buffer_name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3ull;
  }
  return hash + static_cast<uint64_t>(set);
}

bool is_marker(const void* element, size_t size) {
  const auto* byte = static_cast<const unsigned char*>(element);
  return std::all_of(byte, byte + size, [](unsigned char b) { return b == BufferSets::kMarkerByte; });
}

int64_t bytes_needed(const std::vector<BufferSpec>& specs, int sets) {
  int64_t total = 0;
  for (const BufferSpec& spec : specs) {
    int64_t bytes = 0;
    if (__builtin_add_overflow(byte_count(spec.shape, spec.dtype), int64_t{2 * BufferSets::kGuardBytes}, &bytes) ||
        __builtin_mul_overflow(bytes, has_copies(spec) ? int64_t{sets} : int64_t{1}, &bytes) ||
        __builtin_add_overflow(total, bytes, &total)) {
      throw Error(fmt::format("buffer {} {} of {}: the buffers need more than 2^63 bytes", spec.name,
                              to_string(spec.shape), to_string(spec.dtype)));
    }
  }
  return total;
}

BufferSets::BufferSets(Device& device, const std::vector<BufferSpec>& specs, int sets, uint64_t seed)
    : device_(device), specs_(specs), seed_(seed) {
  for (int set = 0; set < std::max(sets, 1); ++set) {
    std::vector<DeviceBuffer> memory(specs_.size());
    Binding binding(specs_.size());
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (set > 0 && !has_copies(specs_[i])) {
        binding[i] = bindings_[0][i];
        continue;
      }
      const size_t bytes = static_cast<size_t>(byte_count(specs_[i].shape, specs_[i].dtype)) + 2 * kGuardBytes;
      memory[i] = DeviceBuffer(device_, bytes);
      binding[i] = payload_of(memory[i]);
    }
    memory_.push_back(std::move(memory));
    bindings_.push_back(std::move(binding));
  }
  reset();
}

void BufferSets::initialise(const BufferSpec& spec, int set, void* data) {
  const int64_t count = element_count(spec.shape);
  const size_t bytes = static_cast<size_t>(byte_count(spec.shape, spec.dtype));
  if (bytes == 0) return;
  if (is_marked(spec)) {
    device_.set_bytes(data, kMarkerByte, bytes);
    return;
  }
  if (!spec.segments.empty()) return initialise_segments(spec, set, static_cast<std::byte*>(data));
  switch (spec.init) {
    case BufferInit::constant:
      fill_constant(device_, spec.dtype, spec.scale, count, static_cast<std::byte*>(data));
      return;
    case BufferInit::zero:
      device_.set_bytes(data, 0, bytes);
      return;
    case BufferInit::normal:
      device_.ops().fill_normal(
          {.type = spec.dtype, .n = count, .seed = seed_, .stream = stream_of(spec.name, set), .scale = spec.scale},
          data);
      return;
    case BufferInit::uniform_index:
      fill_indices(device_, spec, seed_, stream_of(spec.name, set), static_cast<std::byte*>(data));
      return;
  }
}

void BufferSets::initialise_segments(const BufferSpec& spec, int set, std::byte* data) {
  device_.set_bytes(data, 0, static_cast<size_t>(byte_count(spec.shape, spec.dtype)));
  for (const BufferSegment& segment : spec.segments) {
    if (segment.offset < 0 || segment.count < 0 || segment.offset + segment.count > element_count(spec.shape)) {
      throw Error(fmt::format("buffer {}: segment {} lies outside of it", spec.name, segment.name));
    }
    initialise({.name = segment.name,
                .role = spec.role,
                .shape = {segment.count},
                .dtype = spec.dtype,
                .init = segment.init,
                .scale = segment.scale},
               set, data + static_cast<size_t>(segment.offset) * size_of(spec.dtype));
  }
}

void BufferSets::reset() {
  for (size_t set = 0; set < memory_.size(); ++set) {
    for (size_t i = 0; i < specs_.size(); ++i) {
      const DeviceBuffer& buffer = memory_[set][i];
      if (!buffer.data()) continue;
      auto* base = static_cast<std::byte*>(buffer.data());
      device_.set_bytes(base, kGuardByte, kGuardBytes);
      device_.set_bytes(base + buffer.bytes() - kGuardBytes, kGuardByte, kGuardBytes);
      initialise(specs_[i], static_cast<int>(set), base + kGuardBytes);
    }
  }
  device_.synchronize();
}

void BufferSets::read_bytes(size_t buffer, int set, size_t offset, size_t bytes, void* host) const {
  if (bytes == 0) return;
  const void* data = bindings_.at(static_cast<size_t>(set)).at(buffer);
  device_.copy_to_host(host, static_cast<const std::byte*>(data) + offset, bytes);
  device_.synchronize();
}

HostTensor BufferSets::read(size_t buffer, int set) const {
  HostTensor tensor(specs_.at(buffer).shape, specs_[buffer].dtype);
  read_bytes(buffer, set, 0, tensor.bytes(), tensor.data());
  return tensor;
}

std::string BufferSets::check_guards() const {
  std::array<unsigned char, kGuardBytes> zone{};
  for (size_t set = 0; set < memory_.size(); ++set) {
    for (size_t i = 0; i < specs_.size(); ++i) {
      const DeviceBuffer& buffer = memory_[set][i];
      if (!buffer.data()) continue;
      const auto* base = static_cast<const std::byte*>(buffer.data());
      for (const bool after : {false, true}) {
        device_.copy_to_host(zone.data(), after ? base + buffer.bytes() - kGuardBytes : base, kGuardBytes);
        device_.synchronize();
        const auto bad = std::find_if(zone.begin(), zone.end(), [](unsigned char b) { return b != kGuardByte; });
        if (bad == zone.end()) continue;
        const auto at = bad - zone.begin();
        return fmt::format("buffer {} {} of {}: the guard zone {} it was overwritten, first {} bytes {}",
                           specs_[i].name, to_string(specs_[i].shape), to_string(specs_[i].dtype),
                           after ? "behind" : "before", after ? at : static_cast<std::ptrdiff_t>(kGuardBytes) - at,
                           after ? "past its end" : "before its start");
      }
    }
  }
  return "";
}

}  // namespace dlbench
