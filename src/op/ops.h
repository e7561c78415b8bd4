/* What Tuck knows about operators. All of it is in ops.def, one row per operator; these functions
 * look it up. Nothing else in the project may compare an operator's name.
 */
#ifndef TUCK_OP_OPS_H
#define TUCK_OP_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* ---- Classes: what kind of work it is -------------------------------------------------------- */

#define OP_CLASSES(X)                                                                              \
    X(VIEW, "view", "shares an operand's storage and moves no data")                               \
    X(POINTWISE, "pointwise", "element by element, operands broadcast")                            \
    X(GEMM, "gemm", "matrix products")                                                             \
    X(REDUCTION, "reduction", "sums, extrema, moments, norms over dimensions")                     \
    X(COPY, "copy", "moves or converts data without arithmetic")                                   \
    X(FACTORY, "factory", "a tensor from sizes and numbers")                                       \
    X(INDEX, "index", "reads or writes at positions given by a tensor")                            \
    X(SCAN, "scan", "running sums, products, extrema along a dimension")                           \
    X(SORT, "sort", "sorting, selection, search, histograms")                                      \
    X(RANDOM, "random", "draws random numbers")                                                    \
    X(CONV, "conv", "convolutions")                                                                \
    X(POOL, "pool", "pooling and resampling of images")                                            \
    X(NORM, "norm", "normalization layers and softmax, forward and backward")                      \
    X(LOSS, "loss", "loss functions, forward and backward")                                        \
    X(ATTENTION, "attention", "fused attention, forward and backward")                             \
    X(FOREACH, "foreach", "lists of tensors element by element, fused optimizers")                 \
    X(LINALG, "linalg", "decompositions, solvers, Fourier transforms")                             \
    X(COLLECTIVE, "collective", "starts a collective; its result is valid after the wait")         \
    X(WAIT, "wait", "ends a collective")                                                           \
    X(P2P, "p2p", "starts a send or a receive; ended by a wait")                                   \
    X(SYNC_COLLECTIVE, "sync_collective", "communicates, and no wait follows")                     \
    X(GROUP, "group", "returns a process group as a value")                                        \
    X(FSDP, "fsdp", "copies into and out of FSDP's and bucketing's flat buffers, sizes storages")  \
    X(GETITEM, "getitem", "picks one of several results, or indexes a container")                  \
    X(SCALAR, "scalar", "Python and symbolic numbers, sizes, strides")                             \
    X(ASSERT, "assert", "checks a condition at run time")                                          \
    X(CONTEXT, "context", "changes its environment: modes, streams, tokens, profiling, printing")  \
    X(HOP, "hop", "takes graphs or operators, and has their effects")

enum op_class {
#define X(id, ...) OP_##id,
    OP_CLASSES(X)
#undef X
        OP_CLASS_END
};

/* ---- Flags ----------------------------------------------------------------------------------- */

/* LOWERED: Inductor has its own lowering for it, and there is no formula for its flops. It includes
 * more than FUSIBLE, and is used for comparisons. */
#define OP_FLAGS(X)                                                                                \
    X(EFFECT, "effect", "never dead code, even if its result is unused")                           \
    X(MUTATES, "mutates", "writes an operand; the signature says which")                           \
    X(RANDOM, "random", "reads and advances a random state")                                       \
    X(DATADEP, "datadep", "the result's sizes, or its value on the host, depend on data")          \
    X(METADATA, "metadata",                                                                        \
      "reads sizes and strides, never data: may come between a collective and its wait")           \
    X(CONTIG, "contig", "operands must be contiguous")                                             \
    X(FIXED, "fixed", "operands must have the graph's order of strides")                           \
    X(EXACT, "exact", "operands must have the graph's strides")                                    \
    X(MAYBE, "maybe",                                                                              \
      "whether the signature's aliases and writes apply depends on strides, dtypes or flags")      \
    X(FUSIBLE, "fusible", "one loop over the result, which may be fused into another loop")        \
    X(HOST, "host", "the host waits for the device to know the result")                            \
    X(RESTRIDES, "restrides", "changes sizes, strides or storage of an operand in place")          \
    X(LOWERED, "lowered", "taken for fusible when torch 2.13 estimates costs")                     \
    X(AS_IS, "as_is", "element-wise: operands are not converted before the loop")                  \
    X(NARROW, "narrow", "element-wise: 16-bit floats are not widened to float32 before the loop")  \
    X(ALL_REDUCE, "all_reduce", "a collective of this kind, in whatever form")                     \
    X(ALL_GATHER, "all_gather", "a collective of this kind, in whatever form")                     \
    X(REDUCE_SCATTER, "reduce_scatter", "a collective of this kind, in whatever form")             \
    X(ALL_TO_ALL, "all_to_all", "a collective of this kind, in whatever form")                     \
    X(BROADCAST, "broadcast", "a collective of this kind, in whatever form")                       \
    X(SYMMETRIC, "symmetric", "its first operand must live in symmetric memory of the group")      \
    X(ONE_SHOT, "one_shot", "every rank reads the operands of all others: one step, no library")   \
    X(SYMM_OUT, "symm_out", "so must the first written operand after it")                          \
    X(FAKE_APART, "fake_apart",                                                                    \
      "shares a storage, but not under PyTorch's fake tensors: its estimates count another one")   \
    X(FRESH, "fresh", "a higher-order operator whose results share storage with no operand")       \
    X(PLACE, "place", "depends on where its operand lies in the storage")                          \
    X(UNCOUNTED, "uncounted",                                                                      \
      "torch 2.13 has no formula of its flops, and takes it for no compute")                       \
    X(ODD_TAGS, "odd_tags",                                                                        \
      "torch 2.13's tags call it a view or element-wise though its class is another, or not so")   \
    X(VERSIONS, "versions", "a list as operand 1: the form of older releases, the next row")       \
    X(WALL, "wall", "nothing moves across it: it stands between graphs that are compiled apart")

