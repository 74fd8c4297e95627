// RUN: tessera run %s --check=interpreter --no-cache | FileCheck %s

// A slice that only the kernels of a branch read stays in the branch.
// CHECK: check  result0  ok
func.func @main(%x: tensor<5x7xf32>, %p: tensor<i1>) -> tensor<5x5xf32> {
  %s = tensor.extract_slice %x[0, 1] [5, 5] [1, 1] : tensor<5x7xf32> to tensor<5x5xf32>
  %c = tensor.extract %p[] : tensor<i1>
  %r = scf.if %c -> tensor<5x5xf32> {
    %a = math.exp %s : tensor<5x5xf32>
    scf.yield %a : tensor<5x5xf32>
  } else {
    %b = math.tanh %s : tensor<5x5xf32>
    scf.yield %b : tensor<5x5xf32>
  }
  return %r : tensor<5x5xf32>
}
