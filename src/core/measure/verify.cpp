#include "core/measure/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/error.h"
#include "core/device/reference_device.h"
#include "core/measure/buffers.h"
#include "core/measure/verify_program.h"

namespace dlbench {

namespace {

double unit_roundoff(DType type) {
  switch (type) {
    case DType::f64:
      return 0x1p-53;
    case DType::f32:
      return 0x1p-24;
    case DType::bf16:
      return 0x1p-8;
    case DType::f16:
      return 0x1p-11;
    case DType::i32:
      return 0;
    case DType::u8:
      return 0;
  }
  throw Error("unit_roundoff: not an element type");
}

bool is_verified(const BufferSpec& spec) {
  return spec.role == BufferRole::output || spec.verified;
}
bool is_integer(DType type) {
  return type == DType::i32 || type == DType::u8;
}

/// Root mean square of the finite expected values that count.
double magnitude_of(const HostTensor& expected, const std::vector<bool>* computed) {
  double sum = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (computed && !(*computed)[static_cast<size_t>(i)]) continue;
    const double e = expected.at(i);
    if (!std::isfinite(e)) continue;
    sum += e * e;
    ++count;
  }
  return count ? std::sqrt(sum / static_cast<double>(count)) : 0;
}

/// |got - expected| / scale; infinite when one of them isn't finite and they aren't the same.
double error_of(double got, double expected, double magnitude) {
  if (std::isnan(got) && std::isnan(expected)) return 0;
  if (got == expected) return 0;
  if (!std::isfinite(got) || !std::isfinite(expected)) return INFINITY;
  const double scale = std::max(magnitude, std::fabs(expected));
  return scale > 0 ? std::fabs(got - expected) / scale : INFINITY;
}

}  // namespace

double tolerance_constant(OpClass op_class) {
  switch (op_class) {
    // Values are moved or chosen, never rounded: bit for bit the same.
    case OpClass::exact:
      return 0;
    // One product and one sum of inputs of at most 3.5 standard deviations (random.h): the product's rounding is at
    // most 3.5 u, the sum's 1 u, and rounding to the storage type can fall to the other neighbour, 2 u: 6.5, and the
    // next power of two.
    case OpClass::rounding:
      return 8;
    // GELU: about 9 roundings (cost.cpp) and a tanh of up to 2 ulp (CUDA C++ Programming Guide, table of maximum
    // errors; glibc manual, "Errors in Math Functions"), that is 13 u at the size of its largest input over its root
    // mean square, 0.5*3.5/0.65 = 2.7: 35, and the nearest power of two.
    case OpClass::transcendental:
      return 32;
    // A sum of k random terms in any order: the rounding errors are a random walk of relative size 0.41*u*sqrt(k)
    // (Higham & Mary, "A new approach to probabilistic rounding error analysis", SISC 2019), of which the largest among
    // 10^7 outputs is 5.3 standard deviations away: 2.2; the rounded result can fall to the other neighbour: 2.
    case OpClass::reduction:
      return 4;
  }
  throw Error("tolerance_constant: not an op class");
}

double relative_tolerance(const OutputTolerance& t) {
  const PrecisionInfo& precision = info(t.precision);
  double u = precision.unit_roundoff;
  if (t.op_class == OpClass::reduction) {
    // A compute type narrower than the storage type rounds both factors of every product first: 2 u of the product,
    // where factors that are already narrow have none.
    if (precision.matrix_only) u *= 2;
    u += unit_roundoff(precision.accumulate) * std::sqrt(static_cast<double>(std::max<int64_t>(t.reduction_length, 1)));
  } else if (precision.matrix_only) {
    u = unit_roundoff(precision.storage);  // such a precision exists in matrix products only
  }
  return tolerance_constant(t.op_class) * u;
}

