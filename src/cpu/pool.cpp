// Pooling over windows. Twin: src/gpu/pool.cu.
//
// Both passes gather: an output (backward: an input) pixel reads the pixels that it depends on, so that nothing is
// added by two threads. An image in nchw is N*C images of one channel.
#include <algorithm>

#include "core/base/error.h"
#include "cpu/ops.h"

namespace dlbench::cpu {

namespace {

/// Images of `channels` contiguous elements per pixel.
struct Images {
  int64_t count, channels;
  explicit Images(const PoolSpec& s)
      : count(s.layout == ImageLayout::nhwc ? s.n : s.n * s.c), channels(s.layout == ImageLayout::nhwc ? s.c : 1) {}
};

/// Inputs [begin, end) of the window at `output`.
Range window_of(int64_t output, int64_t size, int64_t stride, int64_t pad, int64_t extent) {
  const int64_t begin = output * stride - pad;
  return {std::max<int64_t>(begin, 0), std::min(begin + size, extent)};
}
/// Outputs [begin, end) whose windows hold `input`.
Range windows_with(int64_t input, int64_t size, int64_t stride, int64_t pad, int64_t outputs) {
  const int64_t at = input + pad;
  return {at < size ? 0 : (at - size) / stride + 1, std::min(outputs, at / stride + 1)};
}

/// Channels in pieces where there are few rows: enough tasks for every thread.
int64_t pieces_of(int64_t rows, int64_t channels, int threads) {
  return rows >= 4 * threads ? 1 : std::clamp<int64_t>(channels / 128, 1, 4 * threads);
}

}  // namespace

void CpuOps::pool_forward(const PoolSpec& s, const void* x, void* y, uint8_t* index) {
  require_valid(s);
  require_support(supports(Op::pool_forward, s.precision), Op::pool_forward, s.precision);
  const Images images(s);
  const int type = element_index(storage_of(s.precision));
  const int64_t e = static_cast<int64_t>(size_of(storage_of(s.precision))), p = s.p(), q = s.q();
  const bool max = s.pooling == Pooling::max;
  const auto kernel = max ? images_.window_max[type] : images_.window_sum[type];
  const int64_t pieces = pieces_of(images.count * p, images.channels, team_.threads());
  const auto row = [&](int64_t task) {
    const int64_t piece = task % pieces, out_row = task / pieces % p, image = task / pieces / p;
    const int64_t c = images.channels * piece / pieces, c_end = images.channels * (piece + 1) / pieces;
    const Range h = window_of(out_row, s.r, s.stride, s.pad, s.h);
    WindowArgs t;
    t.rows = h.end - h.begin, t.row_stride = s.w * images.channels, t.column_stride = images.channels;
    t.channels = c_end - c;
    t.place_row_step = static_cast<int>(s.s), t.place_column_step = 1;
    t.factor = 1.0 / static_cast<double>(s.r * s.s);
    for (int64_t out = 0; out < q; ++out) {
      const Range w = window_of(out, s.s, s.stride, s.pad, s.w);
      const int64_t from = ((image * s.h + h.begin) * s.w + w.begin) * images.channels + c;
      const int64_t to = ((image * p + out_row) * q + out) * images.channels + c;
      t.x = static_cast<const char*>(x) + from * e;
      t.columns = w.end - w.begin;
      t.place = static_cast<int>((h.begin - out_row * s.stride + s.pad) * s.s + w.begin - out * s.stride + s.pad);
      t.y = static_cast<char*>(y) + to * e;
      t.index_out = max ? index + to : nullptr;
      kernel(t);
    }
  };
  team_.parallel_for(images.count * p * pieces, grain(e * q * images.channels * s.r * s.s / pieces), 1,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t task = begin; task < end; ++task) row(task);
                     });
}

void CpuOps::pool_backward(const PoolSpec& s, const void* dy, const uint8_t* index, void* dx) {
  require_valid(s);
  require_support(supports(Op::pool_backward, s.precision), Op::pool_backward, s.precision);
  const Images images(s);
  const int64_t e = static_cast<int64_t>(size_of(storage_of(s.precision))), p = s.p(), q = s.q();
  const bool max = s.pooling == Pooling::max;
  const auto kernel = images_.window_sum[element_index(storage_of(s.precision))];
  const auto row = [&](int64_t task) {
    const int64_t in_row = task % s.h, image = task / s.h;
    const Range h = windows_with(in_row, s.r, s.stride, s.pad, p);
    WindowArgs t;
    t.rows = std::max<int64_t>(0, h.end - h.begin), t.row_stride = q * images.channels;
    t.column_stride = t.channels = images.channels;
    // The next window begins a stride later: in it, the same input is a stride earlier.
    t.place_row_step = static_cast<int>(-s.stride * s.s), t.place_column_step = static_cast<int>(-s.stride);
    t.factor = max ? 1.0 : 1.0 / static_cast<double>(s.r * s.s);
    for (int64_t in = 0; in < s.w; ++in) {
      const Range w = windows_with(in, s.s, s.stride, s.pad, q);
      t.columns = std::max<int64_t>(0, w.end - w.begin);
      const int64_t from = ((image * p + h.begin) * q + w.begin) * images.channels;
      t.x = t.rows * t.columns > 0 ? static_cast<const char*>(dy) + from * e : nullptr;
      t.index_in = max && t.rows * t.columns > 0 ? index + from : nullptr;
      t.place = static_cast<int>((in_row + s.pad - h.begin * s.stride) * s.s + in + s.pad - w.begin * s.stride);
      t.y = static_cast<char*>(dx) + ((image * s.h + in_row) * s.w + in) * images.channels * e;
      kernel(t);
    }
  };
  team_.parallel_for(images.count * s.h, grain(3 * e * s.w * images.channels), 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) row(task);
  });
}

}  // namespace dlbench::cpu
