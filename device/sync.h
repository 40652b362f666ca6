// The library's mutex and atomics: the one place where its threads meet.
//
// In production they are `BriefLock` and `std::atomic`. A simulator that runs host threads as
// deterministic tasks installs a `SyncHooks` for each of its threads; then every lock, unlock and
// ordered atomic access passes through it, as a point where another task may run and as an edge of
// happens-before. Without one the cost is the load of a thread-local pointer.
#ifndef H2D_DEVICE_SYNC_H_
#define H2D_DEVICE_SYNC_H_

#include <atomic>
#include <cstdint>

#include "h2d/device/brief_lock.h"

// Clang's thread-safety annotations; libstdc++'s own mutex has none.
#if defined(__clang__)
#define H2D_ANNOTATE(x) __attribute__((x))
#else
#define H2D_ANNOTATE(x)
#endif
#define H2D_GUARDED_BY(x) H2D_ANNOTATE(guarded_by(x))
#define H2D_REQUIRES(...) H2D_ANNOTATE(requires_capability(__VA_ARGS__))
#define H2D_EXCLUDES(...) H2D_ANNOTATE(locks_excluded(__VA_ARGS__))
#define H2D_ACQUIRE(...) H2D_ANNOTATE(acquire_capability(__VA_ARGS__))
#define H2D_RELEASE(...) H2D_ANNOTATE(release_capability(__VA_ARGS__))

namespace h2d {

// What a simulator's scheduler does in place of the operating system. Objects are known by address.
class SyncHooks {
 public:
  virtual ~SyncHooks() = default;

  // Returns once the calling task owns `mutex`; acquires what its last `Unlock` released.
  virtual void Lock(const void* mutex) noexcept = 0;
  virtual void Unlock(const void* mutex) noexcept = 0;

  // Called just before an ordered access to the atomic at `object`.
  enum class Access : uint8_t { kAcquireLoad, kReleaseStore, kReadModifyWrite };
  virtual void AtomicAccess(const void* object, Access access) noexcept = 0;

  // The calling thread's hooks; null, as on every thread of production, for the operating system's.
  static SyncHooks*& Current() noexcept { return current_; }

 private:
  static inline thread_local SyncHooks* current_ = nullptr;
};

// A mutual-exclusion lock for short sections, not recursive. All users of one mutex at a time have
// hooks of the same simulator, or none has any.
class H2D_ANNOTATE(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() noexcept H2D_ACQUIRE() {
    if (SyncHooks* hooks = SyncHooks::Current()) [[unlikely]] {
      hooks->Lock(this);
    } else {
      mutex_.lock();
    }
  }
  void Unlock() noexcept H2D_RELEASE() {
    if (SyncHooks* hooks = SyncHooks::Current()) [[unlikely]] {
      hooks->Unlock(this);
    } else {
      mutex_.unlock();
    }
  }

 private:
  internal::BriefLock mutex_;
};

// Holds a mutex for a scope.
class H2D_ANNOTATE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) noexcept H2D_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() H2D_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// An atomic whose ordered accesses a simulator sees. Accesses named relaxed order nothing and are
// not shown to it: for counters that people read.
template <class T>
class Atomic {
 public:
  constexpr Atomic(T value = T()) noexcept : value_(value) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T Load() const noexcept {
    Show(SyncHooks::Access::kAcquireLoad);
    return value_.load(std::memory_order_acquire);
  }
  void Store(T value) noexcept {
    Show(SyncHooks::Access::kReleaseStore);
    value_.store(value, std::memory_order_release);
  }
  // Adds and answers the value before.
  T FetchAdd(T amount) noexcept {
    Show(SyncHooks::Access::kReadModifyWrite);
    return value_.fetch_add(amount, std::memory_order_acq_rel);
  }
  T LoadRelaxed() const noexcept { return value_.load(std::memory_order_relaxed); }
  void AddRelaxed(T amount) noexcept { value_.fetch_add(amount, std::memory_order_relaxed); }

 private:
  void Show(SyncHooks::Access access) const noexcept {
    if (SyncHooks* hooks = SyncHooks::Current()) [[unlikely]]
      hooks->AtomicAccess(this, access);
  }

  std::atomic<T> value_;
};

// Ends a wait early. A waiter reads `Epoch`, checks that it still has to wait, and hands the epoch
// to `Device::WaitAny`, which returns when the epoch has moved on: no notification is lost between
// the check and the wait.
class Wakeup {
 public:
  uint64_t Epoch() const noexcept { return epoch_.Load(); }
  void Notify() noexcept { epoch_.FetchAdd(1); }

 private:
  Atomic<uint64_t> epoch_;
};

}  // namespace h2d

#endif  // H2D_DEVICE_SYNC_H_
