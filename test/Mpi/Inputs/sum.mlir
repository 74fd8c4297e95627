// A step is a sum over eight devices; rank 0 prints it.
dist.process_mesh @line(shape = [8], dim_names = ["x"])

func.func @main(%x: tensor<f32> {dist.name = "x", dist.sharding = #dist.sharding<@line, [partial(sum)]>})
    -> (tensor<f32> {dist.name = "y", dist.sharding = #dist.sharding<@line, [replicate]>}) {
  return %x : tensor<f32>
}
