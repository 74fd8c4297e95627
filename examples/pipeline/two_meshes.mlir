// Two layers on two meshes: the first on devices 0-3, the second on 4-7; the hidden activation is carried over by
// dist.reshard, the only way between meshes.
//
// @main: one axis, weights and data whole on every device of their stage.
//   By hand: each device of stage 0 sends its copy to its twin (0->4, 1->5, 2->6, 3->7), 8 MiB each; nothing else.
// @hybrid: 2x2 in each stage, the batch over "x", the hidden dimension over "y". The activation goes over as it is cut.
//   By hand: four sends of the local 2x128x2048 (2 MiB each), no gather; one all-reduce over y of the 2x128x1024 output.

dist.process_mesh @first(shape = [4], dim_names = ["d"])
dist.process_mesh @second(shape = [4], dim_names = ["d"], process_ids = [4, 5, 6, 7])
dist.process_mesh @stage0(shape = [2, 2], dim_names = ["x", "y"])
dist.process_mesh @stage1(shape = [2, 2], dim_names = ["x", "y"], process_ids = [4, 5, 6, 7])

#in = affine_map<(b, s, n, k) -> (b, s, k)>
#weight = affine_map<(b, s, n, k) -> (k, n)>
#out = affine_map<(b, s, n, k) -> (b, s, n)>

func.func @main(%x: tensor<4x128x1024xf32> {dist.name = "x", dist.sharding = #dist.sharding<@first, [replicate]>},
                %w0: tensor<1024x4096xf32> {dist.name = "w0", dist.sharding = #dist.sharding<@first, [replicate]>},
                %w1: tensor<4096x1024xf32> {dist.name = "w1", dist.sharding = #dist.sharding<@second, [replicate]>})
    -> (tensor<4x128x1024xf32> {dist.name = "z"}) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4x128x4096xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4x128x4096xf32>) -> tensor<4x128x4096xf32>
  %y0 = linalg.contract indexing_maps = [#in, #weight, #out]
      ins(%x, %w0 : tensor<4x128x1024xf32>, tensor<1024x4096xf32>) outs(%f0 : tensor<4x128x4096xf32>) -> tensor<4x128x4096xf32>
  %y1 = dist.reshard %y0 to #dist.sharding<@second, [replicate]> : tensor<4x128x4096xf32>
  %e1 = tensor.empty() : tensor<4x128x1024xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4x128x1024xf32>) -> tensor<4x128x1024xf32>
  %z = linalg.contract indexing_maps = [#in, #weight, #out]
      ins(%y1, %w1 : tensor<4x128x4096xf32>, tensor<4096x1024xf32>) outs(%f1 : tensor<4x128x1024xf32>) -> tensor<4x128x1024xf32>
  return %z : tensor<4x128x1024xf32>
}

func.func @hybrid(%x: tensor<4x128x1024xf32> {dist.name = "x", dist.sharding = #dist.sharding<@stage0, [shard(0), replicate]>},
                  %w0: tensor<1024x4096xf32> {dist.name = "w0", dist.sharding = #dist.sharding<@stage0, [replicate, shard(1)]>},
                  %w1: tensor<4096x1024xf32> {dist.name = "w1", dist.sharding = #dist.sharding<@stage1, [replicate, shard(0)]>})
    -> (tensor<4x128x1024xf32> {dist.name = "z", dist.sharding = #dist.sharding<@stage1, [shard(0), replicate]>}) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4x128x4096xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4x128x4096xf32>) -> tensor<4x128x4096xf32>
  %y0 = linalg.contract indexing_maps = [#in, #weight, #out]
      ins(%x, %w0 : tensor<4x128x1024xf32>, tensor<1024x4096xf32>) outs(%f0 : tensor<4x128x4096xf32>) -> tensor<4x128x4096xf32>
  %y1 = dist.reshard %y0 to #dist.sharding<@stage1, [shard(0), shard(2)]> : tensor<4x128x4096xf32>
  %e1 = tensor.empty() : tensor<4x128x1024xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4x128x1024xf32>) -> tensor<4x128x1024xf32>
  %z = linalg.contract indexing_maps = [#in, #weight, #out]
      ins(%y1, %w1 : tensor<4x128x4096xf32>, tensor<4096x1024xf32>) outs(%f1 : tensor<4x128x1024xf32>) -> tensor<4x128x1024xf32>
  return %z : tensor<4x128x1024xf32>
}
