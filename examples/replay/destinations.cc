#include "h2d/examples/replay/destinations.h"

namespace h2d::replay {
namespace {

constexpr size_t kRowTensorKinds = kTensorKinds - kTokenTensorKinds;

std::string NameOf(TensorKind kind, const StepShape& shape, size_t graph, uint32_t set) {
  std::string name(ToString(kind));
  if (IsPerToken(kind)) name += " x" + std::to_string(shape.token_sizes[graph]);
  return name + (set == 0 ? " A" : set == 1 ? " B" : " " + std::to_string(set));
}

}  // namespace

Destinations::Destinations(const StepShape& shape, uint32_t sets)
    : graphs_(shape.token_sizes.size()),
      per_set_(kRowTensorKinds + kTokenTensorKinds * graphs_),
      all_(per_set_ * sets) {}

size_t Destinations::IndexOf(uint32_t set, TensorKind kind, size_t graph) const noexcept {
  const auto tensor = static_cast<size_t>(kind);
  const size_t within = IsPerToken(kind) ? kRowTensorKinds + graph * kTokenTensorKinds + tensor
                                         : tensor - kTokenTensorKinds;
  return set * per_set_ + within;
}

std::span<const Destination> Destinations::ReadBy(uint32_t set, size_t graph) const noexcept {
  return read_by_[set * graphs_ + graph];
}

Expected<Destinations> Destinations::Allocate(Machine& machine, const StepShape& shape,
                                              uint32_t sets) {
  Destinations destinations(shape, sets);
  for (uint32_t set = 0; set < sets; ++set) {
    for (size_t graph = 0; graph < destinations.graphs_; ++graph) {
      std::vector<Destination>& reads = destinations.read_by_.emplace_back();
      for (const TensorKind kind : kAllTensors) {
        Destination& place = destinations.all_[destinations.IndexOf(set, kind, graph)];
        if (place.ptr.is_null()) {
          Expected<DevicePtr> ptr =
              machine.AllocateDevice(shape.BytesOf(kind, graph), NameOf(kind, shape, graph, set));
          if (!ptr) return ErrorOf(ptr);
          place = Destination{*ptr, shape.CountOf(kind, graph), ElementBytesOf(kind)};
        }
        reads.push_back(place);
      }
    }
  }
  return destinations;
}

}  // namespace h2d::replay
