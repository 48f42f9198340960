// Passes over the columns of a row-major matrix: sums of each column in two stages, and maps whose parameters belong to
// the columns. Batch normalization (columns are channels) and the parameters of layer normalization are made of them.
// In nchw a channel is a plane instead: N runs of H*W values.
//
// Why: a thread that keeps to its columns loads their parameters once and adds up in registers; neighbouring threads
// take neighbouring columns, so that rows are read in full lines.
// Promises: no atomics, so the order of a sum depends on the shape and the number of multiprocessors only; 64-bit
// offsets; packs of 16 bytes where columns and pointers allow it.
#pragma once

#include "gpu/parallel.cuh"

namespace dlbench::gpu {

/// How the threads of a block share out a tile: `lanes` neighbouring threads take packs of columns, the others of the
/// kThreads other rows.
struct ColumnTile {
  int64_t rows, columns, pitch;  ///< pitch: elements between rows
  int lanes;                     ///< a power of two
};

inline ColumnTile column_tile(int64_t rows, int64_t columns, int64_t pitch, int width) {
  int lanes = 1;
  while (lanes < kWarp && lanes * width < columns) lanes *= 2;
  return {rows, columns, pitch, lanes};
}

/// Packs of a row, in blocks of `lanes`.
inline int64_t column_blocks(const ColumnTile& tile, int width) {
  return (tile.columns / width + tile.lanes - 1) / tile.lanes;
}

/// Two sums. A part of a reduction: trivial, because it lies in shared memory.
template <typename Acc>
struct TwoSums {
  Acc first, second;
  __device__ static TwoSums empty() { return {0, 0}; }
  __device__ static TwoSums merge(const TwoSums& a, const TwoSums& b) {
    return {a.first + b.first, a.second + b.second};
  }
  __device__ static TwoSums from_lane_below(const TwoSums& a, unsigned offset) {
    return {__shfl_down_sync(kFullWarp, a.first, offset), __shfl_down_sync(kFullWarp, a.second, offset)};
  }
};

/// Number, mean and sum of squared differences from the mean (Welford 1962; Chan, Golub & LeVeque 1983 for `merge`):
/// no cancellation however large the mean is beside the deviation.
template <typename Acc>
struct Moments {
  Acc count, mean, squares;
  __device__ static Moments empty() { return {0, 0, 0}; }
  /// @param reciprocal of count + 1: one division serves all columns of a thread
  __device__ void add(Acc value, Acc reciprocal) {
    count += Acc(1);
    const Acc difference = value - mean;
    mean += difference * reciprocal;
    squares += difference * (value - mean);
  }
  __device__ static Moments merge(const Moments& a, const Moments& b) {
    if (b.count == Acc(0)) return a;
    const Acc count = a.count + b.count, difference = b.mean - a.mean, share = b.count / count;
    return {count, a.mean + difference * share, a.squares + b.squares + difference * difference * a.count * share};
  }
  __device__ static Moments from_lane_below(const Moments& a, unsigned offset) {
    return {__shfl_down_sync(kFullWarp, a.count, offset), __shfl_down_sync(kFullWarp, a.mean, offset),
            __shfl_down_sync(kFullWarp, a.squares, offset)};
  }
};

/// The first stage: parts[column, slice]. `source.columns<kWidth>(column)` gives an object with
/// `add(row, offset, Part (&)[kWidth])`.
template <int kWidth, typename Part, typename Source>
__global__ void column_parts_kernel(ColumnTile tile, Slices slices, Source source, Part* parts) {
  DLB_SHARED(Part, of_thread, kThreads * kWidth);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % tile.lanes, share = thread / tile.lanes;
  const int shares = kThreads / tile.lanes;
  const int64_t blocks = (tile.columns / kWidth + tile.lanes - 1) / tile.lanes;
  for (int64_t task = blockIdx.x; task < blocks * slices.count; task += gridDim.x) {
    const int64_t column = (task % blocks * tile.lanes + lane) * kWidth, slice = task / blocks;
    const bool inside = column < tile.columns;
    Part part[kWidth];
    DLB_UNROLL
    for (int k = 0; k < kWidth; ++k) part[k] = Part::empty();
    if (inside) {
      auto columns = source.template columns<kWidth>(column);
      const int64_t begin = slice_begin(slices, slice), end = begin + slice_size(slices, slice, tile.rows);
      for (int64_t row = begin + share; row < end; row += shares) columns.add(row, row * tile.pitch + column, part);
    }
    DLB_UNROLL
    for (int k = 0; k < kWidth; ++k) of_thread[k * kThreads + thread] = part[k];
    for (int apart = shares / 2; apart > 0; apart /= 2) {
      __syncthreads();
      if (share >= apart) continue;
      DLB_UNROLL
      for (int k = 0; k < kWidth; ++k) {
        Part& mine = of_thread[k * kThreads + thread];
        mine = Part::merge(mine, of_thread[k * kThreads + thread + apart * tile.lanes]);
      }
    }
    if (share == 0 && inside) {
      DLB_UNROLL
      for (int k = 0; k < kWidth; ++k) parts[(column + k) * slices.count + slice] = of_thread[k * kThreads + thread];
    }
    __syncthreads();
  }
}

/// The second stage, a warp per column: `sink.take(column, part)` gets each column's total, in one lane.
template <typename Part, typename Sink>
__global__ void column_totals_kernel(int64_t columns, int64_t slices, const Part* parts, Sink sink) {
  const RowGroup group = row_group(false);
  for (int64_t column = group.index; column < columns; column += group.count) {
    Part total = Part::empty();
    for (int64_t slice = group.lane; slice < slices; slice += kWarp) {
      total = Part::merge(total, parts[column * slices + slice]);
    }
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      total = Part::merge(total, Part::from_lane_below(total, static_cast<unsigned>(offset)));
    }
    if (group.lane == 0) sink.take(column, total);
  }
}

