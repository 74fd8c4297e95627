//===- Tensor.h - The interpreter's values ----------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only kind of value: a dense tensor on the heap. A scalar is a tensor of rank 0,
// so that `arith.addf` on scalars and on tensors shares one implementation.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERPRETER_TENSOR_H
#define TESSERA_INTERPRETER_TENSOR_H

#include "tessera/Sharding/Layout.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <optional>
#include <vector>

namespace tessera::interpreter {

/// A supported element type: f16, bf16, f32, f64, integers of 1 to 64 bits, index (64 bits).
struct ElementType {
  enum Kind : uint8_t { f16, bf16, f32, f64, integer };
  Kind kind = f32;
  unsigned width = 32; ///< bits

  /// Empty for any other type.
  static std::optional<ElementType> get(mlir::Type type);
  bool isFloat() const { return kind != integer; }
  /// Bytes of one element in memory: the next power of two; i1 takes one byte.
  size_t bytes() const;
  bool operator==(const ElementType &) const = default;
};

/// One element. The context determines its type: floats are stored as a double that the type can
/// represent, integers sign-extended to 64 bits (so a true i1 is -1).
union Scalar {
  double f;
  int64_t i = 0;

  static Scalar ofFloat(double value) {
    Scalar s;
    s.f = value;
    return s;
  }
  static Scalar ofInt(int64_t value) {
    Scalar s;
    s.i = value;
    return s;
  }
};

/// `value` rounded to nearest even in a float type. Results of f32 and 16-bit operations are
/// computed in double and rounded: +, -, *, / and sqrt come out as if computed in f32.
double roundTo(ElementType type, double value);
/// The same without an intermediate f32 for 16 bits: the semantics of `arith.truncf` from f64.
double roundOnceTo(ElementType type, double value);
/// `value` modulo 2^width, sign-extended.
int64_t wrapTo(ElementType type, int64_t value);
/// The same bits without the sign extension.
uint64_t zeroExtended(ElementType type, int64_t value);

/// The content of undefined elements, chosen such that reads of them change results. Which value
/// does depends on the reader: NaN hides in `maxnumf`, a large value in `min`.
enum class Poison {
  nan,  ///< floats NaN, integers a large pattern
  high, ///< near the greatest finite value
  low,  ///< near the least finite value
  zero, ///< common in fresh memory: shows as a divisor, a factor, a maximum of negative values
};
Scalar poisonOf(ElementType type, Poison poison);

/// A dense tensor in row-major order. Copies share their elements until one is written.
class Tensor {
public:
  Tensor() = default;
  /// All elements zero. The element type must be one of ElementType's.
  Tensor(mlir::Type elementType, llvm::ArrayRef<int64_t> shape);
  static Tensor filled(mlir::Type elementType, llvm::ArrayRef<int64_t> shape, Scalar value);
  static Tensor scalar(mlir::Type elementType, Scalar value);
  static Tensor index(mlir::MLIRContext *context, int64_t value);

  explicit operator bool() const { return static_cast<bool>(data); }
  mlir::Type getElementType() const { return type; }
  ElementType element() const { return kind; }
  llvm::ArrayRef<int64_t> shape() const { return extents; }
  int64_t rank() const { return static_cast<int64_t>(extents.size()); }
  int64_t numElements() const { return count; }
  /// `tensor<2x3xf32>`.
  mlir::RankedTensorType tensorType() const { return mlir::RankedTensorType::get(extents, type); }

  Scalar load(int64_t linear) const;
  void store(int64_t linear, Scalar value);
  /// Row-major position of an index, or -1 if it is out of bounds.
  int64_t linearize(llvm::ArrayRef<int64_t> index) const;
  /// The only element of a tensor of rank 0.
  Scalar item() const { return load(0); }
  llvm::ArrayRef<char> bytes() const { return {data->data(), data->size()}; }
  llvm::MutableArrayRef<char> mutableBytes();

  /// The same elements with another shape of equal size.
  Tensor reshaped(llvm::ArrayRef<int64_t> shape) const;

private:
  mlir::Type type;
  ElementType kind;
  llvm::SmallVector<int64_t, 4> extents;
  int64_t count = 0;
  std::shared_ptr<std::vector<char>> data;
};

/// Copies the box of global indices `box` between buffers whose first elements have the global
/// indices `sourceOffset` and `targetOffset`. The box must be within both.
void copyBox(const Tensor &source, const std::vector<int64_t> &sourceOffset, Tensor &target,
             const std::vector<int64_t> &targetOffset, const sharding::Box &box);
/// Calls `visit` for every index of a shape in row-major order; never if an extent is 0. Stops and
/// returns false if `visit` does.
bool forEachIndex(llvm::ArrayRef<int64_t> shape,
                  llvm::function_ref<bool(llvm::ArrayRef<int64_t>)> visit);

/// The value of a constant: dense, splat or resource elements, an integer or a float. Null if the
/// attribute or its type is another one, or the resource is missing or has another size.
Tensor toTensor(mlir::TypedAttr attribute);

/// `[[1, 2.5], [nan, -inf]]`: shortest decimals that read back as the same value.
void print(llvm::raw_ostream &os, const Tensor &tensor);

} // namespace tessera::interpreter

#endif // TESSERA_INTERPRETER_TENSOR_H
