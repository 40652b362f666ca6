// Millions of copies from four threads on four streams, each verified on the GPU.
//
//   soak [COPIES]        10,000,000 without a number; bench/gpu/run soak
//
// Every payload carries its sequence number and a checksum. Behind each window of copies a kernel
// looks at every destination, before the next window overwrites it, and counts those that hold the
// number and the checksum that they should: in the end as many as were sent. Sizes are random, the
// ring grows from one slot, and now and then a stream is held for 20 ms. After the warm-up nothing
// allocates, in the library's calls or of the device; the time of every call is in the histogram,
// those that chose to wait for a slot apart.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "h2d/bench/live_graph/cuda_check.h"
#include "h2d/bench/live_graph/nvrtc.h"
#include "h2d/device/cuda/cuda_device.h"
#include "h2d/stager/pinned_stager.h"

namespace {

// Counts this program's own allocations on each thread.
thread_local uint64_t allocations = 0;

}  // namespace

void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace h2d::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kThreads = 4;
constexpr uint32_t kWindow = 32;         // copies between two looks
constexpr uint32_t kMostWords = 16384;   // 64 KiB, now and then
constexpr uint32_t kUsualWords = 2048;   // 8 KiB
constexpr uint32_t kHeaderWords = 3;     // sequence number, words, checksum
constexpr uint64_t kHoldEvery = 20'000;  // copies of a thread
constexpr uint32_t kMaxSlots = 512;

const char kSource[] = R"(
extern "C" __global__ void verify(const unsigned* memory, unsigned stride, unsigned first,
                                  unsigned long long* counts) {
  const unsigned* words = memory + (unsigned long long)blockIdx.x * stride;
  __shared__ unsigned sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  const unsigned count = words[1] <= stride ? words[1] : 0;
  unsigned mine = 0;
  for (unsigned i = 3 + threadIdx.x; i < count; i += blockDim.x) mine += words[i] * (2 * i + 1);
  atomicAdd(&sum, mine);
  __syncthreads();
  if (threadIdx.x != 0) return;
  const bool good = words[0] == first + blockIdx.x && count >= 3 && words[2] == sum;
  atomicAdd(&counts[good ? 0 : 1], 1ULL);
}
extern "C" __global__ void hold(unsigned long long ns) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); } while (now - start < ns);
}
)";

// Calls by their time: bucket i holds those below 2^i ns.
struct Histogram {
  std::array<uint64_t, 40> calls = {};
  uint64_t most_ns = 0;

  void Add(uint64_t ns) {
    ++calls[std::bit_width(ns)];
    most_ns = std::max(most_ns, ns);
  }
  void Add(const Histogram& other) {
    for (size_t i = 0; i < calls.size(); ++i) calls[i] += other.calls[i];
    most_ns = std::max(most_ns, other.most_ns);
  }
  void Print(const char* what) const {
    std::printf("%s, the longest %.1f us\n", what, static_cast<double>(most_ns) / 1e3);
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i] == 0) continue;
      std::printf("  below %10llu ns  %12llu\n", 1ULL << i,
                  static_cast<unsigned long long>(calls[i]));
    }
  }
};

class Sender {
 public:
  Sender(const std::shared_ptr<CudaDevice>& device, PinnedStager& stager, const Kernels& kernels,
         size_t index)
      : stager_(stager), kernels_(kernels), random_(index + 1) {
    Check(cudaStreamCreateWithFlags(&native_, cudaStreamNonBlocking), "Creating a stream");
    Check(cudaMalloc(&memory_, kWindow * kMostWords * 4), "Allocating device memory");
    Check(cudaMalloc(&counts_, 16), "Allocating counters");
    Check(cudaMemset(counts_, 0, 16), "Zeroing counters");
    stream_ = Must(device->Wrap(native_));
    payload_.resize(kMostWords);
  }

  void Send(uint64_t copies) {
    const uint64_t end = sent_ + copies / kWindow * kWindow;
    while (sent_ < end) {
      const uint32_t first = static_cast<uint32_t>(sent_);
      for (uint32_t i = 0; i < kWindow; ++i) SendOne(i);
      Launch("verify", first);
      if (sent_ % kHoldEvery < kWindow) Hold();
    }
  }

  void Finish() {
    Check(cudaStreamSynchronize(native_), "Draining a stream");
    std::array<unsigned long long, 2> counts = {};
    Check(cudaMemcpy(counts.data(), counts_, 16, cudaMemcpyDeviceToHost), "Reading counters");
    verified_ = counts[0];
    wrong_ = counts[1];
  }

  // From here on calls are timed and allocations counted anew.
  void EndWarmUp() {
    warm_ = true;
    ForgetAllocations();
  }
  void ForgetAllocations() { allocations_in_calls_ = 0; }

  uint64_t sent() const { return sent_; }
  uint64_t verified() const { return verified_; }
  uint64_t wrong() const { return wrong_; }
  uint64_t allocations_in_calls() const { return allocations_in_calls_; }
  const Histogram& tries() const { return tries_; }
  const Histogram& waits() const { return waits_; }

 private:
  void SendOne(uint32_t place) {
    const bool large = random_() % 512 == 0;
    const uint32_t words =
        kHeaderWords + 1 + random_() % ((large ? kMostWords : kUsualWords) - kHeaderWords - 1);
    payload_[0] = static_cast<uint32_t>(sent_++);
    payload_[1] = words;
    const uint32_t value = random_();
    uint32_t sum = 0;
    for (uint32_t i = kHeaderWords; i < words; ++i) {
      payload_[i] = value ^ (i * 2654435761U);
      sum += payload_[i] * (2 * i + 1);
    }
    payload_[2] = sum;
    const Destination to{DevicePtr(static_cast<uint32_t*>(memory_) + place * kMostWords), words, 4};
    const std::span<const uint32_t> values(payload_.data(), words);

    const uint64_t allocated = allocations;
    Clock::time_point start = Clock::now();
    const bool blocked =
        Must(stager_.TryCopy(to, values, *stream_)).kind == CopyOutcome::Kind::kWouldBlock;
    Time(tries_, start);
    if (blocked) {
      start = Clock::now();
      Must(stager_.Copy(to, values, *stream_));
      Time(waits_, start);
    }
    allocations_in_calls_ += allocations - allocated;
  }

