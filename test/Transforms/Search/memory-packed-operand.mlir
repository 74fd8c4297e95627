// An operand with summed loops that are not contiguous is copied into rows for the product: the operand
// is read again later, so both are live during the product. The estimate equals the arena in bytes.
// RUN: tessera explain %s --mode dynamic_programming --json - | FileCheck %s
// CHECK: "peak_memory_bytes": [[PEAK:[0-9]+]]
// CHECK: "memory": [[PEAK]],

dist.process_mesh @line(shape = [2], dim_names = ["d"])
#whole = #dist.sharding<@line, [replicate]>

func.func @main(%p: tensor<8x32x8x32xf32> {dist.sharding = #whole}, %q: tensor<8x8x32x64xf32> {dist.sharding = #whole},
                %m: tensor<64x64xf32> {dist.sharding = #whole}, %n: tensor<64x4xf32> {dist.sharding = #whole})
    -> (tensor<8x32x64xf32> {dist.sharding = #whole}, tensor<8x8x32x4xf32> {dist.sharding = #whole}) {
  %zero = arith.constant dense<0.0> : tensor<8x8x32x64xf32>
  %none = arith.constant dense<0.0> : tensor<8x32x64xf32>
  %few = arith.constant dense<0.0> : tensor<8x8x32x4xf32>
  %r = linalg.contract indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, e)>, affine_map<(a, b, c, d, e) -> (e, d)>,
                                        affine_map<(a, b, c, d, e) -> (a, b, c, d)>]
      ins(%q, %m : tensor<8x8x32x64xf32>, tensor<64x64xf32>) outs(%zero : tensor<8x8x32x64xf32>) -> tensor<8x8x32x64xf32>
  %y = linalg.contract indexing_maps = [affine_map<(b, s, d, e, c) -> (b, s, e, c)>,
                                        affine_map<(b, s, d, e, c) -> (e, b, c, d)>,
                                        affine_map<(b, s, d, e, c) -> (b, s, d)>]
      ins(%p, %r : tensor<8x32x8x32xf32>, tensor<8x8x32x64xf32>) outs(%none : tensor<8x32x64xf32>) -> tensor<8x32x64xf32>
  %z = linalg.contract indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, e)>, affine_map<(a, b, c, d, e) -> (e, d)>,
                                        affine_map<(a, b, c, d, e) -> (a, b, c, d)>]
      ins(%r, %n : tensor<8x8x32x64xf32>, tensor<64x4xf32>) outs(%few : tensor<8x8x32x4xf32>) -> tensor<8x8x32x4xf32>
  return %y, %z : tensor<8x32x64xf32>, tensor<8x8x32x4xf32>
}
