// What one step of a task touches, to tell which steps of two tasks commute.
#ifndef H2D_DEVICE_FAKE_EXPLORE_FOOTPRINT_H_
#define H2D_DEVICE_FAKE_EXPLORE_FOOTPRINT_H_

#include <cstdint>
#include <vector>

namespace h2d {

enum class Touch : uint8_t { kRead, kWrite, kLock, kUnlock };

// A set of touched objects, which are known by numbers that mean the same in each run that began
// alike. Two steps commute when their footprints do not conflict.
class Footprint {
 public:
  // How two steps, the earlier of them `*this`, depend on each other.
  enum class Relation : uint8_t {
    kNone,     // they commute
    kOrdered,  // the earlier one made the later one possible: an unlock, then a lock
    kRace,     // they could have happened the other way round, with another effect
  };

  void Add(uint64_t object, Touch touch);
  // Touches what is not known: conflicts with every other step.
  void AddEverything() noexcept { everything_ = true; }
  void Join(const Footprint& other);
  Relation To(const Footprint& later) const;
  bool Conflicts(const Footprint& other) const { return To(other) != Relation::kNone; }

 private:
  struct Item {
    uint64_t object;
    Touch touch;
  };

  std::vector<Item> items_;
  bool everything_ = false;
};

}  // namespace h2d

#endif  // H2D_DEVICE_FAKE_EXPLORE_FOOTPRINT_H_