/// `source.columns<kWidth>(column).apply(row, offset)` for every pack of columns and every row.
template <int kWidth, typename Source>
__global__ void column_map_kernel(ColumnTile tile, Slices slices, Source source) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % tile.lanes, share = thread / tile.lanes;
  const int shares = kThreads / tile.lanes;
  const int64_t blocks = (tile.columns / kWidth + tile.lanes - 1) / tile.lanes;
  for (int64_t task = blockIdx.x; task < blocks * slices.count; task += gridDim.x) {
    const int64_t column = (task % blocks * tile.lanes + lane) * kWidth, slice = task / blocks;
    if (column >= tile.columns) continue;
    auto columns = source.template columns<kWidth>(column);
    const int64_t begin = slice_begin(slices, slice), end = begin + slice_size(slices, slice, tile.rows);
    for (int64_t row = begin + share; row < end; row += shares) columns.apply(row, row * tile.pitch + column);
  }
}

inline dim3 column_grid(int64_t tasks, int multiprocessors) {
  return row_grid(tasks, true, multiprocessors);
}

/// Both stages. `parts` has room for `parts_count` of them, at least one per column.
template <int kWidth, typename Part, typename Source, typename Sink>
void column_sums(cudaStream_t stream, int multiprocessors, const ColumnTile& tile, const Source& source,
                 const Sink& sink, Part* parts, int64_t parts_count) {
  const int64_t blocks = column_blocks(tile, kWidth), shortest = 8 * kThreads / tile.lanes;
  const Slices slices = choose_slices(blocks, tile.columns, tile.rows, shortest, multiprocessors, parts_count);
  launch(stream, column_grid(blocks * slices.count, multiprocessors), dim3(kThreads), 0,
         column_parts_kernel<kWidth, Part, Source>, tile, slices, source, parts);
  launch(stream, row_grid(tile.columns, false, multiprocessors), dim3(kThreads), 0, column_totals_kernel<Part, Sink>,
         tile.columns, slices.count, static_cast<const Part*>(parts), sink);
}

