"""scripts/verify_pytorch.py sees what is wrong: planted errors, broken dumps."""

import json
import pathlib
import shutil
import tempfile
import unittest

import numpy

from compare_step import dump, verify

DEVICE = "reference"


class VerifyPytorch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory(prefix="dlbench-pytorch-")
        cls.right = pathlib.Path(cls.root.name) / "right"
        dump(f"cnn/batch=3/device={DEVICE}", cls.right)

    @classmethod
    def tearDownClass(cls):
        cls.root.cleanup()

    def copy(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.root.name)) / "dump"
        shutil.copytree(self.right, folder)
        return folder

    def change(self, file, change):
        folder = self.copy()
        array = numpy.load(folder / file)
        change(array)
        numpy.save(folder / file, array)
        return folder

    def test_a_right_step_passes(self):
        result = verify(self.right)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_the_manifest_is_as_documented(self):
        manifest = json.loads((self.right / "manifest.json").read_text())
        self.assertEqual(list(manifest), ["key", "workload", "axes", "hyperparameters", "step", "loss", "tensors"])
        self.assertEqual(list(manifest["hyperparameters"]),
                         ["optimizer", "lr", "momentum", "weight_decay", "beta1", "beta2", "eps"])
        self.assertEqual(list(manifest["tensors"][0]), ["role", "name", "dtype", "shape", "file"])
        names = {(t["role"], t["name"]): t["shape"] for t in manifest["tensors"]}
        self.assertEqual(names["input", "x"], [3, 3, 32, 32])
        self.assertEqual(names["gradient", "3.weight"], [64, 32, 3, 3])
        self.assertEqual(names["output", "logits"], [3, 10])

    def assert_wrong(self, folder, tensor):
        result = verify(folder)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        line = next((line for line in result.stdout.splitlines() if line.startswith(tensor)), "")
        self.assertIn("WRONG", line, result.stdout)

    def test_half_of_one_filters_gradient(self):
        def lose_half(gradient):
            gradient[7, :16] = 0
        self.assert_wrong(self.change("gradient.3.weight.npy", lose_half), "gradient 3.weight")

    def test_an_update_that_forgot_one_bias(self):
        folder = self.copy()
        shutil.copy(folder / "parameter.0.bias.npy", folder / "updated.0.bias.npy")
        self.assert_wrong(folder, "step 0.bias")

    def test_a_nan(self):
        def spoil(logits):
            logits[1, 2] = numpy.nan
        self.assert_wrong(self.change("output.logits.npy", spoil), "output logits")

    def test_a_loss_that_is_slightly_off(self):
        folder = self.copy()
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["loss"] *= 1.001
        (folder / "manifest.json").write_text(json.dumps(manifest))
        self.assert_wrong(folder, "loss")

    def assert_refused(self, folder, says):
        result = verify(folder)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn(says, result.stderr)
        self.assertNotIn("Traceback", result.stderr)

    def test_no_dump(self):
        self.assert_refused(pathlib.Path(self.root.name), "dlbench check --point KEY --dump")

    def test_a_manifest_cut_short(self):
        folder = self.copy()
        text = (folder / "manifest.json").read_text()
        (folder / "manifest.json").write_text(text[:100])
        self.assert_refused(folder, "is no JSON")

    def test_a_missing_tensor(self):
        folder = self.copy()
        (folder / "input.x.npy").unlink()
        self.assert_refused(folder, "input.x.npy")


if __name__ == "__main__":
    unittest.main(verbosity=2)
