// Two annotations claim the same mesh axis for different loops of one operation.
//
// @main: y = x w with the rows of x and the columns of w both cut over "tp". One device cannot hold a tile of each: either
// w is gathered (512 KiB) or x (4 MiB). By hand: the loop over rows is cut, one all-gather of w, y stays cut on its rows.
// @tie: the same for a sum, where both ways cost one all-to-all of 8 MiB per device; the earlier operand keeps its cut.

dist.process_mesh @pod(shape = [8], dim_names = ["tp"])

func.func @main(%x: tensor<4096x256xf32> {dist.name = "x", dist.sharding = #dist.sharding<@pod, [shard(0)]>},
                %w: tensor<256x512xf32> {dist.name = "w", dist.sharding = #dist.sharding<@pod, [shard(1)]>})
    -> (tensor<4096x512xf32> {dist.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x512xf32>) -> tensor<4096x512xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4096x256xf32>, tensor<256x512xf32>) outs(%f : tensor<4096x512xf32>) -> tensor<4096x512xf32>
  return %y : tensor<4096x512xf32>
}

func.func @tie(%a: tensor<4096x4096xf32> {dist.name = "a", dist.sharding = #dist.sharding<@pod, [shard(0)]>},
               %b: tensor<4096x4096xf32> {dist.name = "b", dist.sharding = #dist.sharding<@pod, [shard(1)]>})
    -> (tensor<4096x4096xf32> {dist.name = "c"}) {
  %c = arith.addf %a, %b : tensor<4096x4096xf32>
  return %c : tensor<4096x4096xf32>
}
