// Sums over rows are split from a kernel that computes elements in a branch, with the values that
// the branch reads from the body. (Bug: these values were missing, and erased ops were referenced.)
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s
// CHECK: captured: {{.*}} equal

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#columns = affine_map<(d0, d1, d2) -> (d1, d2)>

func.func private @captured(%arg0: tensor<index>, %arg1: tensor<10xf32>, %arg2: tensor<14x1x2xf32>, %arg3: tensor<14x1x2xf32>, %arg4: tensor<14x1x2xf32>) -> (tensor<14x1x2xf32>, tensor<14x1x2xf32>) attributes {kernel.reads = 3 : i64} {
  %extracted = tensor.extract %arg0[] : tensor<index>
  %c2 = arith.constant 2 : index
  %c7 = arith.constant 7 : index
  %c10 = arith.constant 10 : index
  %c0 = arith.constant 0 : index
  %cst = arith.constant 0xFFC00000 : f32
  %0 = tensor.empty() : tensor<1x2xf32>
  %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x2xf32>) -> tensor<1x2xf32>
  %2 = tensor.empty() : tensor<14x1x2xf32>
  %cst_0 = arith.constant 0.000000e+00 : f32
  %3 = tensor.empty() : tensor<1x2xf32>
  %4 = linalg.fill ins(%cst_0 : f32) outs(%3 : tensor<1x2xf32>) -> tensor<1x2xf32>
  %5 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg2 : tensor<14x1x2xf32>) outs(%arg3 : tensor<14x1x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    %10 = linalg.index 2 : index
    %11 = arith.muli %extracted, %c2 : index
    %12 = arith.addi %10, %11 : index
    %13 = arith.cmpi slt, %12, %c7 : index
    %14 = linalg.index 0 : index
    %15 = arith.cmpi ult, %14, %c10 : index
    %from_elements = tensor.from_elements %15 : tensor<i1>
    %extracted_1 = tensor.extract %from_elements[] : tensor<i1>
    %16 = scf.if %extracted_1 -> (tensor<f32>) {
      %17 = arith.select %13, %14, %c0 : index
      %extracted_3 = tensor.extract %arg1[%17] : tensor<10xf32>
      %from_elements_4 = tensor.from_elements %extracted_3 : tensor<f32>
      scf.yield %from_elements_4 : tensor<f32>
    } else {
      %from_elements_3 = tensor.from_elements %in : tensor<f32>
      scf.yield %from_elements_3 : tensor<f32>
    }
    %extracted_2 = tensor.extract %16[] : tensor<f32>
    linalg.yield %extracted_2 : f32
  } -> tensor<14x1x2xf32>
  %6 = linalg.generic {indexing_maps = [#all, #columns], iterator_types = ["reduction", "parallel", "parallel"]} ins(%5 : tensor<14x1x2xf32>) outs(%1 : tensor<1x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    %10 = arith.maxnumf %in, %out : f32
    linalg.yield %10 : f32
  } -> tensor<1x2xf32>
  %7 = linalg.generic {indexing_maps = [#all, #columns, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5, %6 : tensor<14x1x2xf32>, tensor<1x2xf32>) outs(%2 : tensor<14x1x2xf32>) {
  ^bb0(%in: f32, %in_1: f32, %out: f32):
    %10 = arith.subf %in, %in_1 : f32
    %11 = math.exp %10 : f32
    linalg.yield %11 : f32
  } -> tensor<14x1x2xf32>
  %8 = linalg.generic {indexing_maps = [#all, #columns], iterator_types = ["reduction", "parallel", "parallel"]} ins(%7 : tensor<14x1x2xf32>) outs(%4 : tensor<1x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    %10 = arith.addf %in, %out : f32
    linalg.yield %10 : f32
  } -> tensor<1x2xf32>
  %9 = linalg.generic {indexing_maps = [#all, #columns, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7, %8 : tensor<14x1x2xf32>, tensor<1x2xf32>) outs(%arg4 : tensor<14x1x2xf32>) {
  ^bb0(%in: f32, %in_1: f32, %out: f32):
    %10 = arith.divf %in, %in_1 : f32
    linalg.yield %10 : f32
  } -> tensor<14x1x2xf32>
  return %5, %9 : tensor<14x1x2xf32>, tensor<14x1x2xf32>
}
