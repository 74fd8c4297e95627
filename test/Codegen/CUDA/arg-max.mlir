// One op that keeps the maximum and its index becomes two reductions of a row, which is read once.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

// CHECK-LABEL: first_greatest: launches 1, workspace 0, bytes 256512 of 256512
// CHECK-NEXT: rows
// EQUAL: first_greatest: rows equal
func.func private @first_greatest(%x: tensor<64x1000xf32>, %m: tensor<64xf32>, %o: tensor<64xi32>) -> (tensor<64xf32>, tensor<64xi32>)
    attributes {kernel.reads = 1 : i64} {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i32
  %f = linalg.fill ins(%low : f32) outs(%m : tensor<64xf32>) -> tensor<64xf32>
  %g = linalg.fill ins(%zero : i32) outs(%o : tensor<64xi32>) -> tensor<64xi32>
  %0:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
                         iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x1000xf32>) outs(%f, %g : tensor<64xf32>, tensor<64xi32>) {
  ^bb0(%a: f32, %b: f32, %c: i32):
    %n = linalg.index 1 : index
    %j = arith.index_cast %n : index to i32
    %is = arith.cmpf ogt, %a, %b : f32
    %v = arith.select %is, %a, %b : f32
    %k = arith.select %is, %j, %c : i32
    linalg.yield %v, %k : f32, i32
  } -> (tensor<64xf32>, tensor<64xi32>)
  return %0#0, %0#1 : tensor<64xf32>, tensor<64xi32>
}

// Equal maxima: the first index counts; if no element exceeds the initial value, its index is kept.
// CHECK-LABEL: first_least: launches 1
// EQUAL: first_least: rows equal
func.func private @first_least(%x: tensor<40x600xi32>, %m: tensor<40xi32>, %o: tensor<40xi64>) -> (tensor<40xi32>, tensor<40xi64>)
    attributes {kernel.reads = 1 : i64} {
  %low = arith.constant -3 : i32
  %nowhere = arith.constant -1 : i64
  %f = linalg.fill ins(%low : i32) outs(%m : tensor<40xi32>) -> tensor<40xi32>
  %g = linalg.fill ins(%nowhere : i64) outs(%o : tensor<40xi64>) -> tensor<40xi64>
  %0:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
                         iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<40x600xi32>) outs(%f, %g : tensor<40xi32>, tensor<40xi64>) {
  ^bb0(%a: i32, %b: i32, %c: i64):
    %three = arith.constant 3 : i32
    %few = arith.remsi %a, %three : i32
    %n = linalg.index 1 : index
    %j = arith.index_cast %n : index to i64
    %is = arith.cmpi slt, %few, %b : i32
    %v = arith.select %is, %few, %b : i32
    %k = arith.select %is, %j, %c : i64
    linalg.yield %v, %k : i32, i64
  } -> (tensor<40xi32>, tensor<40xi64>)
  return %0#0, %0#1 : tensor<40xi32>, tensor<40xi64>
}

// Another initial value: all indices must be found.
// EQUAL: first_least_of_all: rows equal
func.func private @first_least_of_all(%x: tensor<40x600xi32>, %m: tensor<40xi32>, %o: tensor<40xi64>) -> (tensor<40xi32>, tensor<40xi64>)
    attributes {kernel.reads = 1 : i64} {
  %low = arith.constant 1 : i32
  %nowhere = arith.constant -1 : i64
  %f = linalg.fill ins(%low : i32) outs(%m : tensor<40xi32>) -> tensor<40xi32>
  %g = linalg.fill ins(%nowhere : i64) outs(%o : tensor<40xi64>) -> tensor<40xi64>
  %0:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
                         iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<40x600xi32>) outs(%f, %g : tensor<40xi32>, tensor<40xi64>) {
  ^bb0(%a: i32, %b: i32, %c: i64):
    %three = arith.constant 3 : i32
    %few = arith.remsi %a, %three : i32
    %n = linalg.index 1 : index
    %j = arith.index_cast %n : index to i64
    %is = arith.cmpi slt, %few, %b : i32
    %v = arith.select %is, %few, %b : i32
    %k = arith.select %is, %j, %c : i64
    linalg.yield %v, %k : i32, i64
  } -> (tensor<40xi32>, tensor<40xi64>)
  return %0#0, %0#1 : tensor<40xi32>, tensor<40xi64>
}
