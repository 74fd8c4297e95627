//===- Elements.cpp - Types and reductions of groups ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elements.h"

namespace tessera::runtime {

using sharding::ReduceKind;

std::string ElementType::text() const {
  std::string name(toString(dtype));
  if (isUnsigned)
    name[0] = 'u';
  return name;
}

std::optional<ElementType> ElementType::parse(std::string_view text) {
  bool isUnsigned = text.size() > 1 && text[0] == 'u';
  std::string name(text);
  if (isUnsigned)
    name[0] = 'i';
  std::optional<DType> dtype = parseDType(name);
  if (!dtype || (isUnsigned && *dtype == DType::i1))
    return std::nullopt;
  return ElementType{*dtype, isUnsigned};
}

static constexpr std::string_view kNames[] = {"sum",  "avg",  "max", "min",
                                              "prod", "band", "bor", "bxor"};

std::string_view toString(GroupReduction reduction) {
  return kNames[static_cast<int>(reduction)];
}

std::optional<GroupReduction> parseGroupReduction(std::string_view text) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == text)
      return static_cast<GroupReduction>(i);
  return std::nullopt;
}

namespace {
/// Reductions that Reduce.h lacks: unsigned max and min, bitwise.
template <typename T, GroupReduction reduction>
void reduceIntegers(const std::byte *const *sources, int64_t numSources, int64_t count, double,
                    std::byte *out) {
  auto *target = reinterpret_cast<T *>(out);
  for (int64_t i = 0; i < count; ++i) {
    T value = reinterpret_cast<const T *>(sources[0])[i];
    for (int64_t s = 1; s < numSources; ++s) {
      T other = reinterpret_cast<const T *>(sources[s])[i];
      switch (reduction) {
      case GroupReduction::max:
        value = std::max(value, other);
        break;
      case GroupReduction::min:
        value = std::min(value, other);
        break;
      case GroupReduction::band:
        value &= other;
        break;
      case GroupReduction::bor:
        value |= other;
        break;
      default:
        value ^= other;
      }
    }
    target[i] = value;
  }
}

template <GroupReduction reduction> ReduceFunction ofSize(int64_t bytes) {
  switch (bytes) {
  case 1:
    return reduceIntegers<uint8_t, reduction>;
  case 2:
    return reduceIntegers<uint16_t, reduction>;
  case 4:
    return reduceIntegers<uint32_t, reduction>;
  default:
    return reduceIntegers<uint64_t, reduction>;
  }
}
} // namespace

static ReduceFunction functionOf(ElementType type, GroupReduction reduction) {
  int64_t bytes = sizeOf(type.dtype);
  switch (reduction) {
  case GroupReduction::sum:
  case GroupReduction::avg:
    return reduceFunction(type.dtype, ReduceKind::sum);
  case GroupReduction::prod:
    return reduceFunction(type.dtype, ReduceKind::prod);
  case GroupReduction::max:
    return type.isUnsigned ? ofSize<GroupReduction::max>(bytes)
                           : reduceFunction(type.dtype, ReduceKind::max);
  case GroupReduction::min:
    return type.isUnsigned ? ofSize<GroupReduction::min>(bytes)
                           : reduceFunction(type.dtype, ReduceKind::min);
  case GroupReduction::band:
    return ofSize<GroupReduction::band>(bytes);
  case GroupReduction::bor:
    return ofSize<GroupReduction::bor>(bytes);
  case GroupReduction::bxor:
    return ofSize<GroupReduction::bxor>(bytes);
  }
  return nullptr;
}

Expected<PlanElements> elementsOf(ElementType type, GroupReduction reduction, int64_t ranks) {
  bool isBitwise = reduction == GroupReduction::band || reduction == GroupReduction::bor ||
                   reduction == GroupReduction::bxor;
  if (reduction == GroupReduction::avg && !isFloat(type.dtype))
    return Status::error("avg of " + type.text() + "; averages need floats");
  if (isBitwise && isFloat(type.dtype))
    return Status::error(std::string(toString(reduction)) + " of " + type.text() +
                         "; bitwise reductions need integers");
  double scale = reduction == GroupReduction::avg ? 1 / static_cast<double>(ranks) : 1;
  return PlanElements{sizeOf(type.dtype), functionOf(type, reduction), scale};
}

} // namespace tessera::runtime
