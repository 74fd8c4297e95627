// RUN: tessera-opt %s --codegen --split-input-file --verify-diagnostics

dist.process_mesh @m(shape = [2], dim_names = ["d"])
func.func @feeds_other_layout(%w: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>, dist.global_type = tensor<8xf32>}, %x: tensor<4xf32>)
    -> (tensor<4xf32> {dist.sharding = #dist.sharding<@m, [replicate]>, dist.feeds = 1}, tensor<4xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>})
    attributes {dist.view = "local", dist.mesh = @m} {
  // expected-error @below {{'check.expect_eq' cannot be lowered to a step}}
  check.expect_eq %w, %x : tensor<4xf32>
  return %w, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

dist.process_mesh @m(shape = [2], dim_names = ["d"])
func.func @feeds_other_layout(%w: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>})
    -> (tensor<4xf32> {dist.sharding = #dist.sharding<@m, [replicate]>, dist.feeds = 0})
    attributes {dist.view = "local", dist.mesh = @m} {
  %0 = dist.all_reduce %w over @m ["d"] reduction = sum : tensor<4xf32>
  // expected-error @below {{result 'result0' feeds argument 'arg0' with another layout; reshard it first}}
  return %0 : tensor<4xf32>
}

// -----

dist.process_mesh @m(shape = [2], dim_names = ["d"])
func.func @broadcast(%w: tensor<4xf32>) -> tensor<4xf32> attributes {dist.view = "local", dist.mesh = @m} {
  // expected-error @below {{'dist.broadcast' is lowered from its layouts; give sources, targets and global_types}}
  %0 = dist.broadcast %w over @m ["d"] root = 1 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
