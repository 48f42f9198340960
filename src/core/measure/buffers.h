// The buffers of a point on a device: allocation with guard zones, initial values, rotation, and reading back.
//
// Why: timing, verification, parity tests and dumps need the same thing; initial values depend on (seed, buffer name,
// set) only, so every device starts from the same bits.
// Promises: outputs and scratch start as a marker (every byte 0xFF: a NaN in every float type), so an element that
// nobody wrote shows; the guard zone before and after each buffer holds another pattern that `check_guards` looks for.
#pragma once

#include <string>
#include <vector>

#include "core/train/workload.h"

namespace dlbench {

class BufferSets {
 public:
  static constexpr size_t kGuardBytes = 256;
  static constexpr uint8_t kGuardByte = 0xA7;
  static constexpr uint8_t kMarkerByte = 0xFF;

  /// @param sets copies of the input buffers (cache=rotate); parameters, state, outputs and scratch exist once.
  BufferSets(Device& device, const std::vector<BufferSpec>& specs, int sets, uint64_t seed);

  /// (Re)initialises everything to the initial values, guard zones and output markers included.
  void reset();
  const Binding& binding(int set) const { return bindings_[static_cast<size_t>(set)]; }
  int sets() const { return static_cast<int>(bindings_.size()); }
  HostTensor read(size_t buffer, int set = 0) const;
  /// `bytes` of a buffer from byte `offset` on, into host memory; synchronises.
  void read_bytes(size_t buffer, int set, size_t offset, size_t bytes, void* host) const;
  /// "" when every guard zone is intact, else which buffer was written outside of and on which end.
  std::string check_guards() const;

 private:
  void initialise(const BufferSpec& spec, int set, void* data);
  void initialise_segments(const BufferSpec& spec, int set, std::byte* data);

  Device& device_;
  std::vector<BufferSpec> specs_;
  uint64_t seed_;
  std::vector<std::vector<DeviceBuffer>> memory_;  ///< [set][buffer]; empty where set 0's buffer is shared
  std::vector<Binding> bindings_;
};

/// Sum over the buffers, guard zones included.
int64_t bytes_needed(const std::vector<BufferSpec>& specs, int sets);
/// Stream of the random numbers of a buffer: a 64-bit FNV-1a hash of its name, plus the set.
uint64_t stream_of(const std::string& buffer_name, int set);
/// Whether `element` (of `size` bytes) still is the marker.
bool is_marker(const void* element, size_t size);

}  // namespace dlbench
