/* Whether a call has the operands that its kernel is written for. A text may say anything, so this
 * is looked at before every call; how sizes must go together is up to each kernel. */
#include "run/kernel/kernel_check.h"

#include "run/kernel/plain.h"
#include "run/kernel/point.h"
#include "run/kernel/reduction.h"

/* By operand and by result, in order; what follows is not looked at:
 *
 *   T a tensor    I one of integers    M one of two dimensions or more    R one of any dtype
 *   L a list of tensors    S a number or a list of numbers    . anything
 *
 * Small letters: or None; l: a list whose items may be None. A result that is missing is one that
 * the operator does not return. */
struct needs {
    const char *args, *outs;
    bool (*sizes)(struct rt_call *c); /* for kernels that loops run without calling them */
};

/* Is the result what is left of operand 0 without the dimensions that are reduced, or with them of
 * size 1? */
static bool is_left(const struct rt_tensor *in, const struct rt_tensor *out, const bool *reduced)
{
    int kept = 0, at = 0;

    for (int d = 0; d < in->n; d++)
        kept += !reduced[d];
    if (out->n != in->n && out->n != kept)
        return false;
    for (int d = 0; d < in->n; d++) {
        bool there = out->n == in->n || !reduced[d];

        if (there && out->size[at] != (reduced[d] ? 1 : in->size[d]))
            return false;
        at += there;
    }
    return true;
}

/* Every dimension that operand i names is one of operand 0. */
static bool has_dims(const struct rt_call *c, uint32_t i)
{
    const struct rt_value *v = arg_at(c, i);
    int64_t n = arg_tensor(c, 0)->n > 0 ? arg_tensor(c, 0)->n : 1;

    for (uint32_t k = 0; k < (v->kind == RT_LIST ? v->n : v->kind == RT_INT); k++) {
        const struct rt_value *d = v->kind == RT_LIST ? &v->item[k] : v;

        if (d->kind != RT_INT || d->i < -n || d->i >= n)
            return false;
    }
    return true;
}

/* dims: the operand that names dimensions; if it names none, all are reduced, but any() and all()
 * of an empty list reduce none. */
static bool reduces(struct rt_call *c, uint32_t dims)
{
    const struct rt_tensor *in = arg_tensor(c, 0);
    const struct rt_value *v = arg_at(c, dims);
    bool reduced[RT_DIMS],
        logical = c->kernel->id == OP_KERNEL_any || c->kernel->id == OP_KERNEL_all;

    if (!has_dims(c, dims))
        return kernel_error(c, "a dimension that operand 0 does not have");
    if (v->kind == RT_LIST || v->kind == RT_INT)
        reduction_dims(c, in, dims, reduced);
    else
        memset(reduced, true, sizeof(reduced));
    if (logical && v->kind == RT_LIST && v->n == 0)
        memset(reduced, false, sizeof(reduced));
    for (uint32_t i = 0; i < c->n_out; i++)
        if (out_at(c, i) != NULL && !is_left(in, out_at(c, i), reduced))
            return kernel_apart(c);
    return true;
}

static bool folds(struct rt_call *c)
{
    return reduces(c, 1);
}

static bool folds_norm(struct rt_call *c)
{
    return reduces(c, 2);
}

static bool broadcasts(struct rt_call *c)
{
    return c->n_out == 0 || kernel_broadcasts(c, arg_tensor(c, 0), c->out);
}

