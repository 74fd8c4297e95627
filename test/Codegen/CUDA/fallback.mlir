// Every kernel that the CPU compiles runs on a GPU, by one thread if there is no better scheme.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels="schemes=false" -o /dev/null | FileCheck %s --check-prefix=ONE

// A division in a branch must not be speculated: one thread per iteration.
// CHECK: guarded_division: loops equal
func.func private @guarded_division(%x: tensor<130x7xi32>, %o: tensor<130x7xi32>) -> tensor<130x7xi32>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<130x7xi32>) outs(%o : tensor<130x7xi32>) {
  ^bb0(%a: i32, %b: i32):
    %zero = arith.constant 0 : i32
    %nonzero = arith.cmpi ne, %a, %zero : i32
    %seven = arith.constant 7 : i32
    %r = scf.if %nonzero -> i32 {
      %s = arith.divsi %seven, %a : i32
      scf.yield %s : i32
    } else {
      scf.yield %zero : i32
    }
    linalg.yield %r : i32
  } -> tensor<130x7xi32>
  return %0 : tensor<130x7xi32>
}

// Rows are sorted, with their elements beside each other.
// CHECK: scatter: pointwise scatter pointwise equal
// ONE: scatter: serial equal
func.func private @scatter(%s: tensor<3x4xf32>, %i: tensor<3x1xindex>, %d: tensor<5x4xf32>, %o: tensor<5x4xf32>)
    -> tensor<5x4xf32> attributes {kernel.reads = 3 : i64} {
  %0 = tensor.scatter %s into %d[%i] scatter_dims([0]) unique
      : (tensor<3x4xf32>, tensor<5x4xf32>, tensor<3x1xindex>) -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}

// A branch without side effects becomes a select.
// CHECK: branch: pointwise equal
// ONE: branch: serial equal
func.func private @branch(%x: tensor<130x7xf32>, %o: tensor<130x7xf32>) -> tensor<130x7xf32>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<130x7xf32>) outs(%o : tensor<130x7xf32>) {
  ^bb0(%a: f32, %b: f32):
    %zero = arith.constant 0.0 : f32
    %positive = arith.cmpf ogt, %a, %zero : f32
    %r = scf.if %positive -> f32 {
      %s = math.sqrt %a : f32
      scf.yield %s : f32
    } else {
      scf.yield %zero : f32
    }
    linalg.yield %r : f32
  } -> tensor<130x7xf32>
  return %0 : tensor<130x7xf32>
}

// CHECK: scatter_scalars: pointwise scatter pointwise equal
func.func private @scatter_scalars(%s: tensor<3xf32>, %i: tensor<3x1xindex>, %d: tensor<5xf32>, %o: tensor<5xf32>)
    -> tensor<5xf32> attributes {kernel.reads = 3 : i64} {
  %0 = tensor.scatter %s into %d[%i] scatter_dims([0]) unique
      : (tensor<3xf32>, tensor<5xf32>, tensor<3x1xindex>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// The index applies to a dimension between two others: both are columns.
// CHECK: scatter_between: {{.*}}scatter{{.*}} equal
func.func private @scatter_between(%s: tensor<3x2x6xf32>, %i: tensor<3x1xi32>, %d: tensor<2x2x6xf32>, %o: tensor<2x2x6xf32>)
    -> tensor<2x2x6xf32> attributes {kernel.reads = 3 : i64} {
  %0 = tensor.scatter %s into %d[%i] scatter_dims([1]) unique
      : (tensor<3x2x6xf32>, tensor<2x2x6xf32>, tensor<3x1xi32>) -> tensor<2x2x6xf32>
  return %0 : tensor<2x2x6xf32>
}

// CHECK: matmul: {{rows|plain}} equal
func.func private @matmul(%a: tensor<5x9xf32>, %b: tensor<9x12xf32>, %o: tensor<5x12xf32>) -> tensor<5x12xf32>
    attributes {kernel.reads = 2 : i64} {
  %0 = linalg.matmul ins(%a, %b : tensor<5x9xf32>, tensor<9x12xf32>) outs(%o : tensor<5x12xf32>) -> tensor<5x12xf32>
  return %0 : tensor<5x12xf32>
}

// Loops that the output's address adds up write the same elements: they must not be split over threads.
// CHECK: diagonals: serial equal
func.func private @diagonals(%x: tensor<12x2xf32>, %o: tensor<13xf32>) -> tensor<13xf32>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i + j)>],
                       iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<12x2xf32>) outs(%o : tensor<13xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %b, %a : f32
    linalg.yield %s : f32
  } -> tensor<13xf32>
  return %0 : tensor<13xf32>
}
