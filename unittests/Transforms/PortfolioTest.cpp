//===- PortfolioTest.cpp - Baseline plans of small programs ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Must precede the headers of dialects, which depend on it.
#include "mlir/Interfaces/InferTypeOpInterface.h"

#include "tessera/Transforms/Passes.h"
#include "tessera/Transforms/Portfolio.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

namespace {

/// The plans of a program as text: by "name on shape" the placements of the arguments, "-" for
/// arguments that keep the program's placement.
class Plans {
public:
  Plans(const std::string &text, int64_t devices) : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                        math::MathDialect, scf::SCFDialect, tensor::TensorDialect, DistDialect>();
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    PassManager manager(&context, ModuleOp::getOperationName());
    manager.addPass(createDistNormalize());
    if (!module || failed(manager.run(*module))) {
      ADD_FAILURE() << text;
      return;
    }
    PortfolioOptions options;
    options.devices = devices;
    options.searchedShape = {devices};
    for (const BaselinePlan &plan : baselinePlans(*module, options)) {
      std::string key = plan.name + " on", arguments;
      if (plan.mesh)
        for (int64_t extent : plan.mesh->shape)
          key += " " + std::to_string(extent);
      for (ShardingAttr sharding : plan.arguments)
        arguments += (arguments.empty() ? "" : ", ") + textOf(sharding);
      byName[key] = arguments;
    }
  }

  std::string operator[](const std::string &key) const {
    auto it = byName.find(key);
    return it == byName.end() ? "none" : it->second;
  }

private:
  /// "[shard(0), replicate]" of "<@mesh, [shard(0), replicate]>".
  static std::string textOf(ShardingAttr sharding) {
    if (!sharding)
      return "-";
    std::string text;
    llvm::raw_string_ostream os(text);
    sharding.print(os);
    size_t begin = text.find('[');
    return text.substr(begin, text.rfind(']') + 1 - begin);
  }

  MLIRContext context;
  std::map<std::string, std::string> byName;
};

/// loss = sum of (x w)^2, w <- w - m', m' <- m + x^T (x w); x has its batch in the second
/// dimension. `attributes`: of w.
std::string step(const std::string &attributes = "", bool isFed = true) {
  std::string feeds[] = {isFed ? " {dist.feeds = 0 : i64}" : "",
                         isFed ? " {dist.feeds = 1 : i64}" : ""};
  return R"(
#x = affine_map<(b, i, j) -> (i, b)>
#w = affine_map<(b, i, j) -> (i, j)>
#h = affine_map<(b, i, j) -> (b, j)>
func.func @main(%w: tensor<16x64xf32>)" +
         attributes + R"(, %m: tensor<16x64xf32>, %x: tensor<16x4096xf32>)
    -> (tensor<16x64xf32>)" +
         feeds[0] + ", tensor<16x64xf32>" + feeds[1] + R"(, tensor<f32>) {
  %zero = arith.constant dense<0.0> : tensor<4096x64xf32>
  %none = arith.constant dense<0.0> : tensor<16x64xf32>
  %nil = arith.constant dense<0.0> : tensor<f32>
  %h = linalg.contract indexing_maps = [#x, #w, #h]
      ins(%x, %w : tensor<16x4096xf32>, tensor<16x64xf32>) outs(%zero : tensor<4096x64xf32>) -> tensor<4096x64xf32>
  %s = arith.mulf %h, %h : tensor<4096x64xf32>
  %loss = linalg.reduce {arith.addf} ins(%s : tensor<4096x64xf32>) outs(%nil : tensor<f32>) dimensions = [0, 1]
  %g = linalg.contract indexing_maps = [#x, #h, #w]
      ins(%x, %h : tensor<16x4096xf32>, tensor<4096x64xf32>) outs(%none : tensor<16x64xf32>) -> tensor<16x64xf32>
  %new_m = arith.addf %m, %g : tensor<16x64xf32>
  %new_w = arith.subf %w, %new_m : tensor<16x64xf32>
  return %new_w, %new_m, %loss : tensor<16x64xf32>, tensor<16x64xf32>, tensor<f32>
})";
}

TEST(Portfolio, FindsBatchWeightsAndState) {
  Plans plans(step(), 8);
  EXPECT_EQ(plans["propagation on 8"], "");
  EXPECT_EQ(plans["data parallel over d0 on 8"], "[replicate], [replicate], [shard(1)]");
  EXPECT_EQ(plans["ZeRO-1 over d0 on 8"], "[replicate], [shard(1)], [shard(1)]");
  EXPECT_EQ(plans["ZeRO-3 over d0 on 8"], "[shard(1)], [shard(1)], [shard(1)]");
  EXPECT_EQ(plans["weights over d0 on 8"], "[shard(1)], [shard(1)], -");
  EXPECT_EQ(plans["replicated on 8"], "none") << "propagation says that, too";
  EXPECT_EQ(plans["data parallel over d0, weights over d1 on 4 2"],
            "[replicate, shard(1)], [replicate, shard(1)], [shard(1), replicate]");
  EXPECT_EQ(plans["data parallel over d0, tensor parallel over d1 on 4 2"],
            "[replicate, shard(1)], -, [shard(1), replicate]");
}

TEST(Portfolio, DistinguishesWeightsFromDataWithoutFeeds) {
  Plans plans(step("", false), 8);
  EXPECT_EQ(plans["data parallel over d0 on 8"], "[replicate], [replicate], [shard(1)]");
  EXPECT_EQ(plans["ZeRO-3 over d0 on 8"], "[shard(1)], [shard(1)], [shard(1)]");
}

TEST(Portfolio, KeepsAnnotations) {
  std::string mesh = "dist.process_mesh @m(shape = [2, 4], dim_names = [\"a\", \"b\"])\n";
  Plans plans(mesh + step(" {dist.sharding = #dist.sharding<@m, [shard(0), ?]>}"), 8);
  EXPECT_EQ(plans["data parallel over a, b on"],
            "[shard(0), replicate], [replicate, replicate], [shard(1), shard(1)]");
  EXPECT_EQ(plans["weights over b on"], "[shard(0), shard(1)], [replicate, shard(1)], -");
  EXPECT_EQ(plans["replicated on"],
            "[shard(0), replicate], [replicate, replicate], [replicate, replicate]");
}

TEST(Portfolio, KeepsIndivisibleDimensionsWhole) {
  Plans plans(step(), 6);
  EXPECT_EQ(plans["data parallel over d0 on 6"], "[replicate], [replicate], [shard(1)]");
  EXPECT_EQ(plans["ZeRO-3 over d0 on 6"], "none") << "no dimension of the weights divides by 6";
}

TEST(Portfolio, HasOnlyPropagationForSeveralMeshes) {
  Plans plans("dist.process_mesh @m(shape = [2], dim_names = [\"a\"])\n"
              "dist.process_mesh @n(shape = [2], dim_names = [\"a\"], process_ids = [2, 3])\n"
              "func.func @main(%x: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [?]>}) -> "
              "tensor<8xf32> {\n  return %x : tensor<8xf32>\n}",
              4);
  EXPECT_EQ(plans["propagation on"], "");
  EXPECT_EQ(plans["replicated on"], "none");
}

} // namespace
