#include "h2d/examples/replay/pipeline.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "h2d/examples/replay/padded_image.h"

namespace h2d::replay {
namespace {

// Longer than any step, on any machine.
constexpr std::chrono::seconds kStepTimeout(60);

template <class T>
T FromBytes(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

// One element of a tensor, for a person.
std::string ElementText(TensorKind kind, std::span<const std::byte> bytes) {
  if (kind == TensorKind::kSampling) {
    const auto sampling = FromBytes<SamplingParams>(bytes);
    return "(temperature " + std::to_string(sampling.temperature) + ", top-p " +
           std::to_string(sampling.top_p) + ")";
  }
  if (kind == TensorKind::kSeeds) return std::to_string(FromBytes<uint64_t>(bytes));
  if (bytes.size() == sizeof(int64_t)) return std::to_string(FromBytes<int64_t>(bytes));
  return std::to_string(FromBytes<int32_t>(bytes));
}

}  // namespace

Pipeline::Pipeline(Machine& machine, const StepShape& shape, const StepSlabs& slabs,
                   const PipelineOptions& options, const Stream& plan, const Stream& admissions,
                   const Stream& graph)
    : machine_(machine),
      device_(*machine.device()),
      shape_(shape),
      slabs_(slabs),
      options_(options),
      plan_stream_(plan),
      admission_stream_(admissions),
      graph_stream_(graph) {}

Expected<std::unique_ptr<Pipeline>> Pipeline::Create(Machine& machine, const StepShape& shape,
                                                     const StepSlabs& slabs,
                                                     const PipelineOptions& options) {
  Expected<Stream> plan = machine.NewStream("plan");
  if (!plan) return ErrorOf(plan);
  Expected<Stream> admissions = machine.NewStream("admissions");
  if (!admissions) return ErrorOf(admissions);
  Expected<Stream> graph = machine.NewStream("graph");
  if (!graph) return ErrorOf(graph);
  std::unique_ptr<Pipeline> pipeline(
      new Pipeline(machine, shape, slabs, options, *plan, *admissions, *graph));
  for (uint32_t flight = 0; flight < options.run_ahead; ++flight) {
    if (Expected<void> ok = pipeline->AddFlight(); !ok) return ErrorOf(ok);
  }
  return pipeline;
}

Expected<void> Pipeline::AddFlight() {
  const uint64_t bytes = shape_.MostStepBytes();
  Expected<std::span<std::byte>> snapshot = machine_.AllocateSnapshot(bytes);
  if (!snapshot) return ErrorOf(snapshot);
  Expected<Event> planned = device_.CreateEvent();
  if (!planned) return ErrorOf(planned);
  Expected<Event> admitted = device_.CreateEvent();
  if (!admitted) return ErrorOf(admitted);
  Expected<Event> done = device_.CreateEvent();
  if (!done) return ErrorOf(done);
  flights_.push_back(Flight{.expected = std::vector<std::byte>(bytes),
                            .snapshot = *snapshot,
                            .planned = std::move(*planned),
                            .admitted = std::move(*admitted),
                            .done = std::move(*done)});
  return {};
}

Expected<void> Pipeline::RunStep(const StepPlan& plan, const StepTensors& tensors,
                                 StepStaging& staging) {
  if (plan.after_idle) {
    if (Expected<void> ok = Drain(); !ok) return ok;
  }
  if (next_step_ - oldest_step_ == options_.run_ahead) {
    if (Expected<void> ok = RetireOldest(); !ok) return ok;
  }
  Flight& flight = FlightOf(next_step_);
  flight.step = next_step_;
  flight.graph = shape_.GraphFor(plan.tokens);
  if (Expected<void> ok = StageAll(plan, tensors, staging); !ok) return ok;
  Expect(tensors, flight);
  if (Expected<void> ok = Launch(plan, flight); !ok) return ok;
  ++next_step_;
  return CountInFlight();
}

// A copy is not ordered after earlier readers of its destination: that is the engine's part.
Expected<void> Pipeline::WaitForReaders(const Stream& stream) {
  if (!options_.wait_for_readers || next_step_ < options_.readers_steps_back) return {};
  return device_.WaitEvent(stream, FlightOf(next_step_ - options_.readers_steps_back).done);
}

Expected<void> Pipeline::StageAll(const StepPlan& plan, const StepTensors& tensors,
                                  StepStaging& staging) {
  if (Expected<void> ok = WaitForReaders(plan_stream_); !ok) return ok;
  if (plan.admits) {
    if (Expected<void> ok = WaitForReaders(admission_stream_); !ok) return ok;
  }
  const StepInputs inputs{.slab = SlabOf(next_step_),
                          .graph = shape_.GraphFor(plan.tokens),
                          .tensors = tensors,
                          .plan = plan_stream_,
                          .admissions = plan.admits ? admission_stream_ : plan_stream_};
  const StagerStats before = staging.stats();
  const std::chrono::nanoseconds start = device_.Now();
  Expected<void> staged = staging.Stage(inputs);
  const std::chrono::nanoseconds time = device_.Now() - start;
  if (staged) counts_.AddStep(before, staging.stats(), static_cast<uint64_t>(time.count()));
  return staged;
}

// Hands the copies of `stream` to the graph.
Expected<void> Pipeline::GraphWaitsFor(const Stream& stream, Event& event) {
  if (!options_.record_before_wait) {
    // The bug: the graph's stream waits for what the event stood for before.
    if (Expected<void> ok = device_.WaitEvent(graph_stream_, event); !ok) return ok;
    return device_.Record(event, stream);
  }
  if (Expected<void> ok = device_.Record(event, stream); !ok) return ok;
  return device_.WaitEvent(graph_stream_, event);
}

void Pipeline::Expect(const StepTensors& tensors, Flight& flight) const {
  std::span<std::byte> image(flight.expected);
  for (const TensorKind kind : kAllTensors) {
    const uint64_t bytes = shape_.BytesOf(kind, flight.graph);
    WritePaddedImage(tensors.View(kind), image.first(bytes));
    image = image.subspan(bytes);
  }
}

Expected<void> Pipeline::Launch(const StepPlan& plan, Flight& flight) {
  if (Expected<void> ok = GraphWaitsFor(plan_stream_, flight.planned); !ok) return ok;
  if (plan.admits) {
    if (Expected<void> ok = GraphWaitsFor(admission_stream_, flight.admitted); !ok) return ok;
  }
  StepGraph graph{.reads = slabs_.ReadBy(SlabOf(flight.step), flight.graph), .clears = {}};
  if (options_.graph_clears_seeds) graph.clears = graph.reads[size_t(TensorKind::kSeeds)];
  Expected<void> ok = machine_.LaunchGraph(graph_stream_, graph, flight.snapshot, plan.duration);
  return ok ? device_.Record(flight.done, graph_stream_) : ok;
}

// The graph's stream runs in order: once one step is pending, so are all after it.
Expected<void> Pipeline::CountInFlight() {
  uint64_t step = oldest_step_;
  for (; step < next_step_; ++step) {
    Expected<EventState> state = device_.Query(FlightOf(step).done);
    if (!state) return ErrorOf(state);
    if (*state == EventState::kPending) break;
  }
  const auto in_flight = static_cast<uint32_t>(next_step_ - step);
  counts_.most_in_flight = std::max(counts_.most_in_flight, in_flight);
  return {};
}

Expected<void> Pipeline::Drain() {
  while (oldest_step_ < next_step_) {
    if (Expected<void> ok = RetireOldest(); !ok) return ok;
  }
  return {};
}

Expected<void> Pipeline::RetireOldest() {
  const Flight& flight = FlightOf(oldest_step_);
  const std::array<const Event*, 1> events = {&flight.done};
  Expected<std::optional<size_t>> done =
      device_.WaitAny(events, WaitBounds{.timeout = kStepTimeout});
  if (!done) return ErrorOf(done);
  if (!done->has_value()) {
    return Unavailable("The graph of step " + std::to_string(flight.step) +
                       " did not complete within 60 s.");
  }
  ++oldest_step_;
  Verify(flight);
  return {};
}

void Pipeline::Verify(const Flight& flight) {
  size_t bytes = 0;
  for (const TensorKind kind : kAllTensors) bytes += shape_.BytesOf(kind, flight.graph);
  ++counts_.verified_steps;
  counts_.verified_bytes += bytes;
  if (std::memcmp(flight.expected.data(), flight.snapshot.data(), bytes) == 0) return;
  ++counts_.mismatches;
  if (!first_mismatch_.empty()) return;
  const auto [expected, read] =
      std::mismatch(flight.expected.begin(), flight.expected.end(), flight.snapshot.begin());
  first_mismatch_ = Describe(flight, static_cast<size_t>(expected - flight.expected.begin()));
}

// `at` is the offset of the first wrong byte in the step's image.
std::string Pipeline::Describe(const Flight& flight, size_t at) const {
  size_t start = 0;
  for (const TensorKind kind : kAllTensors) {
    const uint64_t bytes = shape_.BytesOf(kind, flight.graph);
    if (at >= start + bytes) {
      start += bytes;
      continue;
    }
    const uint32_t element_bytes = ElementBytesOf(kind);
    const size_t element = (at - start) / element_bytes;
    const size_t first = start + element * element_bytes;
    const auto text = [&](std::span<const std::byte> image) {
      return ElementText(kind, image.subspan(first, element_bytes));
    };
    return "The graph of step " + std::to_string(flight.step) + " read " + text(flight.snapshot) +
           " and not " + text(flight.expected) + " in element " + std::to_string(element) +
           " of its " + std::string(ToString(kind)) + ".";
  }
  return "";
}

}  // namespace h2d::replay