enum op_flag_bit {
#define X(id, ...) OP_BIT_##id,
    OP_FLAGS(X)
#undef X
        OP_BIT_END
};

enum op_flags {
#define X(id, ...) OP_F_##id = 1 << OP_BIT_##id,
    OP_FLAGS(X)
#undef X
};

_Static_assert(OP_BIT_END <= 31, "op_row.flags has no bit left");

/* ---- Rules that give sizes, strides, dtype and device of the results ------------------------- */

/* A column of ops.def, and what each value means. A rule is a function shape_NAME. */
#define OP_SHAPES(X)                                                                               \
    X(none, "no rule: the results stay unknown")                                                   \
    X(void, "there is no result")                                                                  \
    X(self, "the operand mutated or returned (out=, in place, waits), with all it has")            \
    X(alias, "sizes, strides and dtype of operand 0, sharing its storage or not")                  \
    X(like0, "new, as empty_like(operand 0)")                                                      \
    X(plain, "sizes and dtype of operand 0, contiguous")                                           \
    X(like1, "the gradient of operand 1: its sizes, contiguous or channels last")                  \
    X(plain1, "the gradient of operand 1: its sizes, contiguous")                                  \
    X(index_add, "operand 0 copied, then made contiguous")                                         \
    X(like_list, "a list, each as empty_like of the operand's item")                               \
    X(like_local, "as the second operand (symmetric memory: the local input)")                     \
    X(unary, "element-wise on operand 0, same dtype")                                              \
    X(unary_float, "element-wise, integers become the default float")                              \
    X(unary_real, "element-wise, complex becomes real (abs)")                                      \
    X(angle, "element-wise, a float; complex becomes real")                                        \
    X(unary_bool, "element-wise, result bool")                                                     \
    X(unary_pair, "element-wise with two results")                                                 \
    X(broadcast, "all tensor and number operands broadcast and promoted")                          \
    X(broadcast_float, "the same, integers become the default float")                              \
    X(broadcast_bool, "the same, result bool")                                                     \
    X(logical, "result bool; what is not bool is compared with 0 first")                           \
    X(div_mode, "division: as broadcast_float without a rounding mode, as broadcast with one")     \
    X(where, "operands 1 and 2 promoted, all three broadcast")                                     \
    X(masked_fill, "sizes broadcast, dtype of operand 0")                                          \
    X(relu, "where(x <= 0, 0, x), or of the gradient")                                             \
    X(fma, "a * b, then + c")                                                                      \
    X(tri, "where(mask of the last two dimensions, x, 0)")                                         \
    X(complex, "two real operands to one complex")                                                 \
    X(hardshrink, "where(|x| <= lambda, 0, x)")                                                    \
    X(softshrink, "where(|x| > lambda, x - sign(x) * lambda, x * 0)")                              \
    X(hardtanh, "clamped from both sides")                                                         \
    X(hardsigmoid, "x + 3 clamped, by 6")                                                          \
    X(hardswish, "x * hardsigmoid(x)")                                                             \
    X(celu, "where(x > 0, x, alpha * expm1(x / alpha))")                                           \
    X(elu, "where(x > 0, scaled, exponential)")                                                    \
    X(softplus, "where(scaled x > threshold, x, log1p(exp(scaled x)))")                            \
    X(mish, "x * tanh(softplus(x))")                                                               \
    X(log_sigmoid, "min(0, x) - log1p(exp(-|x|))")                                                 \
    X(logit, "log(x / (1 - x)), x clamped")                                                        \
    X(sinc, "where(x == 0, 1, sin(x) / x)")                                                        \
    X(ndtr, "(1 + erf(x)) / 2")                                                                    \
    X(log_ndtr, "the logarithm of ndtr")                                                           \
    X(square, "x * x")                                                                             \
    X(cauchy, "drawn for every element of an empty_like")                                          \
    X(exponential, "drawn for every element of an empty_like")                                     \
    X(geometric, "drawn for every element of an empty_like")                                       \
    X(log_normal, "drawn for every element of an empty_like")                                      \
    X(normal, "deviation * contiguous random numbers + mean")                                      \
    X(gelu, "x / 2 * (1 + erf or tanh)")                                                           \
    X(isfinite, "bool: x == x and |x| != inf")                                                     \
    X(isinf, "bool: |x| == inf")                                                                   \
    X(isreal, "bool: imag(x) == 0, or empty_like")                                                 \
    X(isin, "bool, as empty_like(operand 0)")                                                      \
    X(prelu, "where(x > 0, x, weight * x)")                                                        \
    X(heaviside, "where(x == 0, value, where(x < 0, 0, 1))")                                       \
    X(lcm, "|a / gcd(a, b) * b|")                                                                  \
    X(copysign, "where(signbit(b), -|a|, |a|)")                                                    \
    X(xlogy, "where(a == 0, 0, a * log(b)), nan where b is")                                       \
    X(rsub, "b - alpha * a")                                                                       \
    X(logaddexp, "max + log1p(exp(min - max)), infinities apart")                                  \
    X(logaddexp2, "the same to the base of 2")                                                     \
    X(pow_of_number, "number ** x")                                                                \
    X(clamp, "where(x >= min, x, min), then the same with max")                                    \
    X(iterator, "two operands in one loop of TensorIterator")                                      \
    X(sigmoid_backward, "gradient * y * (1 - y)")                                                  \
    X(tanh_backward, "gradient * (1 - y * y)")                                                     \
    X(silu_backward, "gradient * s * (1 + x * (1 - s)), s = sigmoid(x)")                           \
    X(mish_backward, "gradient * (t + x * sigmoid(x) * (1 - t * t))")                              \
    X(hardsigmoid_backward, "where(-3 < x < 3, gradient / 6, 0)")                                  \
    X(hardswish_backward, "where(x <= -3, 0, where(x < 3, gradient * f(x), gradient))")            \
    X(hardtanh_backward, "where(x is clamped, 0, gradient)")                                       \
    X(leaky_relu_backward, "where(x > 0, gradient, gradient * slope)")                             \
    X(softplus_backward, "where(x > threshold, gradient, gradient * z / (z + 1))")                 \
    X(mse_loss_backward, "norm * (input - target) * gradient")                                     \
    X(huber_loss_backward, "where the difference is large, small, or neither")                     \
    X(smooth_l1_backward, "where(|d| < beta, gradient * d, gradient * sign(d))")                   \
    X(gelu_backward, "gradient * (cdf + x * pdf), or of tanh")                                     \
    X(elu_backward, "where(y <= 0, scaled gradient * f(y), scaled gradient)")                      \
    X(logit_backward, "where(x in range, gradient / (x * (1 - x)), 0 or nan)")                     \
    X(log_sigmoid_backward, "gradient * (where - where * z / (1 + z))")                            \
    X(soft_margin_backward, "target * gradient * (sigmoid(target * x) - 1)")                       \
    X(bce_backward, "gradient * (x - target) / clamp(x * (1 - x)), weighted")                      \
    X(glu, "one dimension halved")                                                                 \
    X(clone, "operand 0 in a memory format")                                                       \
    X(to_copy, "operand 0 with dtype, device, memory format replaced")                             \
    X(convert, "operand 0 with another dtype, strides kept")                                       \
    X(device_put, "operand 0 on another device")                                                   \
    X(to, "as to_copy, or operand 0 itself where nothing changes")                                 \
    X(copy, "sizes and dtype of operand 0, data of operand 1")                                     \
    X(contiguous, "operand 0 itself, or a contiguous copy")                                        \
    X(force_stride, "operand 0 with the given strides")                                            \
    X(view, "given sizes (one may be -1), strides as a view of operand 0")                         \
    X(reshape, "as view where strides allow, else contiguous")                                     \
    X(flatten, "dimensions start_dim to end_dim made one, as reshape does")                        \
    X(unflatten, "one dimension made several, as view does")                                       \
    X(view_dtype, "bytes seen as another dtype, last dimension scaled")                            \
    X(permute, "dimensions in the given order")                                                    \
    X(transpose, "two dimensions, or the last two, swapped")                                       \
    X(reverse_dims, "dimensions in reverse order")                                                 \
    X(movedim, "dimensions moved to given places")                                                 \
    X(unsqueeze, "a dimension of size 1 more")                                                     \
    X(squeeze, "dimensions of size 1 dropped: all, one, some")                                     \
    X(expand, "dimensions of size 1 repeated with stride 0, new ones in front")                    \
    X(broadcast_in_dim, "dimensions placed and repeated as prims.broadcast_in_dim says")           \
    X(slice, "start, end, step along one dimension")                                               \
    X(narrow, "start and length along one dimension")                                              \
    X(narrow_copy, "the same, a copy")                                                             \
    X(roll, "as operand 0, contiguous")                                                            \
    X(select, "one index, the dimension dropped")                                                  \
    X(split, "a list of slices: equal parts or given sizes")                                       \
    X(chunk, "a list of slices: a number of parts, or cut at given places")                        \
    X(hsplit, "as chunk along dimension 1, or 0 of a vector")                                      \
    X(vsplit, "as chunk along dimension 0")                                                        \
    X(dsplit, "as chunk along dimension 2")                                                        \
    X(unbind, "a list of selects")                                                                 \
    X(as_strided, "given sizes, strides and offset")                                               \
    X(view_as_real, "complex to pairs of real")                                                    \
    X(view_as_complex, "pairs of real to complex")                                                 \
    X(real, "the real or imaginary part of a complex")                                             \
    X(diagonal, "a diagonal as the last dimension")                                                \
    X(unfold, "sliding windows as a new last dimension")                                           \
    X(view_copy, "the sizes of the view operator of the same name, contiguous")                    \
    X(split_copy, "the list of the view operator of the same name, each contiguous")               \
    X(backward_sizes, "given sizes (input_sizes), dtype of operand 0, contiguous")                 \
    X(cat, "operands joined along a dimension")                                                    \
    X(prims_cat, "the same, contiguous and in the dtype of the first")                             \
    X(stack, "operands joined along a new dimension")                                              \
    X(hstack, "joined along dimension 1, vectors along 0")                                         \
    X(vstack, "joined along dimension 0, vectors as rows")                                         \
    X(dstack, "joined along dimension 2")                                                          \
    X(column_stack, "joined along dimension 1, vectors as columns")                                \
    X(repeat, "tiled")                                                                             \
    X(tile, "tiled; dimensions of either added in front")                                          \
    X(repeat_interleave, "each element repeated")                                                  \
    X(pad, "dimensions from the last one padded")                                                  \
    X(scatter_into, "operand 0 with a part replaced")                                              \
    X(chunk_cat, "operands padded, chunked and joined")                                            \
    X(pixel_shuffle, "channels to space and back")                                                 \
    X(meshgrid, "a list, one dimension for each operand, expanded")                                \
    X(broadcast_tensors, "a list, each expanded to the sizes all broadcast to")                    \
    X(diag, "a diagonal taken out or put in")                                                      \
    X(mm, "[m, k] x [k, n]")                                                                       \
    X(int_mm, "[m, k] x [k, n] of 8-bit integers: int32")                                          \
    X(addmm, "[m, n] + [m, k] x [k, n]")                                                           \
    X(bmm, "batches of mm")                                                                        \
    X(baddbmm, "batches of addmm")                                                                 \
    X(addbmm, "the sum of a batch of products")                                                    \
    X(mv, "matrix by vector")                                                                      \
    X(dot, "two vectors to a number")                                                              \
    X(outer, "two vectors to a matrix")                                                            \
    X(matmul, "mm, mv, dot, or broadcast batches, by dimensions")                                  \
    X(linear, "input by the transpose of weight")                                                  \
    X(linear_backward, "gradients of input, weight, bias as the mask asks")                        \
    X(scaled_mm, "mm of scaled low precision operands with an output dtype")                       \
    X(grouped_mm, "mm by groups given by offsets")                                                 \
    X(reduce, "dimensions reduced; integers to int64; dtype= wins")                                \
    X(mean, "dimensions reduced, dtype kept; dtype= wins")                                         \
    X(nansum, "the same, but an empty list of dimensions reduces nothing")                         \
    X(reduce_same, "dimensions reduced, dtype kept")                                               \
    X(reduce_float, "dimensions reduced, integers become float")                                   \
    X(reduce_bool, "dimensions reduced, result bool")                                              \
    X(reduce_any, "the same; over no dimension a copy")                                            \
    X(count, "dimensions reduced, int64")                                                          \
    X(reduce_pair, "values and int64 indices of one reduced dimension")                            \
    X(arg_reduce, "int64 indices")                                                                 \
    X(aminmax, "minimum and maximum")                                                              \
    X(var, "variance: real")                                                                       \
    X(std, "deviation: real")                                                                      \
    X(var_mean, "variance and mean")                                                               \
    X(std_mean, "deviation and mean")                                                              \
    X(norm, "norms: real, dtype= wins")                                                            \
    X(softmax_online, "maximum and sum of exponentials with the dimension kept")                   \
    X(full, "given sizes, dtype= or the default")                                                  \
    X(like, "operand 0 with dtype, device, memory format replaced")                                \
    X(new, "given sizes, dtype and device of operand 0 unless given")                              \
    X(empty_strided, "given sizes and strides")                                                    \
    X(empty_permuted, "given sizes, strides in a given order")                                     \
    X(scalar_tensor, "no dimensions")                                                              \
    X(arange, "start, end, step: a vector")                                                        \
    X(linspace, "start, end, steps: a vector")                                                     \
    X(randperm, "int64, a vector of n")                                                            \
    X(iota, "length: a vector")                                                                    \
    X(eye, "n rows, n or m columns")                                                               \
    X(index, "advanced indexing by a list of optional index tensors")                              \
    X(gather, "sizes of the index")                                                                \
    X(index_select, "one dimension takes the index's length")                                      \
    X(take, "sizes of the index, or broadcast along a dimension")                                  \
    X(embedding, "indices' sizes and the width of the weight")                                     \
    X(embedding_backward, "num_weights rows and the width of the gradient")                        \
    X(embedding_bag_backward, "the same, where the gradient is dense")                             \
    X(masked_scatter, "sizes of the first two broadcast, dtype of operand 0, contiguous")          \
    X(index_fill, "as operand 0 where that is dense, else contiguous")                             \
    X(embedding_bag, "one row a bag, and bookkeeping tensors")                                     \
    X(embedding_bag_forward, "the same, as laid out where no gradient follows")                    \
    X(masked_select, "a vector of data-dependent length")                                          \
    X(nonzero, "[data-dependent, dimensions] int64")                                               \
    X(nonzero_static, "[size, dimensions] int64")                                                  \
    X(one_hot, "a last dimension of num_classes more, int64")                                      \
    X(scan, "operand 0, dtype= wins, integers become int64")                                       \
    X(sort, "values as operand 0 and int64 indices")                                               \
    X(argsort, "int64 indices as operand 0")                                                       \
    X(topk, "values and int64 indices with k along a dimension")                                   \
    X(searchsorted, "int64 or int32, sizes of the values")                                         \
    X(histc, "a vector of bins")                                                                   \
    X(native_dropout, "as operand 0, and a bool mask")                                             \
    X(native_dropout_backward, "operands broadcast, in the memory format of the gradient")         \
    X(nll_loss2d_backward, "the gradient of operand 1: its sizes, contiguous")                     \
    X(weight_norm, "the weight, and its norms with one dimension left")                            \
    X(weight_norm_backward, "gradients of the weight and of its magnitudes")                       \
    X(multinomial, "int64, the last dimension is num_samples")                                     \
    X(inductor_seeds, "int64 seeds")                                                               \
    X(inductor_lookup_seed, "one seed: no dimensions")                                             \
    X(inductor_random, "given sizes, device of the seed")                                          \
    X(conv, "convolution.default and its kin, by output sizes")                                    \
    X(conv_nd, "conv1d to conv_transpose3d: parameters without a transposed flag")                 \
    X(conv_backward, "gradients of input, weight, bias as the mask asks")                          \
    X(pool, "sliding windows over the last dimensions")                                            \
    X(pool_pair, "the same with indices")                                                          \
    X(pool_low, "the same with offsets in the windows, int8")                                      \
    X(pool_offsets, "offsets to int64 indices")                                                    \
    X(adaptive_pool, "given output sizes in the last dimensions")                                  \
    X(adaptive_pool_pair, "the same with indices")                                                 \
    X(upsample, "given output sizes, or scales, in the last dimensions")                           \
    X(upsample_packed, "the same, made contiguous in a format")                                    \
    X(upsample_linear, "the same by interpolation")                                                \
    X(upsample_backward, "given input sizes")                                                      \
    X(upsample_backward_plain, "the same, always contiguous")                                      \
    X(grid_sampler, "sizes of the grid")                                                           \
    X(layer_norm, "out, mean, rstd")                                                               \
    X(layer_norm_backward, "gradients of input, weight, bias as the mask asks")                    \
    X(rms_norm, "out, rstd")                                                                       \
    X(rms_norm_backward, "gradients of input, weight as the mask asks")                            \
    X(group_norm, "out, mean, rstd by group")                                                      \
    X(group_norm_backward, "gradients of input, weight, bias as the mask asks")                    \
    X(batch_norm, "out, saved mean, saved inverse deviation, and what the variant adds")           \
    X(batch_norm_eval, "the same with given statistics")                                           \
    X(batch_norm_library, "the same by cuDNN or MIOpen")                                           \
    X(batch_norm_backward, "gradients of input, weight, bias")                                     \
    X(softmax, "as operand 0; half_to_float or dtype= wins")                                       \
    X(log_softmax, "the same by several steps")                                                    \
    X(softmax_backward, "as the gradient, in input_dtype")                                         \
    X(log_softmax_backward, "element-wise in gradient and output, in input_dtype")                 \
    X(nll_loss, "loss by reduction, and the total weight")                                         \
    X(loss, "a number, or broadcast sizes without reduction")                                      \
    X(loss_steps, "the same by several steps")                                                     \
    X(loss_logits, "the same in the target's dtype")                                               \
    X(sdpa, "attention output alone")                                                              \
    X(sdpa_flash, "out, logsumexp, cum_seq, max_seq, rng_state and so on")                         \
    X(sdpa_efficient, "out, log_sumexp, seed, offset")                                             \
    X(sdpa_cudnn, "as sdpa_flash, in cuDNN's layout")                                              \
    X(sdpa_flash_cpu, "out, logsumexp")                                                            \
    X(sdpa_math, "out, attention weights")                                                         \
    X(sdpa_backward, "gradients as query, key, value")                                             \
    X(sdpa_backward_cpu, "the same, heads after the length in memory")                             \
    X(sdpa_efficient_backward, "the same and the bias's")                                          \
    X(foreach, "a list, element-wise on each item")                                                \
    X(foreach_clamp, "each item of a list clamped from one side")                                  \
    X(foreach_copy, "each item of a list copied")                                                  \
    X(foreach_pow, "each item of a list to a power")                                               \
    X(foreach_reduce, "a list of numbers")                                                         \
    X(all_gather, "dimension 0 times the group's size")                                            \
    X(all_gather_list, "the same for each item")                                                   \
    X(all_gather_low, "the same, group size from the group")                                       \
    X(reduce_scatter, "dimension 0 divided by the group's size")                                   \
    X(reduce_scatter_list, "the same for each item")                                               \
    X(reduce_scatter_low, "the same, group size from the group")                                   \
    X(all_to_all, "dimension 0 is the sum of the output splits")                                   \
    X(shard_dim_alltoall, "one dimension times the group's size, another divided by it")           \
    X(isend, "an empty vector to wait for")                                                        \
    X(batch_p2p, "a list: an empty vector for a send, the operand for a receive")                  \
    X(fused_ag_mm, "the gathered operand and a list of products")                                  \
    X(fused_mm_rs, "a product, one dimension divided by the group's size")                         \
    X(fused_scaled_mm_rs, "the same with an output dtype")                                         \
    X(all_gather_copy_in, "a slice of the output buffer, and the buffer")                          \
    X(all_gather_copy_in_new, "a slice of a new buffer, and the buffer")                           \
    X(bucket_all_gather, "the flat buffer of all ranks")                                           \
    X(bucket_reduce_scatter, "the flat operand of the collective")                                 \
    X(accumulate_grad, "the gradient that is kept")                                                \
    X(getitem, "an item of a list of results, or Python indexing")                                 \
    X(triton_functional, "operands of a kernel that are cloned before it writes them, by name")    \
    X(sym, "a number by arithmetic on numbers")                                                    \
    X(sym_size, "a size, or all")                                                                  \
    X(sym_stride, "a stride, or all")                                                              \
    X(sym_numel, "the number of elements")                                                         \
    X(sym_dim, "the number of dimensions")                                                         \
    X(is_complex, "is the dtype complex?")                                                         \
    X(is_floating, "is the dtype a float?")                                                        \
    X(is_contiguous, "is it contiguous?")                                                          \
    X(is_dense, "non-overlapping and dense?")                                                      \
    X(local_scalar, "a number read from a tensor: a new symbol")                                   \
    X(cond, "the results of the first branch")                                                     \
    X(while_loop, "as the carried operands")                                                       \
    X(scan_hop, "as the initial carry, then outputs with a dimension more")                        \
    X(map_hop, "what the graph gives, with a dimension more")                                      \
    X(flex_attention_backward, "gradients of query, key, value; of what else was read, not known") \
    X(invoke_subgraph, "the results of the graph")                                                 \
    X(control_deps, "the results of the graph")                                                    \
    X(with_effects, "a token, then the results of the operator")                                   \
    X(auto_functionalized, "the results of the operator, then the mutated operands")               \
    X(flex_attention, "out, logsumexp, max_scores")

