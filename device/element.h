// Which values may be staged: those whose bits are their value.
//
// Copies are compared bit for bit (I4), so a type with padding bytes, whose content nobody
// controls, is refused at compile time: two equal structs could differ in their padding and would
// be sent again and again, and uninitialised bytes would reach the device.
#ifndef H2D_DEVICE_ELEMENT_H_
#define H2D_DEVICE_ELEMENT_H_

#include <array>
#include <concepts>
#include <cstddef>
#include <ranges>
#include <type_traits>

namespace h2d {

// True for types without padding bytes. Floating-point types fail the standard's trait although
// they have none (0.0 and -0.0 are equal and differ in bits), so they are named here. Specialise
// it for a struct of floats without padding:
//
//   template <> inline constexpr bool h2d::kBitsAreValue<Sampling> = true;
template <class T>
inline constexpr bool kBitsAreValue =
    std::has_unique_object_representations_v<T> || std::same_as<std::remove_cv_t<T>, float> ||
    std::same_as<std::remove_cv_t<T>, double>;

// An array is its elements, one behind the other.
template <class T, size_t N>
inline constexpr bool kBitsAreValue<T[N]> = kBitsAreValue<T>;
template <class T, size_t N>
inline constexpr bool kBitsAreValue<std::array<T, N>> = N > 0 && kBitsAreValue<T>;

// CUDA's half types are structs of an integer and need no word here; the compiler's own does.
#if defined(__FLT16_MAX__)
template <>
inline constexpr bool kBitsAreValue<_Float16> = true;
#endif

template <class T>
concept Element = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && kBitsAreValue<T>;

// Anything contiguous with a size: std::vector, std::array, std::span, a C array.
template <class R>
concept HostRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    Element<std::ranges::range_value_t<R>>;

template <class R>
using ElementOf = std::ranges::range_value_t<R>;

}  // namespace h2d

#endif  // H2D_DEVICE_ELEMENT_H_
