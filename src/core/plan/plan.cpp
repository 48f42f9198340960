#include "core/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "core/base/error.h"
#include "core/base/usable_cpus.h"
#include "core/measure/buffers.h"
#include "core/plan/estimate.h"
#include "core/plan/key_filter.h"
#include "core/plan/sweep.h"

namespace dlbench {

namespace {

/// Assumed where a device doesn't say how large its last-level cache is: larger than those of most machines.
constexpr int64_t kAssumedCacheBytes = int64_t{128} << 20;
/// More sets than this would be allocated and captured for longer than the point is measured.
constexpr int64_t kMaxBufferSets = 65536;

std::string gibibytes(double bytes) {
  return fmt::format("{:.{}f} GiB", bytes / 0x1p30, bytes < 0x1p30 ? 3 : 1);
}

/// One device of the plan, started so that it can be asked what it supports; or why it isn't there.
struct PlanDevice {
  std::string id;
  Side side = Side::cpu;
  std::string absence;  ///< "" when it is there
  DeviceInfo info;
  std::unique_ptr<Device> device;
  std::map<int64_t, std::unique_ptr<Device>> with_threads;  ///< the same with fewer threads
  int64_t most_threads = 0;                                 ///< that a point may ask for; 0: any
  int64_t all_threads = 1;                                  ///< what threads=all means
};

class Planner {
 public:
  Planner(const Config& config, const WorkloadCatalog& catalog, Registry& registry, Purpose purpose)
      : config_(config), catalog_(catalog), registry_(registry), purpose_(purpose), filter_(config.filters) {}

  Plan make() {
    require_devices();
    if (config_.points.empty()) {
      add_sweeps();
    } else {
      for (const std::string& key : config_.points) {
        Point point = parse_point_key(key, catalog_);
        add(std::move(point), device(registry_.canonical_id(point.device())));
      }
    }
    if (plan_.points.empty()) refuse_empty_plan();
    plan_.config = config_;
    for (const PlannedPoint& point : plan_.points) plan_.estimated_seconds += point.estimated_seconds;
    return std::move(plan_);
  }

 private:
  void require_devices() {
    for (const std::string& written : config_.require) {
      const ProbeResult found = registry_.look_up(registry_.canonical_id(written));
      if (found.absence != Absence::none) {
        throw DeviceAbsentError(
            fmt::format("device {} is required and isn't usable here: {}", written, found.sentence));
      }
    }
  }

  void add_sweeps() {
    std::vector<PlanDevice*> devices;
    for (const std::string& written : config_.devices) {
      PlanDevice* each = &device(registry_.canonical_id(written));
      if (std::find(devices.begin(), devices.end(), each) == devices.end()) devices.push_back(each);
    }
    for (const Sweep& sweep : config_.sweeps) {
      const WorkloadDescriptor& workload = *catalog_.find(sweep.workload);
      for (PlanDevice* each : devices) {
        for (Point& point : expand_sweep(workload, sweep, each->id)) add(std::move(point), *each);
      }
    }
  }

  PlanDevice& device(const std::string& id) {
    const auto known = devices_.find(id);
    if (known != devices_.end()) return *known->second;
    auto entry = std::make_unique<PlanDevice>();
    entry->id = id;
    entry->side = side_of_device(id);
    const ProbeResult found = registry_.look_up(id);
    entry->absence = found.absence == Absence::none ? "" : found.sentence;
    if (entry->absence.empty()) start(*entry);
    return *devices_.emplace(id, std::move(entry)).first->second;
  }

  void start(PlanDevice& entry) {
    try {
      entry.device = registry_.create(entry.id, {});
      entry.info = entry.device->info();
      entry.side = entry.info.side;
    } catch (const Error& e) {
      entry.absence = e.what();
      return;
    }
    const bool is_cpu = entry.info.kind == "cpu";
    entry.most_threads = is_cpu ? usable_cpus().count : entry.info.kind == "reference" ? 1 : 0;
    entry.all_threads = config_.threads > 0 ? config_.threads : is_cpu ? entry.most_threads : entry.info.threads;
    if (entry.info.kind == "reference") entry.all_threads = 1;
  }

  /// A peak of one thread is another amount of work than that of all.
  Device& with_threads(PlanDevice& on, int64_t threads) {
    if (threads == on.info.threads) return *on.device;
    std::unique_ptr<Device>& device = on.with_threads[threads];
    if (!device) device = registry_.create(on.id, {.threads = static_cast<int>(threads)});
    return *device;
  }

  void add(Point point, PlanDevice& on) {
    for (auto& [axis, value] : point.axes) {
      if (axis == "device") value = on.id;
      if (axis == "threads" && value == AxisValue{kAllThreads}) value = on.all_threads;
    }
    PlannedPoint planned;
    planned.key = point.key();
    planned.point = std::move(point);
    if (!filter_.keeps(planned.key)) {
      ++filtered_;
      return;
    }
    if (!keys_.insert(planned.key).second) return;  // "all" threads may be a number that is in the list already
    planned.side = on.side;
    const WorkloadDescriptor& descriptor = *catalog_.find(planned.point.workload);
    const std::unique_ptr<Workload> workload = create_workload(descriptor, planned.point);
    if (on.device) workload->adapt(*on.device);
    planned.tensor_bytes = tensor_bytes_of(*workload);
    planned.work = workload->work();
    decide(planned, *workload, on);
    if (planned.status == Status::ok) {
      planned.estimated_seconds = estimate_seconds(planned, on.info, config_.measure);
    }
    plan_.points.push_back(std::move(planned));
  }

  void refuse(PlannedPoint& planned, Status status, std::string reason) {
    planned.status = status;
    planned.reason = std::move(reason);
  }

