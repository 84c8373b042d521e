"""What no training of Llama-3-8B can beat: its FP8 products, attention and LM head alone (8192 tokens, PyTorch's own calls), in
training order, back to back at the power limit. usage: gpu_limit.py [SECONDS of the first rows, default 25] [ROWS, default all 7]"""
import ctypes, subprocess, sys, threading, time

import torch
from torch.nn.attention import sdpa_kernel, SDPBackend
dev, T, L = 'cuda', 8192, 32
e4, e5 = torch.float8_e4m3fn, torch.float8_e5m2
def f8(r, c, dt): x = torch.randn(r, c, device=dev); m = x.abs().max(); s = (448. if dt is e4 else 57344.)/m; return (x*s).to(dt), (1/s).float().reshape(1)
SH = dict(qkv=(6144, 4096), proj=(4096, 4096), fc1=(28672, 4096), fc2=(4096, 14336))
ops = {}
for n, (N, K) in SH.items():
    x, sx = f8(T, K, e4); w, sw = f8(N, K, e4); dy, sy = f8(T, N, e5); wt, swt = f8(K, N, e4); xt, sxt = f8(K, T, e4); dyt, syt = f8(N, T, e5)
    ops[n] = dict(f=(x, w.t(), sx, sw), d=(dy, wt.t(), sy, swt), w=(dyt, xt.t(), syt, sxt))
q = torch.randn(1, 32, T, 128, device=dev, dtype=torch.bfloat16, requires_grad=True); k, v = [torch.randn(1, 8, T, 128, device=dev, dtype=torch.bfloat16, requires_grad=True) for _ in range(2)]
do = torch.randn(1, 32, T, 128, device=dev, dtype=torch.bfloat16)
h = torch.randn(T, 4096, device=dev, dtype=torch.bfloat16); W = torch.randn(128256, 4096, device=dev, dtype=torch.bfloat16)*.02; dl = torch.randn(T, 128256, device=dev, dtype=torch.bfloat16)
def mm(o, fast): return torch._scaled_mm(o[0], o[1], o[2], o[3], out_dtype=torch.bfloat16, use_fast_accum=fast)
def micro(ff, fd, fw, attn=True, head=True, gemm=True):
    outs = []
    for _ in range(L):
        if gemm:
            for n in SH: mm(ops[n]['f'], ff)
        if attn:
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION): outs.append(torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))
            if len(outs) > 2: outs.pop(0)
    if head: h @ W.t(); dl @ W; dl.t() @ h
    for _ in range(L):
        if gemm:
            for n in reversed(SH): mm(ops[n]['d'], fd); mm(ops[n]['w'], fw)
        if attn: torch.autograd.grad(outs[0], (q, k, v), do, retain_graph=True)
nvml, handle = ctypes.CDLL('libnvidia-ml.so.1'), ctypes.c_void_p()
nvml.nvmlInit_v2(), nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle))
def joules():  # the GPU's energy counter, as the training rows read it
    value = ctypes.c_ulonglong()
    assert nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(value)) == 0
    return value.value * 1e-3
def watch(stop, rows):
    while not stop.is_set():
        o = subprocess.run(['nvidia-smi', '--query-gpu=clocks.sm,power.draw', '--format=csv,noheader,nounits'], capture_output=True, text=True).stdout.split(',')
        try: rows.append((float(o[0]), float(o[1])))
        except Exception: pass
        time.sleep(.5)
def run(label, secs, **kw):
    for _ in range(2): micro(**kw)
    torch.cuda.synchronize(); stop, rows = threading.Event(), []; th = threading.Thread(target=watch, args=(stop, rows)); th.start()
    n, t, e = 0, time.time(), joules()
    while time.time() - t < secs: micro(**kw); torch.cuda.synchronize(); n += 1
    d, e = time.time() - t, joules() - e; stop.set(); th.join(); rows = rows[4:] or rows
    mhz = sum(r[0] for r in rows)/len(rows); w = sum(r[1] for r in rows)/len(rows)
    print(f'{label:58s} {d/n*1e3:7.1f} ms  {d/n/T*1e6:6.2f} us/token  {n*T/d:8.0f} tok/s  {mhz:5.0f} MHz {w:4.0f} W  {e/n/T*1e3:6.2f} mJ/token', flush=True)
S = float(sys.argv[1]) if len(sys.argv) > 1 else 25
A = dict(ff=True, fd=False, fw=False)
R = int(sys.argv[2]) if len(sys.argv) > 2 else 7
ROWS = [('all: fprop fast, dgrad and wgrad split', S, A), ('all: everything fast', S, dict(ff=True, fd=True, fw=True)),
        ('all: fprop and dgrad fast', S, dict(ff=True, fd=True, fw=False)), ('GEMMs only, fprop fast', 15, dict(A, attn=False, head=False)),
        ('GEMMs only, everything fast', 15, dict(ff=True, fd=True, fw=True, attn=False, head=False)),
        ('attention only', 10, dict(A, head=False, gemm=False)), ('head only', 8, dict(A, attn=False, gemm=False))]
for label, secs, kw in ROWS[:R]: run(label, secs, **kw)
