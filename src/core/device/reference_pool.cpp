// Pooling of the reference: the definition in training_specs.h, one channel of one image at a time.
#include <cmath>
#include <limits>
#include <vector>

#include "core/device/reference_elements.h"
#include "core/device/reference_ops.h"

namespace dlbench {

namespace {

/// All values of one channel of image n, in rows.
Run plane_of(ImageLayout layout, int64_t channels, int64_t pixels, int64_t n, int64_t c) {
  if (layout == ImageLayout::nchw) return {(n * channels + c) * pixels, pixels, 1};
  return {n * pixels * channels + c, pixels, channels};
}

/// Calls body(place, pixel) for the places of the window of output (p, q) that lie inside the image.
template <typename Body>
void for_window(const PoolSpec& s, int64_t p, int64_t q, Body body) {
  for (int64_t r = 0; r < s.r; ++r) {
    for (int64_t f = 0; f < s.s; ++f) {
      const int64_t y = p * s.stride + r - s.pad, x = q * s.stride + f - s.pad;
      if (y >= 0 && y < s.h && x >= 0 && x < s.w) body(r * s.s + f, static_cast<size_t>(y * s.w + x));
    }
  }
}

/// The largest value of a window and its place; a NaN wins over every number, and the first of equals over the others.
struct Winner {
  double value = -std::numeric_limits<double>::infinity();
  int64_t place = -1;
  void meet(double candidate, int64_t at) {
    if (place >= 0 && (std::isnan(value) || !(candidate > value || std::isnan(candidate)))) return;
    value = candidate;
    place = at;
  }
};

}  // namespace

void ReferenceOps::pool_forward(const PoolSpec& s, const void* x, void* y, uint8_t* index) {
  require_valid(s);
  const DType type = storage_of(s.precision);
  const int64_t outputs = s.p() * s.q();
  std::vector<double> result(static_cast<size_t>(outputs));
  for (int64_t n = 0; n < s.n; ++n) {
    for (int64_t c = 0; c < s.c; ++c) {
      const std::vector<double> image = load_run(type, x, plane_of(s.layout, s.c, s.h * s.w, n, c));
      const Run out = plane_of(s.layout, s.c, outputs, n, c);
      for (int64_t o = 0; o < outputs; ++o) {
        Winner winner;
        double sum = 0;
        for_window(s, o / s.q(), o % s.q(), [&](int64_t place, size_t pixel) {
          winner.meet(image[pixel], place);
          sum += image[pixel];
        });
        const bool max = s.pooling == Pooling::max;
        result[static_cast<size_t>(o)] = max ? winner.value : sum / static_cast<double>(s.r * s.s);
        if (max) index[out.first + o * out.step] = static_cast<uint8_t>(winner.place < 0 ? 0 : winner.place);
      }
      store_run(type, y, out, result);
    }
  }
}

void ReferenceOps::pool_backward(const PoolSpec& s, const void* dy, const uint8_t* index, void* dx) {
  require_valid(s);
  const DType type = storage_of(s.precision);
  const int64_t outputs = s.p() * s.q();
  for (int64_t n = 0; n < s.n; ++n) {
    for (int64_t c = 0; c < s.c; ++c) {
      const Run out = plane_of(s.layout, s.c, outputs, n, c);
      const std::vector<double> gradient = load_run(type, dy, out);
      std::vector<double> sums(static_cast<size_t>(s.h * s.w));
      for (int64_t o = 0; o < outputs; ++o) {
        const double share = gradient[static_cast<size_t>(o)];
        for_window(s, o / s.q(), o % s.q(), [&](int64_t place, size_t pixel) {
          if (s.pooling == Pooling::average) {
            sums[pixel] += share / static_cast<double>(s.r * s.s);
          } else if (place == index[out.first + o * out.step]) {
            sums[pixel] += share;
          }
        });
      }
      store_run(type, dx, plane_of(s.layout, s.c, s.h * s.w, n, c), sums);
    }
  }
}

}  // namespace dlbench