static const struct needs needs[OP_KERNEL_END] = {
    [OP_KERNEL_copy] = {"r", "r", broadcasts},
    [OP_KERNEL_mm] = {"MM", "M", NULL},
    [OP_KERNEL_addmm] = {"TMM", "M", NULL},
    [OP_KERNEL_mv] = {"TT", "T", NULL},
    [OP_KERNEL_addmv] = {"TMT", "T", NULL},
    [OP_KERNEL_addr] = {"TTT", "M", NULL},
    [OP_KERNEL_scaled_mm] = {"RRTTtt", "R", NULL},
    [OP_KERNEL_grouped_mm] = {"MMi", "M", NULL},
    [OP_KERNEL_sum] = {"T", "T", folds},
    [OP_KERNEL_mean] = {"T", "T", folds},
    [OP_KERNEL_prod] = {"T", "T", folds},
    [OP_KERNEL_amax] = {"T", "T", folds},
    [OP_KERNEL_amin] = {"T", "T", folds},
    [OP_KERNEL_any] = {"T", "T", folds},
    [OP_KERNEL_all] = {"T", "T", folds},
    [OP_KERNEL_count_nonzero] = {"T", "T", folds},
    [OP_KERNEL_vector_norm] = {"T", "T", folds_norm},
    [OP_KERNEL_var_mean] = {"T", "TT", folds},
    [OP_KERNEL_var] = {"T", "T", folds},
    [OP_KERNEL_std] = {"T", "T", folds},
    [OP_KERNEL_std_mean] = {"T", "TT", folds},
    [OP_KERNEL_logsumexp] = {"T", "T", folds},
    [OP_KERNEL_mse_loss] = {"TT", "T", NULL},
    [OP_KERNEL_l1_loss] = {"TT", "T", NULL},
    [OP_KERNEL_huber_loss] = {"TT", "T", NULL},
    [OP_KERNEL_smooth_l1_loss] = {"TT", "T", NULL},
    [OP_KERNEL_soft_margin_loss] = {"TT", "T", NULL},
    [OP_KERNEL_bce_loss] = {"TTt", "T", NULL},
    [OP_KERNEL_bce_logits_loss] = {"TTtt", "T", NULL},
    [OP_KERNEL_kl_div_loss] = {"TT", "T", NULL},
    [OP_KERNEL_multi_margin_loss] = {"TI..t", "T", NULL},
    [OP_KERNEL_multi_margin_loss_backward] = {"TTI..t", "T", NULL},
    [OP_KERNEL_cdist] = {"MM", "M", NULL},
    [OP_KERNEL_cdist_backward] = {"MMM.M", "M", NULL},
    [OP_KERNEL_full] = {"", "R", NULL},
    [OP_KERNEL_scalar_tensor] = {"", "R", NULL},
    [OP_KERNEL_zeros] = {"", "r", NULL},
    [OP_KERNEL_ones] = {"", "R", NULL},
    [OP_KERNEL_empty] = {"", "r", NULL},
    [OP_KERNEL_arange] = {"", "T", NULL},
    [OP_KERNEL_linspace] = {"", "T", NULL},
    [OP_KERNEL_iota] = {"", "T", NULL},
    [OP_KERNEL_eye] = {"", "T", NULL},
    [OP_KERNEL_tril] = {"M", "M", NULL},
    [OP_KERNEL_triu] = {"M", "M", NULL},
    [OP_KERNEL_tril_indices] = {"", "I", NULL},
    [OP_KERNEL_triu_indices] = {"", "I", NULL},
    [OP_KERNEL_cat] = {"L", "R", NULL},
    [OP_KERNEL_stack] = {"L", "R", NULL},
    [OP_KERNEL_reshape] = {"R", "R", NULL},
    [OP_KERNEL_slice_scatter] = {"RR", "R", NULL},
    [OP_KERNEL_select_scatter] = {"RR", "R", NULL},
    [OP_KERNEL_as_strided_scatter] = {"RRSS", "R", NULL},
    [OP_KERNEL_slice_backward] = {"R", "R", NULL},
    [OP_KERNEL_select_backward] = {"R", "R", NULL},
    [OP_KERNEL_diagonal_scatter] = {"RR", "R", NULL},
    [OP_KERNEL_diagonal_backward] = {"R", "R", NULL},
    [OP_KERNEL_diag_embed] = {"R", "R", NULL},
    [OP_KERNEL_block_diag] = {"L", "R", NULL},
    [OP_KERNEL_unfold_backward] = {"T", "T", NULL},
    [OP_KERNEL_channel_shuffle] = {"R", "R", NULL},
    [OP_KERNEL_pixel_shuffle] = {"R", "R", NULL},
    [OP_KERNEL_pixel_unshuffle] = {"R", "R", NULL},
    [OP_KERNEL_roll] = {"RSs", "R", NULL},
    [OP_KERNEL_copy_from] = {"R", "r", NULL},
    [OP_KERNEL_pad] = {"RS", "R", NULL},
    [OP_KERNEL_repeat] = {"R", "R", NULL},
    [OP_KERNEL_flip] = {"RS", "R", NULL},
    [OP_KERNEL_index] = {"Rl", "R", NULL},
    [OP_KERNEL_index_put] = {"TlT", "t", NULL},
    [OP_KERNEL_nonzero] = {"T", "I", NULL},
    [OP_KERNEL_masked_select] = {"TT", "T", NULL},
    [OP_KERNEL_bincount] = {"It", "T", NULL},
    [OP_KERNEL_repeat_index] = {"I", "T", NULL},
    [OP_KERNEL_masked_scatter] = {"TTT", "T", NULL},
    [OP_KERNEL_take] = {"RI", "R", NULL},
    [OP_KERNEL_masked_index] = {"TTl", "T", NULL},
    [OP_KERNEL_masked_index_put] = {"TTlT", "t", NULL},
    [OP_KERNEL_embedding] = {"MI", "R", NULL},
    [OP_KERNEL_embedding_backward] = {"TI", "M", NULL},
    [OP_KERNEL_embedding_bag] = {"MII...t", "Miii", NULL},
    [OP_KERNEL_embedding_bag_backward] = {"TII..i....t", "M", NULL},
    [OP_KERNEL_gather] = {"R.I", "R", NULL},
    [OP_KERNEL_scatter] = {"T.I", "t", NULL},
    [OP_KERNEL_scatter_op] = {"T.I", "t", NULL},
    [OP_KERNEL_scatter_add] = {"T.IT", "t", NULL},
    [OP_KERNEL_scatter_reduce] = {"T.IT", "t", NULL},
    [OP_KERNEL_index_select] = {"R.I", "R", NULL},
    [OP_KERNEL_index_add] = {"T.IT", "t", NULL},
    [OP_KERNEL_index_reduce] = {"T.IT", "t", NULL},
    [OP_KERNEL_index_copy] = {"T.IT", "t", NULL},
    [OP_KERNEL_index_fill] = {"T.I", "t", NULL},
    [OP_KERNEL_sort] = {"T", "TI", NULL},
    [OP_KERNEL_sort_stable] = {"T", "TI", NULL},
    [OP_KERNEL_topk] = {"T", "TI", NULL},
    [OP_KERNEL_max_dim] = {"T", "TI", NULL},
    [OP_KERNEL_min_dim] = {"T", "TI", NULL},
    [OP_KERNEL_kthvalue] = {"T", "TI", NULL},
    [OP_KERNEL_median_dim] = {"T", "TI", NULL},
    [OP_KERNEL_median] = {"T", "T", NULL},
    [OP_KERNEL_cross] = {"TT", "T", NULL},
    [OP_KERNEL_searchsorted] = {"TT...t", "I", NULL},
    [OP_KERNEL_bucketize] = {"TT", "I", NULL},
    [OP_KERNEL_argmax] = {"T", "I", NULL},
    [OP_KERNEL_argmin] = {"T", "I", NULL},
    [OP_KERNEL_cumsum] = {"T", "T", NULL},
    [OP_KERNEL_cumprod] = {"T", "T", NULL},
    [OP_KERNEL_logcumsumexp] = {"T", "T", NULL},
    [OP_KERNEL_cummax] = {"T", "TI", NULL},
    [OP_KERNEL_cummin] = {"T", "TI", NULL},
    [OP_KERNEL_histc] = {"T", "T", NULL},
    [OP_KERNEL_elu_backward] = {"T....T", "T", NULL},
    [OP_KERNEL_prelu_backward] = {"TTT", "tt", NULL},
    [OP_KERNEL_glu] = {"T", "T", NULL},
    [OP_KERNEL_glu_backward] = {"TT", "T", NULL},
    [OP_KERNEL_log_sigmoid_forward] = {"T", "Tt", NULL},
    [OP_KERNEL_softmax] = {"T", "T", NULL},
    [OP_KERNEL_safe_softmax] = {"T", "T", NULL},
    [OP_KERNEL_log_softmax] = {"T", "T", NULL},
    [OP_KERNEL_softmax_backward] = {"TT", "T", NULL},
    [OP_KERNEL_log_softmax_backward] = {"TT", "T", NULL},
    [OP_KERNEL_softmax_online] = {"T", "TT", NULL},
    [OP_KERNEL_attention_cpu] = {"TTT", "T", NULL},
    [OP_KERNEL_attention_cpu_backward] = {"TTTTTT", "TTT", NULL},
    [OP_KERNEL_attention_flash] = {"TTT", "T", NULL},
    [OP_KERNEL_attention_flash_backward] = {"TTTTTT", "TTT", NULL},
    [OP_KERNEL_attention_efficient] = {"TTT", "T", NULL},
    [OP_KERNEL_attention_efficient_backward] = {"TTTTtTT", "ttt", NULL},
    [OP_KERNEL_attention_cudnn] = {"TTT", "T", NULL},
    [OP_KERNEL_attention_cudnn_backward] = {"TTTTTT", "TTT", NULL},
    [OP_KERNEL_layer_norm] = {"TStt", "T", NULL},
    [OP_KERNEL_layer_norm_backward] = {"TTSTTtt", "ttt", NULL},
    [OP_KERNEL_rms_norm] = {"TSt", "T", NULL},
    [OP_KERNEL_rms_norm_backward] = {"TTSTt", "tt", NULL},
    [OP_KERNEL_group_norm] = {"Ttt", "TTT", NULL},
    [OP_KERNEL_group_norm_backward] = {"TTTTt", "ttt", NULL},
    [OP_KERNEL_batch_norm] = {"Mtt", "T", NULL},
    [OP_KERNEL_batch_norm_eval] = {"Mtttt", "T", NULL},
    [OP_KERNEL_batch_norm_backward] = {"TMttttt", "ttt", NULL},
    [OP_KERNEL_nll_loss] = {"TIt", "TT", NULL},
    [OP_KERNEL_nll_loss_backward] = {"TTIt..T", "T", NULL},
    [OP_KERNEL_convolution] = {"MMtSSS", "M", NULL},
    [OP_KERNEL_convolution_backward] = {"MMM.SSS", "ttt", NULL},
    [OP_KERNEL_max_pool] = {"MSsss", "MI", NULL},
    [OP_KERNEL_max_pool_offsets] = {"MSsss", "MI", NULL},
    [OP_KERNEL_pool_indices] = {"MSSSSS", "T", NULL},
    [OP_KERNEL_max_pool_backward] = {"MMSsss.I", "T", NULL},
    [OP_KERNEL_avg_pool] = {"MSss", "M", NULL},
    [OP_KERNEL_avg_pool_backward] = {"MMSss", "M", NULL},
    [OP_KERNEL_adaptive_avg_pool] = {"M", "M", NULL},
    [OP_KERNEL_adaptive_avg_pool_backward] = {"MM", "M", NULL},
    [OP_KERNEL_adaptive_max_pool] = {"M", "MI", NULL},
    [OP_KERNEL_adaptive_max_pool_backward] = {"MMI", "M", NULL},
    [OP_KERNEL_max_pool3] = {"MSsss", "MI", NULL},
    [OP_KERNEL_max_pool3_backward] = {"MMSsss.I", "M", NULL},
    [OP_KERNEL_avg_pool3] = {"MSss", "M", NULL},
    [OP_KERNEL_avg_pool3_backward] = {"MMSss", "M", NULL},
    [OP_KERNEL_adaptive_avg_pool3] = {"M", "M", NULL},
    [OP_KERNEL_adaptive_avg_pool3_backward] = {"MM", "M", NULL},
    [OP_KERNEL_im2col] = {"RSSSS", "R", NULL},
    [OP_KERNEL_col2im] = {"TSSSSS", "T", NULL},
    [OP_KERNEL_grid_sampler] = {"MM", "M", NULL},
    [OP_KERNEL_grid_sampler_backward] = {"MMM", "mm", NULL},
    [OP_KERNEL_upsample_nearest] = {"M", "M", NULL},
    [OP_KERNEL_upsample_nearest_backward] = {"M", "M", NULL},
    [OP_KERNEL_upsample_exact] = {"M", "M", NULL},
    [OP_KERNEL_upsample_exact_backward] = {"M", "M", NULL},
    [OP_KERNEL_upsample_linear] = {"M", "M", NULL},
    [OP_KERNEL_upsample_linear_backward] = {"M", "M", NULL},
    [OP_KERNEL_upsample_cubic] = {"M", "M", NULL},
    [OP_KERNEL_upsample_cubic_backward] = {"M", "M", NULL},
    [OP_KERNEL_reflect_pad] = {"MS", "M", NULL},
    [OP_KERNEL_reflect_pad_backward] = {"MMS", "M", NULL},
    [OP_KERNEL_replicate_pad] = {"MS", "M", NULL},
    [OP_KERNEL_replicate_pad_backward] = {"MMS", "M", NULL},
    [OP_KERNEL_all_gather_copy_in] = {"LR", "", NULL},
    [OP_KERNEL_split_copy] = {"RS.", "", NULL},
    [OP_KERNEL_chunk_cat] = {"L..r", "r", NULL},
    [OP_KERNEL_bucket_all_gather] = {"L..s", "R", NULL},
    [OP_KERNEL_bucket_reduce_scatter] = {"L", "R", NULL},
    [OP_KERNEL_foreach_copy] = {"L", "", NULL},
    [OP_KERNEL_foreach_zero] = {"L", "", NULL},
    [OP_KERNEL_foreach_norm] = {"L", "", NULL},
    [OP_KERNEL_fused_adam] = {"LLLLLL", "", NULL},
    [OP_KERNEL_fused_adamw] = {"LLLLLL", "", NULL},
    [OP_KERNEL_fused_sgd] = {"LLL", "", NULL},
    [OP_KERNEL_amp_unscale] = {"LTT", "", NULL},
    [OP_KERNEL_amp_update] = {"TTT", "T", NULL},
    [OP_KERNEL_fake_quantize] = {"T", "Tt", NULL},
    [OP_KERNEL_fake_quantize_channels] = {"TTT", "Tt", NULL},
    [OP_KERNEL_rand] = {"", "T", NULL},
    [OP_KERNEL_randn] = {"", "T", NULL},
    [OP_KERNEL_uniform] = {"", "T", NULL},
    [OP_KERNEL_normal] = {"", "T", NULL},
    [OP_KERNEL_normal_of] = {"", "T", NULL},
    [OP_KERNEL_exponential] = {"T", "T", NULL},
    [OP_KERNEL_geometric] = {"T", "T", NULL},
    [OP_KERNEL_cauchy] = {"T", "T", NULL},
    [OP_KERNEL_log_normal] = {"T", "T", NULL},
    [OP_KERNEL_bernoulli] = {"T", "T", NULL},
    [OP_KERNEL_bernoulli_of] = {"T", "T", NULL},
    [OP_KERNEL_dropout] = {"R", "RT", NULL},
    [OP_KERNEL_randint] = {"", "T", NULL},
    [OP_KERNEL_random] = {"T", "T", NULL},
    [OP_KERNEL_random_from] = {"T", "T", NULL},
    [OP_KERNEL_randperm] = {"", "T", NULL},
    [OP_KERNEL_multinomial] = {"T", "I", NULL},
    [OP_KERNEL_seeds] = {"", "I", NULL},
    [OP_KERNEL_lookup_seed] = {"I", "I", NULL},
    [OP_KERNEL_seeded] = {".I", "T", NULL},
    [OP_KERNEL_seeded_int] = {"...I", "T", NULL},
};

