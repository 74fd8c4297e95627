// RUN: tessera explain %s --function narrow | FileCheck %s --check-prefix=NARROW
// RUN: tessera explain %s --function wide | FileCheck %s --check-prefix=WIDE

// Products of bf16 are modelled at the rate of bf16, although they accumulate in f32.
// NARROW: modelled on 8gpu: 2.17 µs per step
// WIDE: modelled on 8gpu: 16 µs per step
dist.process_mesh @m(shape = [2], dim_names = ["x"])

func.func @narrow(%a: tensor<1024x1024xbf16> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                  %w: tensor<1024x1024xbf16>) -> tensor<1024x1024xf32> {
  %zero = arith.constant dense<0.0> : tensor<1024x1024xf32>
  %p = linalg.matmul ins(%a, %w : tensor<1024x1024xbf16>, tensor<1024x1024xbf16>)
      outs(%zero : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %p : tensor<1024x1024xf32>
}

func.func @wide(%a: tensor<1024x1024xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %w: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %zero = arith.constant dense<0.0> : tensor<1024x1024xf32>
  %p = linalg.matmul ins(%a, %w : tensor<1024x1024xf32>, tensor<1024x1024xf32>)
      outs(%zero : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %p : tensor<1024x1024xf32>
}
