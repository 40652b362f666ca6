// In steady state nothing is allocated, freed or synchronised, on the device or on the heap (I6).
//
// This program counts what operator new is asked for while the stager runs; what the simulated
// device needs for its own books is not counted.
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "h2d/device/faulty/faulty_device.h"
#include "h2d/tests/scenarios/support/scenario_test.h"

namespace {

thread_local bool counting = false;
thread_local uint64_t heap_allocations = 0;

void* Allocate(std::size_t bytes, std::size_t alignment) {
  if (counting) ++heap_allocations;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

// The forms for arrays, and those that do not throw, end here too.
void* operator new(std::size_t bytes) { return Allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace h2d::scenarios {
namespace {

using Kind = CopyOutcome::Kind;

// Counts within a scope.
class Counting {
 public:
  explicit Counting(bool on = true) noexcept : before_(std::exchange(counting, on)) {}
  ~Counting() { counting = before_; }

 private:
  const bool before_;
};

// Passes every call on, uncounted.
class UncountedDevice final : public Device {
 public:
  explicit UncountedDevice(std::shared_ptr<Device> inner) : inner_(std::move(inner)) {}

  Expected<PinnedBuffer> AllocatePinned(uint64_t bytes) override {
    const Counting off(false);
    return inner_->AllocatePinned(bytes);
  }
  Expected<void> Trim() override {
    const Counting off(false);
    return inner_->Trim();
  }
  Expected<MemoryKind> KindOf(std::span<const std::byte> memory) override {
    const Counting off(false);
    return inner_->KindOf(memory);
  }
  uint64_t MemorySpace() const noexcept override { return inner_->MemorySpace(); }
  Expected<void> CopyAsync(DevicePtr destination, std::span<const std::byte> source,
                           const Stream& stream) override {
    const Counting off(false);
    return inner_->CopyAsync(destination, source, stream);
  }
  Expected<void> CopyBatchAsync(std::span<const CopyEntry> entries, const Stream& stream) override {
    const Counting off(false);
    return inner_->CopyBatchAsync(entries, stream);
  }
  Expected<Event> CreateEvent() override {
    const Counting off(false);
    return inner_->CreateEvent();
  }
  Expected<void> Record(Event& event, const Stream& stream) override {
    const Counting off(false);
    return inner_->Record(event, stream);
  }
  Expected<EventState> Query(const Event& event) override {
    const Counting off(false);
    return inner_->Query(event);
  }
  Expected<std::optional<size_t>> WaitAny(std::span<const Event* const> events,
                                          const WaitBounds& bounds) override {
    const Counting off(false);
    return inner_->WaitAny(events, bounds);
  }
  Expected<void> WaitEvent(const Stream& stream, const Event& event) override {
    const Counting off(false);
    return inner_->WaitEvent(stream, event);
  }
  Expected<StreamStatus> Inspect(const Stream& stream) override {
    const Counting off(false);
    return inner_->Inspect(stream);
  }
  std::chrono::nanoseconds Now() const noexcept override { return inner_->Now(); }
  void OnHostAccess(std::span<const std::byte> bytes, HostAccess access) noexcept override {
    const Counting off(false);
    inner_->OnHostAccess(bytes, access);
  }

 private:
  const std::shared_ptr<Device> inner_;
};

// Makes a call and counts what it allocates.
template <class Call>
auto Counted(const Call& call) {
  const Counting on;
  return call();
}

class SteadyState : public ScenarioTest {
 protected:
  void SetUp() override {
    faulty_ = FaultyDevice::Create(shared_fake());
    MakeStager(RingOf(slots() + 1), std::make_shared<UncountedDevice>(faulty_));
    mirror_.emplace(stager().NewMirror(NewDestination("mirrored")).value());
    heap_allocations = 0;
  }
  void TearDown() override {
    mirror_.reset();
    ScenarioTest::TearDown();
  }

  // A step of every kind of call: full, skipped, trimmed and waiting copies on two streams, leases.
  void Step(const Values& values, const Values& changed) {
    for (const Stream& stream : {a_, b_}) {
      ExpectIssued(Counted([&] { return stager().Copy(to_, values, stream); }));
      for (const Values* image : {&values, &changed, &changed}) {
        const auto outcome = Counted([&] { return stager().Copy(*mirror_, *image, stream); });
        ASSERT_TRUE(outcome) << outcome.error().ToString();
      }
      auto lease = Counted([&] { return stager().Acquire(bytes()); });
      ASSERT_TRUE(lease) << lease.error().ToString();
      std::fill(lease->as<int32_t>().begin(), lease->as<int32_t>().end(), 1);
      ExpectIssued(Counted([&] { return lease->Submit(to_, stream); }));
      EXPECT_TRUE(Counted([&] { return stager().Acquire(bytes()); }));  // and dropped
      const auto tried = Counted([&] { return stager().TryCopy(to_, values, stream, -1); });
      ASSERT_TRUE(tried) << tried.error().ToString();
      Order(stream, stream.id() == a_.id() ? b_ : a_);
    }
  }

  std::shared_ptr<FaultyDevice> faulty_;
  std::optional<H2DMirror> mirror_;
  const Stream a_ = fake().NewStream("A");
  const Stream b_ = fake().NewStream("B");
  const Destination to_ = NewDestination("plain");
};
INSTANTIATE_TEST_SUITE_P(All, SteadyState, ::testing::ValuesIn(Settings()), NameOf);

// Scenario 25.
TEST_P(SteadyState, NothingIsAllocatedOrFreed) {
  Values values = ValuesOf(1);
  Values changed = ValuesOf(1);
  changed.back() ^= 1;
  Step(values, changed);
  const uint64_t pinned = faulty_->CallCount(CallKind::kAllocatePinned);
  const uint64_t events = faulty_->CallCount(CallKind::kCreateEvent);
  const uint64_t releases = fake().counters().pinned_releases;
  heap_allocations = 0;
  for (int step = 0; step < 10; ++step) {
    std::swap(values, changed);
    Step(values, changed);
  }
  EXPECT_EQ(heap_allocations, 0u);
  EXPECT_EQ(faulty_->CallCount(CallKind::kAllocatePinned), pinned);
  EXPECT_EQ(faulty_->CallCount(CallKind::kCreateEvent), events);
  EXPECT_EQ(faulty_->CallCount(CallKind::kTrim), 0u);
  EXPECT_EQ(fake().counters().pinned_releases, releases);
}

// "Would block" is an answer, not an error with a message.
TEST_P(SteadyState, WouldBlockAllocatesNothing) {
  const Values values = ValuesOf(1);
  ASSERT_TRUE(fake().Hold(a_));
  for (uint32_t i = 0; i < slots() + 1; ++i) {
    ExpectIssued(Counted([&] { return stager().TryCopy(to_, values, a_); }));
  }
  for (int i = 0; i < 10; ++i) {
    ExpectKind(Counted([&] { return stager().TryCopy(to_, values, a_); }), Kind::kWouldBlock);
    ExpectKind(Counted([&] { return stager().TryCopy(*mirror_, values, b_); }), Kind::kWouldBlock);
    EXPECT_FALSE(Counted([&] { return stager().TryAcquire(bytes()); }).value());
  }
  EXPECT_EQ(heap_allocations, 0u);
  ASSERT_TRUE(fake().Release(a_));
}

// A mirror hit takes no slot and does not wait for one.
TEST_P(SteadyState, AHitInAFullRingIsAnsweredAtOnce) {
  const Values values = ValuesOf(1);
  ExpectIssued(stager().Copy(*mirror_, values, b_));
  ASSERT_TRUE(fake().SynchronizeStream(b_));
  ASSERT_TRUE(fake().Hold(a_));
  std::vector<SlotLease> leases;
  for (uint32_t i = 0; i < slots() + 1; ++i) leases.push_back(stager().Acquire(bytes()).value());
  const uint64_t waits = fake().counters().waits;
  ExpectKind(Counted([&] { return stager().Copy(*mirror_, values, b_); }), Kind::kSkipped);
  EXPECT_EQ(fake().counters().waits, waits);
  EXPECT_EQ(heap_allocations, 0u);
  ASSERT_TRUE(fake().Release(a_));
}

}  // namespace
}  // namespace h2d::scenarios
