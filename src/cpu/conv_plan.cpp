// forward and backward_data of convolution (see conv_plan.h).
#include "cpu/conv_plan.h"

#include <algorithm>
#include <cstring>

namespace dlbench::cpu {

namespace {

/// Rows copied for one block: leaves room in a second-level cache of 1 MiB for a panel of filters.
constexpr int64_t kBlockBytes = int64_t{384} << 10;
/// Pixels so far apart share a set of an 8-way first-level cache of 32 KiB with all rows of a tile.
constexpr int64_t kCollidingBytes = 2048;
/// Below so many channels the taps of a filter row are read as one run of S*C elements.
constexpr int64_t kFewChannels = 16;
/// What copying an element costs, in vector multiply-adds, for the choice of blocks.
constexpr double kCopyCost = 0.4;
constexpr int64_t kLine = 64;

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
int64_t parts_of(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit;
}

/// The places of forward: one class, all taps; with few channels a tap is a row of the filter.
void forward_class(const Conv2dSpec& s, GatherPlan& p) {
  ConvClass all{.rows = s.p(), .columns = s.q()};
  const bool merged = s.c < kFewChannels && s.s > 1;
  for (int64_t r = 0; r < s.r; ++r) {
    for (int64_t q = 0; q < (merged ? 1 : s.s); ++q) all.taps.push_back({r - s.pad, q - s.pad, r * s.s + q});
  }
  p.tap_depth = merged ? s.s * s.c : s.c;
  if (s.r == 1 && s.s == 1 && s.stride == 1 && s.pad == 0) {
    // A 1x1 filter sees a list of pixels.
    p.in_h = p.out_h = all.rows = s.n * s.h * s.w;
    p.n = p.in_w = p.out_w = all.columns = 1;
  }
  p.classes.push_back(std::move(all));
}

/// dx(h, w) sums dy(p, q) over the taps with p*stride + r - pad = h: only every stride-th r has such a p.
void backward_classes(const Conv2dSpec& s, GatherPlan& p) {
  for (int64_t row = 0; row < std::min(s.stride, s.h); ++row) {
    for (int64_t column = 0; column < std::min(s.stride, s.w); ++column) {
      ConvClass each{.row = row,
                     .column = column,
                     .rows = parts_of(s.h - row, s.stride),
                     .columns = parts_of(s.w - column, s.stride)};
      for (int64_t r = 0; r < s.r; ++r) {
        for (int64_t q = 0; q < s.s; ++q) {
          const int64_t y = row + s.pad - r, x = column + s.pad - q;
          if (y % s.stride == 0 && x % s.stride == 0) each.taps.push_back({y / s.stride, x / s.stride, r * s.s + q});
        }
      }
      p.classes.push_back(std::move(each));
    }
  }
  p.tap_depth = s.k;
  if (s.r == 1 && s.s == 1 && s.stride == 1 && s.pad == 0) {
    p.in_h = p.out_h = p.classes[0].rows = s.n * s.h * s.w;
    p.n = p.in_w = p.out_w = p.classes[0].columns = 1;
  }
}

int64_t rows_of_block(const GatherPlan& p, int64_t grid_rows) {
  return (p.in_step * (grid_rows - 1) + p.last_row - p.first_row) / p.sampling + 1;
}

}  // namespace

size_t ConvEngine::Hash::operator()(const Key& key) const {
  const Conv2dSpec& s = key.spec;
  uint64_t h = 0xCBF29CE484222325ull;
  const auto mix = [&h](uint64_t v) { h = (h ^ v) * 0x9E3779B97F4A7C15ull, h ^= h >> 29; };
  mix(static_cast<uint64_t>(s.precision) << 8 | static_cast<uint64_t>(key.pass));
  for (const int64_t v : {s.n, s.c, s.h, s.w, s.k, s.r, s.s, s.stride, s.pad}) mix(static_cast<uint64_t>(v));
  return h;
}

ConvEngine::ConvEngine(Team& team, const IsaKernels& isa, int64_t& allocations)
    : team_(team), isa_(isa), kernels_(conv_kernels()), allocations_(allocations) {}

GatherPlan ConvEngine::make_gather_plan(const Conv2dSpec& s, ConvPass pass) const {
  GatherPlan p;
  p.backward = pass == ConvPass::backward_data;
  p.type = element_index(storage_of(s.precision));
  p.element_bytes = static_cast<int64_t>(size_of(storage_of(s.precision)));
  p.wide_bytes = static_cast<int64_t>(size_of(accumulate_of(s.precision)));
  p.tile_columns = kernels_.tile_bytes / p.wide_bytes;
  p.n = s.n, p.in_h = s.h, p.in_w = s.w, p.in_c = s.c, p.out_h = s.p(), p.out_w = s.q(), p.out_c = s.k;
  p.in_step = s.stride;
  if (p.backward) {
    std::swap(p.in_h, p.out_h), std::swap(p.in_w, p.out_w), std::swap(p.in_c, p.out_c);
    p.in_step = 1, p.out_step = s.stride;
    backward_classes(s, p);
  } else {
    forward_class(s, p);
  }
  p.panels = parts_of(p.out_c, p.tile_columns);
  bool first = true;
  size_t taps = 0;
  for (ConvClass& c : p.classes) {
    c.first_depth = p.panel_depth;
    p.panel_depth += static_cast<int64_t>(c.taps.size()) * p.tap_depth;
    p.grid_rows = std::max(p.grid_rows, c.rows), p.grid_columns = std::max(p.grid_columns, c.columns);
    taps += c.taps.size();
    for (const ConvTap& t : c.taps) {
      p.first_row = first ? t.row : std::min(p.first_row, t.row);
      p.last_row = first ? t.row : std::max(p.last_row, t.row);
      p.first_column = first ? t.column : std::min(p.first_column, t.column);
      p.last_column = first ? t.column : std::max(p.last_column, t.column);
      first = false;
    }
  }
  // The last column that a row of the filter, read as one run, reaches.
  const int64_t run = p.in_c > 0 ? p.tap_depth / p.in_c - 1 : 0;
  p.last_column += std::max<int64_t>(run, 0);
  const bool inside = p.first_row >= 0 && p.first_column >= 0 && p.in_step * (p.grid_rows - 1) + p.last_row < p.in_h &&
                      p.in_step * (p.grid_columns - 1) + p.last_column < p.in_w;
  const int64_t pixel_bytes = p.in_c * p.element_bytes;
  p.direct = inside && p.element_bytes == p.wide_bytes && p.in_step * pixel_bytes % kCollidingBytes != 0;
  if (p.direct) {
    p.pitch = p.in_c, p.row_pitch = p.in_w * p.in_c;
  } else {
    p.sampling = taps == 1 && run <= 0 ? p.in_step : 1;
    p.pitch = p.in_c;
    if (run <= 0 && p.in_c * p.wide_bytes * (p.in_step / p.sampling) % (kCollidingBytes / 2) == 0)
      p.pitch += kLine / p.wide_bytes;
    const int64_t columns = (p.in_step * (p.grid_columns - 1) + p.last_column - p.first_column) / p.sampling + 1;
    p.row_pitch = columns * p.pitch;
  }
  for (ConvClass& c : p.classes) {
    for (const ConvTap& t : c.taps)
      c.offsets.push_back((t.row - p.first_row) * p.row_pitch + (t.column - p.first_column) * p.pitch);
  }
  choose_blocks(p);
  p.panel_bytes = round_up(p.panels * p.panel_depth * p.tile_columns * p.wide_bytes, kLine);
  p.block_bytes = p.direct ? 0 : round_up(rows_of_block(p, p.block_rows) * p.row_pitch * p.wide_bytes, kLine);
  const int64_t pointers = 2 * p.block_rows * p.grid_columns * static_cast<int64_t>(sizeof(void*));
  p.thread_bytes = round_up(p.block_bytes + pointers, 4096) + 128;
  p.workspace_bytes = kLine + p.panel_bytes + p.thread_bytes * team_.threads();
  return p;
}

/// Rows per block and groups of panels: the shortest time of the slowest thread by counting multiply-adds and copies.
void ConvEngine::choose_blocks(GatherPlan& p) const {
  p.block_rows = p.blocks = p.groups = 1;
  if (p.grid_rows == 0 || p.grid_columns == 0 || p.panels == 0 || p.n == 0) return;
  const int64_t threads = team_.threads(), tile = kernels_.tile_rows;
  int64_t most_rows = p.grid_rows;
  const int64_t row_bytes = std::max<int64_t>(1, (p.direct ? p.in_w * p.in_c : p.row_pitch) * p.wide_bytes);
  while (most_rows > 1 && rows_of_block(p, most_rows) * row_bytes > kBlockBytes) {
    const int64_t excess = parts_of(rows_of_block(p, most_rows) * row_bytes, kBlockBytes);
    most_rows = std::max<int64_t>(1, std::min(most_rows - 1, most_rows / excess));
  }
  double best = 1e300;
  const int64_t fewest = parts_of(p.grid_rows, most_rows);
  for (int64_t blocks = fewest; blocks <= std::min(p.grid_rows, fewest + 4 * threads); ++blocks) {
    int64_t rows = parts_of(p.grid_rows, blocks);
    // Whole tiles, where a row is one pixel.
    if (p.grid_columns == 1 && rows > tile) rows = round_up(rows, tile);
    if (rows > most_rows && rows_of_block(p, rows) * row_bytes > 2 * kBlockBytes) continue;
    const int64_t actual = parts_of(p.grid_rows, rows), pixels = rows * p.grid_columns;
    const double tile_cost = static_cast<double>(p.panel_depth) *
                             (2.0 * static_cast<double>(pixels) + 3.0 * static_cast<double>(parts_of(pixels, tile)));
    const double copy_cost =
        (p.direct ? 0.0 : kCopyCost * static_cast<double>(rows_of_block(p, rows) * p.row_pitch)) + 2000.0;
    for (int64_t groups = 1; groups <= std::min(p.panels, 4 * threads); ++groups) {
      const double cost = static_cast<double>(parts_of(p.n * actual * groups, threads)) *
                          (copy_cost + static_cast<double>(parts_of(p.panels, groups)) * tile_cost);
      if (cost < best * 0.999) best = cost, p.block_rows = rows, p.blocks = actual, p.groups = groups;
    }
  }
}

const GatherPlan& ConvEngine::gather_plan(const Conv2dSpec& spec, ConvPass pass) {
  const Key key{spec, pass};
  const auto found = gather_plans_.find(key);
  if (found != gather_plans_.end()) return found->second;
  ++allocations_;
  return gather_plans_.emplace(key, make_gather_plan(spec, pass)).first->second;
}

int64_t ConvEngine::workspace_bytes(const Conv2dSpec& spec, ConvPass pass) {
  return pass == ConvPass::backward_weights ? weights_plan(spec).workspace_bytes
                                            : gather_plan(spec, pass).workspace_bytes;
}

void ConvEngine::pack_filter(const Conv2dSpec& s, const GatherPlan& p, const void* w, char* panels) {
  const auto pack = kernels_.pack_panel[p.type];
  const int64_t filter = s.r * s.s * s.c, panel_bytes = p.panel_depth * p.tile_columns * p.wide_bytes;
  if (panel_bytes == 0) return;
  const auto work = [&](int64_t panel, int64_t tap_begin, int64_t tap_end) {
    const int64_t column = panel * p.tile_columns, columns = std::min(p.tile_columns, p.out_c - column);
    if (!p.backward) {
      // The depth of a panel is a filter as it lies in memory; a task takes a piece of it.
      const int64_t begin = tap_begin * s.c, depth = (tap_end - tap_begin) * s.c;
      pack(static_cast<const char*>(w) + (column * filter + begin) * p.element_bytes, 1, filter, depth, columns,
           panels + panel * panel_bytes + begin * p.tile_columns * p.wide_bytes);
      return;
    }
    int64_t at = 0;
    for (const ConvClass& c : p.classes) {
      for (const ConvTap& t : c.taps) {
        if (at >= tap_begin && at < tap_end) {
          pack(static_cast<const char*>(w) + (t.filter * s.c + column) * p.element_bytes, filter, 1, s.k, columns,
               panels + panel * panel_bytes + at * s.k * p.tile_columns * p.wide_bytes);
        }
        ++at;
      }
    }
  };
  const int64_t taps = s.r * s.s, per_task = p.panels >= 4 * team_.threads() ? taps : 1;
  const int64_t pieces = parts_of(taps, per_task);
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, panel_bytes / pieces));
  team_.parallel_for(p.panels * pieces, grain, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t piece = task % pieces;
      work(task / pieces, piece * per_task, std::min(taps, (piece + 1) * per_task));
    }
  });
}