enum op_shape {
#define X(id, ...) OP_SHAPE_##id,
    OP_SHAPES(X)
#undef X
        OP_SHAPE_END
};

/* ---- What it costs
 * ---------------------------------------------------------------------------- */

/* The number of floating-point operations, where a multiply-add counts as two; src/cost/flops.c has
 * the formulas. */
#define OP_FLOPS(X)                                                                                \
    X(none, "no formula: only what it moves counts")                                               \
    X(mm, "a product: for each element of the result, the last dimension of operand 0")            \
    X(addmm, "the same, of operand 1")                                                             \
    X(addbmm, "for each element of operand 1, the last dimension of operand 2")                    \
    X(grouped, "as mm; the groups of two matrices share the inner dimension")                      \
    X(contract, "one contraction of two tensors: the root of the product of all three sizes")      \
    X(linear_backward, "a product for each of input and weight that the mask asks for")            \
    X(mm_plus_mm, "two products")                                                                  \
    X(conv, "for each element of the result (transposed: the input), the filter")                  \
    X(conv_transposed, "for each element of the input, the filter")                                \
    X(conv_backward, "a convolution for each of input and weight that the mask asks for")          \
    X(sdpa, "two products over [batch, heads, length, width]; a causal mask is not discounted")    \
    X(sdpa_backward, "five products")                                                              \
    X(flash, "as sdpa over [batch, length, heads, width] or [total length, heads, width]")         \
    X(flash_backward, "five products")                                                             \
    X(ag_mm, "the products of a gathered operand")                                                 \
    X(mm_rs, "the product before it is scattered")

