// A nest whose first loop is a sum, such as the derivative of a weight: threads split the other loops.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s
// CHECK-NOT: serial
// CHECK: weight: {{.*}} equal

func.func private @weight(%x: tensor<96x24xbf16>, %g: tensor<96x40xf32>, %out: tensor<24x40xf32>) -> tensor<24x40xf32> attributes {kernel.reads = 2 : i64} {
  %zero = arith.constant dense<0.0> : tensor<24x40xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(k, m, n) -> (k, m)>, affine_map<(k, m, n) -> (k, n)>, affine_map<(k, m, n) -> (m, n)>],
                       iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%x, %g : tensor<96x24xbf16>, tensor<96x40xf32>) outs(%zero : tensor<24x40xf32>) {
  ^bb0(%a: bf16, %b: f32, %sum: f32):
    %wide = arith.extf %a : bf16 to f32
    %product = arith.mulf %wide, %b : f32
    %m = linalg.index 1 : index
    %number = arith.index_cast %m : index to i32
    %shift = arith.sitofp %number : i32 to f32
    %term = arith.addf %product, %shift : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<24x40xf32>
  return %y : tensor<24x40xf32>
}
