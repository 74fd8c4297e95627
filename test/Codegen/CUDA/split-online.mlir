// A few long rows are cut into parts, of which one launch computes maximum and sum: rows are read twice and written once,
// 1.5 times the bytes of a softmax.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80" -o /dev/null | FileCheck %s --check-prefix=BYTES

// CHECK: few: rows rows pointwise equal
// BYTES: few: launches 3, workspace 1280, bytes 394664 of 262576
// BYTES-NEXT: rows: grid 32, {{.*}} reads 131072, writes 384
// BYTES-NEXT: rows: grid 1, {{.*}} reads 600, writes 16
// BYTES-NEXT: pointwise: grid 33, {{.*}} reads 131304, writes 131288
func.func private @few(%x: tensor<2x16411xf32>, %o: tensor<2x16411xf32>) -> tensor<2x16411xf32> attributes {kernel.reads = 1 : i64} {
  %0 = linalg.softmax dimension(1) ins(%x : tensor<2x16411xf32>) outs(%o : tensor<2x16411xf32>) -> tensor<2x16411xf32>
  return %0 : tensor<2x16411xf32>
}

// Parts without a rest; 16 bits.
// CHECK: halves: rows rows pointwise equal
// BYTES: halves: launches 3,
// BYTES-NEXT: rows: grid 48, {{.*}} reads 98304,
func.func private @halves(%x: tensor<3x16384xbf16>, %o: tensor<3x16384xbf16>) -> tensor<3x16384xbf16> attributes {kernel.reads = 1 : i64} {
  %0 = linalg.softmax dimension(1) ins(%x : tensor<3x16384xbf16>) outs(%o : tensor<3x16384xbf16>) -> tensor<3x16384xbf16>
  return %0 : tensor<3x16384xbf16>
}

// The logarithm of a weighted sum of exponentials. Most elements are masked, so that most parts have no maximum, and the
// shift is 0 where a row has none. Rows are read once.
// CHECK: masked: rows rows equal
// BYTES: masked: launches 2,
// BYTES-NEXT: rows: grid 34, {{.*}} reads 208896,
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
#each = affine_map<(d0) -> (d0)>
func.func private @masked(%x: tensor<2x17408xf32>, %w: tensor<17408xf32>, %o: tensor<2xf32>) -> tensor<2xf32> attributes {kernel.reads = 2 : i64} {
  %infinite = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0.9998 : f32
  %large = arith.constant 3.0e38 : f32
  %empty = tensor.empty() : tensor<2xf32>
  %none = linalg.fill ins(%infinite : f32) outs(%empty : tensor<2xf32>) -> tensor<2xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<2x17408xf32>) outs(%none : tensor<2xf32>) {
  ^bb0(%in: f32, %out: f32):
    %is = arith.cmpf ogt, %in, %least : f32
    %kept = arith.select %is, %in, %infinite : f32
    %m = arith.maximumf %kept, %out : f32
    linalg.yield %m : f32
  } -> tensor<2xf32>
  %shift = linalg.generic {indexing_maps = [#each, #each], iterator_types = ["parallel"]} ins(%max : tensor<2xf32>) outs(%empty : tensor<2xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = math.absf %in : f32
    %is = arith.cmpf olt, %a, %large : f32
    %s = arith.select %is, %in, %zero : f32
    linalg.yield %s : f32
  } -> tensor<2xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<2xf32>) -> tensor<2xf32>
  %sum = linalg.generic {indexing_maps = [#id, #column, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %w, %shift : tensor<2x17408xf32>, tensor<17408xf32>, tensor<2xf32>) outs(%zeros : tensor<2xf32>) {
  ^bb0(%in: f32, %weight: f32, %m: f32, %out: f32):
    %is = arith.cmpf ogt, %in, %least : f32
    %kept = arith.select %is, %in, %infinite : f32
    %d = arith.subf %kept, %m : f32
    %e = math.exp %d : f32
    %t = arith.mulf %e, %weight : f32
    %s = arith.addf %t, %out : f32
    linalg.yield %s : f32
  } -> tensor<2xf32>
  %r = linalg.generic {indexing_maps = [#each, #each, #each], iterator_types = ["parallel"]} ins(%sum, %shift : tensor<2xf32>, tensor<2xf32>) outs(%o : tensor<2xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %l = math.log1p %in : f32
    %s = arith.addf %l, %m : f32
    linalg.yield %s : f32
  } -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// The terms are those of another tensor than the maximum, so that a part's maximum would not bound them: not split.
// CHECK: other: {{.*}} equal
// BYTES: other: launches {{[2-9]}},
// BYTES-NEXT: rows: grid {{[0-9]+}}, {{.*}} reads 139264,
func.func private @other(%x: tensor<2x17408xf32>, %y: tensor<2x17408xf32>, %o: tensor<2xf32>) -> tensor<2xf32> attributes {kernel.reads = 2 : i64} {
  %infinite = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2xf32>
  %none = linalg.fill ins(%infinite : f32) outs(%empty : tensor<2xf32>) -> tensor<2xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<2x17408xf32>) outs(%none : tensor<2xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.maximumf %in, %out : f32
    linalg.yield %m : f32
  } -> tensor<2xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%o : tensor<2xf32>) -> tensor<2xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%y, %max : tensor<2x17408xf32>, tensor<2xf32>) outs(%zeros : tensor<2xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %d = arith.subf %in, %m : f32
    %e = math.exp %d : f32
    %s = arith.addf %e, %out : f32
    linalg.yield %s : f32
  } -> tensor<2xf32>
  return %sum : tensor<2xf32>
}