/// Rows of an image, zeros where the image ends, widened.
void ConvEngine::copy_block(const GatherPlan& p, const char* image, int64_t first_row, int64_t rows,
                            char* block) const {
  const auto pack = kernels_.pack_pixels[p.type];
  const int64_t columns = p.row_pitch / std::max<int64_t>(1, p.pitch), pixel = p.pitch * p.wide_bytes;
  // Columns [begin, end) of a block lie in the image.
  const int64_t begin = std::min(columns, p.first_column < 0 ? parts_of(-p.first_column, p.sampling) : 0);
  const int64_t end =
      std::clamp(p.in_w > p.first_column ? parts_of(p.in_w - p.first_column, p.sampling) : 0, begin, columns);
  for (int64_t u = 0; u < rows; ++u, block += p.row_pitch * p.wide_bytes) {
    const int64_t row = first_row + u * p.sampling;
    if (row < 0 || row >= p.in_h || begin == end) {
      std::memset(block, 0, static_cast<size_t>(p.row_pitch * p.wide_bytes));
      continue;
    }
    std::memset(block, 0, static_cast<size_t>(begin * pixel));
    const int64_t column = p.first_column + begin * p.sampling;
    pack(image + (row * p.in_w + column) * p.in_c * p.element_bytes, end - begin, p.sampling * p.in_c, p.in_c, p.pitch,
         block + begin * pixel);
    std::memset(block + end * pixel, 0, static_cast<size_t>((columns - end) * pixel));
  }
}