  void Time(Histogram& histogram, Clock::time_point start) const {
    const std::chrono::nanoseconds took = Clock::now() - start;
    if (warm_) histogram.Add(static_cast<uint64_t>(took.count()));
  }

  void Launch(const char* kernel, uint32_t first) {
    uint32_t stride = kMostWords;
    void* arguments[] = {&memory_, &stride, &first, &counts_};
    Check(cudaLaunchKernel(kernels_.Find(kernel), dim3(kWindow), dim3(128), arguments, 0, native_),
          "Launching a kernel");
  }

  void Hold() {
    unsigned long long ns = 20'000'000;
    void* arguments[] = {&ns};
    Check(cudaLaunchKernel(kernels_.Find("hold"), dim3(1), dim3(1), arguments, 0, native_),
          "Holding a stream");
  }

  PinnedStager& stager_;
  const Kernels& kernels_;
  std::minstd_rand random_;
  cudaStream_t native_ = nullptr;
  void* memory_ = nullptr;
  void* counts_ = nullptr;
  std::optional<Stream> stream_;
  std::vector<uint32_t> payload_;
  bool warm_ = false;
  uint64_t sent_ = 0;
  uint64_t verified_ = 0;
  uint64_t wrong_ = 0;
  uint64_t allocations_in_calls_ = 0;
  Histogram tries_;
  Histogram waits_;
};

void SendAll(std::vector<std::unique_ptr<Sender>>& senders, uint64_t copies) {
  std::vector<std::thread> threads;
  for (const auto& sender : senders) {
    threads.emplace_back([&sender, copies] { sender->Send(copies / kThreads); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Makes the ring as large as it may become, as a long warm-up would.
void TakeEverySlot(PinnedStager& stager) {
  Check(cudaDeviceSynchronize(), "Draining the device");
  std::vector<SlotLease> leases;
  for (uint32_t i = 0; i < kMaxSlots; ++i) leases.push_back(Must(stager.Acquire(kMostWords * 4)));
}

// Copies until so many in a row have allocated nothing: the ring has every event that it may come
// to need, also those for slots that are waited for by others.
void WarmUp(std::vector<std::unique_ptr<Sender>>& senders, PinnedStager& stager, uint64_t copies) {
  constexpr int kMostRounds = 20;
  for (int round = 0; round < kMostRounds; ++round) {
    for (const auto& sender : senders) sender->ForgetAllocations();
    SendAll(senders, copies);
    uint64_t allocated = 0;
    for (const auto& sender : senders) allocated += sender->allocations_in_calls();
    if (round == 0) TakeEverySlot(stager);
    if (round > 0 && allocated == 0) return;
  }
}

int Main(uint64_t copies) {
  const auto device = CudaDevice::Create(0);
  if (!device) {
    std::printf("soak: SKIPPED. %s\n", device.error().message.c_str());
    return 0;
  }
  const Kernels kernels(kSource);
  const std::unique_ptr<PinnedStager> stager = Must(PinnedStager::Create(
      *device, {.slot_bytes = 8192, .initial_slots = 1, .max_slots = kMaxSlots}));
  std::vector<std::unique_ptr<Sender>> senders;
  for (size_t i = 0; i < kThreads; ++i) {
    senders.push_back(std::make_unique<Sender>(*device, *stager, kernels, i));
  }
  WarmUp(senders, *stager, copies / 20);
  const StagerStats warm = stager->stats();
  for (const auto& sender : senders) sender->EndWarmUp();
  const Clock::time_point start = Clock::now();
  SendAll(senders, copies);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();

  Histogram tries;
  Histogram waits;
  uint64_t sent = 0;
  uint64_t verified = 0;
  uint64_t wrong = 0;
  uint64_t allocated = 0;
  for (const auto& sender : senders) {
    sender->Finish();
    sent += sender->sent();
    verified += sender->verified();
    wrong += sender->wrong();
    allocated += sender->allocations_in_calls();
    tries.Add(sender->tries());
    waits.Add(sender->waits());
  }
  const StagerStats stats = stager->stats();
  const uint64_t growths = stats.growths - warm.growths;
  const auto print = [](const char* what, uint64_t count) {
    std::printf("%-52s %12llu\n", what, static_cast<unsigned long long>(count));
  };
  print("copies sent", sent);
  print("... verified on the GPU", verified);
  print("... wrong", wrong);
  print("growths in the warm-up", warm.growths);
  print("growths after it", growths);
  print("allocations in calls of the library after it", allocated);
  print("bytes of pinned memory", stats.pinned_bytes);
  std::printf("%.1f s after the warm-up, %.2f million copies a second\n", seconds,
              static_cast<double>(copies) / seconds / 1e6);
  tries.Print("calls that did not wait for a slot");
  waits.Print("calls that chose to wait for one");
  const bool good =
      sent == verified && wrong == 0 && growths == 0 && allocated == 0 && tries.most_ns < 1'000'000;
  std::printf("%s\n", good ? "soak: good" : "soak: FAILED");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace h2d::bench

int main(int argc, char** argv) {
  return h2d::bench::Main(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000'000);
}
