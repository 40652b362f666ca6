// A vector with room of its own.
#ifndef H2D_STAGER_INTERNAL_INLINE_VECTOR_H_
#define H2D_STAGER_INTERNAL_INLINE_VECTOR_H_

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

namespace h2d::internal {

// Up to `N` elements without an allocation, and without the cost of making those that are not
// needed, which an array of structs with initial values has: some hundred ns for a batch's.
template <class T, size_t N>
class InlineVector {
 public:
  static_assert(std::is_trivially_destructible_v<T>);

  InlineVector() = default;
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;

  // REQUIRES: fewer than `N` elements.
  T& push_back(const T& value) noexcept {
    return *std::construct_at(reinterpret_cast<T*>(room_) + size_++, value);
  }

  std::span<T> all() noexcept { return {reinterpret_cast<T*>(room_), size_}; }

 private:
  alignas(T) std::byte room_[N * sizeof(T)];
  size_t size_ = 0;
};

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_INLINE_VECTOR_H_
