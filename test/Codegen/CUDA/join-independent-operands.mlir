// The derivative of a cross entropy: only the last op reads both the labels' rows and the softmax
// of the scores. They are one launch, which reads and writes each argument once.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels --tessera-check-gpu-kernels -o /dev/null | FileCheck %s

// CHECK: loss: launches 1, workspace 0, bytes 525312 of 525312
// CHECK-NEXT: rows: grid 128
// CHECK: loss: rows equal
#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func private @loss(%label: tensor<128xi32>, %weight: tensor<128xf32>, %x: tensor<128x512xf32>, %y: tensor<128x512xf32>) -> tensor<128x512xf32> attributes {kernel.reads = 3 : i64} {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %rows = tensor.empty() : tensor<128xf32>
  %whole = tensor.empty() : tensor<128x512xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<128xf32>) -> tensor<128xf32>
  %leasts = linalg.fill ins(%least : f32) outs(%rows : tensor<128xf32>) -> tensor<128xf32>
  %hot = linalg.generic {indexing_maps = [#row, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%label, %weight : tensor<128xi32>, tensor<128xf32>) outs(%whole : tensor<128x512xf32>) {
  ^bb0(%l: i32, %w: f32, %o: f32):
    %j = linalg.index 1 : index
    %at = arith.index_cast %j : index to i32
    %is = arith.cmpi eq, %l, %at : i32
    %v = arith.select %is, %w, %zero : f32
    linalg.yield %v : f32
  } -> tensor<128x512xf32>
  %count = linalg.reduce { arith.addf } ins(%hot : tensor<128x512xf32>) outs(%zeros : tensor<128xf32>) dimensions = [1]
  %max = linalg.reduce { arith.maximumf } ins(%x : tensor<128x512xf32>) outs(%leasts : tensor<128xf32>) dimensions = [1]
  %e = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : tensor<128x512xf32>, tensor<128xf32>) outs(%whole : tensor<128x512xf32>) {
  ^bb0(%p: f32, %m: f32, %o: f32):
    %d = arith.subf %p, %m : f32
    %v = math.exp %d : f32
    linalg.yield %v : f32
  } -> tensor<128x512xf32>
  %sum = linalg.reduce { arith.addf } ins(%e : tensor<128x512xf32>) outs(%zeros : tensor<128xf32>) dimensions = [1]
  %scale = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%count, %sum : tensor<128xf32>, tensor<128xf32>) outs(%rows : tensor<128xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %v = arith.divf %p, %q : f32
    linalg.yield %v : f32
  } -> tensor<128xf32>
  %result = linalg.generic {indexing_maps = [#all, #row, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%hot, %scale, %e : tensor<128x512xf32>, tensor<128xf32>, tensor<128x512xf32>) outs(%y : tensor<128x512xf32>) {
  ^bb0(%h: f32, %s: f32, %p: f32, %o: f32):
    %t = arith.mulf %s, %p : f32
    %v = arith.subf %t, %h : f32
    linalg.yield %v : f32
  } -> tensor<128x512xf32>
  return %result : tensor<128x512xf32>
}
