// RUN: tessera-opt %s --split-input-file --verify-diagnostics

// (R5)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @type_of_fill(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{has fill 0 : i32 for windows of 'tensor<8xf32>'; give it the element type, 'f32'}}
  %0 = dist.reshard %a to #dist.sharding<@m, dims = [["x"]], windows = [(0, 2, -1, 4)]> {fill = 0 : i32} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// (R5)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @no_window(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{has fill 0.000000e+00 : f32, but #dist.sharding<@m, [shard(0)]> has no windows, which alone extend beyond the tensor; leave it out}}
  %0 = dist.reshard %a to #dist.sharding<@m, [shard(0)]> {fill = 0.0 : f32} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// (R5)
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])
func.func @sum(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@m, dims = [["x"]], partial = [sum("y")], windows = [(0, 4, -1, 6)]>}) {
  // expected-error @+1 {{'dist.move' is #dist.move<all_reduce over ["y"] reduction = sum>, which has no fill; leave the fill of the reshard out, or the move and run dist-plan-reshards}}
  %0 = dist.reshard %a to #dist.sharding<@m, dims = [["x"]], windows = [(0, 4, -1, 6)]>
      {fill = 0.0 : f32, dist.move = #dist.move<all_reduce over ["y"] reduction = sum>} : tensor<8xf32>
  return
}

// -----

// A halo is around the own part of each device.
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @halo(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  // expected-error @+1 {{'dist.move' is #dist.move<halo_exchange over ["x"] dim = 0>, which does not convert #dist.sharding<@m, [shard(0)]> to #dist.sharding<@m, dims = }}
  %0 = dist.reshard %a to #dist.sharding<@m, dims = [["x"]], windows = [(0, 2, 1, 2)]>
      {dist.move = #dist.move<halo_exchange over ["x"] dim = 0>} : tensor<8xf32>
  return
}

// -----

dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @halo_of_other_parts(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  // expected-error @+1 {{'dist.move' is #dist.move<halo_exchange over ["x"] dim = 0>, which does not convert #dist.sharding<@m, [shard(0)]> to #dist.sharding<@m, dims = }}
  %0 = dist.reshard %a to #dist.sharding<@m, dims = [["x"]], windows = [(0, 3, -1, 5)]>
      {dist.move = #dist.move<halo_exchange over ["x"] dim = 0>} : tensor<8xf32>
  return
}
