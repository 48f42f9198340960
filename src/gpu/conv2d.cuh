// Kernels of conv2d: the column matrix of a convolution, filters in the order of its columns, transpositions between
// the two layouts. Used by conv2d.cu only.
//
// A convolution is a product of a matrix of columns [pixels, taps * channels] and a filter matrix (Chellapilla et al.
// 2006, "High performance convolutional neural networks for document processing"). The gradient of the input is one
// too, per phase: the pixels (h, w) with equal remainders by the stride see the same taps, and no others.
#pragma once

#include "gpu/parallel.cuh"

namespace dlbench::gpu {

/// How a row of the column matrix is gathered. Row i of the image's grid of rows_h x rows_w reads, for tap (j, l), the
/// source pixel (y * step + base_h + j * tap_step, x * step + base_w + l * tap_step); zero outside the source.
struct Gather {
  int64_t rows_h = 0, rows_w = 0;
  int64_t taps_h = 0, taps_w = 0, channels = 0;
  int64_t source_h = 0, source_w = 0;
  int64_t step = 1, base_h = 0, base_w = 0, tap_step = 1;
  int64_t pitch = 0;  ///< elements of a row of the matrix, a multiple of a pack; what is beyond the taps is zero

  int64_t width() const { return taps_h * taps_w * channels; }
  /// The column matrix would be the source itself.
  bool is_source() const {
    return taps_h == 1 && taps_w == 1 && step == 1 && base_h == 0 && base_w == 0 && rows_h == source_h &&
           rows_w == source_w;
  }
};

/// Rows [first, first + count) of the column matrix of an nhwc source. A thread makes one pack; `kWhole`: of one tap's
/// channels, with one load. `Index` is 32 bits wide where everything fits.
template <typename T, typename Index, bool kWhole>
__global__ void gather_kernel(Gather g, int64_t first, int64_t count, const T* source, T* columns) {
  constexpr int kPack = Pack<T>::kSize;
  const Index packs = static_cast<Index>(g.pitch / kPack), channels = static_cast<Index>(g.channels);
  const Index taps_w = static_cast<Index>(g.taps_w), width = static_cast<Index>(g.taps_h) * taps_w * channels;
  const Index rows_w = static_cast<Index>(g.rows_w), rows = static_cast<Index>(g.rows_h) * rows_w;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x, total = count * (g.pitch / kPack);
  for (int64_t flat = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; flat < total; flat += threads) {
    const Index at = static_cast<Index>(flat), row = at / packs, column = at % packs * kPack;
    const Index pixel = static_cast<Index>(first) + row, image = pixel / rows, inside = pixel % rows;
    const int64_t top = static_cast<int64_t>(inside / rows_w) * g.step + g.base_h;
    const int64_t left = static_cast<int64_t>(inside % rows_w) * g.step + g.base_w;
    const T* from = source + static_cast<int64_t>(image) * g.source_h * g.source_w * g.channels;
    // Address of a column's element, or null in the padding.
    const auto find = [&](Index c) -> const T* {
      const Index tap = c / channels, channel = c % channels;
      const int64_t y = top + static_cast<int64_t>(tap / taps_w) * g.tap_step;
      const int64_t x = left + static_cast<int64_t>(tap % taps_w) * g.tap_step;
      if (y < 0 || y >= g.source_h || x < 0 || x >= g.source_w) return nullptr;
      return from + (y * g.source_w + x) * g.channels + static_cast<int64_t>(channel);
    };
    Pack<T> pack = {};
    if constexpr (kWhole) {
      if (const T* p = find(column)) pack = load_pack<kPack>(p);
    } else {
      DLB_UNROLL
      for (int k = 0; k < kPack; ++k) {
        if (column + k >= width) continue;
        if (const T* p = find(column + k)) pack.value[k] = *p;
      }
    }
    store_pack(columns + flat * kPack, pack);
  }
}

template <typename T>
void gather(cudaStream_t stream, int multiprocessors, const Gather& g, int64_t images, int64_t first, int64_t count,
            const T* source, T* columns) {
  constexpr int kPack = Pack<T>::kSize;
  constexpr int64_t kMost = INT32_MAX;
  const int64_t packs = count * (g.pitch / kPack);
  const bool small = packs <= kMost && images * g.rows_h * g.rows_w <= kMost && g.pitch <= kMost;
  const bool whole = g.channels % kPack == 0 && packs_aligned<kPack>(source);
  const dim3 grid(grid_size(packs, multiprocessors));
  const auto run = [&](auto kernel) {
    launch(stream, grid, dim3(kThreads), 0, kernel, g, first, count, source, columns);
  };
  if (small) {
    run(whole ? gather_kernel<T, uint32_t, true> : gather_kernel<T, uint32_t, false>);
  } else {
    run(whole ? gather_kernel<T, uint64_t, true> : gather_kernel<T, uint64_t, false>);
  }
}

/// Which filters of [K, R, S, C] make the rows of a filter matrix.
struct FilterTaps {
  int64_t k = 0, r = 0, s = 0, c = 0;
  int64_t first_r = 0, first_s = 0, step = 1, taps_h = 0, taps_w = 0;
  int64_t pitch = 0;  ///< elements of a row of the matrix; what is beyond the taps is zero
};

/// kBackward false: to[k][(r, s, c)], the filters padded to the pitch. true: to[c][(j, l, k)] of the taps
/// (first_r + j * step, first_s + l * step).
template <typename T, bool kBackward>
__global__ void filter_kernel(FilterTaps f, const T* w, T* to) {
  const int64_t rows = kBackward ? f.c : f.k, inner = kBackward ? f.k : f.c;
  const int64_t total = rows * f.pitch, threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t flat = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; flat < total; flat += threads) {
    const int64_t row = flat / f.pitch, column = flat % f.pitch, tap = column / inner;
    T value = {};
    if (tap < f.taps_h * f.taps_w) {
      const int64_t r = f.first_r + tap / f.taps_w * f.step, s = f.first_s + tap % f.taps_w * f.step;
      const int64_t k = kBackward ? column % inner : row, c = kBackward ? row : column % inner;
      value = w[((k * f.r + r) * f.s + s) * f.c + c];
    }
    to[flat] = value;
  }
}

