// A sum of all elements that are looked up: sums of the rows by many blocks, then the sum of these. The elements are
// never in memory. Indices outside the table give 0.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

// The table, the indices and %y are read, and 512 sums of rows written and read.
// CHECK-LABEL: look_up: launches 2, workspace 2048, bytes 288772 of 284676
// CHECK-NEXT: rows: grid 64, block 128
// CHECK-NEXT: rows: grid 1
// EQUAL: look_up: rows rows equal
func.func private @look_up(%table: tensor<40x128xf32>, %i: tensor<512xi32>, %y: tensor<512x128xf32>, %o: tensor<f32>)
    -> tensor<f32> attributes {kernel.reads = 3 : i64} {
  %zero = arith.constant 0.0 : f32
  %fill = linalg.fill ins(%zero : f32) outs(%o : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, j) -> (n)>, affine_map<(n, j) -> (n, j)>, affine_map<(n, j) -> ()>],
                       iterator_types = ["reduction", "reduction"]}
      ins(%i, %y : tensor<512xi32>, tensor<512x128xf32>) outs(%fill : tensor<f32>) {
  ^bb0(%at: i32, %factor: f32, %sum: f32):
    %c0 = arith.constant 0 : index
    %c39 = arith.constant 39 : index
    %j = linalg.index 1 : index
    %row = arith.index_cast %at : i32 to index
    %low = arith.maxsi %row, %c0 : index
    %high = arith.minsi %low, %c39 : index
    %inside = arith.cmpi eq, %row, %high : index
    %value = tensor.extract %table[%high, %j] : tensor<40x128xf32>
    %kept = arith.select %inside, %value, %zero : f32
    %term = arith.mulf %kept, %factor : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// The greatest of single elements at computed places: the elements are parts of one row.
// CHECK-LABEL: greatest: launches 3
// CHECK-NEXT: pointwise: grid 98
// CHECK-NEXT: rows: grid 157
// CHECK-NEXT: rows: grid 1
// EQUAL: greatest: pointwise rows rows equal
func.func private @greatest(%table: tensor<1000xf32>, %i: tensor<100000xi32>, %o: tensor<f32>)
    -> tensor<f32> attributes {kernel.reads = 2 : i64} {
  %low = arith.constant 0xFF800000 : f32
  %fill = linalg.fill ins(%low : f32) outs(%o : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> ()>], iterator_types = ["reduction"]}
      ins(%i : tensor<100000xi32>) outs(%fill : tensor<f32>) {
  ^bb0(%at: i32, %most: f32):
    %c1000 = arith.constant 1000 : index
    %n = linalg.index 0 : index
    %word = arith.index_cast %at : i32 to index
    %mixed = arith.xori %word, %n : index
    %place = arith.remui %mixed, %c1000 : index
    %value = tensor.extract %table[%place] : tensor<1000xf32>
    %next = arith.maximumf %most, %value : f32
    linalg.yield %next : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}