TensorComparison compare_tensors(const std::string& name, const HostTensor& got, const HostTensor& expected,
                                 const std::vector<bool>* computed, const OutputTolerance& tolerance) {
  if (got.size() != expected.size() || got.dtype() != expected.dtype()) {
    throw Error(fmt::format("{}: can't compare {} {} with {} {}", name, to_string(got.dtype()), to_string(got.shape()),
                            to_string(expected.dtype()), to_string(expected.shape())));
  }
  TensorComparison result;
  result.tolerance = is_integer(got.dtype()) ? 0 : relative_tolerance(tolerance);
  result.total = expected.size();
  const double rms = magnitude_of(expected, computed);
  const double magnitude = std::max(rms, tolerance.magnitude);
  const size_t element = size_of(got.dtype());
  int64_t bad = 0;
  bool unwritten = false;
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (computed && !(*computed)[static_cast<size_t>(i)]) continue;
    ++result.compared;
    const double error = error_of(got.at(i), expected.at(i), magnitude);
    if (!(error <= result.tolerance)) ++bad;
    if (error > result.error || result.worst_index < 0) {
      result.error = error;
      result.worst_index = i;
      unwritten = is_marker(static_cast<const std::byte*>(got.data()) + static_cast<size_t>(i) * element, element);
    }
  }
  if (result.worst_index >= 0) {
    result.got = got.at(result.worst_index);
    result.expected = expected.at(result.worst_index);
  }
  result.ok = bad == 0;
  result.proves_little = result.compared > 0 && rms == 0;
  if (!result.ok) {
    result.message = fmt::format(
        "{} {}: {} of {} compared values are wrong; the worst, at {}: {} where reference has {} (relative error "
        "{:.3g}, "
        "allowed {:.3g})",
        name, to_string(expected.shape()), bad, result.compared, result.worst_index,
        unwritten ? std::string("never written") : fmt::format("{:.9g}", result.got),
        fmt::format("{:.9g}", result.expected), result.error, result.tolerance);
  }
  return result;
}

