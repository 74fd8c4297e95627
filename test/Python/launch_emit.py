# RUN: %tessera_python %s
# REQUIRES: python
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D3-13, D0-17: job files. The manifests keep to the models of kubeflow-training and kubeflow-trainer-api, where these are
installed; the batch script starts two nodes, with srun and scontrol that run here."""

import importlib.util
import os
import re
import stat
import sys
import unittest

from launch_case import SHOW, LaunchCase, free_ports
from tessera.launch import arguments, emit
from tessera.launch.emit import kubernetes, yaml

COMMON = ["--nnodes=2", "--nproc_per_node=4", "--gpus_per_node=4", "--image=example.org/train:1", "--namespace=team"]
SCRIPT = ["train.py", "--lr", "$(HOME) 'a' \"b\""]


def manifest(kind, *words):
    parsed = arguments.parse([f"--emit={kind}", *COMMON, *words, *SCRIPT])
    emit.text(parsed)
    return kubernetes.KINDS[kind].manifest(parsed)


def installed(name):
    return importlib.util.find_spec(name) is not None


def check_swagger(value, kind, models, where=""):
    """A value against a model of the older generator: every key is known, every value of its type."""
    if match := re.fullmatch(r"list\[(.*)\]", kind):
        assert isinstance(value, list), where
        for number, each in enumerate(value):
            check_swagger(each, match[1], models, f"{where}[{number}]")
    elif match := re.fullmatch(r"dict\(str, (.*)\)", kind):
        assert isinstance(value, dict), where
        for key, each in value.items():
            check_swagger(each, match[1], models, f"{where}.{key}")
    elif kind in ("str", "int", "bool", "object"):
        assert isinstance(value, {"str": str, "int": int, "bool": bool, "object": object}[kind]), f"{where}: {value!r} is no {kind}"
    else:
        model = next(getattr(each, kind) for each in models if hasattr(each, kind))
        types = {model.attribute_map[name]: (name, of) for name, of in model.openapi_types.items()}
        unknown = set(value) - set(types)
        assert not unknown, f"{where}: {unknown}"
        for key, each in value.items():
            check_swagger(each, types[key][1], models, f"{where}.{key}")
        model(**{types[key][0]: each for key, each in value.items()})  # raises an error for missing required fields


class Schemas(unittest.TestCase):
    @unittest.skipUnless(installed("kubeflow") and installed("kubernetes"), "kubeflow-training is not installed")
    def test_mpijob(self):
        import kubeflow.training.models
        import kubernetes.client.models
        for words in ([], ["--allow_run_as_root", "--cpus_per_node=8"]):
            check_swagger(manifest("mpijob", *words), "KubeflowOrgV1MPIJob", [kubeflow.training.models, kubernetes.client.models])
        wrong = manifest("mpijob")
        wrong["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = "2"
        with self.assertRaisesRegex(AssertionError, "'2' is no int"):
            check_swagger(wrong, "KubeflowOrgV1MPIJob", [kubeflow.training.models, kubernetes.client.models])

    @unittest.skipUnless(installed("kubeflow_trainer_api"), "kubeflow-trainer-api is not installed")
    def test_trainjob_and_jobset(self):
        from kubeflow_trainer_api import models
        for kind, model in (("trainjob", models.TrainerV1alpha1TrainJob), ("jobset", models.JobsetV1alpha2JobSet)):
            for words in ([], ["--cpus_per_node=8", "--max_restarts=3", "--log_dir=/logs"]):
                made = manifest(kind, *words)
                self.assertEqual(model.from_dict(made).to_dict(), made)  # the model drops unknown fields
            made["spec"]["unknown"] = 1
            self.assertNotEqual(model.from_dict(made).to_dict(), made)

    @unittest.skipUnless(installed("yaml"), "PyYAML is not installed")
    def test_text_is_the_manifest(self):
        import yaml as pyyaml
        for kind in kubernetes.KINDS:
            made = manifest(kind)
            self.assertEqual(pyyaml.safe_load(yaml.text(made)), made)


class Manifests(unittest.TestCase):
    def test_yaml(self):
        self.assertEqual(yaml.text({"a": [{"b": "x", "c": ["1", 2]}, "no"], "d": {}, "e": {"f": True}}),
                         'a:\n- b: x\n  c:\n  - "1"\n  - 2\n- "no"\nd: {}\ne:\n  f: true\n')

    def test_the_script_is_passed_as_it_is(self):
        for kind, container in (("trainjob", lambda made: made["spec"]["trainer"]),
                                ("jobset", lambda made: made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]),
                                ("mpijob", lambda made: made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0])):
            command = container(manifest(kind))["command"]
            self.assertEqual(command[-3:], ["train.py", "--lr", "$$(HOME) 'a' \"b\""])  # Kubernetes turns $$( into $(

    def test_the_token_is_a_secret(self):
        for kind in ("trainjob", "jobset"):
            parsed = arguments.parse([f"--emit={kind}", *COMMON, *SCRIPT])
            self.assertIn("kubectl create secret generic train-token --namespace=team --from-file=token=/dev/stdin", emit.text(parsed))

    def test_mpi_as_root_only_on_request(self):
        def command(*words):
            return manifest("mpijob", *words)["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"]
        self.assertNotIn("--allow-run-as-root", command())
        self.assertIn("--allow-run-as-root", command("--allow-run-as-root"))


class Refusals(LaunchCase):
    def test_refusals(self):
        for words, says in ((["--emit=pod", "x.py"], "--emit is 'pod'; expected one of slurm, mpijob, trainjob, jobset, tesserajob"),
                            (["--emit=jobset", "x.py"], "--emit=jobset needs the container image"),
                            (["--emit=jobset", "--image=i", "--name=A_b", "x.py"], "--name is 'A_b'; expected at most 40 lower-case letters"),
                            (["--emit=jobset", "--time=1", "x.py"], "--time applies to --emit=slurm, not to jobset"),
                            (["--emit=slurm", "--image=i", "x.py"], "--image applies to --emit=mpijob, trainjob, jobset, tesserajob, not to slurm"),
                            (["--emit=mpijob", "--image=i", "--max_restarts=1", "x.py"], "in an MPIJob mpirun starts them"),
                            (["--emit=slurm", "--master_addr=h", "x.py"], "--master_addr applies to one start only"),
                            (["--image=i", "x.py"], "--image applies to --emit only")):
            with self.subTest(words):
                self.refused(*words, says=says)


class Slurm(LaunchCase):
    def program(self, name, text):
        path = self.script(text, name)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def test_two_nodes(self):
        import subprocess
        port, control = free_ports(2)
        script = emit.text(arguments.parse(["--emit=slurm", "--nnodes=2", "--nproc_per_node=2", "--time=10", f"--master_port={port}",
                                            f"--control_port={control}", self.script(SHOW), "a b"]))
        self.assertIn("#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --time=10\n#SBATCH --exclusive\n", script)
        self.program("scontrol", "#!/bin/sh\necho 127.0.0.1\n")
        self.program("srun", "#!/bin/sh\nshift\nSLURM_NODEID=1 \"$@\" &\nSLURM_NODEID=0 \"$@\" && wait $!\n")
        self.program("python3", f"#!/bin/sh\nexec {sys.executable} \"$@\"\n")
        done = subprocess.run(["bash", self.script(script, "job.sh")], stdout=subprocess.PIPE, text=True, timeout=120, stdin=subprocess.DEVNULL,
                              env={**os.environ, "PATH": self.folder + os.pathsep + os.environ["PATH"], "SLURM_JOB_NODELIST": "n[1-2]",
                                   "SLURM_NNODES": "2", "SLURM_JOB_ID": "1", "SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_STEP_ID": "0"})
        self.assertEqual(done.returncode, 0)
        self.assertEqual(sorted(done.stdout.splitlines()), [f"[rank {i}] {i} 4 {i % 2} 2 127.0.0.1 0 {i // 2} a b" for i in range(4)])


if __name__ == "__main__":
    unittest.main()
