// RUN: tessera-opt %s --split-input-file --verify-diagnostics

// R3: as many slots as the kernel has.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
func.func private @k(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {kernel.reads = 1 : i64}
rt.program @main {
  rt.part "main" over @m arena 64 {
    %x = rt.slot "x" at 0 : !rt.slot<4xf32>
    // expected-error @below {{passes 2 and 1 slots, kernel 'k' reads 1 and writes 1}}
    rt.launch @k(%x, %x) to (%x) : (!rt.slot<4xf32>, !rt.slot<4xf32>) to (!rt.slot<4xf32>)
  }
}

// -----

// R4: rows do not overlap.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 256 {
    %a = rt.slot "a" at 0 : !rt.slot<2x4xf32>
    %b = rt.slot "b" at 64 : !rt.slot<4x2xf32>
    %c = rt.slot "c" at 128 : !rt.slot<2x2xf32>
    // expected-error @below {{a has rows of 4 elements 3 apart}}
    rt.gemm %a, %b to %c batch 1 m 2 n 2 k 4 ld [3, 2, 2] stride [0, 0, 0] : !rt.slot<2x4xf32>, !rt.slot<4x2xf32> to !rt.slot<2x2xf32>
  }
}

// -----

// R12: a bias has an element for each column.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 256 {
    %a = rt.slot "a" at 0 : !rt.slot<2x4xf32>
    %b = rt.slot "b" at 64 : !rt.slot<4x2xf32>
    %c = rt.slot "c" at 128 : !rt.slot<2x2xf32>
    %v = rt.slot "v" at 192 : !rt.slot<3xf32>
    // expected-error @below {{the bias is '!rt.slot<3xf32>', the rows have 2 elements}}
    rt.gemm %a, %b to %c bias %v batch 1 m 2 n 2 k 4 ld [4, 2, 2] stride [0, 0, 0] : !rt.slot<2x4xf32>, !rt.slot<4x2xf32> to !rt.slot<2x2xf32> bias !rt.slot<3xf32>
  }
}

// -----

// R12: a bias is of the type of C.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 256 {
    %a = rt.slot "a" at 0 : !rt.slot<2x4xf32>
    %b = rt.slot "b" at 64 : !rt.slot<4x2xf32>
    %c = rt.slot "c" at 128 : !rt.slot<2x2xf32>
    %v = rt.slot "v" at 192 : !rt.slot<2xbf16>
    // expected-error @below {{has a bias of 'bf16' and a product of 'f32'; both must have the same type}}
    rt.gemm %a, %b to %c bias %v batch 1 m 2 n 2 k 4 ld [4, 2, 2] stride [0, 0, 0] : !rt.slot<2x4xf32>, !rt.slot<4x2xf32> to !rt.slot<2x2xf32> bias !rt.slot<2xbf16>
  }
}

// -----

// R12: there are two epilogues.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 256 {
    %a = rt.slot "a" at 0 : !rt.slot<2x4xf32>
    %b = rt.slot "b" at 64 : !rt.slot<4x2xf32>
    %c = rt.slot "c" at 128 : !rt.slot<2x2xf32>
    %v = rt.slot "v" at 192 : !rt.slot<2xf32>
    // expected-error @below {{'tanh' is not a valid epilogue; expected relu or gelu}}
    rt.gemm %a, %b to %c bias %v batch 1 m 2 n 2 k 4 ld [4, 2, 2] stride [0, 0, 0] epilogue "tanh" : !rt.slot<2x4xf32>, !rt.slot<4x2xf32> to !rt.slot<2x2xf32> bias !rt.slot<2xf32>
  }
}

// -----

// R12: integers have none.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 256 {
    %a = rt.slot "a" at 0 : !rt.slot<2x4xi32>
    %b = rt.slot "b" at 64 : !rt.slot<4x2xi32>
    %c = rt.slot "c" at 128 : !rt.slot<2x2xi32>
    %v = rt.slot "v" at 192 : !rt.slot<2xi32>
    // expected-error @below {{a product of 'i32' cannot have a bias or an epilogue; only f32, f16 and bf16 products can}}
    rt.gemm %a, %b to %c bias %v batch 1 m 2 n 2 k 4 ld [4, 2, 2] stride [0, 0, 0] : !rt.slot<2x4xi32>, !rt.slot<4x2xi32> to !rt.slot<2x2xi32> bias !rt.slot<2xi32>
  }
}

