// Sizes that no mesh divides. A dimension is split by ceiling over the product of its axes: 7 over 2 is 4, 3; 5 over 2 is
// 3, 2; 5 over 4 is 2, 2, 1, 0 (the last device holds nothing). What lies beyond the valid extent of a local tensor is
// undefined, so every reduction over a cut dimension is masked.
//
// @main on 2x2: the contracted dimension 5 is cut over "y", the rows 7 over "x".
//   By hand: all-reduce (sum) over y of the local 4x3 product, B = 48; all-reduce (max) over x of the 3 column maxima, B = 12.
// @softmax on 4: a softmax along a dimension of 5 cut over 4.
//   By hand: two all-reduces (max, sum) of the 7 column values, B = 28 each.

dist.process_mesh @grid(shape = [2, 2], dim_names = ["x", "y"])
dist.process_mesh @line(shape = [4], dim_names = ["d"])

func.func @main(%a: tensor<7x5xf32> {dist.name = "a", dist.sharding = #dist.sharding<@grid, [shard(0), shard(1)]>},
                %b: tensor<5x3xf32> {dist.name = "b", dist.sharding = #dist.sharding<@grid, [replicate, shard(0)]>})
    -> (tensor<7x3xf32> {dist.name = "product", dist.sharding = #dist.sharding<@grid, [shard(0), replicate]>},
        tensor<3xf32> {dist.name = "columns", dist.sharding = #dist.sharding<@grid, [replicate, replicate]>}) {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<7x3xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<7x3xf32>) -> tensor<7x3xf32>
  %product = linalg.matmul ins(%a, %b : tensor<7x5xf32>, tensor<5x3xf32>) outs(%f0 : tensor<7x3xf32>) -> tensor<7x3xf32>
  %e1 = tensor.empty() : tensor<3xf32>
  %f1 = linalg.fill ins(%least : f32) outs(%e1 : tensor<3xf32>) -> tensor<3xf32>
  %columns = linalg.reduce ins(%product : tensor<7x3xf32>) outs(%f1 : tensor<3xf32>) dimensions = [0]
    (%in: f32, %acc: f32) {
      %m = arith.maximumf %in, %acc : f32
      linalg.yield %m : f32
    }
  return %product, %columns : tensor<7x3xf32>, tensor<3xf32>
}

func.func @softmax(%v: tensor<5x7xf32> {dist.name = "v", dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<5x7xf32> {dist.name = "p", dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %e = tensor.empty() : tensor<5x7xf32>
  %p = linalg.softmax dimension(0) ins(%v : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  return %p : tensor<5x7xf32>
}