enum op_flops {
#define X(id, ...) OP_FLOPS_##id,
    OP_FLOPS(X)
#undef X
        OP_FLOPS_END
};

/* The bytes it reads and writes in memory, or sends. */
#define OP_MOVES(X)                                                                                \
    X(none, "nothing: a view, a number, a wait")                                                   \
    X(all, "reads its operands and writes its results; out= is not read")                          \
    X(out, "writes its results")                                                                   \
    X(over, "overwrites an operand without reading it")                                            \
    X(picked, "reads as much of operand 0 as it writes, and the others")                           \
    X(placed, "reads the operands it does not write, and writes as much")                          \
    X(maybe, "nothing if a view is enough, else a copy")                                           \
    X(message, "a collective: the larger of what goes in and what comes out")                      \
    X(gathered, "operand 0 gathered, under a product")                                             \
    X(scattered, "a product that is scattered")                                                    \
    X(nested, "what its graphs do, once each")                                                     \
    X(trips, "the same, repeated: how often is not known")                                         \
    X(branches, "what the most expensive of its graphs does")

enum op_moves {
#define X(id, ...) OP_MOVES_##id,
    OP_MOVES(X)
#undef X
        OP_MOVES_END
};

/* What computes its results when a graph is run (src/run/kernel). */
enum op_kernel {
#define KERNEL(id, ...) OP_KERNEL_##id,
#include "op/kernels.def"
#undef KERNEL
    OP_KERNEL_END
};

