// An op without a tensor result may read a value that is only a permutation of elements.
// RUN: tessera run %s --check | FileCheck %s
// CHECK: check y ok
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @main(%a: tensor<4x6xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> (tensor<8xf32> {dist.name = "y"}) {
  %e = tensor.empty() : tensor<6x4xf32>
  %t = linalg.transpose ins(%a : tensor<4x6xf32>) outs(%e : tensor<6x4xf32>) permutation = [1, 0]
  %one = arith.constant 1 : index
  %x = tensor.extract %t[%one, %one] : tensor<6x4xf32>
  %f = tensor.empty() : tensor<8xf32>
  %y = linalg.fill ins(%x : f32) outs(%f : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
