// convert: n elements from one float type to another, rounded once. Twin: src/cpu/convert.cpp.
#include "gpu/parallel.cuh"

namespace dlbench::gpu {
namespace {

template <typename T>
using Quad = Pack<T, 4>;

/// The float from which rounding to a 16-bit type gives what rounding `x` itself would: truncated, with the last bit
/// set when something was cut off (round to odd, Boldo & Melquiond 2008). Twin on the host: core/math/rounding.h.
DLB_HD float round_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const double back = static_cast<double>(nearest);
  if (back == x || x != x) return nearest;
  uint32_t bits = detail::float_bits(nearest);
  const bool away = (x < 0 ? -back : back) > (x < 0 ? -x : x);
  if (away) bits -= 1;  // one step towards zero: the magnitude is in the low bits
  return detail::bits_float(bits | 1u);
}

template <typename To, typename From>
DLB_HD To convert_value(From x) {
  if constexpr (std::is_same_v<To, double>) {
    return static_cast<double>(widen(x));
  } else if constexpr (std::is_same_v<From, double> && !std::is_same_v<To, float>) {
    return from_float<To>(round_to_odd(x));
  } else {
    return from_float<To>(to_float(x));
  }
}

template <typename From, typename To>
__global__ void convert_kernel(int64_t n, int64_t quads, const From* x, To* y) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t q = thread; q < quads; q += threads) {
    const Quad<From> in = reinterpret_cast<const Quad<From>*>(x)[q];
    Quad<To> out;
    DLB_UNROLL
    for (int k = 0; k < 4; ++k) out.value[k] = convert_value<To>(in.value[k]);
    reinterpret_cast<Quad<To>*>(y)[q] = out;
  }
  for (int64_t i = quads * 4 + thread; i < n; i += threads) y[i] = convert_value<To>(x[i]);
}

}  // namespace

void GpuOps::convert(const ConvertSpec& spec, const void* x, void* y) {
  require_valid(spec);
  if (spec.n == 0) return;
  visit_float_type(spec.from, "convert", [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    visit_float_type(spec.to, "convert", [&](auto to_tag) {
      using To = typename decltype(to_tag)::type;
      const From* in = static_cast<const From*>(x);
      To* out = static_cast<To*>(y);
      const int64_t quads = packs_aligned<4>(in) && packs_aligned<4>(out) ? spec.n / 4 : 0;
      launch(stream_, dim3(grid_size(quads > 0 ? quads : spec.n, hardware_.multiprocessors)), dim3(kThreads), 0,
             convert_kernel<From, To>, spec.n, quads, in, out);
    });
  });
}

}  // namespace dlbench::gpu
