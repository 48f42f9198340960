// conv2d: products of column matrices on cuBLASLt, tensor cores included. Twin: src/cpu/conv2d.cpp.
//
// The column matrix is made in pieces small enough to be read back from the L2 cache, and never exists as a whole. nhwc
// is the layout for it: a tap is a run of channels (16-byte accesses), the rows of the product are the pixels of the
// output as they lie in memory, and the bias is one of cuBLASLt's epilogues. A 1x1 convolution of stride 1 needs no
// columns at all. nchw goes through transpositions of some images at a time.
//   forward           y[pixels, K] = columns(x) * w^T
//   backward_data     dx[pixels of a phase, C] = columns(dy) * w'^T, w' the filters that this phase sees; with a stride
//                     of 1 there is one phase, and the product is dx itself; no multiplication by zero in between
//   backward_weights  dw[K, taps * C] += dy^T * columns(x), added up over the pieces in the accumulate type
#include "gpu/conv2d.cuh"

#include <algorithm>

#include "gpu/columns.cuh"
#include "gpu/parallel.cuh"

namespace dlbench::gpu {

/// What a pass over nhwc images needs besides its arguments.
struct ConvMemory {
  void* columns = nullptr;
  int64_t columns_bytes = 0;
  void* filter = nullptr;  ///< the filter matrix, where it isn't w itself
  void* phase = nullptr;   ///< one product of backward_data, before its rows are spread over dx
  int64_t phase_bytes = 0;
  void* sums = nullptr;  ///< dw in the accumulate type, where that is wider than the storage type
};

namespace {

constexpr int64_t kTile = 128;                      // rows of a product that one multiprocessor takes at a time, about
constexpr int64_t kMostBytes = int64_t{128} << 20;  // of a piece, whatever the GPU

/// Bytes of one row and rows in all -> rows of a piece.
class Pieces {
 public:
  explicit Pieces(const Hardware& hardware)
      : cached_bytes_(hardware.l2_bytes / 2), rows_to_fill_(kTile * hardware.multiprocessors) {}
  /// As many as half of the L2 cache holds, but enough to give every multiprocessor a tile, and at most kMostBytes; a
  /// multiple of a tile where it can be, so that pieces begin aligned.
  int64_t rows(int64_t all, int64_t row_bytes) const {
    if (row_bytes == 0) return all;
    const int64_t wanted = std::max(cached_bytes_ / row_bytes, rows_to_fill_);
    const int64_t fit = std::max<int64_t>(std::min(wanted, kMostBytes / row_bytes), 1);
    if (fit >= all) return all;
    return fit >= kTile ? fit / kTile * kTile : fit;
  }
  /// Images whose `pixels` rows fill the GPU, or that the cache holds.
  int64_t images(int64_t all, int64_t pixels, int64_t image_bytes) const {
    const int64_t to_fill = (rows_to_fill_ + std::max<int64_t>(pixels, 1) - 1) / std::max<int64_t>(pixels, 1);
    const int64_t bytes = std::max<int64_t>(image_bytes, 1);
    const int64_t wanted = std::max(cached_bytes_ / bytes, to_fill);
    return std::clamp<int64_t>(std::min(wanted, kMostBytes / bytes), 1, std::max<int64_t>(all, 1));
  }

