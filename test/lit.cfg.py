import os
import lit.formats

config.name = "Tessera"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.excludes = ["Inputs"]
config.environment["PATH"] = os.pathsep.join(
    [config.tessera_tools_dir, config.llvm_tools_dir, config.environment["PATH"]])
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%examples", os.path.join(config.tessera_source_dir, "examples")))
config.substitutions.append(("%source", config.tessera_source_dir))