/* ---- Rows ------------------------------------------------------------------------------------ */

/* How a call is printed. */
enum op_form {
    OP_FORM_CALL,      /* torch.ops.aten.add.Tensor(a, b) */
    OP_FORM_BINARY,    /* a + b */
    OP_FORM_UNARY,     /* -a */
    OP_FORM_AUGMENTED, /* a += b */
    OP_FORM_GETITEM,   /* a[b] */
    OP_FORM_SETITEM,   /* a[b] = c */
};

struct op_row {
    const char *name;      /* aten.add.Tensor: what follows "torch.ops." */
    const char *signature; /* parameters and results; see ops.def */
    const char *lies;      /* corrections of the schema, or NULL */
    const char *symbol;    /* for operators printed as syntax, else NULL */
    uint32_t flags;        /* enum op_flags */
    uint8_t cls;           /* enum op_class */
    uint16_t shape;        /* enum op_shape */
    uint8_t flops;         /* enum op_flops */
    uint8_t moves;         /* enum op_moves */
    uint16_t kernel;       /* enum op_kernel */
    uint8_t form;          /* enum op_form */
};

uint32_t op_count(void);

/* Rows are numbered from 1, in the order of their names; op_at(0) is the unknown operator: a row
 * without name, with class OP_CLASS_END and no flags. */
