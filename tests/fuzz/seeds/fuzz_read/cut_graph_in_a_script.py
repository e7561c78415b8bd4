import torch
class A(torch.nn.Module):
    def forward(self, x):
        return (x,)

class B(torch.nn.Module):
    def forward(self, x):
        y = torch.ops.aten.neg.default(x)