//===- Tensor.cpp - The interpreter's values ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Interpreter/Tensor.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"

#include <charconv>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

std::optional<ElementType> ElementType::get(Type type) {
  if (type.isF16())
    return ElementType{f16, 16};
  if (type.isBF16())
    return ElementType{bf16, 16};
  if (type.isF32())
    return ElementType{f32, 32};
  if (type.isF64())
    return ElementType{f64, 64};
  if (type.isIndex())
    return ElementType{integer, 64};
  if (auto integerType = dyn_cast<IntegerType>(type))
    if (integerType.getWidth() >= 1 && integerType.getWidth() <= 64)
      return ElementType{integer, integerType.getWidth()};
  return std::nullopt;
}

size_t ElementType::bytes() const {
  return llvm::PowerOf2Ceil((width + 7) / 8);
}

static const llvm::fltSemantics &semanticsOf(ElementType type) {
  return type.kind == ElementType::f16 ? APFloat::IEEEhalf() : APFloat::BFloat();
}

/// The bits of the nearest value of a 16-bit float type.
static uint16_t toHalfBits(ElementType type, double value) {
  APFloat number(value);
  bool losesInfo;
  number.convert(semanticsOf(type), APFloat::rmNearestTiesToEven, &losesInfo);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

static double fromHalfBits(ElementType type, uint16_t bits) {
  return APFloat(semanticsOf(type), APInt(16, bits)).convertToDouble();
}

double interpreter::roundTo(ElementType type, double value) {
  switch (type.kind) {
  case ElementType::f64:
    return value;
  case ElementType::f32:
    return static_cast<float>(value);
  default:
    // Through f32, like hardware without 16-bit arithmetic.
    return roundOnceTo(type, static_cast<float>(value));
  }
}

double interpreter::roundOnceTo(ElementType type, double value) {
  bool narrow = type.kind == ElementType::f16 || type.kind == ElementType::bf16;
  return narrow ? fromHalfBits(type, toHalfBits(type, value)) : roundTo(type, value);
}

int64_t interpreter::wrapTo(ElementType type, int64_t value) {
  return type.width == 64 ? value : llvm::SignExtend64(static_cast<uint64_t>(value), type.width);
}

uint64_t interpreter::zeroExtended(ElementType type, int64_t value) {
  return static_cast<uint64_t>(value) & llvm::maskTrailingOnes<uint64_t>(type.width);
}

Scalar interpreter::poisonOf(ElementType type, Poison poison) {
  if (poison == Poison::zero)
    return type.isFloat() ? Scalar::ofFloat(0) : Scalar::ofInt(0);
  if (!type.isFloat()) {
    // Neither least nor greatest, which are identities of reductions.
    int64_t high = static_cast<int64_t>(llvm::maskTrailingOnes<uint64_t>(type.width) >> 1);
    int64_t offset = std::min<int64_t>(77, high / 16);
    return Scalar::ofInt(wrapTo(type, poison == Poison::low ? -high + offset : high - offset));
  }
  if (poison == Poison::nan)
    return Scalar::ofFloat(std::numeric_limits<double>::quiet_NaN());
  double high = type.kind == ElementType::f64 ? 1e300 : type.kind == ElementType::f16 ? 6e4 : 1e38;
  return Scalar::ofFloat(roundTo(type, poison == Poison::high ? high : -high));
}

//===----------------------------------------------------------------------===//
// Tensor
//===----------------------------------------------------------------------===//

Tensor::Tensor(Type elementType, ArrayRef<int64_t> shape)
    : type(elementType), extents(shape.begin(), shape.end()), count(1) {
  std::optional<ElementType> element = ElementType::get(elementType);
  assert(element && "callers check the element type");
  kind = *element;
  for (int64_t extent : shape)
    count *= extent;
  data = std::make_shared<std::vector<char>>(count * kind.bytes());
}

Tensor Tensor::filled(Type elementType, ArrayRef<int64_t> shape, Scalar value) {
  Tensor result(elementType, shape);
  for (int64_t i = 0; i < result.count; ++i)
    result.store(i, value);
  return result;
}

Tensor Tensor::scalar(Type elementType, Scalar value) {
  return filled(elementType, {}, value);
}

Tensor Tensor::index(MLIRContext *context, int64_t value) {
  return scalar(IndexType::get(context), Scalar::ofInt(value));
}

template <typename T> static T read(const char *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T> static void write(char *to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

Scalar Tensor::load(int64_t linear) const {
  const char *from = data->data() + linear * kind.bytes();
  switch (kind.kind) {
  case ElementType::f64:
    return Scalar::ofFloat(read<double>(from));
  case ElementType::f32:
    return Scalar::ofFloat(read<float>(from));
  case ElementType::f16:
  case ElementType::bf16:
    return Scalar::ofFloat(fromHalfBits(kind, read<uint16_t>(from)));
  case ElementType::integer:
    break;
  }
  switch (kind.bytes()) {
  case 1:
    return Scalar::ofInt(wrapTo(kind, read<int8_t>(from)));
  case 2:
    return Scalar::ofInt(wrapTo(kind, read<int16_t>(from)));
  case 4:
    return Scalar::ofInt(wrapTo(kind, read<int32_t>(from)));
  default:
    return Scalar::ofInt(wrapTo(kind, read<int64_t>(from)));
  }
}

void Tensor::store(int64_t linear, Scalar value) {
  char *to = mutableBytes().data() + linear * kind.bytes();
  switch (kind.kind) {
  case ElementType::f64:
    return write(to, value.f);
  case ElementType::f32:
    return write(to, static_cast<float>(value.f));
  case ElementType::f16:
  case ElementType::bf16:
    return write(to, toHalfBits(kind, value.f));
  case ElementType::integer:
    break;
  }
  // Without sign extension: compiled code stores a true i1 as the byte 1.
  uint64_t bits = zeroExtended(kind, value.i);
  switch (kind.bytes()) {
  case 1:
    return write(to, static_cast<uint8_t>(bits));
  case 2:
    return write(to, static_cast<uint16_t>(bits));
  case 4:
    return write(to, static_cast<uint32_t>(bits));
  default:
    return write(to, bits);
  }
}

int64_t Tensor::linearize(ArrayRef<int64_t> index) const {
  int64_t linear = 0;
  for (auto [i, extent] : llvm::zip_equal(index, extents)) {
    if (i < 0 || i >= extent)
      return -1;
    linear = linear * extent + i;
  }
  return linear;
}

MutableArrayRef<char> Tensor::mutableBytes() {
  if (data.use_count() > 1)
    data = std::make_shared<std::vector<char>>(*data);
  return {data->data(), data->size()};
}

Tensor Tensor::reshaped(ArrayRef<int64_t> shape) const {
  Tensor result = *this;
  result.extents.assign(shape.begin(), shape.end());
  return result;
}

bool interpreter::forEachIndex(ArrayRef<int64_t> shape,
                               llvm::function_ref<bool(ArrayRef<int64_t>)> visit) {
  if (llvm::is_contained(shape, 0))
    return true;
  SmallVector<int64_t> index(shape.size(), 0);
  while (true) {
    if (!visit(index))
      return false;
    int64_t d = static_cast<int64_t>(shape.size()) - 1;
    while (d >= 0 && ++index[d] == shape[d])
      index[d--] = 0;
    if (d < 0)
      return true;
  }
}

void interpreter::copyBox(const Tensor &source, const std::vector<int64_t> &sourceOffset,
                          Tensor &target, const std::vector<int64_t> &targetOffset,
                          const sharding::Box &box) {
  forEachIndex(box.size, [&](ArrayRef<int64_t> index) {
    int64_t from = 0, to = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      int64_t global = box.offset[d] + index[d];
      from = from * source.shape()[d] + global - sourceOffset[d];
      to = to * target.shape()[d] + global - targetOffset[d];
    }
    target.store(to, source.load(from));
    return true;
  });
}

//===----------------------------------------------------------------------===//
// Constants and text
//===----------------------------------------------------------------------===//

/// The bytes of a resource in the layout of a Tensor.
static Tensor fromResource(DenseResourceElementsAttr attribute) {
  Tensor result(attribute.getType().getElementType(), attribute.getType().getShape());
  AsmResourceBlob *blob = attribute.getRawHandle().getBlob();
  if (!blob || blob->getData().size() != result.bytes().size())
    return {};
  llvm::copy(blob->getData(), result.mutableBytes().begin());
  return result;
}

Tensor interpreter::toTensor(TypedAttr attribute) {
  Type type = attribute.getType();
  auto shaped = dyn_cast<RankedTensorType>(type);
  if (!ElementType::get(shaped ? shaped.getElementType() : type))
    return {};
  auto ofFloat = [](const APFloat &value) { return Scalar::ofFloat(value.convertToDouble()); };
  auto ofInt = [](const APInt &value) { return Scalar::ofInt(value.getSExtValue()); };
  if (auto value = dyn_cast<FloatAttr>(attribute))
    return Tensor::scalar(type, ofFloat(value.getValue()));
  if (auto value = dyn_cast<IntegerAttr>(attribute))
    return Tensor::scalar(type, ofInt(value.getValue()));
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attribute))
    return fromResource(resource);
  auto elements = dyn_cast<ElementsAttr>(attribute);
  if (!elements || !shaped)
    return {};
  Tensor result(shaped.getElementType(), shaped.getShape());
  if (result.element().isFloat()) {
    auto values = elements.tryGetValues<APFloat>();
    if (!values)
      return {};
    for (auto [i, value] : llvm::enumerate(*values))
      result.store(i, ofFloat(value));
    return result;
  }
  auto values = elements.tryGetValues<APInt>();
  if (!values)
    return {};
  for (auto [i, value] : llvm::enumerate(*values))
    result.store(i, ofInt(value));
  return result;
}

static void printElement(raw_ostream &os, ElementType type, Scalar value) {
  if (!type.isFloat()) {
    os << (type.width == 1 ? -value.i : value.i);
    return;
  }
  char text[64];
  std::to_chars_result end =
      type.kind == ElementType::f64
          ? std::to_chars(text, text + sizeof(text), value.f)
          : std::to_chars(text, text + sizeof(text), static_cast<float>(value.f));
  StringRef printed(text, end.ptr - text);
  // The sign of a NaN has no meaning and differs between machines.
  os << (printed == "-nan" ? "nan" : printed);
}

static void printDim(raw_ostream &os, const Tensor &tensor, int64_t dim, int64_t &next) {
  if (dim == tensor.rank()) {
    printElement(os, tensor.element(), tensor.load(next++));
    return;
  }
  os << '[';
  for (int64_t i = 0; i < tensor.shape()[dim]; ++i) {
    if (i)
      os << ", ";
    printDim(os, tensor, dim + 1, next);
  }
  os << ']';
}

void interpreter::print(raw_ostream &os, const Tensor &tensor) {
  int64_t next = 0;
  printDim(os, tensor, 0, next);
}
