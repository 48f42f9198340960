// One call of an op, described once: its buffers, how they start, what is compared; checked on any device.
//
// Why: every parity test wants the same proof. `check_case` gives it:
//   * the outputs equal the oracle's within the tolerance of core/measure/verify.h, and what the oracle left alone (the
//   gaps
//     between the rows of a matrix with a large leading dimension) is untouched;
//   * guard zones around every buffer are intact and inputs are unchanged;
//   * a second call with an equal spec allocates nothing and gives equal bits;
//   * where the device has graphs, a captured and replayed call gives equal bits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/measure/verify.h"

namespace dlbench::test {

/// How a buffer starts. normal: random N(0,1) times scale; marker: every byte 0xFF, a NaN; values: as listed.
enum class Start : uint8_t { normal, marker, values };

struct CaseBuffer {
  std::string name;
  DType dtype = DType::f32;
  int64_t elements = 0;
  Start start = Start::normal;
  double scale = 1;
  std::vector<double> values{};
  bool output = false;
  OutputTolerance tolerance{};
  bool bitwise = false;  ///< the output must equal the oracle's bit for bit (any NaN equals any NaN)
  int64_t offset = 0;    ///< elements by which the buffer is moved off the 256-byte alignment
  bool scratch = false;  ///< workspace: may be written, isn't compared, not even from call to call
  /// Decides about the output instead of the tolerance, where it isn't an array of numbers. "" when right.
  std::function<std::string(const HostTensor& got, const HostTensor& expected)> compare{};
};

/// The most common buffers.
CaseBuffer input(std::string name, DType dtype, int64_t elements, double scale = 1);
CaseBuffer input_values(std::string name, DType dtype, std::vector<double> values);
CaseBuffer output(std::string name, DType dtype, int64_t elements, const OutputTolerance& tolerance);
/// Read and written: starts random, compared afterwards.
CaseBuffer in_place(std::string name, DType dtype, int64_t elements, const OutputTolerance& tolerance,
                    double scale = 1);

/// Starts as a marker; `bytes` is what the device asks for.
CaseBuffer workspace(int64_t bytes);

/// What the payload of a buffer starts with.
HostTensor initial_values(const CaseBuffer& buffer);

struct OpCase {
  std::string name;
  std::vector<CaseBuffer> buffers;
  std::function<void(Ops& ops, const std::vector<void*>& pointers)> call;
};

/// "" when `device` passes, else what is wrong, beginning with the name of the case.
std::string check_case(Device& device, Device& oracle, const OpCase& op_case);

/// The tolerance of an op's output. @param magnitude typical size of an exact value; 0: what the oracle's values show.
OutputTolerance tolerance_of(Op op, Precision precision, int64_t reduction_length = 1, double magnitude = 0);

}  // namespace dlbench::test