 private:
  int64_t cached_bytes_, rows_to_fill_;
};

int64_t element_bytes(const Conv2dSpec& s) {
  return static_cast<int64_t>(size_of(storage_of(s.precision)));
}

/// Rows of the matrices are whole packs: their products then run on kernels with 16-byte accesses.
int64_t whole_packs(const Conv2dSpec& s, int64_t elements) {
  const int64_t pack = 16 / element_bytes(s);
  return (elements + pack - 1) / pack * pack;
}

/// The columns of forward and backward_weights.
Gather forward_gather(const Conv2dSpec& s) {
  Gather g;
  g.rows_h = s.p();
  g.rows_w = s.q();
  g.taps_h = s.r;
  g.taps_w = s.s;
  g.channels = s.c;
  g.source_h = s.h;
  g.source_w = s.w;
  g.step = s.stride;
  g.base_h = g.base_w = -s.pad;
  g.pitch = g.is_source() ? s.c : whole_packs(s, g.width());
  return g;
}

/// Taps of one phase along one axis: first, first + stride, ...; source pixel of row i and tap j is i + base - j.
struct PhaseAxis {
  int64_t rows, first, taps, base;
};
PhaseAxis phase_axis(int64_t offset, int64_t extent, int64_t window, int64_t stride, int64_t pad) {
  const int64_t first = (offset + pad) % stride;
  return {offset < extent ? (extent - offset + stride - 1) / stride : 0, first,
          first < window ? (window - first + stride - 1) / stride : 0, (offset + pad - first) / stride};
}

/// The columns of backward_data for the pixels (i * stride + top, j * stride + left).
Gather phase_gather(const Conv2dSpec& s, int64_t top, int64_t left) {
  const PhaseAxis down = phase_axis(top, s.h, s.r, s.stride, s.pad);
  const PhaseAxis across = phase_axis(left, s.w, s.s, s.stride, s.pad);
  Gather g;
  g.rows_h = down.rows;
  g.rows_w = across.rows;
  g.taps_h = down.taps;
  g.taps_w = across.taps;
  g.channels = s.k;
  g.source_h = s.p();
  g.source_w = s.q();
  g.base_h = down.base;
  g.base_w = across.base;
  g.tap_step = -1;
  g.pitch = g.is_source() ? s.k : whole_packs(s, g.width());
  return g;
}

template <typename Body>
void for_phases(const Conv2dSpec& s, Body body) {
  for (int64_t top = 0; top < s.stride && top < s.h; ++top) {
    for (int64_t left = 0; left < s.stride && left < s.w; ++left) body(top, left, phase_gather(s, top, left));
  }
}

bool is_plain_product(const Conv2dSpec& s) {
  return s.r == 1 && s.s == 1 && s.stride == 1 && s.pad == 0;
}

/// Bytes of the largest piece of a column matrix.
int64_t piece_bytes(const Conv2dSpec& s, const Gather& g, const Pieces& pieces) {
  if (g.is_source()) return 0;
  const int64_t row_bytes = g.pitch * element_bytes(s);
  return pieces.rows(s.n * g.rows_h * g.rows_w, row_bytes) * row_bytes;
}

ConvMemory lay_out(const Conv2dSpec& s, ConvPass pass, const Pieces& pieces, bool keeps_sums, Carver& carver) {
  ConvMemory m;
  int64_t filter = 0, sums = 0;
  const Gather g = forward_gather(s);
  switch (pass) {
    case ConvPass::forward:
      m.columns_bytes = piece_bytes(s, g, pieces);
      if (!g.is_source() && g.pitch != g.width()) filter = s.k * g.pitch;
      break;
    case ConvPass::backward_data:
      if (is_plain_product(s)) break;
      for_phases(s, [&](int64_t, int64_t, const Gather& phase) {
        m.columns_bytes = std::max(m.columns_bytes, piece_bytes(s, phase, pieces));
        filter = std::max(filter, s.c * phase.pitch);
        if (s.stride == 1) return;
        const int64_t row_bytes = s.c * element_bytes(s), rows = s.n * phase.rows_h * phase.rows_w;
        m.phase_bytes = std::max(m.phase_bytes, pieces.rows(rows, row_bytes) * row_bytes);
      });
      break;
    case ConvPass::backward_weights:
      m.columns_bytes = piece_bytes(s, g, pieces);
      if (accumulate_of(s.precision) != storage_of(s.precision) && (keeps_sums || !g.is_source())) {
        sums = s.k * g.width() * static_cast<int64_t>(size_of(accumulate_of(s.precision)));
      }
      break;
  }
  m.columns = carver.take(m.columns_bytes);
  m.filter = carver.take(filter * element_bytes(s));
  m.phase = carver.take(m.phase_bytes);
  m.sums = carver.take(sums);
  return m;
}

/// Rows of a piece, given the memory that lay_out took for the largest.
int64_t rows_that_fit(int64_t all, int64_t row_bytes, int64_t bytes) {
  if (row_bytes == 0 || bytes / row_bytes >= all) return all;
  const int64_t fit = bytes / row_bytes;
  return fit >= kTile ? fit / kTile * kTile : fit;
}

/// A pass, in whichever layout: the transposed images and filters of nchw, and the memory of the nhwc pass.
struct ConvPlan {
  Conv2dSpec part;  ///< nhwc, with the images that are done at a time
  ConvMemory memory;
  void *x = nullptr, *y = nullptr, *w = nullptr;  ///< nhwc copies; null in nhwc
  int64_t bytes = 0;
};

ConvPlan plan_of(const Conv2dSpec& s, ConvPass pass, const Hardware& hardware, void* workspace) {
  const Pieces pieces(hardware);
  Carver carver(workspace);
  ConvPlan plan;
  plan.part = s;
  if (s.layout == ImageLayout::nchw) {
    const int64_t x_bytes = s.c * s.h * s.w * element_bytes(s), y_bytes = s.k * s.p() * s.q() * element_bytes(s);
    plan.part.layout = ImageLayout::nhwc;
    plan.part.n = pieces.images(s.n, s.p() * s.q(), x_bytes + y_bytes);
    plan.x = carver.take(plan.part.n * x_bytes);
    plan.y = carver.take(plan.part.n * y_bytes);
    plan.w = carver.take(s.k * s.c * s.r * s.s * element_bytes(s));
  }
  plan.memory = lay_out(plan.part, pass, pieces, plan.part.n < s.n, carver);
  plan.bytes = carver.used_bytes();
  return plan;
}

/// For some images of an nchw tensor at a time: body(spec of the part, elements of x before it, elements of y).
template <typename Body>
void for_image_parts(const Conv2dSpec& s, const ConvPlan& plan, Body body) {
  for (int64_t done = 0; done < s.n; done += plan.part.n) {
    Conv2dSpec part = plan.part;
    part.n = std::min(part.n, s.n - done);
    body(part, done * s.c * s.h * s.w, done * s.k * s.p() * s.q());
  }
}

template <typename T>
T* offset(T* p, int64_t elements, int64_t bytes_of_one) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return static_cast<Byte*>(p) + elements * bytes_of_one;
}

/// Between [batch, rows, columns] and [batch, columns, rows].
void transpose_images(cudaStream_t stream, int multiprocessors, const Conv2dSpec& s, int64_t batch, int64_t rows,
                      int64_t columns, const void* from, void* to) {
  visit_float_type(storage_of(s.precision), "conv2d", [&](auto tag) {
    using T = typename decltype(tag)::type;
    transpose(stream, multiprocessors, batch, rows, columns, static_cast<const T*>(from), static_cast<T*>(to));
  });
}

/// dbias of nchw: a sum over planes.
template <typename T>
struct BiasSource {
  const T* dy;
  struct Columns {
    const T* dy;
    __device__ void add(int64_t, int64_t offset, TwoSums<ComputeOf<T>> (&part)[1]) const {
      part[0].first += widen(dy[offset]);
    }
  };
  template <int kWidth>
  __device__ Columns columns(int64_t) const {
    return {dy};
  }
};
template <typename T>
struct BiasSink {
  T* dbias;
  __device__ void take(int64_t c, const TwoSums<ComputeOf<T>>& total) const { dbias[c] = narrow<T>(total.first); }
};

}  // namespace