/// The map over all rows, cut so that the device is full.
template <int kWidth, typename Source>
void column_map(cudaStream_t stream, int multiprocessors, const ColumnTile& tile, const Source& source) {
  const int64_t blocks = column_blocks(tile, kWidth), shortest = 4 * kThreads / tile.lanes;
  const Slices slices = choose_slices(blocks, 1, tile.rows, shortest, multiprocessors, int64_t{1} << 20);
  launch(stream, column_grid(blocks * slices.count, multiprocessors), dim3(kThreads), 0,
         column_map_kernel<kWidth, Source>, tile, slices, source);
}

// Channels of nchw: planes instead of columns -------------------------------------------------------------------------

/// N runs of `run` values, `image` elements from one to the next, for each of `channels`.
struct Planes {
  int64_t images, channels, run, image;
};

/// Calls body(offset) for the values begin + thread, begin + thread + kThreads, ... below end of channel c.
template <typename Body>
__device__ void for_plane(const Planes& planes, int64_t c, int64_t begin, int64_t end, Body body) {
  int64_t at = begin + static_cast<int64_t>(threadIdx.x);
  int64_t image = at / planes.run, inside = at % planes.run;
  const int64_t images_on = kThreads / planes.run, values_on = kThreads % planes.run;
  for (; at < end; at += kThreads) {
    body(image * planes.image + c * planes.run + inside);
    image += images_on;
    inside += values_on;
    if (inside >= planes.run) {
      inside -= planes.run;
      ++image;
    }
  }
}

template <typename Part, typename Source>
__global__ void plane_parts_kernel(Planes planes, Slices slices, Source source, Part* parts) {
  DLB_SHARED(Part, of_thread, kThreads);
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t task = blockIdx.x; task < planes.channels * slices.count; task += gridDim.x) {
    const int64_t c = task / slices.count, slice = task % slices.count, begin = slice_begin(slices, slice);
    Part part[1] = {Part::empty()};
    auto columns = source.template columns<1>(c);
    for_plane(planes, c, begin, begin + slice_size(slices, slice, planes.images * planes.run),
              [&](int64_t offset) { columns.add(0, offset, part); });
    of_thread[thread] = part[0];
    for (int apart = kThreads / 2; apart > 0; apart /= 2) {
      __syncthreads();
      if (thread < apart) of_thread[thread] = Part::merge(of_thread[thread], of_thread[thread + apart]);
    }
    if (thread == 0) parts[task] = of_thread[0];
    __syncthreads();
  }
}

template <typename Source>
__global__ void plane_map_kernel(Planes planes, Slices slices, Source source) {
  for (int64_t task = blockIdx.x; task < planes.channels * slices.count; task += gridDim.x) {
    const int64_t c = task / slices.count, slice = task % slices.count, begin = slice_begin(slices, slice);
    auto columns = source.template columns<1>(c);
    for_plane(planes, c, begin, begin + slice_size(slices, slice, planes.images * planes.run),
              [&](int64_t offset) { columns.apply(0, offset); });
  }
}

/// Both stages over planes.
template <typename Part, typename Source, typename Sink>
void plane_sums(cudaStream_t stream, int multiprocessors, const Planes& planes, const Source& source, const Sink& sink,
                Part* parts, int64_t parts_count) {
  const Slices slices = choose_slices(planes.channels, planes.channels, planes.images * planes.run, 4 * kThreads,
                                      multiprocessors, parts_count);
  launch(stream, row_grid(planes.channels * slices.count, true, multiprocessors), dim3(kThreads), 0,
         plane_parts_kernel<Part, Source>, planes, slices, source, parts);
  launch(stream, row_grid(planes.channels, false, multiprocessors), dim3(kThreads), 0, column_totals_kernel<Part, Sink>,
         planes.channels, slices.count, static_cast<const Part*>(parts), sink);
}

template <typename Source>
void plane_map(cudaStream_t stream, int multiprocessors, const Planes& planes, const Source& source) {
  const Slices slices =
      choose_slices(planes.channels, 1, planes.images * planes.run, 4 * kThreads, multiprocessors, int64_t{1} << 20);
  launch(stream, row_grid(planes.channels * slices.count, true, multiprocessors), dim3(kThreads), 0,
         plane_map_kernel<Source>, planes, slices, source);
}

}  // namespace dlbench::gpu