void ConvEngine::gather_block(const GatherPlan& p, const char* in, const char* panels, const char* bias, bool relu,
                              char* out, int64_t task, char* memory) const {
  const int64_t group = task % p.groups, block = task / p.groups % p.blocks, image = task / p.groups / p.blocks;
  const int64_t first = block * p.block_rows, rows = std::min(p.block_rows, p.grid_rows - first);
  const int64_t panel_begin = group * p.panels / p.groups, panel_end = (group + 1) * p.panels / p.groups;
  if (rows <= 0 || panel_begin == panel_end) return;
  const char* in_image = in + image * p.in_h * p.in_w * p.in_c * p.element_bytes;
  char* out_image = out + image * p.out_h * p.out_w * p.out_c * p.element_bytes;
  const char* base = memory;
  if (p.direct)
    base = in_image + ((p.in_step * first + p.first_row) * p.in_w + p.first_column) * p.in_c * p.element_bytes;
  else
    copy_block(p, in_image, p.in_step * first + p.first_row, rows_of_block(p, rows), memory);
  const void** a = reinterpret_cast<const void**>(memory + p.block_bytes);
  void** to = const_cast<void**>(a + p.block_rows * p.grid_columns);
  const int64_t step = p.in_step / p.sampling;
  for (const ConvClass& c : p.classes) {
    int64_t pixels = 0;
    for (int64_t i = 0; i < std::min(rows, c.rows - first); ++i) {
      const char* a_row = base + step * i * p.row_pitch * p.wide_bytes;
      char* out_row = out_image + ((c.row + p.out_step * (first + i)) * p.out_w + c.column) * p.out_c * p.element_bytes;
      for (int64_t j = 0; j < c.columns; ++j, ++pixels) {
        a[pixels] = a_row + step * j * p.pitch * p.wide_bytes;
        to[pixels] = out_row + p.out_step * j * p.out_c * p.element_bytes;
      }
    }
    ConvTileArgs t;
    t.taps = c.offsets.data();
    t.tap_count = static_cast<int64_t>(c.offsets.size());
    t.depth = p.tap_depth;
    t.relu = relu;
    for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
      t.out_column = panel * p.tile_columns;
      t.columns = std::min(p.tile_columns, p.out_c - t.out_column);
      t.b = panels + (panel * p.panel_depth + c.first_depth) * p.tile_columns * p.wide_bytes;
      t.bias = bias == nullptr ? nullptr : bias + t.out_column * p.element_bytes;
      for (int64_t pixel = 0; pixel < pixels; pixel += kernels_.tile_rows) {
        t.rows = static_cast<int>(std::min<int64_t>(kernels_.tile_rows, pixels - pixel));
        t.a = a + pixel;
        t.out = to + pixel;
        kernels_.tile[p.type](t);
      }
    }
  }
}

