// RUN: tessera-opt %s --split-input-file --verify-diagnostics

// (S1)
func.func @no_mesh(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'dist.op_sharding': mesh 'm' is not declared; add dist.process_mesh @m}}
  %0 = tensor.empty() {dist.op_sharding = #dist.op_sharding<@m, factors = [["x"]]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// (S5)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @no_axis(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{mesh 'm' has no axis 'z'; its axes are 'x'}}
  %0 = tensor.empty() {dist.op_sharding = #dist.op_sharding<@m, factors = [["z"]]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// (O1)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @no_rule(%a: tensor<8xf32>, %p: i1) -> tensor<8xf32> {
  // expected-error @+1 {{'dist.op_sharding' is not allowed on 'scf.if', which has no sharding rule}}
  %0 = scf.if %p -> tensor<8xf32> {
    scf.yield %a : tensor<8xf32>
  } else {
    scf.yield %a : tensor<8xf32>
  } {dist.op_sharding = #dist.op_sharding<@m, factors = [["x"]]>}
  return %0 : tensor<8xf32>
}

// -----

// (O1)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @local() -> tensor<8xf32> attributes {dist.view = "local"} {
  // expected-error @+1 {{'dist.op_sharding' is not allowed on 'tensor.empty' in the local view}}
  %0 = tensor.empty() {dist.op_sharding = #dist.op_sharding<@m, factors = [["x"]]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// (O2)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @factors(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{on 'linalg.matmul' has 2 factors, the rule of the op has 3}}
  %0 = linalg.matmul {dist.op_sharding = #dist.op_sharding<@m, factors = [["x"], []]>}
      ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// (O3)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @twice(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{on 'linalg.matmul' uses mesh axis "x" twice; an axis cuts one factor}}
  %0 = linalg.matmul {dist.op_sharding = #dist.op_sharding<@m, factors = [["x"], [], ["x"]]>}
      ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// (O3)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @cut_and_forwarded(%a: tensor<4x3xf32>) -> tensor<12xf32> {
  // expected-error @+1 {{forwards contributions over mesh axis "x", which it uses already; leave out the forward, or the axis of the factor}}
  %0 = tensor.collapse_shape %a [[0, 1]] {dist.op_sharding = #dist.op_sharding<@m, factors = [["x"], []], forwards = [sum("x") from [0]]>}
      : tensor<4x3xf32> into tensor<12xf32>
  return %0 : tensor<12xf32>
}

// -----

// (O4)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @whole(%a: tensor<8xf32>, %v: f32, %i: index) -> tensor<8xf32> {
  // expected-error @+1 {{on 'tensor.insert' cuts factor 0, which the rule of the op keeps whole}}
  %0 = tensor.insert %v into %a[%i] {dist.op_sharding = #dist.op_sharding<@m, factors = [["x"], []]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// (O4)
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @minor_factor(%a: tensor<6x4xf32>) -> tensor<24xf32> {
  // expected-error @+1 {{cuts factor 1 of a dimension made of several factors into parts that are not contiguous}}
  %0 = tensor.collapse_shape %a [[0, 1]] {dist.op_sharding = #dist.op_sharding<@m, factors = [[], ["x"]]>}
      : tensor<6x4xf32> into tensor<24xf32>
  return %0 : tensor<24xf32>
}

// -----

// (O5) A product is linear in each of its factors, not in both.
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @not_linear(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{'dist.op_sharding' forwards sum("x") from operands 0, 1, 2, in which 'linalg.matmul' is not linear, taken together; reduce them first}}
  %0 = linalg.matmul {dist.op_sharding = #dist.op_sharding<@m, factors = [[], [], []], forwards = [sum("x") from [0, 1, 2]]>}
      ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// (O5)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @no_operand(%a: tensor<6x4xf32>) -> tensor<24xf32> {
  // expected-error @+1 {{forwards contributions from operand 1; operands are numbered from 0 to 0}}
  %0 = tensor.collapse_shape %a [[0, 1]] {dist.op_sharding = #dist.op_sharding<@m, factors = [[], []], forwards = [sum("x") from [1]]>}
      : tensor<6x4xf32> into tensor<24xf32>
  return %0 : tensor<24xf32>
}

// -----

// (O5)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @no_operands(%a: tensor<6x4xf32>) -> tensor<24xf32> {
  // expected-error @+1 {{forwards contributions from no operand; list the operands that have them}}
  %0 = tensor.collapse_shape %a [[0, 1]] {dist.op_sharding = #dist.op_sharding<@m, factors = [[], []], forwards = [sum("x") from []]>}
      : tensor<6x4xf32> into tensor<24xf32>
  return %0 : tensor<24xf32>
}

// -----

// (O6)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @result(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{result 0 has #dist.sharding<@m, [shard(0)]>, but #dist.op_sharding<@m, factors = [[], ["x"], []]> implies #dist.sharding<@m, [shard(1)]>; change one of them, or run dist-propagate again}}
  %0 = linalg.matmul {dist.op_sharding = #dist.op_sharding<@m, factors = [[], ["x"], []]>, dist.shardings = [#dist.sharding<@m, [shard(0)]>]}
      ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// (O7)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @window_of_sum(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{has a window of factor 2, which is not parallel; leave it out}}
  %0 = linalg.matmul {dist.op_sharding = #dist.op_sharding<@m, factors = [[], [], ["x"]], windows = [(2, 2, -1, 4)]>}
      ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// (O7)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @window_of_concat(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> tensor<8x16xf32> {
  // expected-error @+1 {{'dist.op_sharding' has windows, but 'tensor.concat' cannot compute windows of its result; leave them out, and reshard the result}}
  %0 = tensor.concat dim(1) %a, %b {dist.op_sharding = #dist.op_sharding<@m, factors = [["x"], []], windows = [(0, 2, -1, 4)]>}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// (O7)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @elements_with_gaps(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{has a window of factor 0, for which no window of an operand serves; leave it out}}
  %0 = dist.rearrange %a, %a dim = 0 segments = [7, 1, 0, 1, 1,  0, 1, 1, 1, 7]
      {dist.op_sharding = #dist.op_sharding<@m, factors = [["x"]], windows = [(0, 1, 0, 1, 1, 0, 2, 4)]>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// (O7)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @windows_twice(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{has a list of windows that is not ascending; list one per factor}}
  %0 = dist.rearrange %a dim = 0 segments = [0, 1, 7, -1, 8]
      {dist.op_sharding = #dist.op_sharding<@m, factors = [["x"]], windows = [(0, 2, -1, 4), (0, 2, 0, 2)]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// (O7)
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @huge_window(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{window (0, 9223372036854775807, 0, 4) of a factor is not valid; numbers are in [-2^40, 2^40]}}
  %0 = dist.rearrange %a dim = 0 segments = [0, 1, 7, -1, 8]
      {dist.op_sharding = #dist.op_sharding<@m, factors = [["x"]], windows = [(0, 9223372036854775807, 0, 4)]>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The spelling.
func.func @spelling(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'dist.op_sharding' is "x", not a #dist.op_sharding}}
  %0 = tensor.empty() {dist.op_sharding = "x"} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @blocks_of_three(%x: tensor<24xf32>) -> tensor<2x3x4xf32> {
  // expected-error @below {{'dist.blocks' must be a unit attribute, on a tensor.expand_shape or tensor.collapse_shape between one dimension and two}}
  %0 = tensor.expand_shape %x [[0, 1, 2]] output_shape [2, 3, 4] {dist.blocks} : tensor<24xf32> into tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}
