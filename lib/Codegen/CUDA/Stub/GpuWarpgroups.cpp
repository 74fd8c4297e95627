//===- GpuWarpgroups.cpp - Products of warpgroups -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuWarpgroups.h"

using namespace mlir;

namespace tessera::codegen {

static constexpr llvm::StringLiteral kProduct = "wgmma.mma_async.sync.aligned.m64n";

std::string WarpgroupProduct::code() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  int64_t numSums = columns / 2, next = accumulates ? 2 * numSums : numSums;
  auto list = [&](int64_t first, int64_t count) {
    os << "{";
    for (int64_t i = 0; i < count; ++i)
      os << (i ? ", $" : "$") << first + i;
    os << "}, ";
  };
  StringRef type = isBf16 ? "bf16" : "f16";
  // scale-d is a predicate.
  os << "{ .reg .pred p; setp.ne.b32 p, " << accumulates << ", 0; " << kProduct << columns
     << "k16.f32." << type << "." << type << " ";
  list(0, numSums);
  if (leftInRegisters) {
    list(next, 4);
    os << "$" << next + 4 << ", p, 1, 1, " << transposesRight << "; }";
  } else {
    os << "$" << next << ", $" << next + 1 << ", p, 1, 1, 0, " << transposesRight << "; }";
  }
  return text;
}

std::optional<WarpgroupProduct> WarpgroupProduct::read(StringRef code) {
  WarpgroupProduct product;
  size_t at = code.find(kProduct);
  if (at == StringRef::npos)
    return std::nullopt;
  StringRef scale = code.split("setp.ne.b32 p, ").second;
  product.accumulates = scale.starts_with("1");
  StringRef rest = code.drop_front(at + kProduct.size());
  if (rest.consumeInteger(10, product.columns) || !rest.consume_front("k16.f32."))
    return std::nullopt;
  product.isBf16 = rest.starts_with("bf16");
  // The sums in braces, then A, in braces if it is in registers.
  rest = rest.split("}, ").second;
  product.leftInRegisters = rest.starts_with("{");
  SmallVector<StringRef> operands;
  rest.split(';').first.split(operands, ", ");
  product.transposesRight = operands.back() == "1";
  return product;
}

/// Assembly code with results of the types of `outputs`; the first operands are tied to them if
/// `ties`.
static SmallVector<Value> emitCode(OpBuilder &b, Location loc, StringRef code, TypeRange outputs,
                                   bool ties, ValueRange operands) {
  std::string constraints;
  auto add = [&](const Twine &one) {
    constraints += (constraints.empty() ? one : "," + one).str();
  };
  auto letterOf = [](Type type) { return type.isF32() ? "f" : type.isInteger(64) ? "l" : "r"; };
  for (Type type : outputs)
    add(Twine("=") + letterOf(type));
  for (auto [i, operand] : llvm::enumerate(operands))
    if (ties && i < outputs.size())
      add(Twine(i));
    else
      add(letterOf(operand.getType()));
  add("~{memory}");
  SmallVector<Type> types;
  if (outputs.size() == 1)
    types.push_back(outputs[0]);
  else if (!outputs.empty())
    types.push_back(LLVM::LLVMStructType::getLiteral(b.getContext(), llvm::to_vector(outputs)));
  auto made = LLVM::InlineAsmOp::create(
      b, loc, types, operands, b.getStringAttr(code), b.getStringAttr(constraints),
      /*has_side_effects=*/b.getUnitAttr(), /*is_align_stack=*/UnitAttr(),
      LLVM::TailCallKindAttr::get(b.getContext(), LLVM::TailCallKind::None), LLVM::AsmDialectAttr(),
      ArrayAttr());
  if (outputs.size() < 2)
    return llvm::to_vector(ValueRange(made->getResults()));
  SmallVector<Value> results;
  for (size_t i = 0; i < outputs.size(); ++i)
    results.push_back(
        LLVM::ExtractValueOp::create(b, loc, made->getResult(0), static_cast<int64_t>(i)));
  return results;
}

SmallVector<Value> passCode(OpBuilder &b, Location loc, StringRef code, ValueRange values) {
  return emitCode(b, loc, code, TypeRange(values), /*ties=*/true, values);
}

SmallVector<Value> beginProduct(OpBuilder &b, Location loc, const WarpgroupProduct &product,
                                ValueRange left, Value right, ValueRange sums) {
  SmallVector<Value> operands(sums);
  llvm::append_range(operands, left);
  operands.push_back(right);
  SmallVector<Type> types(static_cast<size_t>(product.columns / 2), b.getF32Type());
  return emitCode(b, loc, product.code(), types, product.accumulates, operands);
}

uint64_t descriptorOf(int64_t leadingBytes, int64_t strideBytes, int64_t swizzle) {
  auto encode = [](int64_t bytes) { return static_cast<uint64_t>(bytes & 0x3ffff) >> 4; };
  uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : 3;
  return encode(leadingBytes) << 16 | encode(strideBytes) << 32 | mode << 62;
}

} // namespace tessera::codegen