void ConvEngine::gather(const Conv2dSpec& s, const GatherPlan& p, const void* in, const void* w, const void* bias,
                        bool relu, void* out, void* workspace) {
  if (p.n == 0 || p.out_c == 0 || p.grid_rows == 0 || p.grid_columns == 0) return;
  char* panels = reinterpret_cast<char*>(round_up(static_cast<int64_t>(reinterpret_cast<uintptr_t>(workspace)), kLine));
  char* memory = panels + p.panel_bytes;
  pack_filter(s, p, w, panels);
  team_.parallel_tasks(p.n * p.blocks * p.groups, [&](int64_t task, int part) {
    gather_block(p, static_cast<const char*>(in), panels, static_cast<const char*>(bias), relu, static_cast<char*>(out),
                 task, memory + part * p.thread_bytes);
  });
}

void ConvEngine::forward(const Conv2dSpec& s, const void* x, const void* w, const void* bias, void* y,
                         void* workspace) {
  gather(s, gather_plan(s, ConvPass::forward), x, w, bias, s.activation == Activation::relu, y, workspace);
}

void ConvEngine::backward_data(const Conv2dSpec& s, const void* dy, const void* w, void* dx, void* workspace) {
  gather(s, gather_plan(s, ConvPass::backward_data), dy, w, nullptr, false, dx, workspace);
}

}  // namespace dlbench::cpu
