// backward_weights of convolution (see conv_plan.h).
//
// Pixels are cut in blocks and blocks in splits, both by the spec alone; a split is summed by one thread per group of
// filters, the splits are added in their order.
#include <algorithm>
#include <cstring>

#include "cpu/conv_plan.h"

namespace dlbench::cpu {

namespace {

constexpr int64_t kFewChannels = 16;
/// A block of both images, and the pixels that it has at least: every block reads and writes the gradient once.
constexpr int64_t kBlockBytes = int64_t{1} << 20, kBlockPixels = 196;
/// Bounds of the partial gradients that are added at the end.
constexpr int64_t kSplitBytes = int64_t{1} << 20, kMaxSplits = 8;
constexpr double kCopyCost = 0.4;
constexpr int64_t kLine = 64;

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
int64_t parts_of(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit;
}

/// Copied rows of x that `rows` rows of dy need.
int64_t copied_rows(const WeightsPlan& p, int64_t rows, int64_t filter_rows) {
  return (p.stride * (rows - 1) + filter_rows - 1) / p.sampling + 1;
}

}  // namespace

WeightsPlan ConvEngine::make_weights_plan(const Conv2dSpec& s) const {
  WeightsPlan p;
  p.type = element_index(storage_of(s.precision));
  p.wide_type = element_index(accumulate_of(s.precision));
  p.element_bytes = static_cast<int64_t>(size_of(storage_of(s.precision)));
  p.wide_bytes = static_cast<int64_t>(size_of(accumulate_of(s.precision)));
  p.tile_columns = kernels_.tile_bytes / p.wide_bytes;
  p.images = s.n, p.h = s.h, p.w = s.w, p.c = s.c, p.k = s.k, p.p = s.p(), p.q = s.q();
  p.stride = s.stride, p.pad = s.pad;
  const bool point = s.r == 1 && s.s == 1;
  if (point && s.stride == 1 && s.pad == 0) p.h = p.p = s.n * s.h * s.w, p.images = p.w = p.q = 1;
  p.sampling = point ? s.stride : 1;
  p.merged = s.c < kFewChannels && s.s > 1;
  p.taps = p.merged ? s.r : s.r * s.s;
  p.tap_columns = p.merged ? s.s * s.c : s.c;
  p.panels = parts_of(p.tap_columns, p.tile_columns);
  if (s.n == 0 || s.k == 0 || s.c == 0) return p;

  const int64_t pixel_bytes = (s.c + s.k) * p.wide_bytes;
  const int64_t pixels = std::max(kBlockPixels, kBlockBytes / pixel_bytes);
  const int64_t rows = std::clamp<int64_t>(pixels / p.q, 1, p.p);
  p.row_blocks = parts_of(p.p, rows);
  p.block_rows = parts_of(p.p, p.row_blocks);
  p.row_blocks = parts_of(p.p, p.block_rows);
  if (p.row_blocks == 1) p.block_images = std::clamp<int64_t>(pixels / (p.p * p.q), 1, p.images);
  p.blocks = parts_of(p.images, p.block_images) * p.row_blocks;
  p.x_rows = copied_rows(p, p.block_rows, s.r);
  p.x_columns = (p.stride * (p.q - 1) + s.s - 1) / p.sampling + 1;
  p.x_pixel = p.merged ? p.c : p.tile_columns;
  p.panel_elements = p.block_images * p.x_rows * p.x_columns * p.x_pixel;
  for (int64_t r = 0; r < s.r; ++r) {
    for (int64_t q = 0; q < (p.merged ? 1 : s.s); ++q) p.offsets.push_back((r * p.x_columns + q) * p.x_pixel);
  }
  const int64_t gradient = s.k * s.r * s.s * s.c, gradient_bytes = gradient * p.wide_bytes;
  p.splits = std::clamp<int64_t>(kSplitBytes / gradient_bytes, 1, std::min(kMaxSplits, p.blocks));

  const double block_pixels = static_cast<double>(p.block_images * p.block_rows * p.q);
  double best = 1e300;
  for (int64_t groups = 1; groups <= std::min<int64_t>(p.k, 8 * team_.threads()); ++groups) {
    const int64_t filters = parts_of(p.k, groups), tiles = parts_of(filters, kernels_.tile_rows);
    const double products = block_pixels * static_cast<double>(p.taps * p.panels) *
                            (2.0 * static_cast<double>(filters) + 1.5 * static_cast<double>(tiles));
    const double copies = kCopyCost * (static_cast<double>(p.panel_elements * (p.merged ? 1 : p.panels)) +
                                       block_pixels * static_cast<double>(filters));
    const double cost = static_cast<double>(parts_of(p.splits * groups, team_.threads())) * (products + copies + 2000);
    if (cost < best * 0.999) best = cost, p.groups = groups;
  }
  // A tile reads whole vectors: beyond the last pixel where pixels are narrower than that.
  const int64_t beyond = p.merged ? p.panels * p.tile_columns : 0;
  p.x_bytes = round_up((p.panel_elements * (p.merged ? 1 : p.panels) + beyond) * p.wide_bytes, kLine);
  p.dy_bytes = round_up(p.block_images * p.block_rows * p.q * parts_of(p.k, p.groups) * p.wide_bytes, kLine);
  p.lines_bytes = round_up(p.block_images * p.block_rows * static_cast<int64_t>(sizeof(int64_t)), kLine);
  p.thread_bytes = round_up(p.x_bytes + p.dy_bytes + p.lines_bytes, 4096) + 128;
  p.sums_bytes = p.splits > 1 || p.type != p.wide_type ? round_up(p.splits * gradient_bytes, kLine) : 0;
  p.workspace_bytes = kLine + p.sums_bytes + p.thread_bytes * team_.threads();
  return p;
}

const WeightsPlan& ConvEngine::weights_plan(const Conv2dSpec& spec) {
  const Key key{spec, ConvPass::backward_weights};
  const auto found = weights_plans_.find(key);
  if (found != weights_plans_.end()) return found->second;
  ++allocations_;
  return weights_plans_.emplace(key, make_weights_plan(spec)).first->second;
}

/// Padded rows of an image in panels of channels (merged: as they lie), zeros where the image ends.
void ConvEngine::copy_weights_rows(const WeightsPlan& p, const char* image, int64_t first_row, int64_t rows,
                                   char* out) const {
  const int64_t begin = std::min(p.x_columns, p.pad > 0 ? parts_of(p.pad, p.sampling) : 0);
  const int64_t end = std::clamp(parts_of(p.w + p.pad, p.sampling), begin, p.x_columns);
  const int64_t pixel = p.x_pixel * p.wide_bytes, panels = p.merged ? 1 : p.panels;
  const auto clear = [&](char* row, int64_t from, int64_t to) {
    for (int64_t panel = 0; from < to && panel < panels; ++panel) {
      std::memset(row + panel * p.panel_elements * p.wide_bytes + from * pixel, 0,
                  static_cast<size_t>((to - from) * pixel));
    }
  };
  for (int64_t u = 0; u < rows; ++u, out += p.x_columns * pixel) {
    const int64_t row = first_row + u * p.sampling;
    if (row < 0 || row >= p.h || begin == end) {
      clear(out, 0, p.x_columns);
      continue;
    }
    clear(out, 0, begin);
    const char* from = image + (row * p.w + begin * p.sampling - p.pad) * p.c * p.element_bytes;
    if (p.merged)
      kernels_.pack_pixels[p.type](from, end - begin, p.sampling * p.c, p.c, p.x_pixel, out + begin * pixel);
    else
      kernels_.pack_columns[p.type](from, end - begin, p.sampling * p.c, p.c, p.panel_elements, out + begin * pixel);
    clear(out, end, p.x_columns);
  }
}

void ConvEngine::weights_block(const WeightsPlan& p, const char* x, const char* dy, char* sums, int64_t block,
                               int64_t filter, int64_t filters, bool add, char* memory) const {
  const int64_t image = block / p.row_blocks * p.block_images, images = std::min(p.block_images, p.images - image);
  const int64_t row = block % p.row_blocks * p.block_rows, rows = std::min(p.block_rows, p.p - row);
  const int64_t step = p.stride / p.sampling, pixels = images * rows * p.q;
  const int64_t needed_rows = copied_rows(p, rows, p.offsets.back() / p.x_pixel / p.x_columns + 1);
  char* dy_copy = memory + p.x_bytes;
  int64_t* lines = reinterpret_cast<int64_t*>(dy_copy + p.dy_bytes);
  int64_t line_count = 0;
  for (int64_t i = 0; i < images; ++i) {
    copy_weights_rows(p, x + (image + i) * p.h * p.w * p.c * p.element_bytes, p.stride * row - p.pad, needed_rows,
                      memory + i * p.x_rows * p.x_columns * p.x_pixel * p.wide_bytes);
    for (int64_t r = 0; r < rows; ++r) lines[line_count++] = (i * p.x_rows + step * r) * p.x_columns * p.x_pixel;
  }
  const int64_t tiles = parts_of(filters, kernels_.tile_rows);
  const auto tile_begin = [&](int64_t tile) { return filters * tile / tiles; };
  const char* dy_block = dy + (image * p.p + row) * p.q * p.k * p.element_bytes;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t first = tile_begin(tile);
    kernels_.pack_rows[p.type](dy_block + (filter + first) * p.element_bytes, pixels, p.k,
                               static_cast<int>(tile_begin(tile + 1) - first), dy_copy + first * pixels * p.wide_bytes);
  }
  ConvOuterArgs t;
  t.lines = lines;
  t.line_count = line_count, t.line_length = p.q, t.b_step = step * p.x_pixel;
  // Lines that follow each other without a gap are one.
  if (p.q * step == p.x_columns && step == 1 && needed_rows == rows && (images == 1 || rows == p.x_rows))
    t.line_count = 1, t.line_length = pixels;
  t.c_stride = p.taps * p.tap_columns;
  t.add = add;
  for (int64_t panel = 0; panel < p.panels; ++panel) {
    t.columns = std::min(p.tile_columns, p.tap_columns - panel * p.tile_columns);
    const int64_t panel_at = panel * (p.merged ? p.tile_columns : p.panel_elements);
    for (int64_t tap = 0; tap < p.taps; ++tap) {
      t.b = memory + (panel_at + p.offsets[static_cast<size_t>(tap)]) * p.wide_bytes;
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t first = tile_begin(tile);
        t.rows = static_cast<int>(tile_begin(tile + 1) - first);
        t.a = dy_copy + first * pixels * p.wide_bytes;
        t.c = sums + ((filter + first) * t.c_stride + tap * p.tap_columns + panel * p.tile_columns) * p.wide_bytes;
        kernels_.outer[p.wide_type](t);
      }
    }
  }
}

