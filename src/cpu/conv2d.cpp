// Convolution. Twin: src/gpu/conv2d.cu.
//
// conv_plan.h does the work, on [N,H,W,C]; images that come as [N,C,H,W] are transposed into the workspace and back.
#include <cstring>
#include <stdexcept>

#include "cpu/conv_plan.h"
#include "cpu/ops.h"

namespace dlbench::cpu {

namespace {

constexpr int64_t kAlignment = 256;

int64_t round_up(int64_t value) {
  return (value + kAlignment - 1) / kAlignment * kAlignment;
}

template <typename T>
void transpose_tile(const T* from, int64_t rows, int64_t columns, int64_t row_begin, int64_t row_end, T* to) {
  constexpr int64_t kTile = 16;
  for (int64_t c = 0; c < columns; c += kTile) {
    const int64_t end = std::min(columns, c + kTile);
    for (int64_t r = row_begin; r < row_end; ++r) {
      for (int64_t j = c; j < end; ++j) to[j * rows + r] = from[r * columns + j];
    }
  }
}

/// `count` matrices [rows, columns] to [columns, rows].
void transpose(Team& team, int64_t count, int64_t rows, int64_t columns, int64_t element_bytes, const void* from,
               void* to) {
  constexpr int64_t kRows = 16;
  const int64_t blocks = (rows + kRows - 1) / kRows, grain = std::max<int64_t>(1, 4096 / (kRows * columns + 1));
  team.parallel_for(count * blocks, grain, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t matrix = task / blocks * rows * columns, row = task % blocks * kRows;
      const auto run = [&](auto element) {
        using T = decltype(element);
        transpose_tile(static_cast<const T*>(from) + matrix, rows, columns, row, std::min(rows, row + kRows),
                       static_cast<T*>(to) + matrix);
      };
      if (element_bytes == 2)
        run(uint16_t{});
      else if (element_bytes == 4)
        run(uint32_t{});
      else
        run(uint64_t{});
    }
  });
}

/// Where the transposed operands of an nchw call lie in its workspace.
struct Transposed {
  Conv2dSpec spec;  ///< nhwc
  int64_t element_bytes, x_bytes, w_bytes, y_bytes;
  explicit Transposed(const Conv2dSpec& s)
      : spec(s), element_bytes(static_cast<int64_t>(size_of(storage_of(s.precision)))) {
    spec.layout = ImageLayout::nhwc;
    x_bytes = round_up(s.n * s.c * s.h * s.w * element_bytes);
    w_bytes = s.r * s.s == 1 ? 0 : round_up(s.k * s.c * s.r * s.s * element_bytes);
    y_bytes = round_up(s.n * s.k * s.p() * s.q() * element_bytes);
  }
  int64_t bytes() const { return kAlignment + x_bytes + w_bytes + y_bytes; }
};

class Operands {
 public:
  Operands(Team& team, const Transposed& t, void* workspace)
      : team_(team),
        t_(t),
        s_(t.spec),
        x_(static_cast<char*>(align(workspace))),
        w_(x_ + t.x_bytes),
        y_(w_ + t.w_bytes) {}
  void* x() { return x_; }
  void* y() { return y_; }
  void* rest() { return y_ + t_.y_bytes; }
  void* w(void* as_given) { return t_.w_bytes == 0 ? as_given : w_; }
  const void* read_x(const void* x) { return move(s_.n, s_.c, s_.h * s_.w, x, x_); }
  const void* read_y(const void* y) { return move(s_.n, s_.k, s_.p() * s_.q(), y, y_); }
  const void* read_w(const void* w) { return t_.w_bytes == 0 ? w : move(s_.k, s_.c, s_.r * s_.s, w, w_); }
  void write_x(void* x) { move(s_.n, s_.h * s_.w, s_.c, x_, x); }
  void write_y(void* y) { move(s_.n, s_.p() * s_.q(), s_.k, y_, y); }
  void write_w(void* w) {
    if (t_.w_bytes != 0) move(s_.k, s_.r * s_.s, s_.c, w_, w);
  }

 private:
  static void* align(void* p) { return static_cast<char*>(p) + (-reinterpret_cast<intptr_t>(p) & (kAlignment - 1)); }
  const void* move(int64_t count, int64_t rows, int64_t columns, const void* from, void* to) {
    transpose(team_, count, rows, columns, t_.element_bytes, from, to);
    return to;
  }
  Team& team_;
  const Transposed& t_;
  const Conv2dSpec& s_;
  char *x_, *w_, *y_;
};

void require_bias(const Conv2dSpec& s, const void* bias) {
  if (s.bias != (bias != nullptr))
    throw std::invalid_argument("conv2d: bias is needed where spec.bias says so, and only there");
}

}  // namespace

int64_t CpuOps::conv2d_workspace_bytes(const Conv2dSpec& spec, ConvPass pass) const {
  require_valid(spec);
  if (supports(Op::conv2d_forward, spec.precision).level == SupportLevel::no) return 0;
  if (spec.layout == ImageLayout::nhwc) return conv_->workspace_bytes(spec, pass);
  const Transposed t(spec);
  return t.bytes() + conv_->workspace_bytes(t.spec, pass);
}

void CpuOps::conv2d_forward(const Conv2dSpec& spec, const void* x, const void* w, const void* bias, void* y,
                            void* workspace) {
  require_valid(spec);
  require_support(supports(Op::conv2d_forward, spec.precision), Op::conv2d_forward, spec.precision);
  require_bias(spec, bias);
  if (spec.layout == ImageLayout::nhwc) return conv_->forward(spec, x, w, bias, y, workspace);
  const Transposed t(spec);
  Operands o(team_, t, workspace);
  const void* w_nhwc = o.read_w(w);
  conv_->forward(t.spec, o.read_x(x), w_nhwc, bias, o.y(), o.rest());
  o.write_y(y);
}

void CpuOps::conv2d_backward_data(const Conv2dSpec& spec, const void* dy, const void* w, void* dx, void* workspace) {
  require_valid(spec);
  require_support(supports(Op::conv2d_backward_data, spec.precision), Op::conv2d_backward_data, spec.precision);
  if (spec.layout == ImageLayout::nhwc) return conv_->backward_data(spec, dy, w, dx, workspace);
  const Transposed t(spec);
  Operands o(team_, t, workspace);
  const void* w_nhwc = o.read_w(w);
  conv_->backward_data(t.spec, o.read_y(dy), w_nhwc, o.x(), o.rest());
  o.write_x(dx);
}

void CpuOps::conv2d_backward_weights(const Conv2dSpec& spec, const void* x, const void* dy, void* dw, void* dbias,
                                     void* workspace) {
  require_valid(spec);
  require_support(supports(Op::conv2d_backward_weights, spec.precision), Op::conv2d_backward_weights, spec.precision);
  require_bias(spec, dbias);
  const Transposed t(spec);
  const bool transposed = spec.layout == ImageLayout::nchw;
  Operands o(team_, t, workspace);
  if (transposed) {
    x = o.read_x(x);
    dy = o.read_y(dy);
    conv_->backward_weights(t.spec, x, dy, o.w(dw), o.rest());
    o.write_w(dw);
  } else {
    conv_->backward_weights(spec, x, dy, dw, workspace);
  }
  if (dbias != nullptr)
    reduce({.precision = spec.precision, .outer = 1, .extent = spec.n * spec.p() * spec.q(), .inner = spec.k}, dy,
           dbias);
}

}  // namespace dlbench::cpu
