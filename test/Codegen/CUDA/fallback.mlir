// Whatever the CPU compiles runs, by one thread where nothing better is known.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels="schemes=false" -o /dev/null | FileCheck %s --check-prefix=ONE

// CHECK: scatter: pointwise serial pointwise equal
// ONE: scatter: serial equal
func.func private @scatter(%s: tensor<3x4xf32>, %i: tensor<3x1xindex>, %d: tensor<5x4xf32>, %o: tensor<5x4xf32>)
    -> tensor<5x4xf32> attributes {kernel.reads = 3 : i64} {
  %0 = tensor.scatter %s into %d[%i] scatter_dims([0]) unique
      : (tensor<3x4xf32>, tensor<5x4xf32>, tensor<3x1xindex>) -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}

// An op whose body has a branch: a thread an iteration.
// CHECK: branch: loops equal
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

// CHECK: matmul: {{rows|plain}} equal
func.func private @matmul(%a: tensor<5x9xf32>, %b: tensor<9x12xf32>, %o: tensor<5x12xf32>) -> tensor<5x12xf32>
    attributes {kernel.reads = 2 : i64} {
  %0 = linalg.matmul ins(%a, %b : tensor<5x9xf32>, tensor<9x12xf32>) outs(%o : tensor<5x12xf32>) -> tensor<5x12xf32>
  return %0 : tensor<5x12xf32>
}