extern const struct op_row op_rows[];
extern const uint32_t op_n_rows;

static inline const struct op_row *op_at(uint32_t op)
{
    return &op_rows[op < op_n_rows ? op : 0];
}

/* The row of a call_function's target, 0 if there is none. Accepts the spellings of graph texts:
 * torch.ops.aten.add.Tensor, aten.add.Tensor, a packet without overload (aten.cat: its default,
 * else its Tensor, self, int or first overload), operator.add and _operator.add, mangled
 * _operator_not_, math_sqrt_1 and torch_Tensor_add_, a bare builtin (getattr). Method m is
 * torch.Tensor.m here. */
uint32_t op_find(const char *target, size_t len);

/* The row of an operator printed as syntax: "+" with OP_FORM_BINARY, "[]" with OP_FORM_GETITEM. */
uint32_t op_by_symbol(enum op_form form, const char *symbol, size_t len);

const char *op_class_name(enum op_class cls);    /* "pointwise" */
const char *op_class_meaning(enum op_class cls); /* one line */
const char *op_shape_name(enum op_shape shape);
const char *op_shape_meaning(enum op_shape shape);
const char *op_flops_name(enum op_flops flops);
const char *op_flops_meaning(enum op_flops flops);
const char *op_moves_name(enum op_moves moves);
const char *op_moves_meaning(enum op_moves moves);
const char *op_kernel_name(enum op_kernel kernel);
const char *op_kernel_meaning(enum op_kernel kernel);
/* The i-th flag's name, "mutates" for OP_F_MUTATES; NULL after the last. */
const char *op_flag_name(unsigned i);

