// One of the two factors of a product can stay a contribution: not the larger one, %h, which tanh
// needs whole anyway, but %k, which then is never reduced.
// RUN: tessera explain %s | FileCheck %s
// RUN: tessera run %s --check=interpreter | FileCheck %s --check-prefix=SAME

// CHECK: all_reduce {{.*}} 8192 B
// CHECK: all_reduce {{.*}} 1024 B
// CHECK: total: 2 collectives
// SAME: check  product  ok
dist.process_mesh @line(shape = [4], dim_names = ["t"])

func.func @main(%x: tensor<64x16xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
                %w: tensor<16x32xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %y: tensor<8x16xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
                %v: tensor<16x64xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<8x32xf32> {dist.name = "product", dist.sharding = #dist.sharding<@line, [replicate]>},
        tensor<64x32xf32> {dist.name = "tanh", dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zh = arith.constant dense<0.0> : tensor<64x32xf32>
  %zk = arith.constant dense<0.0> : tensor<8x64xf32>
  %zp = arith.constant dense<0.0> : tensor<8x32xf32>
  %h = linalg.matmul ins(%x, %w : tensor<64x16xf32>, tensor<16x32xf32>) outs(%zh : tensor<64x32xf32>) -> tensor<64x32xf32>
  %k = linalg.matmul ins(%y, %v : tensor<8x16xf32>, tensor<16x64xf32>) outs(%zk : tensor<8x64xf32>) -> tensor<8x64xf32>
  %product = linalg.matmul ins(%k, %h : tensor<8x64xf32>, tensor<64x32xf32>) outs(%zp : tensor<8x32xf32>) -> tensor<8x32xf32>
  %tanh = math.tanh %h : tensor<64x32xf32>
  return %product, %tanh : tensor<8x32xf32>, tensor<64x32xf32>
}
