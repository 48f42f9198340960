// The environment record: what a reader needs to know about the machine and the software to trust or to doubt a number.
//
// Why: a time without its machine means nothing, and two results may be compared only when these facts agree.
// Promises: reads, and changes no setting; a fact that this system doesn't tell is null, never guessed.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/device/registry.h"

namespace dlbench {

/// {fingerprint, cpu{}, memory{}, os{}, limits{}, denormals, devices[]}. `devices` holds what each backend says about
/// itself and its hardware. The fingerprint is a hash over what decides whether times may be compared: CPU model and
/// usable CPUs, memory size, hypervisor, names and facts of the devices.
Json environment_record(Registry& registry);
/// Name, version, compiler and flags of this program, and the versions of the libraries it was built with.
Json tool_record();
/// Advice in sentences: what of this machine's state makes timings worse, and what to do. Changes nothing.
std::vector<std::string> environment_advice(const Json& environment);

/// "2026-11-30T20:15:00Z"
std::string utc_now();

}  // namespace dlbench
