// RUN: tessera-opt %s --tessera-pipeline="compile-to=normalized" --dist-block-shifts | FileCheck %s
// RUN: tessera explain %s --function corners | FileCheck %s --check-prefix=CORNERS
// RUN: tessera explain %s --function distances | FileCheck %s --check-prefix=DISTANCES
// RUN: tessera run %s --function corners --check | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function distances --check | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function filled --check | FileCheck %s --check-prefix=VALUE

// Shifts of a value become slices of blocks with borders.
dist.process_mesh @grid(shape = [2, 4], dim_names = ["x", "y"])

// VALUE: check {{.*}} ok

// A stencil's corner, by rolls: 64 x 32 elements are a part. A row of 32, then a column of 65.
// CHECK-LABEL: func.func @corners(
// CHECK: %[[B:.*]] = tensor.expand_shape %arg0 {{\[\[}}0, 1], [2, 3]] output_shape [2, 64, 4, 32]
// CHECK: %[[ROW:.*]] = tensor.extract_slice %[[B]][0, 63, 0, 0] [2, 1, 4, 32]
// CHECK: %[[ROWS:.*]] = dist.rearrange %[[ROW]], %[[ROW]] dim = 0
// CHECK: %[[TALL:.*]] = tensor.concat dim(1) %[[ROWS]], %[[B]]
// CHECK: %[[COLUMN:.*]] = tensor.extract_slice %[[TALL]][0, 0, 0, 31] [2, 65, 4, 1]
// CHECK: %[[COLUMNS:.*]] = dist.rearrange %[[COLUMN]], %[[COLUMN]] dim = 2
// CHECK: %[[ALL:.*]] = tensor.concat dim(3) %[[COLUMNS]], %[[TALL]]
// CHECK: tensor.extract_slice %[[ALL]][0, 0, 0, 1] [2, 64, 4, 32]
// CHECK: tensor.extract_slice %[[ALL]][0, 1, 0, 0] [2, 64, 4, 32]
// CHECK: tensor.extract_slice %[[ALL]][0, 0, 0, 0] [2, 64, 4, 32]
// CORNERS: total: {{[12]}} collective{{s?}}, 388 bytes on the wire
func.func @corners(%u: tensor<128x128xf32> {dist.sharding = #dist.sharding<@grid, [shard(0), shard(1)]>})
    -> (tensor<128x128xf32> {dist.sharding = #dist.sharding<@grid, [shard(0), shard(1)]>}) {
  %ra = tensor.extract_slice %u[127, 0] [1, 128] [1, 1] : tensor<128x128xf32> to tensor<1x128xf32>
  %rb = tensor.extract_slice %u[0, 0] [127, 128] [1, 1] : tensor<128x128xf32> to tensor<127x128xf32>
  %r = tensor.concat dim(0) %ra, %rb : (tensor<1x128xf32>, tensor<127x128xf32>) -> tensor<128x128xf32>
  %ca = tensor.extract_slice %u[0, 127] [128, 1] [1, 1] : tensor<128x128xf32> to tensor<128x1xf32>
  %cb = tensor.extract_slice %u[0, 0] [128, 127] [1, 1] : tensor<128x128xf32> to tensor<128x127xf32>
  %c = tensor.concat dim(1) %ca, %cb : (tensor<128x1xf32>, tensor<128x127xf32>) -> tensor<128x128xf32>
  %da = tensor.extract_slice %r[0, 127] [128, 1] [1, 1] : tensor<128x128xf32> to tensor<128x1xf32>
  %db = tensor.extract_slice %r[0, 0] [128, 127] [1, 1] : tensor<128x128xf32> to tensor<128x127xf32>
  %d = tensor.concat dim(1) %da, %db : (tensor<128x1xf32>, tensor<128x127xf32>) -> tensor<128x128xf32>
  %0 = arith.addf %r, %c : tensor<128x128xf32>
  %1 = arith.mulf %0, %d : tensor<128x128xf32>
  return %1 : tensor<128x128xf32>
}

// Rolls by one and by two rows, up and down: two rows from either side.
// CHECK-LABEL: func.func @distances(
// CHECK: %[[B:.*]] = tensor.expand_shape %arg0 {{\[\[}}0, 1], [2]] output_shape [2, 64, 128]
// CHECK: tensor.extract_slice %[[B]][0, 62, 0] [2, 2, 128]
// CHECK: %[[ALL:.*]] = tensor.concat dim(1)
// CHECK: tensor.extract_slice %[[ALL]][0, 1, 0] [2, 64, 128]
// CHECK: tensor.extract_slice %[[ALL]][0, 0, 0] [2, 64, 128]
// DISTANCES: 1024 on the wire
// DISTANCES: total: 1 collective, 1024 bytes on the wire
func.func @distances(%u: tensor<128x128xf32> {dist.sharding = #dist.sharding<@grid, [shard(0), replicate]>})
    -> (tensor<128x128xf32> {dist.sharding = #dist.sharding<@grid, [shard(0), replicate]>}) {
  %ra = tensor.extract_slice %u[127, 0] [1, 128] [1, 1] : tensor<128x128xf32> to tensor<1x128xf32>
  %rb = tensor.extract_slice %u[0, 0] [127, 128] [1, 1] : tensor<128x128xf32> to tensor<127x128xf32>
  %r = tensor.concat dim(0) %ra, %rb : (tensor<1x128xf32>, tensor<127x128xf32>) -> tensor<128x128xf32>
  %ca = tensor.extract_slice %u[126, 0] [2, 128] [1, 1] : tensor<128x128xf32> to tensor<2x128xf32>
  %cb = tensor.extract_slice %u[0, 0] [126, 128] [1, 1] : tensor<128x128xf32> to tensor<126x128xf32>
  %c = tensor.concat dim(0) %ca, %cb : (tensor<2x128xf32>, tensor<126x128xf32>) -> tensor<128x128xf32>
  %0 = arith.mulf %r, %c : tensor<128x128xf32>
  return %0 : tensor<128x128xf32>
}

// Shifts that fill with zeros, in opposite directions along both dimensions, and along one of them.
// CHECK-LABEL: func.func @filled(
// CHECK: dist.rearrange {{.*}} fill = 0.000000e+00 : f32 : (tensor<2x2x4x32xf32>)
// CHECK: dist.rearrange {{.*}} fill = 0.000000e+00 : f32 : (tensor<2x67x4x1xf32>)
func.func @filled(%u: tensor<128x128xf32> {dist.sharding = #dist.sharding<@grid, [shard(0), shard(1)]>})
    -> (tensor<128x128xf32> {dist.sharding = #dist.sharding<@grid, [shard(0), shard(1)]>}) {
  %zero = arith.constant 0.0 : f32
  %ra = tensor.extract_slice %u[0, 0] [126, 128] [1, 1] : tensor<128x128xf32> to tensor<126x128xf32>
  %r = tensor.pad %ra low[2, 0] high[0, 0] {
  ^bb0(%i0: index, %i1: index):
    tensor.yield %zero : f32
  } : tensor<126x128xf32> to tensor<128x128xf32>
  %sa = tensor.extract_slice %u[1, 0] [127, 128] [1, 1] : tensor<128x128xf32> to tensor<127x128xf32>
  %s = tensor.pad %sa low[0, 0] high[1, 0] {
  ^bb0(%i0: index, %i1: index):
    tensor.yield %zero : f32
  } : tensor<127x128xf32> to tensor<128x128xf32>
  %da = tensor.extract_slice %r[0, 0] [128, 127] [1, 1] : tensor<128x128xf32> to tensor<128x127xf32>
  %d = tensor.pad %da low[0, 1] high[0, 0] {
  ^bb0(%i0: index, %i1: index):
    tensor.yield %zero : f32
  } : tensor<128x127xf32> to tensor<128x128xf32>
  %ea = tensor.extract_slice %s[0, 1] [128, 127] [1, 1] : tensor<128x128xf32> to tensor<128x127xf32>
  %e = tensor.pad %ea low[0, 0] high[0, 1] {
  ^bb0(%i0: index, %i1: index):
    tensor.yield %zero : f32
  } : tensor<128x127xf32> to tensor<128x128xf32>
  %0 = arith.addf %s, %d : tensor<128x128xf32>
  %1 = arith.mulf %0, %e : tensor<128x128xf32>
  return %1 : tensor<128x128xf32>
}