// -----

// R4: element types.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 256 {
    %a = rt.slot "a" at 0 : !rt.slot<2x4xf32>
    %b = rt.slot "b" at 64 : !rt.slot<4x2xf32>
    %c = rt.slot "c" at 128 : !rt.slot<2x2xbf16>
    // expected-error @below {{element types 'f32', 'f32' and 'bf16' are not a supported combination}}
    rt.gemm %a, %b to %c batch 1 m 2 n 2 k 4 ld [4, 2, 2] stride [0, 0, 0] : !rt.slot<2x4xf32>, !rt.slot<4x2xf32> to !rt.slot<2x2xbf16>
  }
}

// -----

// R4: a product that does not fit 64 bits is beyond every slot.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 256 {
    %a = rt.slot "a" at 0 : !rt.slot<2x4xf32>
    %b = rt.slot "b" at 64 : !rt.slot<4x2xf32>
    %c = rt.slot "c" at 128 : !rt.slot<2x2xf32>
    // expected-error @below {{a exceeds '!rt.slot<2x4xf32>'}}
    rt.gemm %a, %b to %c batch 9223372036854775807 m 2 n 2 k 4 ld [4, 2, 2] stride [9223372036854775807, 0, 0] : !rt.slot<2x4xf32>, !rt.slot<4x2xf32> to !rt.slot<2x2xf32>
  }
}

// -----

// R5: a collective's slots have the shapes of its layouts.
dist.process_mesh @m(shape = [2], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 64 {
    %x = rt.slot "x" at 0 : !rt.slot<4xf32>
    %y = rt.slot "y" at 16 : !rt.slot<4xf32>
    // expected-error @below {{a source is '!rt.slot<4xf32>', its layout of 'tensor<4xf32>' has '!rt.slot<2xf32>'}}
    rt.collective "all_gather" (%x) to (%y) over @m ["d"] from [#dist.sharding<@m, [shard(0)]>] to [#dist.sharding<@m, [replicate]>] global [tensor<4xf32>] : (!rt.slot<4xf32>) to (!rt.slot<4xf32>)
  }
}

// -----

// R11: nothing sends.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
dist.process_mesh @n(shape = [1], dim_names = ["d"], process_ids = [1])
rt.program @main {
  rt.part "main" over @n arena 64 {
    %x = rt.slot "x" at 0 : !rt.slot<4xf32>
    // expected-error @below {{nothing sends id 3}}
    rt.recv %x : !rt.slot<4xf32> id 3 global tensor<4xf32> from #dist.sharding<@m, [replicate]> to #dist.sharding<@n, [replicate]>
  }
}

// -----

// R13: a contraction stays within its operands.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 192 {
    %a = rt.slot "a" at 0 : !rt.slot<6xf32>
    %b = rt.slot "b" at 64 : !rt.slot<3xf32>
    %c = rt.slot "c" at 128 : !rt.slot<4xf32>
    // expected-error @below {{reaches beyond the 6 elements of a}}
    rt.contract %a, %b to %c starts [0, 0, 0] extents [4, 3] strides [1, 2], [0, 1], [1, 0] : !rt.slot<6xf32>, !rt.slot<3xf32> to !rt.slot<4xf32>
  }
}

// -----

// R13: also where it reads backwards.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 192 {
    %a = rt.slot "a" at 0 : !rt.slot<6xf32>
    %b = rt.slot "b" at 64 : !rt.slot<3xf32>
    %c = rt.slot "c" at 128 : !rt.slot<4xf32>
    // expected-error @below {{reaches beyond the 3 elements of b}}
    rt.contract %a, %b to %c starts [0, 1, 0] extents [4, 3] strides [1, 1], [0, -1], [1, 0] : !rt.slot<6xf32>, !rt.slot<3xf32> to !rt.slot<4xf32>
  }
}

// -----

// R13: a loop has a stride in each operand.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 192 {
    %a = rt.slot "a" at 0 : !rt.slot<6xf32>
    %b = rt.slot "b" at 64 : !rt.slot<3xf32>
    %c = rt.slot "c" at 128 : !rt.slot<4xf32>
    // expected-error @below {{has 1 strides of b for 2 loops}}
    rt.contract %a, %b to %c starts [0, 0, 0] extents [4, 3] strides [1, 1], [0], [1, 0] : !rt.slot<6xf32>, !rt.slot<3xf32> to !rt.slot<4xf32>
  }
}

