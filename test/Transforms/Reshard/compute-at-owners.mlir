// RUN: tessera-opt %s --tessera-pipeline="compile-to=resharded" | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=PLAN
// RUN: tessera run %s --check=interpreter

// Only device 2 has x[2]. It computes what is computed from x[2], products among it, with its own part; the others do so
// with theirs, for nobody. The sum is sent (4 bytes), and the gradient stays where it is: a pad puts it to part 2 of a
// dimension that the same devices share. Rows 4 and 5 of another tensor are within part 1, but what is computed from them
// is larger, so the rows are sent (64 bytes).

// CHECK: tensor.extract_slice {{.*}} : tensor<4x1x6x8xf32> to tensor<4x6x8xf32>
// CHECK: linalg.contract {{.*}} tensor<4x6x8xf32>
// CHECK-NOT: tensor.pad
// PLAN: all_gather @m [s] of 4 f32 68 B, 68 on the wire
// PLAN: total: 1 collective, 68 bytes on the wire
dist.process_mesh @m(shape = [4], dim_names = ["s"])
#id = affine_map<(d0, d1) -> (d0, d1)>
#lhs = affine_map<(d0, d1, d2) -> (d0, d2)>
#rhs = affine_map<(d0, d1, d2) -> (d2, d1)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @main(%x: tensor<4x6x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %w: tensor<8x8xf32>,
                %rows: tensor<12x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<f32> {dist.sharding = #dist.sharding<@m, [replicate]>},
        tensor<4x6x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
        tensor<2x2x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %own = tensor.extract_slice %x[2, 0, 0] [1, 6, 8] [1, 1, 1] : tensor<4x6x8xf32> to tensor<6x8xf32>
  %zeros = arith.constant dense<0.0> : tensor<6x8xf32>
  %p = linalg.contract indexing_maps = [#lhs, #rhs, #out] ins(%own, %w : tensor<6x8xf32>, tensor<8x8xf32>)
      outs(%zeros : tensor<6x8xf32>) -> tensor<6x8xf32>
  %t = math.tanh %p : tensor<6x8xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %sum = linalg.reduce ins(%t : tensor<6x8xf32>) outs(%zero : tensor<f32>) dimensions = [0, 1]
    (%a: f32, %b: f32) { %s = arith.addf %a, %b : f32
      linalg.yield %s : f32 }
  %one = tensor.expand_shape %t [[0, 1], [2]] output_shape [1, 6, 8] : tensor<6x8xf32> into tensor<1x6x8xf32>
  %c0 = arith.constant 0.0 : f32
  %gradient = tensor.pad %one low[2, 0, 0] high[1, 0, 0] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %c0 : f32
  } : tensor<1x6x8xf32> to tensor<4x6x8xf32>
  %part = tensor.extract_slice %rows[4, 0] [2, 8] [1, 1] : tensor<12x8xf32> to tensor<2x8xf32>
  %empty = tensor.empty() : tensor<2x2x8xf32>
  %twice = linalg.broadcast ins(%part : tensor<2x8xf32>) outs(%empty : tensor<2x2x8xf32>) dimensions = [0]
  %exp = math.exp %twice : tensor<2x2x8xf32>
  return %sum, %gradient, %exp : tensor<f32>, tensor<4x6x8xf32>, tensor<2x2x8xf32>
}
