// RUN: tessera-opt %s --split-input-file --verify-diagnostics

// R1
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 64 {
    // expected-error @below {{'x' of 128 bytes at 0 is not within the arena of 64 bytes}}
    %x = rt.slot "x" at 0 : !rt.slot<4x8xf32>
  }
}

// -----

// R1
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 64 {
    // expected-error @below {{'x' at 2 does not start at a multiple of its element's 4 bytes}}
    %x = rt.slot "x" at 2 : !rt.slot<4xf32>
  }
}

// -----

// R2
rt.program @main {
  // expected-error @below {{mesh 'm' is not declared}}
  rt.part "main" over @m arena 64 {
  }
}

// -----

// R2
dist.process_mesh @m(shape = [2], dim_names = ["d"])
dist.process_mesh @n(shape = [2], dim_names = ["d"], process_ids = [1, 2])
rt.program @main {
  rt.part "main" over @m arena 64 {
    %x = rt.slot "x" at 0 : !rt.slot<4xf32>
    %y = rt.slot "y" at 16 : !rt.slot<4xf32>
    // expected-error @below {{mesh 'n' has other devices than the part's 'm'}}
    rt.collective "all_reduce" (%x) to (%y) over @n ["d"] reduction sum from [#dist.sharding<@n, [partial(sum)]>] to [#dist.sharding<@n, [replicate]>] global [tensor<4xf32>] : (!rt.slot<4xf32>) to (!rt.slot<4xf32>)
  }
}

// -----

// R3
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 64 {
    %x = rt.slot "x" at 0 : !rt.slot<4xf32>
    // expected-error @below {{'k' is not a kernel of the module}}
    rt.launch @k(%x) to (%x) : (!rt.slot<4xf32>) to (!rt.slot<4xf32>)
  }
}

// -----

// R3
dist.process_mesh @m(shape = [1], dim_names = ["d"])
func.func private @k(tensor<4xf32>, tensor<8xf32>) -> tensor<8xf32> attributes {kernel.reads = 1 : i64}
rt.program @main {
  rt.part "main" over @m arena 64 {
    %x = rt.slot "x" at 0 : !rt.slot<4xf32>
    // expected-error @below {{passes '!rt.slot<4xf32>' where kernel 'k' takes 'tensor<8xf32>'}}
    rt.launch @k(%x) to (%x) : (!rt.slot<4xf32>) to (!rt.slot<4xf32>)
  }
}

// -----

// R4
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 256 {
    %a = rt.slot "a" at 0 : !rt.slot<2x4xf32>
    %b = rt.slot "b" at 64 : !rt.slot<4x2xf32>
    %c = rt.slot "c" at 128 : !rt.slot<2x2xf32>
    // expected-error @below {{b reaches element 12 of '!rt.slot<4x2xf32>'}}
    rt.gemm %a, %b to %c batch 1 m 2 n 3 k 4 ld [4, 3, 3] stride [0, 0, 0] : !rt.slot<2x4xf32>, !rt.slot<4x2xf32> to !rt.slot<2x2xf32>
  }
}

// -----

// R5
dist.process_mesh @m(shape = [2], dim_names = ["d"])
rt.program @main {
  rt.argument "x" : tensor<8xf32>
  rt.part "main" over @m arena 64 {
    %x = rt.slot "x" at 0 : !rt.slot<8xf32>
    // expected-error @below {{the slot is '!rt.slot<8xf32>', its layout of 'tensor<8xf32>' has '!rt.slot<4xf32>'}}
    rt.argument_home 0 in %x : !rt.slot<8xf32> as #dist.sharding<@m, [shard(0)]>
  }
}

// -----

// R6
dist.process_mesh @m(shape = [2], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 64 {
    %x = rt.slot "x" at 0 : !rt.slot<4xf32>
    %y = rt.slot "y" at 16 : !rt.slot<4xf32>
    // expected-error @below {{its token must have exactly one rt.wait, in the same block}}
    %t = rt.collective "all_reduce" (%x) to (%y) over @m ["d"] reduction sum from [#dist.sharding<@m, [partial(sum)]>] to [#dist.sharding<@m, [replicate]>] global [tensor<4xf32>] : (!rt.slot<4xf32>) to (!rt.slot<4xf32>) -> !rt.token
  }
}

// -----

// R7
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  // expected-error @below {{'y' has no home}}
  rt.result "y" : tensor<4xf32>
  rt.part "main" over @m arena 64 {
  }
}

// -----

// R7
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.argument "x" : tensor<4xf32>
  rt.result "y" : tensor<4xf32> feeds 0
  rt.part "main" over @m arena 64 {
    %x = rt.slot "x" at 0 : !rt.slot<4xf32>
    %y = rt.slot "y" at 16 : !rt.slot<4xf32>
    rt.argument_home 0 in %x : !rt.slot<4xf32> as #dist.sharding<@m, [replicate]>
    // expected-error @below {{result 'y' feeds argument 0, but is not in the same slot}}
    rt.result_home 0 in %y : !rt.slot<4xf32> as #dist.sharding<@m, [replicate]>
  }
}

// -----

// R8
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 64 {
    %x = rt.slot "x" at 0 : !rt.slot<4xf32>
    %y = rt.slot "y" at 16 : !rt.slot<8xf32>
    // expected-error @below {{from '!rt.slot<4xf32>' to '!rt.slot<8xf32>', which differ in size}}
    rt.copy %x to %y : !rt.slot<4xf32> to !rt.slot<8xf32>
  }
}

// -----

// R9
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 64 {
    %x = rt.slot "x" at 0 : !rt.slot<4xf32>
    %c = rt.constant "c" dense<1.0> : tensor<4xf32> in !rt.slot<4xf32>
    // expected-error @below {{writes a constant; only slots of the arena are written}}
    rt.copy %x to %c : !rt.slot<4xf32> to !rt.slot<4xf32>
  }
}

// -----

// R10
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 64 {
    %i = rt.slot "i" at 0 : !rt.slot<index>
    // expected-error @below {{the step 0 is not positive}}
    rt.loop %i = 0 to 4 step 0 {
    }
  }
}

// -----

// R11
dist.process_mesh @m(shape = [1], dim_names = ["d"])
dist.process_mesh @n(shape = [1], dim_names = ["d"], process_ids = [1])
rt.program @main {
  rt.part "main" over @m arena 64 {
    %x = rt.slot "x" at 0 : !rt.slot<4xf32>
    // expected-error @below {{nothing receives id 3}}
    rt.send %x : !rt.slot<4xf32> id 3 global tensor<4xf32> from #dist.sharding<@m, [replicate]> to #dist.sharding<@n, [replicate]>
  }
}