// -----

// R13: a bound has a begin, an end and a stride for each loop.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 192 {
    %a = rt.slot "a" at 0 : !rt.slot<6xf32>
    %b = rt.slot "b" at 64 : !rt.slot<3xf32>
    %c = rt.slot "c" at 128 : !rt.slot<4xf32>
    // expected-error @below {{has 'rt.within' = array<i64: 1, 5, 1>; each bound has 4 numbers, a begin, an end and a stride for each loop}}
    rt.contract %a, %b to %c starts [0, 0, 0] extents [4, 3] strides [1, 1], [0, 1], [1, 0] {rt.within = array<i64: 1, 5, 1>} : !rt.slot<6xf32>, !rt.slot<3xf32> to !rt.slot<4xf32>
  }
}

// -----

// R13: extents are positive.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 192 {
    %a = rt.slot "a" at 0 : !rt.slot<6xf32>
    %b = rt.slot "b" at 64 : !rt.slot<3xf32>
    %c = rt.slot "c" at 128 : !rt.slot<4xf32>
    // expected-error @below {{has a loop of extent 0; extents are positive}}
    rt.contract %a, %b to %c starts [0, 0, 0] extents [4, 0] strides [1, 1], [0, 1], [1, 0] : !rt.slot<6xf32>, !rt.slot<3xf32> to !rt.slot<4xf32>
  }
}

// -----

// R13: C is f32, or of the type of A and B.
func.func @f(%a: tensor<6xbf16>, %b: tensor<3xbf16>, %c: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @below {{contracts elements of 'bf16' and 'bf16' to 'f16'; a and b must be of one type, f32, f16 or bf16, and c f32 or that type}}
  %y = rt.contraction %a, %b into %c starts [0, 0, 0] extents [4, 3] strides [1, 1], [0, 1], [1, 0]
    : tensor<6xbf16>, tensor<3xbf16> into tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

// R14: every block would write all of it.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
func.func private @k(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {kernel.reads = 1 : i64}
rt.program @main {
  rt.part "main" over @m arena 256 {
    %x = rt.slot "x" at 0 : !rt.slot<32xf32>
    %y = rt.slot "y" at 128 : !rt.slot<16xf32>
    // expected-error @below {{writes operand 1 in every block; what is written must be cut}}
    rt.launch @k(%x) to (%y) blocks 2 cut [true, false] : (!rt.slot<32xf32>) to (!rt.slot<16xf32>)
  }
}

// -----

// R14: an operand that is cut has a block for each call.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
func.func private @k(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {kernel.reads = 1 : i64}
rt.program @main {
  rt.part "main" over @m arena 256 {
    %x = rt.slot "x" at 0 : !rt.slot<16xf32>
    %y = rt.slot "y" at 128 : !rt.slot<32xf32>
    // expected-error @below {{passes '!rt.slot<16xf32>' where kernel 'k' takes 'tensor<16xf32>'}}
    rt.launch @k(%x) to (%y) blocks 2 cut [true, true] : (!rt.slot<16xf32>) to (!rt.slot<32xf32>)
  }
}

// -----

// R14: there is no product before it.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
func.func private @k(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {kernel.reads = 1 : i64}
rt.program @main {
  rt.part "main" over @m arena 256 {
    %x = rt.slot "x" at 0 : !rt.slot<32xf32>
    // expected-error @below {{joins no product: the step before it must be a gemm or a contract}}
    rt.launch @k(%x) to (%x) blocks 2 cut [true, true] joins : (!rt.slot<32xf32>) to (!rt.slot<32xf32>)
  }
}

// -----

// R14: a call by blocks returns its destinations.
func.func private @k(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {kernel.reads = 1 : i64}
func.func @main(%x: tensor<32xf32>, %y: tensor<2x16xf32>) -> tensor<32xf32> {
  // expected-error @below {{has a result of 'tensor<32xf32>' in a destination of 'tensor<2x16xf32>'}}
  %r = rt.call_blocks @k(%x, %y) blocks 2 cut [true, true] : (tensor<32xf32>, tensor<2x16xf32>) -> tensor<32xf32>
  return %r : tensor<32xf32>
}