int64_t GpuOps::conv2d_workspace_bytes(const Conv2dSpec& spec, ConvPass pass) const {
  require_valid(spec);
  return plan_of(spec, pass, hardware_, nullptr).bytes;
}

void GpuOps::forward_nhwc(const Conv2dSpec& spec, const ConvMemory& memory, const void* x, const void* w,
                          const void* bias, void* y) {
  const Gather g = forward_gather(spec);
  const int64_t bytes = element_bytes(spec), rows = spec.n * g.rows_h * g.rows_w;
  const bool relu = spec.activation == Activation::relu;
  GemmSpec product = {.precision = spec.precision, .trans_b = Transpose::yes, .n = spec.k, .k = g.pitch};
  product.epilogue = !spec.bias ? Epilogue::none : relu ? Epilogue::bias_relu : Epilogue::bias;
  if (g.is_source()) {
    product.m = rows;
    gemm(product, x, w, bias, y, nullptr);
  } else {
    const void* filter = w;
    visit_float_type(storage_of(spec.precision), "conv2d_forward", [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (memory.filter != nullptr) {
        filter = memory.filter;
        const FilterTaps taps = {spec.k, spec.r, spec.s, spec.c, 0, 0, 1, spec.r, spec.s, g.pitch};
        launch(stream_, dim3(grid_size(spec.k * g.pitch, hardware_.multiprocessors)), dim3(kThreads), 0,
               filter_kernel<T, false>, taps, static_cast<const T*>(w), static_cast<T*>(memory.filter));
      }
      const int64_t piece = rows_that_fit(rows, g.pitch * bytes, memory.columns_bytes);
      for (int64_t first = 0; first < rows; first += piece) {
        product.m = std::min(piece, rows - first);
        gather(stream_, hardware_.multiprocessors, g, spec.n, first, product.m, static_cast<const T*>(x),
               static_cast<T*>(memory.columns));
        gemm(product, memory.columns, filter, bias, offset(y, first * spec.k, bytes), nullptr);
      }
    });
  }
  if (relu && !spec.bias) relu_forward({.precision = spec.precision, .n = rows * spec.k}, y, y);
}