/// The pixels of one phase, in an image [n, h, w, c]: row (i, j) of the grid is pixel (i * step + top, j * step +
/// left).
struct Phase {
  int64_t h, w, c;
  int64_t rows_h, rows_w, step, top, left;
};

/// to[pixel of row first + i, :] = from[i, :] for i < count, `kWidth` channels at a time.
template <typename T, int kWidth>
__global__ void scatter_kernel(Phase p, int64_t first, int64_t count, const T* from, T* to) {
  const int64_t packs = p.c / kWidth, total = count * packs, threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t flat = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; flat < total; flat += threads) {
    const int64_t row = first + flat / packs, inside = row % (p.rows_h * p.rows_w), image = row / (p.rows_h * p.rows_w);
    const int64_t y = inside / p.rows_w * p.step + p.top, x = inside % p.rows_w * p.step + p.left;
    const int64_t at = ((image * p.h + y) * p.w + x) * p.c + flat % packs * kWidth;
    store_pack(to + at, load_pack<kWidth>(from + flat * kWidth));
  }
}

inline constexpr int kTransposeTile = 32;

/// to[b][j][i] = from[b][i][j] of `batch` matrices [rows, columns].
template <typename T>
__global__ void transpose_kernel(int64_t batch, int64_t rows, int64_t columns, const T* from, T* to) {
  DLB_SHARED(T, tile, kTransposeTile * (kTransposeTile + 1));  // one more: a column lies in 32 banks
  const int x = static_cast<int>(threadIdx.x) % kTransposeTile, y = static_cast<int>(threadIdx.x) / kTransposeTile;
  constexpr int kRows = kThreads / kTransposeTile;
  const int64_t down = (rows + kTransposeTile - 1) / kTransposeTile;
  const int64_t across = (columns + kTransposeTile - 1) / kTransposeTile;
  for (int64_t task = blockIdx.x; task < batch * down * across; task += gridDim.x) {
    const int64_t matrix = task / (down * across) * rows * columns, inside = task % (down * across);
    const int64_t top = inside / across * kTransposeTile, left = inside % across * kTransposeTile;
    for (int i = y; i < kTransposeTile; i += kRows) {
      if (top + i < rows && left + x < columns) {
        tile[i * (kTransposeTile + 1) + x] = from[matrix + (top + i) * columns + left + x];
      }
    }
    __syncthreads();
    for (int i = y; i < kTransposeTile; i += kRows) {
      if (left + i < columns && top + x < rows) {
        to[matrix + (left + i) * rows + top + x] = tile[x * (kTransposeTile + 1) + i];
      }
    }
    __syncthreads();
  }
}

template <typename T>
void transpose(cudaStream_t stream, int multiprocessors, int64_t batch, int64_t rows, int64_t columns, const T* from,
               T* to) {
  const int64_t tiles =
      batch * ((rows + kTransposeTile - 1) / kTransposeTile) * ((columns + kTransposeTile - 1) / kTransposeTile);
  launch(stream, row_grid(tiles, true, multiprocessors), dim3(kThreads), 0, transpose_kernel<T>, batch, rows, columns,
         from, to);
}

}  // namespace dlbench::gpu
