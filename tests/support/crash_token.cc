#include "h2d/tests/support/crash_token.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string_view>

#include "h2d/tests/support/base64url.h"
#include "h2d/tests/support/plan.h"

// Present in every sanitizer's runtime, absent without one.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace h2d::testing {
namespace {

constexpr std::string_view kPrefix = "\nThe plan that ran, for H2D_REPLAY: h2d1:";
constexpr size_t kMaxPlanBytes = kPlanHeaderBytes + kMaxPlanOps * kPlanOpBytes;

std::array<char, kPrefix.size() + kMaxPlanBytes * 4 / 3 + 8> message;
std::atomic<size_t> message_bytes{0};

void WriteMessage() {
  const size_t bytes = message_bytes.exchange(0);
  if (bytes == 0) return;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message.data(), bytes);
}

void OnFatalSignal(int signal_number) {
  WriteMessage();
  // SA_RESETHAND has restored the default: this ends the process as it would have ended.
  raise(signal_number);
}

void Install(int signal_number) {
  struct sigaction action = {};
  action.sa_handler = OnFatalSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_NODEFER;
  sigaction(signal_number, &action, nullptr);
}

bool InstallAll() {
  for (const int signal_number : {SIGABRT, SIGTERM}) Install(signal_number);
  if (__sanitizer_set_death_callback != nullptr) {
    // The sanitizer has handlers of its own, whose report is worth more than ours.
    __sanitizer_set_death_callback(WriteMessage);
  } else {
    for (const int signal_number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) Install(signal_number);
  }
  return true;
}

}  // namespace

void SetCrashPlan(std::span<const uint8_t> plan_bytes) {
  [[maybe_unused]] static const bool installed = InstallAll();
  message_bytes.store(0);
  std::memcpy(message.data(), kPrefix.data(), kPrefix.size());
  size_t length = kPrefix.size();
  length += EncodeBase64UrlTo(plan_bytes.first(std::min(plan_bytes.size(), kMaxPlanBytes)),
                              message.data() + length, message.size() - length - 1);
  message[length++] = '\n';
  message_bytes.store(length);
}

void ClearCrashPlan() { message_bytes.store(0); }

}  // namespace h2d::testing
