"""The models of dlbench in PyTorch, as functions of their parameters by name; shared by verify_pytorch.py and
peer_pytorch.py. Written from the papers and torchvision's and Hugging Face's definitions, not from dlbench's code."""

import re

import torch
import torch.nn.functional as F

# dlbench holds the momentum of batch norm and the epsilon of norms as the fp32 numbers nearest to 0.1 and 1e-5.
BATCH_NORM_MOMENTUM, EPSILON = 0.10000000149011612, 9.999999747378752e-06


def mlp(p, x):
    layers = sorted({int(name.split(".")[0]) for name in p})
    for i, layer in enumerate(layers):
        x = F.linear(x, p[f"{layer}.weight"], p[f"{layer}.bias"])
        if i + 1 < len(layers):
            x = F.relu(x)
    return x


def cnn(p, x):
    x = F.max_pool2d(F.relu(F.conv2d(x, p["0.weight"], p["0.bias"], padding=1)), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, p["3.weight"], p["3.bias"], padding=1)), 2)
    x = F.relu(F.linear(x.flatten(1), p["7.weight"], p["7.bias"]))
    return F.linear(x, p["9.weight"], p["9.bias"])


def resnet(p, x, buffers):
    """torchvision's resnet, v1.5; `buffers` are the running statistics, updated in place."""

    def norm(name, x):
        return F.batch_norm(x, buffers[f"{name}.running_mean"], buffers[f"{name}.running_var"], p[f"{name}.weight"],
                            p[f"{name}.bias"], training=True, momentum=BATCH_NORM_MOMENTUM,
                            eps=EPSILON)

    def conv(name, x, stride=1):
        w = p[f"{name}.weight"]
        return F.conv2d(x, w, stride=stride, padding=w.shape[2] // 2)

    def block(name, x, stride):
        bottleneck = f"{name}.conv3.weight" in p
        y = F.relu(norm(f"{name}.bn1", conv(f"{name}.conv1", x, 1 if bottleneck else stride)))
        y = norm(f"{name}.bn2", conv(f"{name}.conv2", y, stride if bottleneck else 1))
        if bottleneck:
            y = norm(f"{name}.bn3", conv(f"{name}.conv3", F.relu(y)))
        if f"{name}.downsample.0.weight" in p:
            x = norm(f"{name}.downsample.1", conv(f"{name}.downsample.0", x, stride))
        return F.relu(y + x)

    large_stem = p["conv1.weight"].shape[2] == 7
    x = F.relu(norm("bn1", conv("conv1", x, 2 if large_stem else 1)))
    if large_stem:
        x = F.max_pool2d(x, 3, 2, 1)
    blocks = sorted({tuple(map(int, m.groups())) for m in map(re.compile(r"layer(\d+)\.(\d+)\.").match, p) if m})
    for stage, index in blocks:
        x = block(f"layer{stage}.{index}", x, 2 if stage > 1 and index == 0 else 1)
    return F.linear(x.mean((2, 3)), p["fc.weight"], p["fc.bias"])


def gelu_tanh(x):
    # torch 1.12 and newer have F.gelu(approximate="tanh"); the formula is Hendrycks & Gimpel's (2016).
    return F.gelu(x, approximate="tanh")


def attention(q, k, v):
    """Causal; [B, heads, T, width]. Fused where this PyTorch has it, so that a peer is as fast as it can be."""
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    t = q.shape[2]
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    hidden = torch.ones(t, t, dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax(scores.masked_fill(hidden, float("-inf")), -1) @ v


def gpt2(p, tokens, heads):
    """Hugging Face's GPT2LMHeadModel without dropout; weights of its Conv1D are stored [in, out]."""
    b, t = tokens.shape
    x = F.embedding(tokens, p["wte.weight"]) + p["wpe.weight"][:t]
    d = x.shape[2]

    def norm(name, x):
        return F.layer_norm(x, (d,), p[f"{name}.weight"], p[f"{name}.bias"], EPSILON)

    def linear(name, x):
        w, bias = p[f"{name}.weight"], p[f"{name}.bias"]
        return torch.addmm(bias, x.reshape(-1, x.shape[2]), w).view(b, t, -1)

    layer = 0
    while f"h.{layer}.ln_1.weight" in p:
        h = f"h.{layer}"
        q, k, v = (z.view(b, t, heads, d // heads).transpose(1, 2)
                   for z in linear(f"{h}.attn.c_attn", norm(f"{h}.ln_1", x)).split(d, 2))
        mixed = attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        x = x + linear(f"{h}.attn.c_proj", mixed)
        x = x + linear(f"{h}.mlp.c_proj", gelu_tanh(linear(f"{h}.mlp.c_fc", norm(f"{h}.ln_2", x))))
        layer += 1
    return F.linear(norm("ln_f", x), p["wte.weight"])


def logits_of(workload, p, buffers, inputs, axes):
    if workload == "mlp":
        return mlp(p, inputs["x"])
    if workload == "cnn":
        return cnn(p, inputs["x"])
    if workload == "resnet":
        return resnet(p, inputs["x"], buffers)
    if workload == "gpt2":
        return gpt2(p, inputs["tokens"], axes["heads"])
    raise ValueError(f"no PyTorch model for workload {workload}; known: mlp, cnn, resnet, gpt2")


def loss_of(logits, inputs):
    targets = inputs["targets"] if "targets" in inputs else inputs["y"]
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


def optimizer_of(parameters, h, **more):
    if h["optimizer"] == "sgd":
        return torch.optim.SGD(parameters, lr=h["lr"], momentum=h["momentum"], weight_decay=h["weight_decay"], **more)
    return torch.optim.AdamW(parameters, lr=h["lr"], betas=(h["beta1"], h["beta2"]), eps=h["eps"],
                             weight_decay=h["weight_decay"], **more)
