# SPDX-License-Identifier: Apache-2.0
"""PyTorch: tensors on the CPU are inputs, outputs and values without copies. Its argument is a model that adds 1 to x."""
import sys

import numpy
import onnxruntime as ort
import torch

session = ort.InferenceSession(sys.argv[1])
x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
expected = x + 1

# inputs: tensors, parts of tensors, tensors with gradients, bfloat16
assert torch.equal(torch.from_numpy(session.run(None, {"x": x})[0]), expected)
assert torch.equal(torch.from_numpy(session.run(None, {"x": x.T})[0]), expected.T)
assert torch.equal(torch.from_numpy(session.run(None, {"x": x.clone().requires_grad_().detach()})[0]), expected)

# values share the memory of tensors, in both directions
value = ort.OrtValue.from_dlpack(x)
assert value.data_ptr() == x.data_ptr() and value.shape() == [2, 3] and value.data_type() == "tensor(float)"
assert torch.from_dlpack(value).data_ptr() == x.data_ptr()
out, = session.run_with_ort_values(None, {"x": value})
assert torch.from_dlpack(out).data_ptr() == out.data_ptr() and torch.equal(torch.from_dlpack(out), expected)

# bindings read and write the memory of tensors
y = torch.zeros(2, 3)
binding = session.io_binding()
binding.bind_input("x", "cpu", 0, numpy.float32, list(x.shape), x.data_ptr())
binding.bind_output("y", "cpu", 0, numpy.float32, list(y.shape), y.data_ptr())
session.run_with_iobinding(binding)
assert torch.equal(y, expected)
x += 10
session.run_with_iobinding(binding)
assert torch.equal(y, x + 1)

half = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
value = ort.OrtValue.from_dlpack(half)
assert value.data_type() == "tensor(bfloat16)" and torch.equal(torch.from_dlpack(value), half)
print("torch", torch.__version__)