/* ---- Signatures ------------------------------------------------------------------------------ */

enum op_type {
    OP_T_TENSOR,
    OP_T_INT,
    OP_T_FLOAT,
    OP_T_BOOL,
    OP_T_STR,
    OP_T_SCALAR, /* any number */
    OP_T_DTYPE,
    OP_T_DEVICE,
    OP_T_LAYOUT,
    OP_T_MEMFMT,
    OP_T_GENERATOR,
    OP_T_STORAGE,
    OP_T_STREAM,
    OP_T_GRAPH, /* a nested graph */
    OP_T_OP,    /* an operator as a value */
    OP_T_ANY,
};

struct op_param {
    const char *name;         /* "" for results without a name, and for "..." */
    const char *default_text; /* in Python's notation; NULL if required */
    uint8_t type;             /* enum op_type */
    uint8_t depth;            /* 1: a list, 2: a list of lists */
    uint8_t list_size;        /* i[2]: a list of 2, or one int for all; 0 means any length */
    bool optional;            /* may be None */
    bool items_optional;      /* an item may be None */
    bool kwarg_only;
    bool rest;  /* "...": any number of further operands, positional or by name */
    char alias; /* 'a' …: shares storage with everything that has this letter; 0 if with nothing */
    bool mutated;
};

struct op_sig {
    struct op_param *params, *results;
    uint32_t n_params, n_results;
};

/* The signature of a row with its corrections applied, in the arena. A row that does not parse is
 * an error in ops.def: false, and *error_at (if not NULL) says where in the text. */
bool op_sig_parse(struct arena *a, const struct op_row *row, struct op_sig *sig,
                  const char **error_at);
/* The same from the schema alone, as PyTorch declares it. */
bool op_sig_parse_schema(struct arena *a, const struct op_row *row, struct op_sig *sig,
                         const char **error_at);

/* Are they overloads of one operator, such as aten.mean.default and aten.mean.dim? */
bool op_same_packet(uint32_t a, uint32_t b);

/* The parameter of that name, or -1. */
int op_param_find(const struct op_sig *sig, const char *name, size_t len);

/* Is that the name of parameter p? Needs no arena. */
bool op_param_is(const struct op_row *row, uint32_t p, const char *name, size_t len);

/* Does result r share storage with parameter p? Is parameter p written? */
bool op_result_aliases(const struct op_sig *sig, uint32_t r, uint32_t p);
bool op_param_mutated(const struct op_sig *sig, uint32_t p);
/* The first parameter that result r shares storage with, or -1 if it is new. */
int op_result_alias_of(const struct op_sig *sig, uint32_t r);

#endif
