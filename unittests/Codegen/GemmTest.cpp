//===- GemmTest.cpp - Contractions as matrix products ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Codegen/Gemm.h"

#include "mlir/IR/MLIRContext.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace tessera::codegen;

namespace {

/// An einsum: "ik,kj->ij" with the extents of its letters in order of appearance.
struct Einsum {
  std::string a, b, c, letters;
  std::vector<int64_t> extents;

  Einsum(const std::string &text, std::vector<int64_t> extents) : extents(std::move(extents)) {
    size_t comma = text.find(','), arrow = text.find("->");
    a = text.substr(0, comma);
    b = text.substr(comma + 1, arrow - comma - 1);
    c = text.substr(arrow + 2);
    for (char letter : a + b)
      if (letters.find(letter) == std::string::npos)
        letters += letter;
  }

  std::optional<GemmForm> match() const {
    MLIRContext context;
    SmallVector<AffineMap> maps;
    for (const std::string &operand : {a, b, c}) {
      SmallVector<AffineExpr> exprs;
      for (char letter : operand)
        exprs.push_back(getAffineDimExpr(letters.find(letter), &context));
      maps.push_back(AffineMap::get(letters.size(), 0, exprs, &context));
    }
    return matchGemm(maps, extents);
  }

  int64_t size(const std::string &operand) const {
    int64_t product = 1;
    for (char letter : operand)
      product *= extents[letters.find(letter)];
    return product;
  }
  int64_t at(const std::string &operand, const std::vector<int64_t> &index) const {
    int64_t result = 0;
    for (char letter : operand)
      result = result * extents[letters.find(letter)] + index[letters.find(letter)];
    return result;
  }
  /// Computes the einsum by its definition.
  std::vector<double> reference(const std::vector<double> &x, const std::vector<double> &y) const {
    std::vector<double> z(size(c), 0.0);
    std::vector<int64_t> index(extents.size(), 0);
    while (true) {
      z[at(c, index)] += x[at(a, index)] * y[at(b, index)];
      size_t dim = 0;
      while (dim < extents.size() && ++index[dim] == extents[dim])
        index[dim++] = 0;
      if (dim == extents.size())
        return z;
    }
  }
  /// Computes the einsum by the gemm form.
  std::vector<double> execute(const GemmForm &form, const std::vector<double> &x,
                              const std::vector<double> &y) const {
    std::vector<double> z(size(c), 0.0);
    const std::vector<double> &left = form.swapped ? y : x, &right = form.swapped ? x : y;
    for (auto [startA, startB, startC] : form.starts)
      for (int64_t batch = 0; batch < form.batch; ++batch)
        for (int64_t i = 0; i < form.m; ++i)
          for (int64_t j = 0; j < form.n; ++j)
            for (int64_t l = 0; l < form.k; ++l)
              z[startC + batch * form.stride[2] + i * form.ld[2] + j] +=
                  left[startA + batch * form.stride[0] +
                       (form.transA ? l * form.ld[0] + i : i * form.ld[0] + l)] *
                  right[startB + batch * form.stride[1] +
                        (form.transB ? j * form.ld[1] + l : l * form.ld[1] + j)];
    return z;
  }
};

/// Checks that the form computes the contraction.
void expectRight(const std::string &text, std::vector<int64_t> extents, size_t steps = 1) {
  Einsum einsum(text, std::move(extents));
  std::optional<GemmForm> form = einsum.match();
  ASSERT_TRUE(form) << text;
  EXPECT_EQ(form->starts.size(), steps) << text;
  std::vector<double> x(einsum.size(einsum.a)), y(einsum.size(einsum.b));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<double>(i % 7) - 3;
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = static_cast<double>(i % 5) - 2;
  EXPECT_EQ(einsum.execute(*form, x, y), einsum.reference(x, y)) << text;
}

TEST(Gemm, Plain) {
  expectRight("ik,kj->ij", {3, 4, 5});
  expectRight("ki,kj->ij", {4, 3, 5});
  expectRight("ik,jk->ij", {3, 4, 5});
  expectRight("ki,jk->ij", {4, 3, 5});
}

TEST(Gemm, TransposedResult) {
  expectRight("ik,kj->ji", {3, 4, 5});
  expectRight("ki,jk->ji", {4, 3, 5});
}

TEST(Gemm, VectorsAndDots) {
  expectRight("ik,k->i", {3, 4});
  expectRight("ki,k->i", {4, 3});
  expectRight("k,kj->j", {4, 5});
  expectRight("k,jk->j", {4, 5});
  expectRight("k,k->", {6});
}

TEST(Gemm, Batches) {
  expectRight("bik,bkj->bij", {2, 3, 4, 5});
  expectRight("bik,bjk->bij", {2, 3, 4, 5});
  expectRight("bcik,bckj->bcij", {2, 3, 4, 5, 6});
}

TEST(Gemm, MergedDimensions) {
  expectRight("bsk,kj->bsj", {2, 3, 4, 5});
  expectRight("shd,hdf->sf", {3, 2, 4, 5});
  // One operand is repeated: b is a batch without a stride in B.
  expectRight("bsk,kj->sbj", {2, 3, 4, 5});
}

TEST(Gemm, AttentionHeadsNotLeading) {
  // Queries and keys as [b, s, h, d]: no copies, one step per b.
  expectRight("bshd,bthd->bhst", {2, 3, 4, 5, 6}, 2);
  expectRight("bhst,bthd->bshd", {2, 4, 3, 6, 5}, 2);
  expectRight("shd,thd->hst", {3, 4, 5, 6}, 1);
}

TEST(Gemm, UnitExtents) {
  expectRight("ik,kj->ij", {1, 4, 5});
  expectRight("ik,kj->ij", {3, 1, 5});
  expectRight("ik,kj->ij", {3, 4, 1});
  expectRight("ki,jk->ij", {4, 1, 1});
  expectRight("bshd,bthd->bhst", {1, 3, 4, 5, 6}, 1);
}

TEST(Gemm, NeedsACopy) {
  EXPECT_FALSE(Einsum("ikl,ljk->ij", {3, 4, 5, 6}).match()) << "two k that do not merge";
  EXPECT_FALSE(Einsum("kbi,jbk->bij", {4, 2, 3, 5}).match().has_value() &&
               Einsum("ikb,kjb->ijb", {3, 4, 2, 5}).match())
      << "no unit stride in C";
  EXPECT_FALSE(Einsum("ik,k->i", {0, 4}).match()) << "nothing to do";
}

} // namespace