void GpuOps::conv2d_forward(const Conv2dSpec& spec, const void* x, const void* w, const void* bias, void* y,
                            void* workspace) {
  require_valid(spec);
  require(Op::conv2d_forward, spec.precision);
  if (spec.n == 0 || spec.k == 0) return;
  const ConvPlan plan = plan_of(spec, ConvPass::forward, hardware_, workspace);
  if (spec.layout == ImageLayout::nhwc) return forward_nhwc(spec, plan.memory, x, w, bias, y);
  const int processors = hardware_.multiprocessors;
  const int64_t bytes = element_bytes(spec), pixels = spec.h * spec.w, outputs = spec.p() * spec.q();
  transpose_images(stream_, processors, spec, spec.k, spec.c, spec.r * spec.s, w, plan.w);
  for_image_parts(spec, plan, [&](const Conv2dSpec& part, int64_t x_at, int64_t y_at) {
    transpose_images(stream_, processors, part, part.n, spec.c, pixels, offset(x, x_at, bytes), plan.x);
    forward_nhwc(part, plan.memory, plan.x, plan.w, bias, plan.y);
    transpose_images(stream_, processors, part, part.n, outputs, spec.k, plan.y, offset(y, y_at, bytes));
  });
}

void GpuOps::backward_data_nhwc(const Conv2dSpec& spec, const ConvMemory& memory, const void* dy, const void* w,
                                void* dx) {
  const int64_t bytes = element_bytes(spec), pixels = spec.n * spec.h * spec.w;
  if (is_plain_product(spec)) {
    return gemm({.precision = spec.precision, .m = pixels, .n = spec.c, .k = spec.k}, dy, w, nullptr, dx, nullptr);
  }
  bool untouched = false;  // pixels that no window reads
  for_phases(spec, [&](int64_t, int64_t, const Gather& g) { untouched = untouched || g.width() == 0; });
  if (untouched) DLB_CUDA(cudaMemsetAsync(dx, 0, static_cast<size_t>(pixels * spec.c * bytes), stream_));
  for_phases(spec, [&](int64_t top, int64_t left, const Gather& g) {
    if (g.width() == 0) return;
    visit_float_type(storage_of(spec.precision), "conv2d_backward_data", [&](auto tag) {
      using T = typename decltype(tag)::type;
      constexpr int kPack = Pack<T>::kSize;
      const FilterTaps taps = {
          spec.k,      spec.r,   spec.s,   spec.c, (top + spec.pad) % spec.stride, (left + spec.pad) % spec.stride,
          spec.stride, g.taps_h, g.taps_w, g.pitch};
      launch(stream_, dim3(grid_size(spec.c * g.pitch, hardware_.multiprocessors)), dim3(kThreads), 0,
             filter_kernel<T, true>, taps, static_cast<const T*>(w), static_cast<T*>(memory.filter));
      const Phase phase = {spec.h, spec.w, spec.c, g.rows_h, g.rows_w, spec.stride, top, left};
      const int64_t rows = spec.n * g.rows_h * g.rows_w;
      int64_t piece = g.is_source() ? rows : rows_that_fit(rows, g.pitch * bytes, memory.columns_bytes);
      if (spec.stride > 1) piece = rows_that_fit(piece, spec.c * bytes, memory.phase_bytes);
      GemmSpec product = {.precision = spec.precision, .trans_b = Transpose::yes, .n = spec.c, .k = g.pitch};
      for (int64_t first = 0; first < rows; first += piece) {
        product.m = std::min(piece, rows - first);
        const void* columns = memory.columns;
        if (g.is_source()) {
          columns = offset(dy, first * spec.k, bytes);
        } else {
          gather(stream_, hardware_.multiprocessors, g, spec.n, first, product.m, static_cast<const T*>(dy),
                 static_cast<T*>(memory.columns));
        }
        T* result = spec.stride == 1 ? static_cast<T*>(dx) + first * spec.c : static_cast<T*>(memory.phase);
        gemm(product, columns, memory.filter, nullptr, result, nullptr);
        if (spec.stride == 1) continue;
        const bool packs = spec.c % kPack == 0 && packs_aligned<kPack>(static_cast<const T*>(dx));
        const dim3 grid(grid_size(product.m * spec.c / (packs ? kPack : 1), hardware_.multiprocessors));
        launch(stream_, grid, dim3(kThreads), 0, packs ? scatter_kernel<T, kPack> : scatter_kernel<T, 1>, phase, first,
               product.m, static_cast<const T*>(result), static_cast<T*>(dx));
      }
    });
  });
}

