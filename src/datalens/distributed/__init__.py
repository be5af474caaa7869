"""Several processes, one run: who they are and what they tell each other; the only place of torch.distributed."""