void ConvEngine::weights_task(const WeightsPlan& p, const char* x, const char* dy, char* sums, int64_t split,
                              int64_t group, char* memory) const {
  const int64_t filter = group * p.k / p.groups, end = (group + 1) * p.k / p.groups;
  const int64_t first = split * p.blocks / p.splits, last = (split + 1) * p.blocks / p.splits;
  for (int64_t block = first; block < last; ++block)
    weights_block(p, x, dy, sums, block, filter, end - filter, block > first, memory);
}

void ConvEngine::backward_weights(const Conv2dSpec& s, const void* x, const void* dy, void* dw, void* workspace) {
  const WeightsPlan& p = weights_plan(s);
  const int64_t gradient = s.k * s.r * s.s * s.c;
  if (gradient == 0) return;
  if (s.n == 0) {
    std::memset(dw, 0, static_cast<size_t>(gradient * p.element_bytes));
    return;
  }
  char* sums = reinterpret_cast<char*>(round_up(static_cast<int64_t>(reinterpret_cast<uintptr_t>(workspace)), kLine));
  char* memory = sums + p.sums_bytes;
  if (p.sums_bytes == 0) sums = static_cast<char*>(dw);
  team_.parallel_tasks(p.splits * p.groups, [&](int64_t task, int part) {
    const int64_t split = task / p.groups;
    weights_task(p, static_cast<const char*>(x), static_cast<const char*>(dy), sums + split * gradient * p.wide_bytes,
                 split, task % p.groups, memory + part * p.thread_bytes);
  });
  if (p.sums_bytes == 0) return;
  constexpr int64_t kPiece = 1024;
  team_.parallel_for(parts_of(gradient, kPiece), std::max<int64_t>(1, 16 / p.splits), 1,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t at = begin * kPiece; at < std::min(gradient, end * kPiece); at += kPiece) {
                         const int64_t n = std::min(kPiece, gradient - at);
                         alignas(64) char total[kPiece * 8];
                         isa_.of[p.wide_type].column_sum(sums + at * p.wide_bytes, p.splits, gradient, n, total);
                         isa_.of[p.type].round(total, static_cast<char*>(dw) + at * p.element_bytes, n);
                       }
                     });
}

}  // namespace dlbench::cpu