  void decide(PlannedPoint& planned, Workload& workload, PlanDevice& on) {
    if (!on.device) {
      planned.support = {SupportLevel::no, on.absence};
      return refuse(planned, Status::unsupported, on.absence);
    }
    planned.support = workload.supported_by(*on.device);
    if (on.info.emulated && purpose_ == Purpose::timing) {
      return refuse(planned, Status::unsupported,
                    fmt::format("{} is emulated on the CPU: it can be checked (`dlbench check`), never timed", on.id));
    }
    if (planned.support.level == SupportLevel::no) {
      return refuse(planned, Status::unsupported, planned.support.reason);
    }
    const AxisValue* threads = planned.point.find("threads");
    if (threads && on.most_threads > 0 && std::get<int64_t>(*threads) > on.most_threads) {
      return refuse(planned, Status::unsupported,
                    fmt::format("threads={} is more than the {} that {} can use here", to_string(*threads),
                                on.most_threads, on.id));
    }
    if (const std::optional<Cost> cost = workload.device_cost(*on.device)) {
      planned.work.cost = threads ? *workload.device_cost(with_threads(on, std::get<int64_t>(*threads))) : *cost;
    }
    const AxisValue* launch = planned.point.find("launch");
    if (launch && to_string(*launch) == "graph") {
      const Support graphs = on.device->supports_graphs();
      if (graphs.level == SupportLevel::no) return refuse(planned, Status::unsupported, graphs.reason);
    }
    decide_memory(planned, workload, on);
    if (planned.status == Status::ok) decide_time(planned, on);
  }

  void decide_memory(PlannedPoint& planned, const Workload& workload, const PlanDevice& on) {
    const double tensors = static_cast<double>(planned.tensor_bytes),
                 memory = static_cast<double>(on.info.memory_bytes);
    const auto too_large = [&](double bytes, const std::string& what, const std::string& where, double there_is) {
      refuse(planned, Status::out_of_memory,
             fmt::format("needs {} for {}, {} has {}", gibibytes(bytes), what, where, gibibytes(there_is)));
    };
    if (memory > 0 && tensors > memory) return too_large(tensors, "its tensors", on.id, memory);
    const AxisValue* cache = planned.point.find("cache");
    if (cache && to_string(*cache) == "rotate") decide_buffer_sets(planned, workload, on);
    if (planned.status != Status::ok) return;
    const double needed = static_cast<double>(bytes_needed(workload.buffers(), planned.buffer_sets));
    if (memory > 0 && needed > memory) {
      const std::string what =
          fmt::format("{} set{} of buffers", planned.buffer_sets, planned.buffer_sets > 1 ? "s" : "");
      return too_large(needed, what, on.id, memory);
    }
    // Verification holds the device's results, the reference's buffers and its results in host memory at once.
    if (on.info.kind == "meta" || !workload.verifiable_by_reference()) return;
    const double host = static_cast<double>(registry_.look_up("reference").devices.front().memory_bytes);
    if (3 * tensors > host)
      too_large(3 * tensors, "its verification (three copies of the tensors)", "this machine", host);
  }

  /// Several input sets, together larger than twice the last-level cache, so that each step finds its inputs evicted.
  void decide_buffer_sets(PlannedPoint& planned, const Workload& workload, const PlanDevice& on) {
    int64_t inputs = 0;
    for (const BufferSpec& buffer : workload.buffers()) {
      if (buffer.role == BufferRole::input) inputs += byte_count(buffer.shape, buffer.dtype);
    }
    if (inputs == 0) return;
    const int64_t cache = on.info.last_level_cache_bytes > 0 ? on.info.last_level_cache_bytes : kAssumedCacheBytes;
    const int64_t sets = std::max<int64_t>(2, 2 * cache / inputs + 1);
    if (sets > kMaxBufferSets) {
      return refuse(planned, Status::unsupported,
                    fmt::format("cache=rotate would need {} sets of its {} bytes of inputs to exceed twice the {} MiB "
                                "cache; at most {} are made",
                                sets, inputs, cache >> 20, kMaxBufferSets));
    }
    planned.buffer_sets = static_cast<int>(sets);
  }

  /// A step that would take longer than the point may, even at ten times the usual rates, isn't started.
  void decide_time(PlannedPoint& planned, const PlanDevice& on) {
    const double least = estimate_step_seconds(planned, on.info) / 10;
    if (on.info.kind != "meta" && least > config_.measure.point_timeout_seconds) {
      refuse(planned, Status::timeout,
             fmt::format("one step would take more than {:.0f} s on {}, and a point may take {:.0f} s "
                         "(measure.point_timeout_seconds)",
                         least, on.id, config_.measure.point_timeout_seconds));
    }
  }

  [[noreturn]] void refuse_empty_plan() const {
    if (filtered_ > 0) {
      std::string filters;
      for (const std::string& filter : config_.filters)
        filters += (filters.empty() ? "" : ", ") + ("\"" + filter + "\"");
      throw UsageError(
          fmt::format("nothing is left to measure: none of the {} points of {} passes the filters {}; "
                      "`dlbench run --dry-run` lists the keys",
                      filtered_, config_.name, filters));
    }
    throw UsageError(
        fmt::format("nothing is left to measure: no sweep of {} has a point on the devices asked for", config_.name));
  }

  const Config& config_;
  const WorkloadCatalog& catalog_;
  Registry& registry_;
  Purpose purpose_;
  KeyFilter filter_;
  std::map<std::string, std::unique_ptr<PlanDevice>> devices_;
  std::set<std::string> keys_;
  size_t filtered_ = 0;
  Plan plan_;
};

}  // namespace

Plan make_plan(const Config& config, const WorkloadCatalog& catalog, Registry& registry, Purpose purpose) {
  return Planner(config, catalog, registry, purpose).make();
}

}  // namespace dlbench
