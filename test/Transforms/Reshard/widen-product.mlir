// RUN: tessera-opt %s --dist-insert-reshards --dist-widen-partials --dist-plan-reshards --dist-partition | FileCheck %s

// 16-bit contributions to a product are extended, which does not change the product.
dist.process_mesh @m(shape = [4], dim_names = ["x"])

// CHECK-LABEL: func.func @main
// CHECK: arith.extf
// CHECK: dist.all_reduce {{.*}} reduction = prod {{.*}} : tensor<6xf32>
// CHECK: arith.truncf
func.func @main(%a: tensor<2x3xbf16> {dist.sharding = #dist.sharding<@m, [partial(prod)]>})
    -> (tensor<6xbf16> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %0 = tensor.collapse_shape %a [[0, 1]] {dist.op_sharding = #dist.op_sharding<@m, factors = [[], []], forwards = [prod("x") from [0]]>, dist.shardings = [#dist.sharding<@m, [partial(prod)]>]} : tensor<2x3xbf16> into tensor<6xbf16>
  return %0 : tensor<6xbf16>
}
