// A schedule orders micro-batches; a program without micro-batches is rejected.
// RUN: not tessera explain %s --schedule gpipe 2>&1 | FileCheck %s

// CHECK: error: --schedule 'gpipe': the program has no micro-batches to order; mark their calls with dist.micro_batch, or leave the schedule out
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = math.tanh %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
