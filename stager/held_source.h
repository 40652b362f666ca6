// The owner of memory that the device may still read, whatever it is.
#ifndef H2D_STAGER_HELD_SOURCE_H_
#define H2D_STAGER_HELD_SOURCE_H_

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "h2d/device/element.h"
#include "h2d/device/pinned_buffer.h"

namespace h2d {

namespace internal {

// Owners whose bytes lie within them, all or some, and move with them: what a device reads would be
// left behind.
template <class Owner>
inline constexpr bool kBytesMoveAlong = false;
template <class T, size_t N>
inline constexpr bool kBytesMoveAlong<std::array<T, N>> = true;
template <class Char, class Traits, class Allocator>
inline constexpr bool kBytesMoveAlong<std::basic_string<Char, Traits, Allocator>> = true;

// Ranges that are known to hand their memory over when they are moved.
template <class Range>
inline constexpr bool kHandsItsMemoryOver = false;
template <class T, class Allocator>
inline constexpr bool kHandsItsMemoryOver<std::vector<T, Allocator>> = true;

}  // namespace internal

// Anything that owns memory, moved into one type: a `shared_ptr`, a vector, a pinned buffer, or a
// callback to be called when the memory is no longer needed. When the `HeldSource` dies, the owner
// in it does; a callback is called first, once. Move-only; made of one owner, empty once moved.
//
//   HeldSource(std::move(values));                            // a std::vector<float>
//   HeldSource(std::shared_ptr(weights), weights_bytes);      // one owner of several
//   HeldSource([block, &pool] { pool.Return(block); }, bytes);
//
// The memory stays where it is when the owner is moved. So a `std::array` and a `std::string` are
// refused: hold them by a pointer. Of other containers that keep elements within themselves, the
// caller knows.
//
// Callbacks and destructors of owners must not throw. They run on whichever thread ends the
// `HeldSource`, and may call the library: also the uploader or the queue whose end they run in,
// which then waits for what they begin as well.
class HeldSource {
 public:
  // `owner` keeps `bytes` bytes alive; they count for limits and are not looked at.
  template <class Owner>
  requires(!std::is_reference_v<Owner> && !std::is_const_v<Owner> &&
           std::move_constructible<Owner> && !internal::kBytesMoveAlong<Owner>)
      HeldSource(Owner&& owner, uint64_t bytes)
      : owner_(std::make_unique<Holder<Owner>>(std::move(owner))), bytes_(bytes) {}

  // A vector; other ranges are owners, with the bytes said.
  template <HostRange Range>
  requires(internal::kHandsItsMemoryOver<Range>) explicit HeldSource(Range&& range)
      : bytes_(SizeOf(range)) {
    owner_ = std::make_unique<Holder<Range>>(std::move(range));
  }

  explicit HeldSource(PinnedBuffer&& buffer) : bytes_(buffer.bytes().size()) {
    owner_ = std::make_unique<Holder<PinnedBuffer>>(std::move(buffer));
  }

  HeldSource(HeldSource&& other) noexcept
      : owner_(std::move(other.owner_)), bytes_(std::exchange(other.bytes_, 0)) {}
  HeldSource& operator=(HeldSource&& other) noexcept {
    owner_ = std::move(other.owner_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~HeldSource() = default;

  uint64_t bytes() const noexcept { return bytes_; }
  // False once moved from or leaked.
  explicit operator bool() const noexcept { return owner_ != nullptr; }

  // Gives the owner up for good: it neither dies nor is called back. For memory whose completion
  // can no longer be learnt (I9).
  void Leak() noexcept;

 private:
  struct AnyOwner {
    AnyOwner() = default;
    AnyOwner(const AnyOwner&) = delete;
    AnyOwner& operator=(const AnyOwner&) = delete;
    virtual ~AnyOwner() = default;
    AnyOwner* next_leaked = nullptr;
  };
  template <class Owner>
  struct Holder final : AnyOwner {
    explicit Holder(Owner&& taken) : owner(std::move(taken)) {}
    ~Holder() override {
      if constexpr (std::invocable<Owner&>) {
        if (!IsEmpty(owner)) owner();
      }
    }
    // A `std::function` or a pointer may hold nothing to call.
    static bool IsEmpty(const Owner& callback) noexcept {
      if constexpr (std::is_constructible_v<Owner, std::nullptr_t>) return callback == nullptr;
      return false;
    }
    Owner owner;
  };

  template <class Range>
  static uint64_t SizeOf(const Range& range) noexcept {
    return static_cast<uint64_t>(std::ranges::size(range)) * sizeof(ElementOf<Range>);
  }

  std::unique_ptr<AnyOwner> owner_;
  uint64_t bytes_ = 0;
};

}  // namespace h2d

#endif  // H2D_STAGER_HELD_SOURCE_H_
