// A value that a loop reads from outside is live until the loop ends, also if it is sent before the loop and read first
// in the iteration. A slice at a computed index is a copy. The estimate equals the arena except for the loop counter.
// RUN: tessera explain %s --mode dynamic_programming --json - | FileCheck %s
// CHECK: "peak_memory_bytes": 7012416
// CHECK: "memory": 7012352,

dist.process_mesh @line(shape = [2], dim_names = ["d"])
#rows = #dist.sharding<@line, [shard(0)]>
#whole = #dist.sharding<@line, [replicate]>

func.func @main(%x: tensor<64x256xf32> {dist.sharding = #rows}, %w: tensor<256x1024xf32> {dist.sharding = #rows},
                %v: tensor<4x1024x256xf32> {dist.sharding = #whole}) -> (tensor<64x256xf32> {dist.sharding = #rows}) {
  %from = arith.constant 0 : index
  %to = arith.constant 4 : index
  %step = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<64x1024xf32>
  %none = arith.constant dense<0.0> : tensor<64x256xf32>
  %y = scf.for %i = %from to %to step %step iter_args(%c = %x) -> tensor<64x256xf32> {
    %a = linalg.matmul ins(%c, %w : tensor<64x256xf32>, tensor<256x1024xf32>) outs(%zero : tensor<64x1024xf32>)
        -> tensor<64x1024xf32>
    %t = math.tanh %a : tensor<64x1024xf32>
    %s = tensor.extract_slice %v[%i, 0, 0] [1, 1024, 256] [1, 1, 1] : tensor<4x1024x256xf32> to tensor<1024x256xf32>
    %b = linalg.matmul ins(%t, %s : tensor<64x1024xf32>, tensor<1024x256xf32>) outs(%none : tensor<64x256xf32>)
        -> tensor<64x256xf32>
    scf.yield %b : tensor<64x256xf32>
  }
  return %y : tensor<64x256xf32>
}
