// RUN: tessera-opt %s --split-input-file --verify-diagnostics

// R7: the argument exists.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 64 {
    %x = rt.slot "x" at 0 : !rt.slot<4xf32>
    // expected-error @below {{argument 0 does not exist}}
    rt.argument_home 0 in %x : !rt.slot<4xf32> as #dist.sharding<@m, [replicate]>
  }
}

// -----

// R7: the result exists.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.part "main" over @m arena 64 {
    %x = rt.slot "x" at 0 : !rt.slot<4xf32>
    // expected-error @below {{result 0 does not exist}}
    rt.result_home 0 in %x : !rt.slot<4xf32> as #dist.sharding<@m, [replicate]>
  }
}

// -----

// R7: a result has one home.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.result "y" : tensor<4xf32>
  rt.part "main" over @m arena 64 {
    %x = rt.slot "x" at 0 : !rt.slot<4xf32>
    rt.result_home 0 in %x : !rt.slot<4xf32> as #dist.sharding<@m, [replicate]>
    // expected-error @below {{result 0 has another home}}
    rt.result_home 0 in %x : !rt.slot<4xf32> as #dist.sharding<@m, [replicate]>
  }
}

// -----

// R7: what is fed has the type of the result.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.argument "x" : tensor<8xf32>
  // expected-error @below {{'y' feeds argument 0, which does not exist or has another type}}
  rt.result "y" : tensor<4xf32> feeds 0
  rt.part "main" over @m arena 64 {
    %y = rt.slot "y" at 0 : !rt.slot<4xf32>
    rt.result_home 0 in %y : !rt.slot<4xf32> as #dist.sharding<@m, [replicate]>
  }
}

// -----

// R9: an argument is written before each step.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  rt.argument "x" : tensor<4xf32>
  rt.part "main" over @m arena 64 {
    %c = rt.constant "c" dense<1.0> : tensor<4xf32> in !rt.slot<4xf32>
    // expected-error @below {{an argument cannot be held in a constant}}
    rt.argument_home 0 in %c : !rt.slot<4xf32> as #dist.sharding<@m, [replicate]>
  }
}

// -----

// R1: an arena has no negative size.
dist.process_mesh @m(shape = [1], dim_names = ["d"])
rt.program @main {
  // expected-error @below {{an arena of -1 bytes}}
  rt.part "main" over @m arena -1 {
  }
}