/* ---- operands ---- */

enum { ELEMENTS_MOST_BITS = 52 }; /* so that bytes of a few copies can be counted */

static bool is_countable(const struct rt_tensor *t)
{
    int64_t n = 1;

    for (int d = 0; d < t->n && t->n <= RT_DIMS; d++)
        if (t->size[d] < 0 || __builtin_mul_overflow(n, t->size[d] > 0 ? t->size[d] : 1, &n) ||
            n > (int64_t)1 << ELEMENTS_MOST_BITS)
            return false;
    return t->n <= RT_DIMS;
}

static bool is_tensor(const struct rt_tensor *t, char need)
{
    if (!is_countable(t) || t->dtype == DTYPE_NONE || dtype_at(t->dtype)->bytes == 0)
        return false;
    switch (need) {
    case 'R': return true;
    case 'I': return kind_of(t->dtype) == K_I64;
    case 'M': return t->n >= 2 && kind_of(t->dtype) != K_END;
    default: return kind_of(t->dtype) != K_END;
    }
}

static bool is_list(const struct rt_value *v, bool of_tensors, bool gaps)
{
    for (uint32_t i = 0; i < v->n; i++) {
        const struct rt_value *x = &v->item[i];

        if (of_tensors ? !(x->kind == RT_TENSOR && is_tensor(x->tensor, 'R')) &&
                             !(gaps && x->kind == RT_NONE)
                       : x->kind != RT_INT)
            return false;
    }
    return true;
}

