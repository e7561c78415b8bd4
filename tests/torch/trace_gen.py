"""Random traces of GPU jobs as torch.profiler writes them, with their oddities."""

import gzip
import json
import math
import random

NVIDIA = {
    "compute": ["void at::native::elementwise_kernel<4, Foo<float> >(int)", "sm90_xmma_gemm_bf16", "triton_poi_fused_0",
                "void SyncBatchNorm_kernel<float>(float*)", "void (anonymous namespace)::dmaLike()",
                "void (anonymous namespace)::one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(x)",
                "void vllm::cross_device_reduce_1stage<float, 2>(x)", "Ünïcødé_核"],
    "comm": ["ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
             "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
             "ncclDevKernel_AllGather_RING_LL(ncclDevComm*)", "ncclSymkDevKernel_AllReduce_AGxLL_R_sum_bf16(x)"],
    "copy": ["Memcpy DtoD (Device -> Device)", "Memcpy PtoP (Device -> Device)", "Memcpy HtoD (Pinned -> Device)", "Memset (Device)"],
    "launch": ["cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync"],
}  # fmt: skip
ROCM = {
    "compute": ["Cijk_Ailk_Bljk_BBS_BH_MT128x128x32", "void at::native::vectorized_elementwise_kernel<4>(int)",
                "__amd_rocclr_fillBufferAligned.kd"],
    "comm": ["ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_Generic_1(x)"],
    "copy": ["Memcpy DtoD (Device -> Device)", "Memset (Device)", "CopyDeviceToDevice"],
    "launch": ["hipExtModuleLaunchKernel", "hipLaunchKernel", "hipMemcpyAsync"],
}  # fmt: skip

