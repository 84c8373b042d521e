"""An ordinary PyTorch DDP script (Gloo), as its users write it: nothing in it knows Muster."""

import gc
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    torch.manual_seed(1000 + rank)  # each rank has data of its own
    x = torch.randn(256, 8)
    y = x.pow(2).sum(1, keepdim=True) / 8
    first = last = None
    for step in range(60):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        last = mean.item() / world
        first = first if first is not None else last
        if step % 20 == 0:
            print(f"step {step} loss {last:.4f}", flush=True)
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    print(f"rank {rank}/{world} local {os.environ['LOCAL_RANK']} first {first:.4f} last {last:.4f} "
          f"sum {weights.double().sum().item():.12f}", flush=True)
    # PyTorch 2.11 aborts now and then, under torchrun too, when the process group goes before the DDP that uses it.
    del model, optimizer, loss
    gc.collect()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