void GpuOps::conv2d_backward_data(const Conv2dSpec& spec, const void* dy, const void* w, void* dx, void* workspace) {
  require_valid(spec);
  require(Op::conv2d_backward_data, spec.precision);
  const int64_t bytes = element_bytes(spec), pixels = spec.h * spec.w, outputs = spec.p() * spec.q();
  if (spec.n * spec.c * pixels == 0) return;
  const ConvPlan plan = plan_of(spec, ConvPass::backward_data, hardware_, workspace);
  if (spec.layout == ImageLayout::nhwc) return backward_data_nhwc(spec, plan.memory, dy, w, dx);
  const int processors = hardware_.multiprocessors;
  transpose_images(stream_, processors, spec, spec.k, spec.c, spec.r * spec.s, w, plan.w);
  for_image_parts(spec, plan, [&](const Conv2dSpec& part, int64_t x_at, int64_t y_at) {
    transpose_images(stream_, processors, part, part.n, spec.k, outputs, offset(dy, y_at, bytes), plan.y);
    backward_data_nhwc(part, plan.memory, plan.y, plan.w, plan.x);
    transpose_images(stream_, processors, part, part.n, pixels, spec.c, plan.x, offset(dx, x_at, bytes));
  });
}

/// `sums` [K, R, S, C]: memory.sums, or dw itself; `add`: to what is there.
void GpuOps::backward_weights_nhwc(const Conv2dSpec& spec, const ConvMemory& memory, const void* x, const void* dy,
                                   void* sums, bool add) {
  const Gather g = forward_gather(spec);
  const int64_t bytes = element_bytes(spec), rows = spec.n * g.rows_h * g.rows_w;
  GemmSpec product = {.precision = spec.precision, .trans_a = Transpose::yes, .m = spec.k, .n = g.width()};
  product.ldb = g.pitch;
  const auto accumulate = [&](const void* columns, int64_t first, int64_t count) {
    product.k = count;
    product.beta = add ? 1.0f : 0.0f;
    const void* dy_rows = offset(dy, first * spec.k, bytes);
    if (sums == memory.sums) {
      wide_gemm(product, dy_rows, columns, sums);
    } else {
      gemm(product, dy_rows, columns, nullptr, sums, nullptr);
    }
    add = true;
  };
  if (g.is_source()) return accumulate(x, 0, rows);
  visit_float_type(storage_of(spec.precision), "conv2d_backward_weights", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t piece = rows_that_fit(rows, g.pitch * bytes, memory.columns_bytes);
    for (int64_t first = 0; first < rows; first += piece) {
      const int64_t count = std::min(piece, rows - first);
      gather(stream_, hardware_.multiprocessors, g, spec.n, first, count, static_cast<const T*>(x),
             static_cast<T*>(memory.columns));
      accumulate(memory.columns, first, count);
    }
  });
}