COMMUNICATES = ["nccl", "one_shot_all_reduce", "cross_device_reduce"]  # in names of kernels


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.words = self.random.choice([NVIDIA, ROCM])
        self.whole = self.random.random() < 0.3  # old traces count whole microseconds
        self.base = self.random.choice([0, 4458676522690, 1682725898236567])
        self.events = []
        self.correlation = self.random.choice([1, 6935929])
        self.taken = {}  # rounded start: is one of them shorter than a microsecond?

    def time(self, t):
        if self.whole:
            return self.base + int(t)
        return round(self.base + t, 3)

    def length(self, low, high):
        d = self.random.uniform(low, high)
        return int(d) if self.whole else round(d, 3)

    def event(self, cat, name, ts, dur, pid, tid, **args):
        e = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
        if args or self.random.random() < 0.5:
            e["args"] = args
        self.events.append(e)
        return e

    def kernel(self, launch, start, kind, stream):
        """Of kernels that begin in one microsecond, none may be shorter than one: there the other
        tool's result depends on its sort."""
        r = self.random
        ts, dur = self.time(start), self.length(0, r.choice([0.9, 5, 60, 300]))
        short = not self.whole and math.floor(ts + dur) < math.ceil(ts)
        first = math.ceil(ts)
        if first in self.taken and (short or self.taken[first]):
            return
        self.taken[first] = short or self.taken.get(first, False)
        self.correlation += r.choice([1, 1, 1, 5])
        rocm = self.words is ROCM
        args = {"stream": f"0x{r.getrandbits(40):x}"} if rocm and r.random() < 0.5 else {}
        if r.random() < 0.97:
            self.event("cuda_runtime", r.choice(self.words["launch"]), self.time(launch), self.length(1, 9),
                       100, 100, correlation=self.correlation, cbid=211, **args)  # fmt: skip
        name = r.choice(self.words[kind])
        cat = {"compute": "kernel", "comm": "kernel", "copy": "gpu_memset" if "Memset" in name else "gpu_memcpy"}[kind]
        more = {"External id": r.randrange(1000), "device": 0, "context": 1, "grid": [1, 2, 3], "block": [64, 1, 1]}
        if kind == "comm" and r.random() < 0.5:
            more |= {"Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "dtype": "Float",
                     "Group size": 8, "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}  # fmt: skip
        if kind == "copy":
            more |= {"bytes": 4096, "memory bandwidth (GB/s)": 3.5}
        self.event(cat, name, ts, dur, 0, stream, stream=stream, correlation=self.correlation, **more)

    def step(self, number, start, length, kernels):
        r = self.random
        self.event("user_annotation", f"ProfilerStep#{number}", self.time(start), self.length(length, length + 1), 100, 100)
        if r.random() < 0.3:  # the device's copy of it
            self.event("gpu_user_annotation", f"ProfilerStep#{number}", self.time(start + r.uniform(0, 30)),
                       self.length(length / 2, length), 0, 7)  # fmt: skip
        if r.random() < 0.2:  # again, nested
            self.event("user_annotation", f"ProfilerStep#{number}", self.time(start + 5), self.length(1, 9), 100, 100)
        for _ in range(kernels):
            launch = start + r.uniform(0, length * 0.9)
            kind = r.choices(["compute", "comm", "copy"], [6, 2, 1])[0]
            stream = {"compute": r.choice([7, 7, 0, 23]), "comm": r.choice([20, 40]), "copy": r.choice([7, 25])}[kind]
            self.kernel(launch, launch + r.uniform(3, length / 2), kind, stream)
            self.event("cpu_op", "aten::mm", self.time(launch - 1), self.length(1, 20), 100, 100, **{"Ev Idx": 3})
        if r.random() < 0.3:  # waits that the profiler was asked to record
            for name, stream in (("Stream Wait Event", 20), ("Event Sync", 7), ("Context Sync", r.choice([-1, 2**32 - 1]))):
                self.correlation += 1
                self.event("cuda_sync", name, self.time(start + r.uniform(1, length) + 0.123), self.length(2, 50), 0,
                           stream, stream=stream, correlation=self.correlation)  # fmt: skip

    def disturb(self):
        """What real traces have now and then: kernels without a launch, of a CUDA graph, of a second device, events that lack a member."""
        r = self.random
        for e in self.events:
            x, args = r.random(), e.get("args", {})
            if e["cat"] == "kernel" and x < 0.12:
                if x < 0.03:
                    args.pop("correlation")
                elif x < 0.05:
                    args["correlation"] = r.choice([0, -1])
                elif x < 0.07:
                    args |= {"correlation": self.correlation, "graph id": 3}  # all of them from one launch
                elif x < 0.09:
                    e["pid"] = args["device"] = 1
                elif x < 0.10:
                    e["dur"] = None
                elif x < 0.11:
                    e.pop("dur")
                else:
                    args["stream"] = str(args["stream"])
            elif e["cat"] == "cuda_runtime" and x < 0.06:
                if x < 0.03:
                    e["cat"] = r.choice(["cuda_driver", "hip_runtime", "privateuse1_runtime"])
                else:
                    args.pop("correlation")
        for e in [e for e in self.events if e["cat"] in ("kernel", "cpu_op") and (e.get("dur") or 0) > 2]:
            if r.random() < 0.02:  # there twice; two launches of a short kernel would be two kernels to the other tool
                self.events.append(dict(e))
        if r.random() < 0.3:  # launched before the first step, and after the last one
            self.kernel(-50, r.uniform(2, 20), "compute", 7)
            self.kernel(self.end + 5, self.end + r.uniform(9, 90), "compute", 7)
        for name in ("nccl:all_reduce", "## forward ##"):  # the device's copies of annotations, which some versions put on a stream
            if r.random() < 0.3:
                self.event("gpu_user_annotation", name, self.time(r.uniform(5, 300)), self.length(20, 90), 0, 7, **r.choice([{}, {"stream": 20}]))
        if r.random() < 0.3:
            self.event("Other", "no category", self.time(3), self.length(30, 50), 0, 7, stream=7, correlation=9).pop("cat")

    def write(self, path):
        r = self.random
        steps = r.choice([0, 1, 2, 3, 4])
        length = r.choice([400, 3000])
        if steps == 0:
            self.step(0, 10, length, 60)
            self.events = [e for e in self.events if "ProfilerStep" not in e["name"]]
        gap = r.choice([3, 3, -20])  # steps may overlap
        for i in range(steps):
            self.step(i + 8, 10 + i * (length + gap), length, r.choice([5, 40]))
        self.end = 10 + max(steps, 1) * (length + 3)
        self.disturb()
        self.events.append({"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans",
                            "tid": "PyTorch Profiler", "ts": self.time(0), "dur": self.length(9, 10), "args": {"Op count": 0}})
        self.events.append({"ph": "s", "id": 3, "pid": 100, "tid": 100, "ts": self.time(3), "cat": "ac2g", "name": "ac2g"})
        self.events.append({"ph": "M", "name": "process_name", "ts": self.time(3), "pid": 100, "tid": 0, "args": {"name": "python"}})
        self.events.append({"ph": "i", "s": "g", "name": "Iteration Start", "pid": "Traces", "tid": "x", "ts": self.time(3)})
        r.shuffle(self.events)
        doc = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8}}
        if r.random() < 0.5:
            doc = doc | {"traceEvents": self.events, "displayTimeUnit": "ms", "baseTimeNanoseconds": 17}
        else:
            doc = {"traceEvents": self.events} | doc
        text = json.dumps(doc, indent=r.choice([None, 2])).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
