// Convolution of the reference: the definition in training_specs.h, one image at a time.
//
// An image is widened into a padded copy [C, H+2*pad, W+2*pad], so that no loop asks where the border is, whatever the
// layout. What an op computes when it costs too much: whole rows of y and dx (one n, one channel, one p or h), and the
// gradients of whole filter planes (one k, one c).
#include <algorithm>
#include <vector>

#include "core/device/reference_elements.h"
#include "core/device/reference_ops.h"
#include "core/math/activation.h"

namespace dlbench {

namespace {

double as_double(int64_t value) {
  return static_cast<double>(value);
}

/// Where an image [channels, height, width] lies in memory: as rows of the outer index of its layout.
struct ImageRuns {
  ImageLayout layout;
  int64_t channels, height, width;

  /// One row of one channel of image n.
  Run row(int64_t n, int64_t channel, int64_t y) const {
    if (layout == ImageLayout::nchw) return {((n * channels + channel) * height + y) * width, width, 1};
    return {(n * height + y) * width * channels + channel, width, channels};
  }
};

/// Image n, widened, with a border of `pad` zeros: [channels, height + 2*pad, width + 2*pad].
std::vector<double> padded_image(DType type, const void* images, const ImageRuns& runs, int64_t n, int64_t pad) {
  const int64_t height = runs.height + 2 * pad, width = runs.width + 2 * pad;
  std::vector<double> image(static_cast<size_t>(runs.channels * height * width));
  for (int64_t c = 0; c < runs.channels; ++c) {
    for (int64_t y = 0; y < runs.height; ++y) {
      load_run(type, images, runs.row(n, c, y), image.data() + (c * height + y + pad) * width + pad);
    }
  }
  return image;
}

/// The plane r x s of filter k and channel c.
Run filter_plane(const Conv2dSpec& s, int64_t k, int64_t c) {
  const int64_t plane = s.r * s.s;
  if (s.layout == ImageLayout::nchw) return {(k * s.c + c) * plane, plane, 1};
  return {k * plane * s.c + c, plane, s.c};
}

/// Filters, widened: [K, C, R, S].
std::vector<double> widened_filters(const Conv2dSpec& s, const void* w) {
  const int64_t plane = s.r * s.s;
  std::vector<double> filters(static_cast<size_t>(s.k * s.c * plane));
  for (int64_t k = 0; k < s.k; ++k) {
    for (int64_t c = 0; c < s.c; ++c) {
      load_run(storage_of(s.precision), w, filter_plane(s, k, c), filters.data() + (k * s.c + c) * plane);
    }
  }
  return filters;
}

ImageRuns input_runs(const Conv2dSpec& s) {
  return {s.layout, s.c, s.h, s.w};
}
ImageRuns output_runs(const Conv2dSpec& s) {
  return {s.layout, s.k, s.p(), s.q()};
}

/// sums[q] += the products of row p of filter k with the padded image.
void convolve_row(const Conv2dSpec& s, const std::vector<double>& image, const std::vector<double>& filters, int64_t k,
                  int64_t p, std::vector<double>& sums) {
  const int64_t height = s.h + 2 * s.pad, width = s.w + 2 * s.pad;
  for (int64_t c = 0; c < s.c; ++c) {
    for (int64_t r = 0; r < s.r; ++r) {
      const double* row = image.data() + (c * height + p * s.stride + r) * width;
      const double* weights = filters.data() + ((k * s.c + c) * s.r + r) * s.s;
      for (int64_t f = 0; f < s.s; ++f) {
        for (size_t q = 0; q < sums.size(); ++q) sums[q] += weights[f] * row[static_cast<int64_t>(q) * s.stride + f];
      }
    }
  }
}

/// sums[x] += the gradient of row y of channel c of the padded image.
void spread_row(const Conv2dSpec& s, const std::vector<double>& dy, const std::vector<double>& filters, int64_t c,
                int64_t y, std::vector<double>& sums) {
  const int64_t p_extent = s.p(), q_extent = s.q();
  for (int64_t r = 0; r < s.r; ++r) {
    if (y < r || (y - r) % s.stride != 0 || (y - r) / s.stride >= p_extent) continue;
    const int64_t p = (y - r) / s.stride;
    for (int64_t k = 0; k < s.k; ++k) {
      const double* row = dy.data() + (k * p_extent + p) * q_extent;
      const double* weights = filters.data() + ((k * s.c + c) * s.r + r) * s.s;
      for (int64_t f = 0; f < s.s; ++f) {
        for (int64_t q = 0; q < q_extent; ++q) sums[static_cast<size_t>(q * s.stride + f)] += weights[f] * row[q];
      }
    }
  }
}

/// sums[r,s] += the gradient that image and dy give the plane of filter k and channel c.
void correlate_plane(const Conv2dSpec& s, const std::vector<double>& image, const std::vector<double>& dy, int64_t k,
                     int64_t c, double* sums) {
  const int64_t height = s.h + 2 * s.pad, width = s.w + 2 * s.pad, p_extent = s.p(), q_extent = s.q();
  for (int64_t p = 0; p < p_extent; ++p) {
    const double* gradient = dy.data() + (k * p_extent + p) * q_extent;
    for (int64_t r = 0; r < s.r; ++r) {
      const double* row = image.data() + (c * height + p * s.stride + r) * width;
      for (int64_t f = 0; f < s.s; ++f) {
        double sum = 0;
        for (int64_t q = 0; q < q_extent; ++q) sum += gradient[q] * row[q * s.stride + f];
        sums[r * s.s + f] += sum;
      }
    }
  }
}

}  // namespace

void ReferenceOps::conv2d_forward(const Conv2dSpec& s, const void* x, const void* w, const void* bias, void* y, void*) {
  require_valid(s);
  const DType type = storage_of(s.precision);
  const ImageRuns out = output_runs(s);
  const RowSample sample(s.n * s.k * out.height,
                         2.0 * as_double(out.width) * as_double(s.c) * as_double(s.r) * as_double(s.s),
                         options_.max_flops_per_op);
  const std::vector<double> filters = widened_filters(s, w);
  const std::vector<double> biases = s.bias ? load_run(type, bias, {0, s.k, 1}) : std::vector<double>();
  std::vector<double> image, sums(static_cast<size_t>(out.width));
  for (int64_t n = 0; n < s.n; ++n) {
    image.clear();
    for (int64_t k = 0; k < s.k; ++k) {
      for (int64_t p = 0; p < out.height; ++p) {
        if (!sample.contains((n * s.k + k) * out.height + p)) continue;
        if (image.empty()) image = padded_image(type, x, input_runs(s), n, s.pad);
        std::fill(sums.begin(), sums.end(), 0.0);
        convolve_row(s, image, filters, k, p, sums);
        for (double& sum : sums) {
          if (s.bias) sum += biases[static_cast<size_t>(k)];
          if (s.activation == Activation::relu) sum = ReluForward{}(sum);
        }
        store_run(type, y, out.row(n, k, p), sums);
      }
    }
  }
}

void ReferenceOps::conv2d_backward_data(const Conv2dSpec& s, const void* dy, const void* w, void* dx, void*) {
  require_valid(s);
  const DType type = storage_of(s.precision);
  const ImageRuns in = input_runs(s);
  const double row_flops = 2.0 * as_double(s.k) * as_double(s.p()) * as_double(s.q()) * as_double(s.r) *
                           as_double(s.s) / std::max(1.0, as_double(s.h));
  const RowSample sample(s.n * s.c * s.h, row_flops, options_.max_flops_per_op);
  const std::vector<double> filters = widened_filters(s, w);
  std::vector<double> gradient, sums(static_cast<size_t>(s.w + 2 * s.pad));
  for (int64_t n = 0; n < s.n; ++n) {
    gradient.clear();
    for (int64_t c = 0; c < s.c; ++c) {
      for (int64_t h = 0; h < s.h; ++h) {
        if (!sample.contains((n * s.c + c) * s.h + h)) continue;
        if (gradient.empty()) gradient = padded_image(type, dy, output_runs(s), n, 0);
        std::fill(sums.begin(), sums.end(), 0.0);
        spread_row(s, gradient, filters, c, h + s.pad, sums);
        store_run(type, dx, in.row(n, c, h), sums.data() + s.pad);
      }
    }
  }
}

void ReferenceOps::conv2d_backward_weights(const Conv2dSpec& s, const void* x, const void* dy, void* dw, void* dbias,
                                           void*) {
  require_valid(s);
  const DType type = storage_of(s.precision);
  const int64_t plane = s.r * s.s, outputs = s.p() * s.q();
  const RowSample sample(s.k * s.c, 2.0 * as_double(s.n) * as_double(outputs) * as_double(plane),
                         options_.max_flops_per_op);
  std::vector<double> sums(static_cast<size_t>(s.k * s.c * plane)), bias_sums(static_cast<size_t>(s.bias ? s.k : 0));
  for (int64_t n = 0; n < s.n; ++n) {
    const std::vector<double> image = padded_image(type, x, input_runs(s), n, s.pad);
    const std::vector<double> gradient = padded_image(type, dy, output_runs(s), n, 0);
    for (int64_t k = 0; k < s.k; ++k) {
      for (int64_t c = 0; c < s.c; ++c) {
        if (sample.contains(k * s.c + c)) {
          correlate_plane(s, image, gradient, k, c, sums.data() + (k * s.c + c) * plane);
        }
      }
      if (!s.bias) continue;
      for (int64_t i = 0; i < outputs; ++i) {
        bias_sums[static_cast<size_t>(k)] += gradient[static_cast<size_t>(k * outputs + i)];
      }
    }
  }
  for (int64_t k = 0; k < s.k; ++k) {
    for (int64_t c = 0; c < s.c; ++c) {
      if (sample.contains(k * s.c + c)) {
        store_run(type, dw, filter_plane(s, k, c), sums.data() + (k * s.c + c) * plane);
      }
    }
  }
  if (s.bias) store_run(type, dbias, {0, s.k, 1}, bias_sums);
}

}  // namespace dlbench