void GpuOps::convolution_bias_gradient(const Conv2dSpec& spec, const void* dy, void* dbias) {
  const int64_t outputs = spec.p() * spec.q();
  visit_float_type(storage_of(spec.precision), "conv2d_backward_weights", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Part = TwoSums<ComputeOf<T>>;
    const T* from = static_cast<const T*>(dy);
    T* to = static_cast<T*>(dbias);
    if (spec.layout == ImageLayout::nhwc) {
      return reduce_columns<T>(stream_, hardware_.multiprocessors, scratch_, 1, spec.n * outputs, spec.k, 0, Sum{},
                               ComputeOf<T>(0), from, static_cast<const T*>(nullptr), to);
    }
    constexpr int64_t kFiltersOfACall = 16384;
    for (int64_t first = 0; first < spec.k; first += kFiltersOfACall) {
      const Planes planes = {spec.n, std::min(kFiltersOfACall, spec.k - first), outputs, spec.k * outputs};
      plane_sums(stream_, hardware_.multiprocessors, planes, BiasSource<T>{from + first * outputs},
                 BiasSink<T>{to + first}, static_cast<Part*>(scratch_.data),
                 static_cast<int64_t>(scratch_.bytes / sizeof(Part)));
    }
  });
}

void GpuOps::conv2d_backward_weights(const Conv2dSpec& spec, const void* x, const void* dy, void* dw, void* dbias,
                                     void* workspace) {
  require_valid(spec);
  require(Op::conv2d_backward_weights, spec.precision);
  if (spec.k == 0) return;
  const int64_t bytes = element_bytes(spec), filters = spec.k * spec.c * spec.r * spec.s;
  if (spec.bias) convolution_bias_gradient(spec, dy, dbias);
  if (filters == 0) return;
  if (spec.n == 0) {
    DLB_CUDA(cudaMemsetAsync(dw, 0, static_cast<size_t>(filters * bytes), stream_));
    return;
  }
  const ConvPlan plan = plan_of(spec, ConvPass::backward_weights, hardware_, workspace);
  const bool planar = spec.layout == ImageLayout::nchw;
  void* result = planar ? plan.w : dw;  // [K, R, S, C]
  void* sums = plan.memory.sums != nullptr ? plan.memory.sums : result;
  const int processors = hardware_.multiprocessors;
  if (planar) {
    for_image_parts(spec, plan, [&](const Conv2dSpec& part, int64_t x_at, int64_t y_at) {
      transpose_images(stream_, processors, part, part.n, spec.c, spec.h * spec.w, offset(x, x_at, bytes), plan.x);
      transpose_images(stream_, processors, part, part.n, spec.k, spec.p() * spec.q(), offset(dy, y_at, bytes), plan.y);
      backward_weights_nhwc(part, plan.memory, plan.x, plan.y, sums, x_at > 0 || y_at > 0);
    });
  } else {
    backward_weights_nhwc(spec, plan.memory, x, dy, sums, false);
  }
  if (sums != result) {
    convert({.from = accumulate_of(spec.precision), .to = storage_of(spec.precision), .n = filters}, sums, result);
  }
  if (planar) transpose_images(stream_, processors, spec, spec.k, spec.r * spec.s, spec.c, plan.w, dw);
}

}  // namespace dlbench::gpu
