// The maximum of a long row and the sum of exponentials relative to it are computed in one walk over the row.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-loops" -o /dev/null | FileCheck %s --check-prefix=LOOPS
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

// Read twice and written once: 3 of 2, where a pass for the maximum would make 4.
// CHECK-LABEL: softmax: launches 1, workspace 0, bytes 38401152 of 25600768
// EQUAL: softmax: rows equal
// A thread has one maximum, and loads four chunks at once, none of which is at an edge.
// LOOPS-LABEL: softmax: launches
// LOOPS: scf.for {{.*}} iter_args({{.*}}) -> (f32, vector<4xf32>)
// LOOPS-NOT: scf.if
// LOOPS-COUNT-4: vector.load
// LOOPS-NOT: memref.load
// LOOPS: math.exp {{.*}} : f32
// LOOPS-COUNT-4: math.exp {{.*}} {gpu.term} : vector<4xf32>
// LOOPS: scf.yield
func.func private @softmax(%x: tensor<32x100003xf32>, %o: tensor<32x100003xf32>) -> tensor<32x100003xf32>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.softmax dimension(1) ins(%x : tensor<32x100003xf32>) outs(%o : tensor<32x100003xf32>) -> tensor<32x100003xf32>
  return %0 : tensor<32x100003xf32>
}

// The logarithm of the sum: read once. An infinite maximum is replaced before it is subtracted, as by logsumexp; the
// exponent's value is computed from bf16 and weighted.
// CHECK-LABEL: log_sum: launches 1, workspace 0, bytes 26400916 of 26400916
// EQUAL: log_sum: rows equal
func.func private @log_sum(%x: tensor<64x200005xbf16>, %w: tensor<200005xf32>, %o: tensor<64xf32>) -> tensor<64xf32>
    attributes {kernel.reads = 2 : i64} {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0x7F800000 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %fill = linalg.fill ins(%low : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %most = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x200005xbf16>) outs(%fill : tensor<64xf32>) {
  ^bb0(%a: bf16, %c: f32):
    %e = arith.extf %a : bf16 to f32
    %m = arith.maximumf %c, %e : f32
    linalg.yield %m : f32
  } -> tensor<64xf32>
  %safe = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%most : tensor<64xf32>) outs(%empty : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %abs = math.absf %a : f32
    %finite = arith.cmpf olt, %abs, %inf : f32
    %s = arith.select %finite, %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%o : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#ij, #j, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w, %safe : tensor<64x200005xbf16>, tensor<200005xf32>, tensor<64xf32>) outs(%start : tensor<64xf32>) {
  ^bb0(%a: bf16, %b: f32, %m: f32, %c: f32):
    %e = arith.extf %a : bf16 to f32
    %d = arith.subf %e, %m : f32
    %p = math.exp %d : f32
    %t = arith.mulf %b, %p : f32
    %s = arith.addf %c, %t : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %sum : tensor<64xf32>
}

// Rows with half of their elements, or all, -inf, with +inf, with NaN: as by two walks. exp(-500) is 0 and exp(500) is
// infinite, so shifts must be by the maximum.
// CHECK-LABEL: special: launches 1, workspace 0, bytes 12800640 of 12800640
// EQUAL: special: rows equal
func.func private @special(%x: tensor<32x100003xf32>, %o: tensor<32xf32>, %s: tensor<32xf32>) -> (tensor<32xf32>, tensor<32xf32>)
    attributes {kernel.reads = 1 : i64} {
  %low = arith.constant 0xFF800000 : f32
  %high = arith.constant 0x7F800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %distance = arith.constant 500.0 : f32
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x100003xf32>
  %masked = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<32x100003xf32>) outs(%empty : tensor<32x100003xf32>) {
  ^bb0(%a: f32, %c: f32):
    %row = linalg.index 0 : index
    %at = linalg.index 1 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %half = arith.constant 50000 : index
    %more = arith.cmpi ult, %at, %half : index
    %even = arith.cmpi ult, %row, %c1 : index
    %m0 = arith.andi %more, %even : i1
    %m1 = arith.cmpi eq, %row, %c1 : index
    %m01 = arith.ori %m0, %m1 : i1
    %single = arith.cmpi eq, %at, %half : index
    %r2 = arith.cmpi eq, %row, %c2 : index
    %m2 = arith.andi %single, %r2 : i1
    %r3 = arith.cmpi eq, %row, %c3 : index
    %m3 = arith.andi %single, %r3 : i1
    %far = arith.subf %a, %distance : f32
    %v0 = arith.select %m01, %low, %far : f32
    %v1 = arith.select %m2, %high, %v0 : f32
    %v2 = arith.select %m3, %nan, %v1 : f32
    linalg.yield %v2 : f32
  } -> tensor<32x100003xf32>
  %fill = linalg.fill ins(%low : f32) outs(%o : tensor<32xf32>) -> tensor<32xf32>
  %most = linalg.reduce { arith.maximumf } ins(%masked : tensor<32x100003xf32>) outs(%fill : tensor<32xf32>) dimensions = [1]
  %start = linalg.fill ins(%zero : f32) outs(%s : tensor<32xf32>) -> tensor<32xf32>
  %sum = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%masked, %most : tensor<32x100003xf32>, tensor<32xf32>) outs(%start : tensor<32xf32>) {
  ^bb0(%a: f32, %m: f32, %c: f32):
    %d = arith.subf %a, %m : f32
    %p = math.exp %d : f32
    %t = arith.addf %c, %p : f32
    linalg.yield %t : f32
  } -> tensor<32xf32>
  return %most, %sum : tensor<32xf32>, tensor<32xf32>
}

// Other shifts than the maximum of what is exponentiated, and other functions, need a walk of their own.
// CHECK-LABEL: other_operand: launches 1, workspace 0, bytes 76802560 of 51201792
// EQUAL: other_operand: rows equal
func.func private @other_operand(%x: tensor<64x100003xf32>, %y: tensor<64x100003xf32>, %o: tensor<64xf32>) -> tensor<64xf32>
    attributes {kernel.reads = 2 : i64} {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %fill = linalg.fill ins(%low : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %most = linalg.reduce { arith.maximumf } ins(%x : tensor<64x100003xf32>) outs(%fill : tensor<64xf32>) dimensions = [1]
  %start = linalg.fill ins(%zero : f32) outs(%o : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#ij, #ij, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %y, %most : tensor<64x100003xf32>, tensor<64x100003xf32>, tensor<64xf32>) outs(%start : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %m: f32, %c: f32):
    %k = arith.subf %a, %b : f32
    %d = arith.subf %k, %m : f32
    %p = math.exp %d : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %sum : tensor<64xf32>
}

// CHECK-LABEL: tanh_sum: launches 1, workspace 0, bytes 51201792 of 25601024
// EQUAL: tanh_sum: rows equal
func.func private @tanh_sum(%x: tensor<64x100003xf32>, %o: tensor<64xf32>) -> tensor<64xf32>
    attributes {kernel.reads = 1 : i64} {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %fill = linalg.fill ins(%low : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %most = linalg.reduce { arith.maximumf } ins(%x : tensor<64x100003xf32>) outs(%fill : tensor<64xf32>) dimensions = [1]
  %start = linalg.fill ins(%zero : f32) outs(%o : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %most : tensor<64x100003xf32>, tensor<64xf32>) outs(%start : tensor<64xf32>) {
  ^bb0(%a: f32, %m: f32, %c: f32):
    %d = arith.subf %a, %m : f32
    %p = math.tanh %d : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %sum : tensor<64xf32>
}