static bool is_value(const struct rt_value *v, char need)
{
    bool optional = need >= 'a';
    char kind = (char)(optional ? need - 'a' + 'A' : need);

    if (need == '.')
        return v->kind != RT_TENSOR || is_tensor(v->tensor, 'R');
    if (v->kind == RT_NONE)
        return optional && need != 'l';
    switch (kind) {
    case 'L': return v->kind == RT_LIST && is_list(v, true, optional);
    case 'S': return v->kind == RT_INT || (v->kind == RT_LIST && is_list(v, false, false));
    default: return v->kind == RT_TENSOR && is_tensor(v->tensor, kind);
    }
}

static bool refuse(struct rt_call *c, const char *what, uint32_t i)
{
    return kernel_error(c, "%s %u is not one that %s works on", what, i, c->kernel->name);
}

static bool args_fit(struct rt_call *c, const char *need)
{
    for (uint32_t i = 0; i < c->n_arg || *need != '\0'; i++) {
        if (!is_value(arg_at(c, i), *need != '\0' ? *need : '.'))
            return refuse(c, "operand", i);
        need += *need != '\0';
    }
    return true;
}

static bool outs_fit(struct rt_call *c, const char *need)
{
    for (uint32_t i = 0; i < c->n_out || *need != '\0'; i++) {
        const struct rt_tensor *t = out_at(c, i);
        char kind = *need == '\0' ? 'r' : *need;

        if (t == NULL ? kind < 'a' : !is_tensor(t, (char)(kind < 'a' ? kind : kind - 'a' + 'A')))
            return refuse(c, "result", i);
        need += *need != '\0';
    }
    return true;
}

bool kernel_check_args(struct rt_call *c)
{
    const char *need = needs[c->kernel->id].args;

    return args_fit(c, need != NULL ? need : "");
}

bool kernel_check(struct rt_call *c)
{
    const struct needs *n = &needs[c->kernel->id];

    if (point_operands(c->kernel->id) > 0 && c->kernel->id != OP_KERNEL_copy)
        return args_fit(c, "") && outs_fit(c, "") && point_check(c);
    return args_fit(c, n->args != NULL ? n->args : "") &&
           outs_fit(c, n->outs != NULL ? n->outs : "") && (n->sizes == NULL || n->sizes(c));
}