namespace {

/// Pieces of a buffer that are kept for the comparison: everything, or evenly spread pieces with the first and last.
struct Piece {
  size_t offset_bytes, bytes;
};
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr size_t kKeptBytes = size_t{32} << 20;  // of all buffers together: what verification may add to the tensors

std::vector<Piece> pieces_of(size_t bytes, size_t kept_bytes) {
  if (bytes <= kept_bytes) return {{0, bytes}};
  const size_t count = std::max<size_t>(2, kept_bytes / kPieceBytes);
  std::vector<Piece> pieces;
  for (size_t i = 0; i < count; ++i) {
    // Aligned to elements: all sizes are multiples of them.
    const double place =
        static_cast<double>(bytes - kPieceBytes) * static_cast<double>(i) / static_cast<double>(count - 1);
    const size_t offset = i + 1 == count ? bytes - kPieceBytes : static_cast<size_t>(place) / 64 * 64;
    pieces.push_back({offset, kPieceBytes});
  }
  return pieces;
}

size_t bytes_of(const BufferSpec& spec) {
  return static_cast<size_t>(byte_count(spec.shape, spec.dtype));
}

HostTensor read_pieces(const BufferSets& buffers, size_t buffer, const BufferSpec& spec, size_t kept_bytes) {
  const std::vector<Piece> pieces = pieces_of(bytes_of(spec), kept_bytes);
  size_t kept = 0;
  for (const Piece& piece : pieces) kept += piece.bytes;
  HostTensor tensor(pieces.size() == 1 ? spec.shape : Shape{static_cast<int64_t>(kept / size_of(spec.dtype))},
                    spec.dtype);
  size_t done = 0;
  for (const Piece& piece : pieces) {
    buffers.read_bytes(buffer, 0, piece.offset_bytes, piece.bytes, static_cast<std::byte*>(tensor.data()) + done);
    done += piece.bytes;
  }
  return tensor;
}

/// A hash of (pieces of) an input: equal on two devices when nobody wrote into it.
uint64_t hash_of(const BufferSets& buffers, size_t buffer, const BufferSpec& spec) {
  std::vector<uint64_t> words(kPieceBytes / sizeof(uint64_t));
  uint64_t hash = 0xCBF29CE484222325ull;  // FNV-1a over words, with a rotation that brings high bits down
  for (const Piece& kept : pieces_of(bytes_of(spec), kKeptBytes)) {
    for (size_t done = 0; done < kept.bytes; done += kPieceBytes) {
      const size_t bytes = std::min(kPieceBytes, kept.bytes - done);
      words[(bytes - 1) / sizeof(uint64_t)] = 0;
      buffers.read_bytes(buffer, 0, kept.offset_bytes + done, bytes, words.data());
      for (size_t i = 0; i < (bytes + 7) / 8; ++i) hash = std::rotl((hash ^ words[i]) * 0x100000001B3ull, 29);
    }
  }
  return hash;
}

/// Which elements the reference computed: those that no longer are the marker. Integers have no value to spare for one.
std::vector<bool> computed_elements(const HostTensor& expected) {
  std::vector<bool> computed(static_cast<size_t>(expected.size()), true);
  if (is_integer(expected.dtype())) return computed;
  const size_t element = size_of(expected.dtype());
  const auto* data = static_cast<const std::byte*>(expected.data());
  for (size_t i = 0; i < computed.size(); ++i) computed[i] = !is_marker(data + i * element, element);
  return computed;
}

/// What is kept of one step.
struct Outcome {
  std::vector<HostTensor> buffers;  ///< the verified ones; empty tensors for the others
  std::vector<uint64_t> inputs;     ///< hashes; 0 for what is no input
  std::string guards;
};

Outcome run_once(Workload& workload, Device& device, uint64_t seed, bool every_buffer) {
  const std::vector<BufferSpec>& specs = workload.buffers();
  BufferSets buffers(device, specs, 1, seed);
  workload.step(device, buffers.binding(0));
  device.synchronize();
  Outcome outcome;
  outcome.guards = buffers.check_guards();
  const auto verified =
      static_cast<size_t>(std::max<std::ptrdiff_t>(1, std::count_if(specs.begin(), specs.end(), is_verified)));
  for (size_t i = 0; i < specs.size(); ++i) {
    outcome.buffers.push_back(every_buffer            ? buffers.read(i)
                              : is_verified(specs[i]) ? read_pieces(buffers, i, specs[i], kKeptBytes / verified)
                                                      : HostTensor());
    outcome.inputs.push_back(
        specs[i].role == BufferRole::input && bytes_of(specs[i]) > 0 ? hash_of(buffers, i, specs[i]) : 0);
  }
  return outcome;
}

Verification self_check(Workload& workload, Device& device, uint64_t seed) {
  const Outcome outcome = run_once(workload, device, seed, true);
  Verification result;
  result.how = "self";
  result.message = outcome.guards.empty() ? workload.verify_self(device, outcome.buffers) : outcome.guards;
  result.ok = result.message.empty();
  return result;
}

/// Inputs must have kept their values; "" when they did.
std::string changed_input(const std::vector<BufferSpec>& specs, const Outcome& got, const Outcome& expected) {
  for (size_t i = 0; i < specs.size(); ++i) {
    if (got.inputs[i] != expected.inputs[i]) {
      return fmt::format("input {}: the step changed it, or its initial values differ from those on reference",
                         specs[i].name);
    }
  }
  return "";
}

/// Compares every verified buffer; keeps the error of the one that is worst in terms of its tolerance.
void compare_outputs(const Workload& workload, const Outcome& got, const Outcome& expected, Verification& result) {
  double worst = -1;
  int64_t compared = 0, total = 0;
  for (size_t i = 0; i < workload.buffers().size(); ++i) {
    const BufferSpec& spec = workload.buffers()[i];
    if (!is_verified(spec)) continue;
    // What a step updates in place (a state) has no marker: all of it counts.
    const std::vector<bool> computed = computed_elements(expected.buffers[i]);
    const TensorComparison comparison =
        compare_tensors(spec.name, got.buffers[i], expected.buffers[i],
                        spec.role == BufferRole::output ? &computed : nullptr, workload.tolerance(i));
    compared += comparison.compared;
    total += element_count(spec.shape);
    result.proves_little = result.proves_little || comparison.proves_little;
    const double badness = comparison.tolerance > 0 ? comparison.error / comparison.tolerance : comparison.error;
    if (badness > worst) {
      worst = badness;
      result.error = comparison.error;
      result.tolerance = comparison.tolerance;
    }
    if (result.message.empty()) result.message = comparison.message;
  }
  result.fraction = total ? static_cast<double>(compared) / static_cast<double>(total) : 1;
  result.how = compared < total ? "sampled" : "full";
  if (total > 0 && compared == 0)
    result.message = "reference computed none of the verified values; nothing was compared";
}

}  // namespace

Verification verify(Workload& workload, Device& device, uint64_t seed, double reference_flop_cap) {
  Verification result;
  if (device.info().kind == "meta") {
    result.how = "none";
    result.fraction = 0;
    return result;
  }
  if (workload.model()) return verify_program(workload, device, seed, reference_flop_cap);
  if (!workload.verifiable_by_reference()) return self_check(workload, device, seed);
  result.how = "full";
  const Outcome got = run_once(workload, device, seed, false);
  result.message = got.guards;
  if (result.message.empty()) {
    const auto reference = make_reference_device({.max_flops_per_op = reference_flop_cap});
    const Outcome expected = run_once(workload, *reference, seed, false);
    result.message = changed_input(workload.buffers(), got, expected);
    if (result.message.empty()) compare_outputs(workload, got, expected, result);
  }
  result.ok = result.message.empty();
  return result;
}

}  // namespace dlbench
